"""A membership that the provider's stand-in bills, and a hand on both sides of it."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from portal.jobs.house import House
from portal.outcome import Outcome
from portal.verbs import memberships
from portal.verbs.membership_end import Ending, end_membership
from sandbox.stripe.testing import StandIn
from tests.cast import Cast, Joined
from tests.outside import Owner, deliver, pay, work


@dataclass
class Billed:
    """One membership of a plan that is billed by card."""

    cast: Cast
    worker: House
    stripe: StandIn
    owner: Owner
    joined: Joined

    @property
    def id(self) -> UUID:
        return self.joined.id

    @property
    def desk(self) -> Any:
        return self.worker.desk(self.joined.facility_id)

    @property
    def state(self) -> str:
        found: str = self.owner.one("select state from memberships where id = %s", self.id)
        return found

    @property
    def version(self) -> int:
        found: int = self.owner.one("select version from memberships where id = %s", self.id)
        return found

    def mirror(self, column: str) -> Any:
        sql = f"select {column} from subscription_mirror where membership_id = %s"
        return self.owner.one(sql, self.id)

    @property
    def there(self) -> dict[str, Any]:
        """The subscription as the provider has it; the only one that names this membership."""
        rows = self.stripe.get("objects")["subscription"]
        mine = [row for row in rows if row["metadata"].get("membership_id") == str(self.id)]
        assert len(mine) == 1, mine
        found: dict[str, Any] = mine[0]
        return found

    def approve(self, seen: int = 1) -> Outcome:
        return memberships.approve(self.desk, self.cast.sato.actor, self.id, seen)

    def end(self, *wished: Any, **more: Any) -> Outcome:
        return end_membership(self.desk, self.cast.sato.actor, self.id, Ending(*wished, **more))

    def resume(self) -> Outcome:
        return memberships.resume(self.desk, self.cast.sato.actor, self.id, self.version)

    def pay(self, card: str = "pm_card_visa") -> None:
        """What the guest does on the pay page."""
        intent = self.owner.one(
            "select intent_id from payments where membership_id = %s order by created_at desc",
            self.id,
        )
        pay(self.stripe, intent, card)

    def hear(self, *types: str) -> None:
        """The provider's events, and whatever they ring for."""
        deliver(self.worker, *types)
        self.quiet()

    def quiet(self) -> None:
        for _ in range(3):
            self.owner.make_due()
            work(self.worker, "inbox", "memberships", "payments", "refunds")

    def letters(self) -> list[str]:
        rows = self.owner.rows(
            "select event_type from outbox where membership_id = %s"
            " order by created_at, event_type",
            self.id,
        )
        return [kind for (kind,) in rows]

    def pass_time(self, **span: int) -> None:
        """At the provider."""
        self.stripe.post("clock", advance=int(timedelta(**span).total_seconds()))

    def folio(self) -> list[tuple[str, int]]:
        return self.owner.rows(
            "select kind, amount from ledger_lines where membership_id = %s order by id", self.id
        )


def running(billed: Billed) -> Billed:
    """Approved, paid and heard of."""
    billed.approve()
    billed.pay()
    billed.hear()
    assert billed.state == "active"
    return billed
