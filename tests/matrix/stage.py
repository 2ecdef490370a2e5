"""The house that a scene is set in: empty servers, one small facility, hands for the far side."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import UUID

from flask import Flask

from portal import doorbell
from portal.doorbell import KINDS
from portal.edges.payments.port import ProviderEvent
from portal.jobs.house import House
from portal.outcome import Applied
from portal.verbs import payments, stays
from sandbox.mail import MailSink
from sandbox.seam.running import Running, eventually
from sandbox.stripe.testing import StandIn
from tests.cast import Booked, Cast
from tests.conftest import wipe
from tests.matrix import outside
from tests.outside import Owner, codes_on_locks, events, pay, receive, work

Given = dict[str, Any]
"""What a scene gives to its act, by name. It travels to the child, so it is values only."""

PATIENCE = 60
ROUNDS = 12


class StuckError(AssertionError):
    """Something waits that nobody will ever pick up."""


@dataclass
class Stage:
    app: Flask
    house: House
    owner: Owner
    database: str
    stripe: StandIn
    seam: Running
    line: Running
    mail: MailSink
    cast: Cast = field(init=False)

    def clear(self) -> None:
        """Nothing stands anywhere."""
        wipe(self.database)
        doorbell.connection().flushall()
        self.stripe.post("reset")
        if codes_on_locks(self.seam) or self.cast_is_new():
            self.seam.reset()
            self.seam.control("settings", {"settle_seconds": 0})
        self.line.control("reset", {})
        self.mail.forget()
        self.cast = Cast(self.app)
        self.cast.tokyo = self.cast.open_house(  # type: ignore[misc]
            "haneda-capsule", "羽田カプセルホテル", "Haneda Capsule Hotel", spaces=("A01", "A02")
        )

    def cast_is_new(self) -> bool:
        return not hasattr(self, "cast")

    # What stands ----------------------------------------------------------------------------

    def given(self, stay: Booked, **more: Any) -> Given:
        """What every act on a stay needs, and `more`."""
        return {
            "facility": stay.facility_id,
            "actor": self.cast.sato.actor,
            "stay": stay.id,
            "seen": self.owner.one("select version from stays where id = %s", stay.id),
            **more,
        }

    def do(self, verb: Callable[..., Any], *args: Any, **more: Any) -> Applied:
        with self.cast.transaction(self.cast.tokyo.id) as tx:
            said = verb(tx, self.cast.sato.actor, *args, **more)
        assert isinstance(said, Applied), said
        return said

    def at_desk(self, verb: Callable[..., Any], *args: Any, **more: Any) -> Any:
        return verb(self.house.desk(self.cast.tokyo.id), self.cast.sato.actor, *args, **more)

    def opened(self, stay: Booked, part: Any = "balance") -> UUID:
        """A card payment that waits for its card."""
        said = self.at_desk(payments.open_payment, stay.id, part)
        assert isinstance(said, Applied), said
        assert said.subject is not None
        return said.subject

    def intent(self, payment: UUID) -> str:
        return str(self.owner.one("select intent_id from payments where id = %s", payment))

    def pay(self, payment: UUID, card: str = "pm_card_visa") -> None:
        """The guest pays; we have not heard of it."""
        pay(self.stripe, self.intent(payment), card)

    def event(self, kind: str) -> ProviderEvent:
        """The provider's last event of this kind."""
        return [one for one in events(self.house) if one.type == kind][-1]

    def hear(self) -> None:
        """Every event of the provider is delivered, and all that follows is done."""
        receive(*events(self.house))
        self.quiet()

    def admit(self, stay: Booked) -> Booked:
        version = self.owner.one("select version from stays where id = %s", stay.id)
        self.do(stays.admit, stay.id, version)
        return stay

    # Time and work --------------------------------------------------------------------------

    def work(self) -> None:
        work(self.house, *KINDS)

    def quiet(self, do_round: Callable[[], Any] | None = None) -> None:
        """Time passes and the sweeps ring, until nothing waits any more."""
        for _ in range(ROUNDS):
            self.locks_rest()
            outside.pass_time(self.owner)
            (do_round or self.work)()
            if not (left := outside.waiting(self.owner)):
                return
        raise StuckError(f"still waiting: {left}")

    def locks_rest(self) -> None:
        """Until no lock is in the middle of setting or removing a code."""
        eventually(partial(outside.locks_at_rest, self.seam), PATIENCE)
