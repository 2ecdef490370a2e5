"""Our books beside the far side's, in both directions. Pure: both are read before.

What is still at work (a payment whose fate is unknown, a refund on its way out, a key with a
command under way) is no difference: it has its own place to wait.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

OURS = "monban "
"""How the name of a code of ours begins; the key's id follows."""

MAILED = "@monban>"
"""How the Message-ID of a mail of ours ends; the row's id is before it."""

LOOK_BACK_MAIL = timedelta(days=3)
"""How far back messages are compared with the archive."""

UNPAID = frozenset({"requires_payment_method", "requires_confirmation", "requires_action"})
HELD = frozenset({"succeeded", "refund_owed", "refunded"})

# The provider's words that agree with each state of ours.
INTENT: Mapping[str, Collection[str]] = {
    "open": UNPAID,
    "processing": frozenset({"processing"}),
    "succeeded": frozenset({"succeeded"}),
    "refund_owed": frozenset({"succeeded"}),
    "refunded": frozenset({"succeeded"}),
    "canceled": frozenset({"canceled"}),
}
REFUND: Mapping[str, Collection[str]] = {
    "pending": frozenset({"pending", "requires_action"}),
    "succeeded": frozenset({"succeeded"}),
    "failed": frozenset({"failed", "canceled"}),
}

RETURNED = frozenset({"pending", "succeeded"})
"""Refunds whose money is away. One that failed agrees with there being none."""


@dataclass(frozen=True, slots=True)
class Found:
    kind: str
    subject: str
    ours: str
    theirs: str
    payment_id: UUID | None = None
    key_id: UUID | None = None
    door_id: UUID | None = None
    message_id: UUID | None = None
    membership_id: UUID | None = None

    @property
    def about(self) -> tuple[str, str]:
        return self.kind, self.subject


@dataclass(frozen=True, slots=True)
class OurPayment:
    id: UUID
    state: str
    amount: int
    currency: str
    intent_id: str | None
    booked: int
    """What the folio has of it."""
    created_at: datetime


@dataclass(frozen=True, slots=True)
class TheirPayment:
    id: str
    payment_id: UUID
    status: str
    amount: int
    currency: str


@dataclass(frozen=True, slots=True)
class OurRefund:
    id: UUID
    payment_id: UUID
    state: str
    amount: int
    currency: str
    provider_refund_id: str | None
    booked: int
    created_at: datetime


@dataclass(frozen=True, slots=True)
class TheirRefund:
    id: str
    payment_id: UUID
    named: str
    """Our row's id, by its metadata; '' for one made at the provider."""
    status: str
    amount: int
    currency: str


@dataclass(frozen=True, slots=True)
class TheirDispute:
    id: str
    payment_id: UUID
    status: str
    amount: int
    currency: str


@dataclass(frozen=True, slots=True)
class OurSubscription:
    """The mirror of one, and the state of the membership that it bills."""

    id: str
    membership_id: str
    status: str
    ends_at: datetime | None
    amount: int
    state: str
    at_work: bool
    """The provider is being asked for something whose end is not known yet."""
    created_at: datetime


@dataclass(frozen=True, slots=True)
class TheirSubscription:
    id: str
    membership_id: str
    status: str
    ends_at: datetime | None
    amount: int
    over: bool


@dataclass(frozen=True, slots=True)
class OurKey:
    id: UUID
    code_name: str
    state: str
    provider_code_id: str | None
    ends_at: datetime
    at_work: bool
    """A command for its lock is under way, or given up and shown as such."""
    pin_mark: int = field(repr=False)
    """Equal for equal digits, and tells nothing of them."""


@dataclass(frozen=True, slots=True)
class TheirCode:
    id: str
    name: str
    status: str
    ends_at: datetime | None
    errors: tuple[str, ...]
    pin_mark: int | None = field(default=None, repr=False)
    """None where the lock does not tell its digits."""


@dataclass(frozen=True, slots=True)
class OurMessage:
    id: UUID
    state: str
    """sent, unknown or dead."""


@dataclass(frozen=True, slots=True)
class Span:
    """What was read there holds everything made since `since`; a row of ours made at `until` or
    later may be younger than what was read."""

    since: datetime
    until: datetime

    def __contains__(self, moment: datetime) -> bool:
        return self.since <= moment < self.until


def payments(
    ours: Mapping[UUID, OurPayment], theirs: Sequence[TheirPayment], span: Span
) -> Iterator[Found]:
    there = {intent.id for intent in theirs}
    for intent in theirs:
        mine = ours.get(intent.payment_id)
        if mine is None or mine.intent_id not in (None, intent.id):
            yield from _payment_not_here(mine, intent)
        elif mine.state != "unknown":
            yield from _payment_differs(mine, intent)
    for mine in ours.values():
        lost = mine.intent_id is not None and mine.intent_id not in there
        if lost and mine.state not in ("unknown", "canceled") and mine.created_at in span:
            said = _money(mine.state, mine)
            yield Found("payment_not_there", str(mine.id), said, "", payment_id=mine.id)


def _payment_not_here(mine: OurPayment | None, intent: TheirPayment) -> Iterator[Found]:
    """Money, or a way to pay, that no row of ours speaks for. Cancelled, it is neither; a second
    intent beside the one that we know matters once it holds money."""
    if intent.status == "canceled" or (mine is not None and intent.status in UNPAID):
        return
    owner = mine.id if mine else None
    yield Found("payment_not_here", intent.id, "", _money(intent.status, intent), payment_id=owner)


def _payment_differs(mine: OurPayment, intent: TheirPayment) -> Iterator[Found]:
    booked = mine.amount if mine.state in HELD else 0
    same = (mine.amount, mine.currency) == (intent.amount, intent.currency)
    if same and intent.status in INTENT[mine.state] and mine.booked == booked:
        return
    said = _money(mine.state, mine) + _folio(mine.booked, booked)
    theirs = _money(intent.status, intent)
    yield Found("payment_differs", str(mine.id), said, theirs, payment_id=mine.id)


def refunds(
    ours: Sequence[OurRefund], theirs: Sequence[TheirRefund], span: Span
) -> Iterator[Found]:
    by_code = {mine.provider_refund_id: mine for mine in ours if mine.provider_refund_id}
    by_id = {str(mine.id): mine for mine in ours}
    there = {refund.id for refund in theirs}
    for refund in theirs:
        mine = by_code.get(refund.id) or by_id.get(refund.named)
        said = _money(refund.status, refund)
        if mine is None:
            yield Found("refund_not_here", refund.id, "", said, payment_id=refund.payment_id)
        elif mine.state in REFUND:
            yield from _refund_differs(mine, refund)
    for mine in ours:
        taken = mine.state in RETURNED and mine.provider_refund_id is not None
        if taken and mine.provider_refund_id not in there and mine.created_at in span:
            said = _money(mine.state, mine)
            yield Found("refund_not_there", str(mine.id), said, "", payment_id=mine.payment_id)


def _refund_differs(mine: OurRefund, refund: TheirRefund) -> Iterator[Found]:
    booked = mine.amount if mine.state == "succeeded" else 0
    same = (mine.amount, mine.currency) == (refund.amount, refund.currency)
    if same and refund.status in REFUND[mine.state] and mine.booked == booked:
        return
    said = _money(mine.state, mine) + _folio(mine.booked, booked)
    theirs = _money(refund.status, refund)
    yield Found("refund_differs", str(mine.id), said, theirs, payment_id=mine.payment_id)


def disputes(ours: Mapping[str, str], theirs: Sequence[TheirDispute]) -> Iterator[Found]:
    """`ours`: the status that was last heard of, by the provider's id. One that the provider no
    longer lists is no difference: it lists them by when they were opened."""
    for dispute in theirs:
        mine = ours.get(dispute.id, "")
        if mine != dispute.status:
            said = _money(dispute.status, dispute)
            yield Found("dispute_differs", dispute.id, mine, said, payment_id=dispute.payment_id)


def subscriptions(
    ours: Mapping[str, OurSubscription], theirs: Sequence[TheirSubscription], span: Span
) -> Iterator[Found]:
    """`ours` by the membership's id."""
    there = {one.id for one in theirs}
    for one in theirs:
        mine = ours.get(one.membership_id)
        if mine is not None and mine.at_work:
            continue
        if mine is None or mine.id != one.id:
            if not one.over:
                said = _billing(one.status, one.ends_at, one.amount)
                yield Found("subscription_not_here", one.id, "", said)
        elif _bills_otherwise(mine, one):
            yield Found(
                "subscription_differs",
                mine.membership_id,
                f"{mine.state}, {_billing(mine.status, mine.ends_at, mine.amount)}",
                _billing(one.status, one.ends_at, one.amount),
                membership_id=UUID(mine.membership_id),
            )
    for mine in ours.values():
        lost = mine.id not in there and mine.state != "ended" and not mine.at_work
        if lost and mine.created_at in span:
            said = _billing(mine.status, mine.ends_at, mine.amount)
            named = UUID(mine.membership_id)
            yield Found("subscription_not_there", str(named), said, "", membership_id=named)


def _bills_otherwise(mine: OurSubscription, theirs: TheirSubscription) -> bool:
    """Or it goes on billing what has ended with us."""
    same = (mine.status, mine.ends_at, mine.amount) == (
        theirs.status,
        theirs.ends_at,
        theirs.amount,
    )
    return not same or (mine.state == "ended") != theirs.over


def _billing(status: str, ends_at: datetime | None, amount: int) -> str:
    return f"{status} {amount}" + (f", ends {_instant(ends_at)}" if ends_at else "")


def codes(
    ours: Mapping[str, OurKey],
    theirs: Sequence[TheirCode],
    *,
    door_id: UUID,
    now: datetime,
    elsewhere: Collection[str] = (),
) -> Iterator[Found]:
    """One door. `elsewhere` names codes of other houses' keys, should two share a device."""
    by_id = {key.provider_code_id: key for key in ours.values() if key.provider_code_id}
    named = [
        code
        for code in theirs
        if (key_of(code.name) or code.id in by_id) and code.status != "removing"
    ]
    for code in named:
        key = by_id.get(code.id) or ours.get(code.name)  # a code may have been renamed there
        if (key is None and code.name in elsewhere) or (key is not None and key.at_work):
            continue
        if strays(key, code.id):
            yield _stray(key, code, door_id)
        elif key is not None and key.state == "issued":
            yield from _code_differs(key, code, door_id, now)
    for key in ours.values():
        if key.state != "issued" or key.at_work or now >= key.ends_at:
            continue
        mine = [code for code in named if is_code_of(key, code)]
        if not any(_stands(code) for code in mine):
            yield _code(key, "code_missing", mine[0].status if mine else "", door_id)


def _code_differs(key: OurKey, code: TheirCode, door_id: UUID, now: datetime) -> Iterator[Found]:
    if _other_end(key, code):
        yield _code(key, "code_differs", _instant(code.ends_at), door_id)
    if code.pin_mark not in (None, key.pin_mark) and now < key.ends_at:
        yield _code(key, "code_pin_differs", "other digits", door_id)


def strays(key: OurKey | None, code_id: str) -> bool:
    """Whether a code on the lock that bears this key's name opens a door for nobody."""
    if key is None or key.state in ("revoked", "failed"):
        return True
    return key.state != "revoking" and key.provider_code_id not in (None, code_id)


def key_of(name: str) -> UUID | None:
    """The key that a code names. None: the code is not ours, and is never touched."""
    if not name.startswith(OURS):
        return None
    try:
        return UUID(name.removeprefix(OURS))
    except ValueError:
        return None


def is_code_of(key: OurKey, code: TheirCode) -> bool:
    if key.provider_code_id is not None:
        return code.id == key.provider_code_id
    return code.name == key.code_name


def _stands(code: TheirCode) -> bool:
    """`unset` without errors is a code that the lock will load once its time is near."""
    return not (code.status == "unset" and code.errors)


def _other_end(key: OurKey, code: TheirCode) -> bool:
    if code.ends_at is None:
        return True
    return code.ends_at.replace(microsecond=0) != key.ends_at.replace(microsecond=0)


def _stray(key: OurKey | None, code: TheirCode, door_id: UUID) -> Found:
    said = key.state if key else ""
    owner = key.id if key else None
    return Found("code_stray", code.id, said, code.status, key_id=owner, door_id=door_id)


def _code(key: OurKey, kind: str, theirs: str, door_id: UUID) -> Found:
    said = _instant(key.ends_at) if kind == "code_differs" else key.state
    return Found(kind, str(key.id), said, theirs, key_id=key.id, door_id=door_id)


def messages(ours: Sequence[OurMessage], there: Collection[UUID]) -> Iterator[Found]:
    """`ours`: those called sent within what the archive tells, and those that wait for a person."""
    for mine in ours:
        if mine.state == "sent" and mine.id not in there:
            yield Found("message_not_there", str(mine.id), "sent", "", message_id=mine.id)
        elif mine.state != "sent" and mine.id in there:
            yield Found("message_not_here", str(mine.id), mine.state, "taken", message_id=mine.id)


def message_of(message_id: str) -> UUID | None:
    """The row that a Message-ID names. None: the mail is not ours."""
    if not message_id.endswith(MAILED):
        return None
    try:
        return UUID(message_id.removeprefix("<").removesuffix(MAILED))
    except ValueError:
        return None


def _money(
    word: str, what: OurPayment | TheirPayment | OurRefund | TheirRefund | TheirDispute
) -> str:
    return f"{word} {what.amount} {what.currency}"


def _folio(booked: int, wanted: int) -> str:
    return "" if booked == wanted else f", {booked} in the folio"


def _instant(moment: datetime | None) -> str:
    return moment.isoformat(timespec="seconds") if moment else "no end"
