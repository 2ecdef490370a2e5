"""One house with all four edges: a fault is ordered, the edge comes back, everything goes quiet."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from portal import clock
from portal.edges.line.adapter import LineMessages
from portal.edges.locks.adapter import SeamLocks
from portal.edges.mail.adapter import SmtpMail
from portal.edges.payments.adapter import StripePayments
from portal.jobs import catch_up, house
from portal.jobs.house import House
from portal.outcome import Applied, Outcome
from portal.queries import attention
from portal.verbs import messages, payments, refunds, stays
from portal.verbs.desk import Desk
from sandbox.mail import MailSink
from sandbox.seam.running import Running, eventually
from sandbox.stripe.testing import StandIn
from tests.cast import Booked, Cast
from tests.chaos import faults
from tests.chaos.faults import Edge, Fault
from tests.outside import LINE_TOKEN, SEAM_KEY, STRIPE_KEY, Owner, deliver, pay, settle_locks, work

NOWHERE = "http://127.0.0.1:9"
KINDS = ("inbox", "locks", "refunds", "outbox", "payments", "keys", "memberships")
ROUNDS = 40
"""More than any fault of the table needs until everything is quiet."""
AT_REST = ("set", "unset")


@dataclass
class Scene:
    """`worker` reaches every edge; `stay` is what the operation at hand is about."""

    cast: Cast
    worker: House
    owner: Owner
    stripe: StandIn
    seam: Running
    line: Running
    mail: MailSink
    stay: Booked | None = None
    still: int = 1
    """In how many rounds nothing may move until it is quiet: an edge may fail that often."""
    late: bool = False
    """An edge is still at a call for whose answer nobody waits any more."""

    @property
    def house(self) -> House:
        """The house at work: `worker`, or while an edge is away one that looks for it in vain."""
        assert house._house is not None
        return house._house

    @property
    def desk(self) -> Desk:
        assert self.stay is not None
        return self.house.desk(self.stay.facility_id)

    # Arranging: what people did before -------------------------------------------------------

    def book(self, price: int = 6000, **more: Any) -> Booked:
        self.stay = self.cast.book(price=price, **more)
        return self.stay

    def do(self, verb: Callable[..., Outcome], *about: Any) -> Outcome:
        assert self.stay is not None
        with self.cast.transaction(self.stay.facility_id) as tx:
            return verb(tx, self.cast.sato.actor, *about)

    def open_payment(self) -> Outcome:
        assert self.stay is not None
        return payments.open_payment(self.desk, self.cast.sato.actor, self.stay.id, "balance")

    def opened(self) -> str:
        assert isinstance(self.open_payment(), Applied)
        return str(self.owner.one("select intent_id from payments"))

    def pay(self) -> None:
        """The guest pays what is open."""
        intent = self.owner.one("select intent_id from payments where state = 'open'")
        pay(self.stripe, intent)

    def paid(self) -> None:
        self.book()
        self.opened()
        self.pay()
        deliver(self.worker)
        work(self.worker, "outbox")

    def admitted(self) -> Booked:
        stay = self.book(price=0)
        assert isinstance(self.do(stays.admit, stay.id, 1), Applied)
        return stay

    def issued(self) -> Booked:
        stay = self.admitted()
        assert settle_locks(self.worker, self.owner, self._has_key, 30)
        work(self.worker, "outbox")
        return stay

    def _has_key(self) -> bool:
        return bool(self.owner.one("select state = 'issued' from entry_keys"))

    def refund(self, amount: int = 3000) -> Outcome:
        payment = self.owner.one("select id from payments where state = 'succeeded'")
        return refunds.ask(self.desk, self.cast.sato.actor, payment, amount, uuid4())

    # Faults ------------------------------------------------------------------------------------

    def break_down(self, edge: Edge, fault: Fault, method: str, path: str) -> None:
        """From now on the next matching calls go wrong."""
        self.still = fault.times
        self.late = fault in faults.UNHEARD
        if fault is faults.REFUSED:
            house.open_house(self._away(edge))
        elif edge == "mail":
            self._spoil_mail(fault)
        elif edge == "payments":
            self.stripe.post("faults", method=method, path=path, **faults.order(edge, fault))
        else:
            stand_in = self.seam if edge == "locks" else self.line
            told = faults.order(edge, fault)
            stand_in.control("faults", {"method": method, "path": path, **told})

    def _spoil_mail(self, fault: Fault) -> None:
        _, what, more = faults.MAIL[fault]
        reply, _, stage = what.partition(" ")
        if stage:
            self.mail.answer(stage, f"{reply} not now", **more)
        elif what == "slow":
            self.mail.slow(**more)
        else:
            self.mail.drop(what, **more)

    def _away(self, edge: Edge) -> House:
        """The same house, in which nothing listens where this edge is looked for."""
        held, spoken = self.worker.providers, self.worker.channels
        if edge == "payments":
            held = replace(held, payments=StripePayments(STRIPE_KEY, api_base=NOWHERE))
        elif edge == "locks":
            held = replace(held, locks=SeamLocks(SEAM_KEY, endpoint=NOWHERE))
        elif edge == "mail":
            spoken = replace(
                spoken, mail=SmtpMail("smtp://127.0.0.1:9", sender="monban@localhost.localdomain")
            )
        else:
            spoken = replace(spoken, line=LineMessages(LINE_TOKEN, api_base=NOWHERE))
        return replace(self.worker, providers=held, channels=spoken)

    def come_back(self) -> None:
        """The edge can be reached again. What it was slow to do, it has done by now."""
        house.open_house(self.worker)
        assert not self.late or eventually(self._nothing_under_way, 30)

    def _nothing_under_way(self) -> bool:
        calls = [one["status"] for one in self.stripe.get("calls") if one["fault"] == "stall"]
        doors = [*self.seam.control("requests"), *self.line.control("requests")]
        return None not in calls and all(one["outcome"] != "pending" for one in doors)

    # Afterwards ----------------------------------------------------------------------------------

    def quiet(self) -> None:
        """Every sweep, again and again, until nothing moves any more. Events are heard of last:
        what is in doubt has to be asked after by us, and not be told in time by luck."""
        seen: list[Any] = []
        for _ in range(ROUNDS):
            self.owner.make_due()
            work(self.house, *KINDS)
            catch_up.fetch_missed(self.house)
            seen.append(self._standing())
            last = seen[-1 - self.still :]
            moved = len(last) <= self.still or any(one != last[0] for one in last)
            if not moved and not self._locks_are_busy():
                return
        raise AssertionError(f"never quiet: {seen[-1]}")

    def _standing(self) -> Any:
        return self.owner.row(
            """
            select (select count(*) from transitions), (select count(*) from ledger_lines),
                   (select array_agg(id order by id) from outbox where sent_at is null
                    and unknown_at is null and dead_at is null),
                   (select count(*) from lock_commands where done_at is null),
                   (select count(*) from webhook_events where state = 'processing')
            """
        )

    def _locks_are_busy(self) -> bool:
        """A key is on its way by our books, or a code at the lock by the controller's: a changed
        code is set anew, and we wait for no word of that."""
        asked = "select count(*) from entry_keys where state in ('requested', 'revoking')"
        on_their_way = [one for one in self.seam.control("codes") if one["status"] not in AT_REST]
        return bool(on_their_way or self.owner.one(asked))

    def minutes_pass(self, minutes: int = 10) -> None:
        """Longer than anything that is on its way can take."""
        clock.set_source(lambda: datetime.now(UTC) + timedelta(minutes=minutes))
        self.owner.run(
            "update payments set created_at = created_at - make_interval(mins => %s)", minutes
        )
        self.owner.run(
            "update lock_commands set unknown_at = unknown_at - make_interval(mins => %s)"
            " where unknown_at is not null",
            minutes,
        )

    def waiting_for_a_person(self) -> attention.Attention:
        with self.cast.transaction(self.cast.tokyo.id) as tx:
            return attention.look(tx, clock.now())

    def decide_about_mail(self) -> None:
        """What a person does who has asked the guest whether the message came."""
        for (message,) in self.owner.rows("select id from outbox where unknown_at is not null"):
            came = str(message) in {str(one) for one in self.letters()}
            self.do(messages.drop if came else messages.resend, message)

    def letters(self) -> list[UUID]:
        """The outbox row of each mail that a person has received."""
        return [
            UUID(str(got.message["Message-ID"]).strip("<>").partition("@")[0])
            for got in self.mail.kept
        ]

    def pushes(self) -> list[UUID]:
        return [UUID(push["retry_key"]) for push in self.line.control("pushes")]
