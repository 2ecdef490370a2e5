"""Tables as declared classes: what queries and verbs read, and what migrations are checked against.

Nothing is written through them; see `portal.db`.
"""

from portal.models.billing import BillingLeg, MembershipPeriod, SubscriptionMirror
from portal.models.blocklist import BlocklistEntry, BlocklistKey, RefusalGround
from portal.models.cancellation import (
    CancellationPolicy,
    CancellationStep,
    CancellationTerms,
)
from portal.models.day_close import DayClose, DayCloseLine
from portal.models.divergence import Divergence
from portal.models.document import Document, DocumentCopy, DocumentCounter
from portal.models.entrance import Entrance, EntrancePlan
from portal.models.facility import Door, Facility, Plan, Space
from portal.models.guest import Guest
from portal.models.key import EntryKey, LockCommand
from portal.models.kiosk import KioskSession
from portal.models.ledger import LedgerLine
from portal.models.machinery import (
    Checkpoint,
    ConsumedEffect,
    DeadLetter,
    GateAudit,
    LegalTransition,
    Transition,
    WebhookEvent,
)
from portal.models.membership import EndObligation, Member, Membership, MembershipPlan
from portal.models.message import Message
from portal.models.payment import Dispute, Payment, Refund
from portal.models.quota import QuotaLine, QuotaMonth
from portal.models.register import GuestRegister, RegisterReading
from portal.models.staff import Staff, StaffRole, StaffSession
from portal.models.stay import Stay
from portal.models.tax import ConsumptionTaxRate, LodgingTaxBand, LodgingTaxTable
from portal.models.ticket import TicketBook, TicketLine, TicketOffer

__all__ = [
    "BillingLeg",
    "BlocklistEntry",
    "BlocklistKey",
    "CancellationPolicy",
    "CancellationStep",
    "CancellationTerms",
    "Checkpoint",
    "ConsumedEffect",
    "ConsumptionTaxRate",
    "DayClose",
    "DayCloseLine",
    "DeadLetter",
    "Dispute",
    "Divergence",
    "Document",
    "DocumentCopy",
    "DocumentCounter",
    "Door",
    "EndObligation",
    "Entrance",
    "EntrancePlan",
    "EntryKey",
    "Facility",
    "GateAudit",
    "Guest",
    "GuestRegister",
    "KioskSession",
    "LedgerLine",
    "LegalTransition",
    "LockCommand",
    "LodgingTaxBand",
    "LodgingTaxTable",
    "Member",
    "Membership",
    "MembershipPeriod",
    "MembershipPlan",
    "Message",
    "Payment",
    "Plan",
    "QuotaLine",
    "QuotaMonth",
    "Refund",
    "RefusalGround",
    "RegisterReading",
    "Space",
    "Staff",
    "StaffRole",
    "StaffSession",
    "Stay",
    "SubscriptionMirror",
    "TicketBook",
    "TicketLine",
    "TicketOffer",
    "Transition",
    "WebhookEvent",
]
