"""One row of each kind of work, due or held by a worker that is gone."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from portal import inbox, lock_commands, outbox
from portal.db import SYSTEM, Tx
from portal.outcome import Applied
from portal.verbs import refunds, refunds_owed, stays
from sandbox.mail import MailSink
from sandbox.seam.running import Running
from sandbox.stripe.testing import StandIn
from tests.endurance.ground import Ground
from tests.outside import Owner, codes_on_locks, deliver, pay, receive
from tests.outside import events as told_events


@dataclass(frozen=True)
class Kind:
    """One kind of work: its ring, its table, its lease."""

    ring: str
    table: str
    lease: timedelta


KINDS = (
    Kind("inbox", "webhook_events", inbox.LEASE),
    Kind("outbox", "outbox", outbox.LEASE),
    Kind("locks", "lock_commands", lock_commands.LEASE),
    Kind("refunds", "refunds", refunds.LEASE),
)


def claim(tx: Tx, kind: Kind) -> int:
    """What a worker of this kind would be given now."""
    token = uuid4()
    match kind.ring:
        case "inbox":
            return len(inbox.claim(tx, token))
        case "outbox":
            return len(outbox.claim(tx, token))
        case "locks":
            return len(lock_commands.claim(tx, token))
    return len(
        tx.rows("select id from claim_refunds(:token, 10, :lease)", token=token, lease=kind.lease)
    )


@dataclass(frozen=True)
class Work:
    """One row of each kind that is due, and what its end looks like."""

    ground: Ground
    stripe: StandIn
    seam: Running
    mail: MailSink

    @property
    def owner(self) -> Owner:
        return self.ground.owner

    def lay_out(self) -> None:
        cast, owner = self.ground.cast, self.owner
        stay = self.ground.paid_there(self.stripe, price=10_000, space="A01")
        deliver(self.ground.worker)
        payment = owner.one("select id from payments")
        with cast.transaction(stay.facility_id) as tx:
            refunds_owed.owe(tx, SYSTEM, payment, 10, reason="surplus")
        guest = cast.book(price=0, space="A02")
        with cast.transaction(guest.facility_id) as tx:
            assert isinstance(stays.admit(tx, cast.sato.actor, guest.id, 1), Applied)
        pay(self.stripe, self.ground.opened(cast.book(price=6000, space="A03"))[1])
        receive(*self.succeeded()[-1:])
        owner.run("update outbox set sent_at = now() where event_type <> 'payment_received'")

    def succeeded(self) -> list[Any]:
        told = told_events(self.ground.worker)
        return [one for one in told if one.type == "payment_intent.succeeded"]

    def held_by_another(self, left: timedelta) -> UUID:
        """Every row is claimed by a worker whose lease runs for `left` more."""
        token = uuid4()
        for kind in KINDS:
            self.owner.run(
                f"update {kind.table} set claimed_at = now() - %s + %s, claim_token = %s"
                f" where {WAITING[kind.table]}",
                kind.lease,
                left,
                token,
            )
        return token

    def still_held(self, token: UUID) -> list[int]:
        return [
            self.owner.one(f"select count(*) from {kind.table} where claim_token = %s", token)
            for kind in KINDS
        ]

    def is_done(self) -> bool:
        waiting = [f"exists (select 1 from {table} where {sql})" for table, sql in WAITING.items()]
        return not self.owner.one(f"select {' or '.join(waiting)}")

    def done_once(self) -> None:
        owner = self.owner
        assert self.is_done()
        assert owner.one("select count(*) from ledger_lines where kind = 'payment'") == 2
        assert self.stripe.creates("refund") == 1
        assert len(codes_on_locks(self.seam)) == 1
        sent = [got.message["Message-ID"] for got in self.mail.kept]
        told = "select id from outbox where event_type in ('payment_received', 'refund_sent')"
        assert {f"<{row[0]}@monban>" for row in owner.rows(told)} <= set(sent)
        assert len(sent) == len(set(sent))


WAITING = {
    "webhook_events": "state = 'processing'",
    "outbox": "sent_at is null",
    "lock_commands": "done_at is null",
    "refunds": "state in ('asked', 'unknown', 'pending')",
}
