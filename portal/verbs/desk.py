"""What a verb with an external leg needs: its own transactions, and the providers."""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from uuid import UUID

from portal.db import Tx, transaction
from portal.edges.billing.port import Billing
from portal.edges.locks.port import Locks
from portal.edges.mail_archive.port import MailArchive
from portal.edges.payments.port import Payments
from portal.edges.providers import Providers


@dataclass(frozen=True, slots=True)
class Desk:
    """One facility's desk. A verb that takes a Desk makes the three beats itself; one that takes
    a Tx is a part of somebody's transaction."""

    facility_id: UUID
    payments: Payments
    billing: Billing
    locks: Locks
    public_url: str
    mail_archive: MailArchive | None = None

    @classmethod
    def of(cls, facility_id: UUID, held: Providers, public_url: str) -> "Desk":
        return cls(
            facility_id, held.payments, held.billing, held.locks, public_url, held.mail_archive
        )

    def transaction(self) -> AbstractContextManager[Tx]:
        return transaction(self.facility_id)
