"""The books beside the far side's: each difference by its kind, its words and whose it is."""

from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

import pytest

from portal.policies import divergences as policy
from portal.policies.divergences import (
    Found,
    OurKey,
    OurPayment,
    OurRefund,
    OurSubscription,
    Span,
    TheirCode,
    TheirPayment,
    TheirRefund,
    TheirSubscription,
)

Row = TypeVar("Row")

NOW = datetime(2026, 11, 10, 6, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
SPAN = Span(NOW - HOUR, NOW)
ONE, TWO, DOOR = UUID(int=1), UUID(int=2), UUID(int=3)


def made(kind: type[Row], **values: Any) -> Row:
    """With nothing in what a case does not name."""
    names: Any = kind
    return kind(**{one.name: None for one in fields(names)} | values)


def test_a_span_holds_its_first_instant_and_not_its_last() -> None:
    moments = (NOW - HOUR - timedelta(seconds=1), NOW - HOUR, NOW - timedelta(seconds=1), NOW)
    assert [moment in SPAN for moment in moments] == [False, True, True, False]


# Payments ---------------------------------------------------------------------------------------

OURS = made(
    OurPayment,
    id=ONE,
    state="open",
    amount=500,
    currency="JPY",
    intent_id="pi_1",
    booked=0,
    created_at=NOW - HOUR,
)
THEIRS = TheirPayment("pi_1", ONE, "requires_payment_method", 500, "JPY")


def compared(mine: OurPayment | None, *theirs: TheirPayment) -> list[Found]:
    return list(policy.payments({mine.id: mine} if mine else {}, theirs, SPAN))


@pytest.mark.parametrize(
    ("state", "status", "booked"),
    [
        ("open", "requires_payment_method", 0),
        ("open", "requires_confirmation", 0),
        ("open", "requires_action", 0),
        ("processing", "processing", 0),
        ("succeeded", "succeeded", 500),
        ("refund_owed", "succeeded", 500),
        ("refunded", "succeeded", 500),
        ("canceled", "canceled", 0),
        ("unknown", "succeeded", 0),
    ],
)
def test_a_payment_that_agrees(state: str, status: str, booked: int) -> None:
    mine = replace(OURS, state=state, booked=booked)
    assert compared(mine, replace(THEIRS, status=status)) == []


@pytest.mark.parametrize("state", ["open", "processing", "succeeded", "refunded", "canceled"])
def test_a_payment_of_another_status(state: str) -> None:
    booked = 500 if state in ("succeeded", "refunded") else 0
    (found,) = compared(replace(OURS, state=state, booked=booked), replace(THEIRS, status="odd"))
    assert found == Found(
        "payment_differs", str(ONE), f"{state} 500 JPY", "odd 500 JPY", payment_id=ONE
    )
    assert found.about == ("payment_differs", str(ONE))


@pytest.mark.parametrize(
    ("theirs", "said"),
    [
        (replace(THEIRS, amount=501), "requires_payment_method 501 JPY"),
        (replace(THEIRS, currency="USD"), "requires_payment_method 500 USD"),
    ],
)
def test_a_payment_of_another_amount(theirs: TheirPayment, said: str) -> None:
    assert compared(OURS, theirs) == [
        Found("payment_differs", str(ONE), "open 500 JPY", said, payment_id=ONE)
    ]


@pytest.mark.parametrize(("state", "booked"), [("open", 1), ("succeeded", 0)])
def test_a_payment_that_the_folio_tells_otherwise(state: str, booked: int) -> None:
    status = "succeeded" if state == "succeeded" else "requires_action"
    (found,) = compared(replace(OURS, state=state, booked=booked), replace(THEIRS, status=status))
    assert found.ours == f"{state} 500 JPY, {booked} in the folio"
    assert found.theirs == f"{status} 500 JPY"


def test_an_intent_that_no_row_speaks_for() -> None:
    other = replace(THEIRS, id="pi_2")
    told = Found("payment_not_here", "pi_2", "", "requires_payment_method 500 JPY")
    assert compared(None, other) == [told]
    assert compared(None, replace(other, status="canceled")) == []
    # Beside the intent that we know: only once it holds money.
    assert compared(OURS, THEIRS, other) == []
    held = replace(other, status="processing")
    assert compared(OURS, THEIRS, held) == [
        Found("payment_not_here", "pi_2", "", "processing 500 JPY", payment_id=ONE)
    ]
    assert compared(OURS, THEIRS, replace(other, status="canceled")) == []
    # A row that has heard of no intent yet is compared with the one that names it.
    assert compared(replace(OURS, intent_id=None), other) == []


def test_a_payment_that_is_not_there() -> None:
    told = Found("payment_not_there", str(ONE), "open 500 JPY", "", payment_id=ONE)
    assert compared(OURS) == [told]
    assert compared(replace(OURS, intent_id=None)) == []
    assert compared(replace(OURS, state="unknown")) == []
    assert compared(replace(OURS, created_at=NOW)) == []
    assert compared(replace(OURS, created_at=NOW - 2 * HOUR)) == []


def test_every_payment_is_looked_at() -> None:
    """One that agrees, or is nobody's, hides none that comes after it."""
    mine = {ONE: OURS, TWO: replace(OURS, id=TWO, intent_id="pi_2")}
    theirs = [
        replace(THEIRS, id="pi_0", status="canceled"),
        THEIRS,
        replace(THEIRS, id="pi_2", payment_id=TWO, amount=1),
    ]
    assert [one.subject for one in policy.payments(mine, theirs, SPAN)] == [str(TWO)]


# Refunds ----------------------------------------------------------------------------------------

BACK = made(
    OurRefund,
    id=ONE,
    payment_id=TWO,
    state="pending",
    amount=500,
    currency="JPY",
    provider_refund_id="re_1",
    booked=0,
    created_at=NOW - HOUR,
)
THEIR_BACK = TheirRefund("re_1", TWO, "", "pending", 500, "JPY")


def returned(mine: OurRefund | None, *theirs: TheirRefund) -> list[Found]:
    return list(policy.refunds([mine] if mine else [], theirs, SPAN))


@pytest.mark.parametrize(
    ("state", "status", "booked"),
    [
        ("pending", "pending", 0),
        ("pending", "requires_action", 0),
        ("succeeded", "succeeded", 500),
        ("failed", "failed", 0),
        ("failed", "canceled", 0),
        ("asked", "succeeded", 0),
        ("unknown", "failed", 0),
    ],
)
def test_a_refund_that_agrees_or_is_at_work(state: str, status: str, booked: int) -> None:
    mine = replace(BACK, state=state, booked=booked)
    assert returned(mine, replace(THEIR_BACK, status=status)) == []
    named = replace(THEIR_BACK, id="re_2", named=str(ONE), status=status)
    assert returned(replace(mine, provider_refund_id=None), named) == []


@pytest.mark.parametrize(
    ("theirs", "said"),
    [
        (replace(THEIR_BACK, status="failed"), "failed 500 JPY"),
        (replace(THEIR_BACK, amount=499), "pending 499 JPY"),
        (replace(THEIR_BACK, currency="USD"), "pending 500 USD"),
    ],
)
def test_a_refund_that_differs(theirs: TheirRefund, said: str) -> None:
    told = Found("refund_differs", str(ONE), "pending 500 JPY", said, payment_id=TWO)
    assert returned(BACK, theirs) == [told]


@pytest.mark.parametrize(("state", "booked"), [("pending", 500), ("succeeded", 0), ("failed", 1)])
def test_a_refund_that_the_folio_tells_otherwise(state: str, booked: int) -> None:
    (found,) = returned(
        replace(BACK, state=state, booked=booked), replace(THEIR_BACK, status=state)
    )
    assert found.ours == f"{state} 500 JPY, {booked} in the folio"
    assert found.theirs == f"{state} 500 JPY"


def test_a_refund_that_only_one_side_knows() -> None:
    assert returned(None, THEIR_BACK) == [
        Found("refund_not_here", "re_1", "", "pending 500 JPY", payment_id=TWO)
    ]
    told = Found("refund_not_there", str(ONE), "pending 500 JPY", "", payment_id=TWO)
    assert returned(BACK) == [told]
    assert returned(replace(BACK, state="succeeded"))[0].kind == "refund_not_there"
    for at_work in ("asked", "unknown"):
        assert returned(replace(BACK, state=at_work)) == []
    assert returned(replace(BACK, provider_refund_id=None)) == []
    assert returned(replace(BACK, created_at=NOW)) == []


# Codes ------------------------------------------------------------------------------------------

NAME = f"monban {ONE}"
KEY = made(
    OurKey,
    id=ONE,
    code_name=NAME,
    state="issued",
    provider_code_id="c1",
    ends_at=NOW + HOUR,
    at_work=False,
)
CODE = made(TheirCode, id="c1", name=NAME, status="set", ends_at=NOW + HOUR, errors=())


def at_door(key: OurKey | None, *theirs: TheirCode, elsewhere: tuple[str, ...] = ()) -> list[Found]:
    ours = {key.code_name: key} if key else {}
    return list(policy.codes(ours, theirs, door_id=DOOR, now=NOW, elsewhere=elsewhere))


def test_a_code_that_agrees() -> None:
    assert at_door(KEY, CODE) == []
    assert at_door(KEY, replace(CODE, ends_at=NOW + HOUR + timedelta(microseconds=9))) == []
    assert at_door(KEY, replace(CODE, status="unset")) == []  # its time has not come
    assert at_door(replace(KEY, provider_code_id=None), CODE) == []


@pytest.mark.parametrize("state", ["revoked", "failed"])
def test_a_code_that_opens_for_nobody(state: str) -> None:
    assert at_door(replace(KEY, state=state), CODE) == [
        Found("code_stray", "c1", state, "set", key_id=ONE, door_id=DOOR)
    ]
    assert at_door(replace(KEY, state=state, at_work=True), CODE) == []
    assert at_door(replace(KEY, state=state), replace(CODE, status="removing")) == []


def test_a_code_of_no_key_of_ours() -> None:
    assert at_door(None, CODE) == [Found("code_stray", "c1", "", "set", door_id=DOOR)]
    assert at_door(None, CODE, elsewhere=(NAME,)) == []
    assert at_door(None, replace(CODE, name="the cleaner")) == []
    assert at_door(None, replace(CODE, name="monban the cleaner")) == []


def test_another_code_beside_the_one_that_we_know() -> None:
    twin = replace(CODE, id="c2")
    assert at_door(KEY, CODE, twin) == [
        Found("code_stray", "c2", "issued", "set", key_id=ONE, door_id=DOOR)
    ]
    assert at_door(replace(KEY, provider_code_id=None), twin) == []
    assert at_door(replace(KEY, state="revoking"), twin) == []


def test_a_code_with_another_end() -> None:
    ours = (NOW + HOUR).isoformat(timespec="seconds")
    other = replace(CODE, ends_at=NOW + 2 * HOUR)
    told = Found(
        "code_differs",
        str(ONE),
        ours,
        (NOW + 2 * HOUR).isoformat(timespec="seconds"),
        key_id=ONE,
        door_id=DOOR,
    )
    assert at_door(KEY, other) == [told]
    (endless,) = at_door(KEY, replace(CODE, ends_at=None))
    assert (endless.kind, endless.theirs) == ("code_differs", "no end")
    assert at_door(replace(KEY, state="requested"), other) == []
    assert at_door(replace(KEY, at_work=True), other) == []


def test_a_code_that_is_missing() -> None:
    told = Found("code_missing", str(ONE), "issued", "", key_id=ONE, door_id=DOOR)
    assert at_door(KEY) == [told]
    assert at_door(KEY, replace(CODE, name="the cleaner", id="c9")) == [told]
    refused = replace(CODE, status="unset", errors=("low_battery",))
    assert at_door(KEY, refused) == [replace(told, theirs="unset")]
    assert at_door(KEY, replace(CODE, errors=("low_battery",))) == []
    assert at_door(replace(KEY, at_work=True)) == []
    assert at_door(replace(KEY, state="requested")) == []
    assert at_door(replace(KEY, ends_at=NOW)) == []
    assert at_door(replace(KEY, ends_at=NOW + timedelta(seconds=1)))[0].kind == "code_missing"


def test_every_code_and_key_is_looked_at() -> None:
    """One at work, one of another house and one that is over hide none that comes after."""
    busy = replace(KEY, id=TWO, code_name=f"monban {TWO}", at_work=True, provider_code_id="c2")
    ours = {busy.code_name: busy, NAME: KEY}
    theirs = [
        replace(CODE, id="c2", name=busy.code_name),
        replace(CODE, id="c3", name=f"monban {DOOR}"),
        replace(CODE, id="c4", name=f"monban {UUID(int=4)}"),
    ]
    found = policy.codes(ours, theirs, door_id=DOOR, now=NOW, elsewhere=(f"monban {DOOR}",))
    assert [(one.kind, one.subject) for one in found] == [
        ("code_stray", "c4"),
        ("code_missing", str(ONE)),
    ]


def test_whose_a_code_is() -> None:
    assert policy.key_of(NAME) == ONE
    assert policy.key_of(f"Monban {ONE}") is None
    assert policy.key_of("monban ") is None
    assert policy.is_code_of(KEY, replace(CODE, name="renamed"))
    assert not policy.is_code_of(KEY, replace(CODE, id="c2"))
    unknown = replace(KEY, provider_code_id=None)
    assert policy.is_code_of(unknown, replace(CODE, id="c2"))
    assert not policy.is_code_of(unknown, replace(CODE, name="renamed"))


# Subscriptions ----------------------------------------------------------------------------------

MIRROR = OurSubscription("sub_1", str(ONE), "active", None, 9800, "active", False, NOW - HOUR)
THERE = TheirSubscription("sub_1", str(ONE), "active", None, 9800, over=False)


def billed(ours: list[OurSubscription], theirs: list[TheirSubscription]) -> list[tuple[str, str]]:
    found = policy.subscriptions({one.membership_id: one for one in ours}, theirs, SPAN)
    return [one.about for one in found]


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        ({}, {}),
        ({"status": "canceled", "state": "ended"}, {"status": "canceled", "over": True}),
        ({"state": "scheduled_to_end", "ends_at": NOW}, {"ends_at": NOW}),
        # The provider is being asked for it just now.
        ({"at_work": True}, {"status": "canceled", "over": True}),
        ({"at_work": True}, {"id": "sub_2"}),
    ],
)
def test_billing_that_agrees(mine: dict[str, Any], theirs: dict[str, Any]) -> None:
    assert billed([replace(MIRROR, **mine)], [replace(THERE, **theirs)]) == []


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        ({}, {"status": "past_due"}),
        ({}, {"amount": 12_000}),
        ({}, {"ends_at": NOW}),
        ({}, {"status": "canceled", "over": True}),
        # It has ended here, and somebody goes on being charged.
        ({"state": "ended"}, {}),
    ],
)
def test_billing_that_differs(mine: dict[str, Any], theirs: dict[str, Any]) -> None:
    found = billed([replace(MIRROR, **mine)], [replace(THERE, **theirs)])
    assert found == [("subscription_differs", str(ONE))]


def test_billing_that_one_side_does_not_have() -> None:
    assert billed([], [THERE]) == [("subscription_not_here", "sub_1")]
    assert billed([], [replace(THERE, status="canceled", over=True)]) == []
    second = replace(THERE, id="sub_2")
    assert billed([MIRROR], [THERE, second]) == [("subscription_not_here", "sub_2")]
    assert billed([MIRROR], []) == [("subscription_not_there", str(ONE))]
    assert billed([replace(MIRROR, state="ended")], []) == []
    assert billed([replace(MIRROR, at_work=True)], []) == []
    assert billed([replace(MIRROR, created_at=NOW)], []) == []  # younger than what was read
