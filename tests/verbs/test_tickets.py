"""Books of tickets: sold on an account, used one by one, given back, taken back; every figure is
the sum of its lines, and no ticket is ever one too many."""

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from flask import Flask
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from portal import clock
from portal.money import Money
from portal.outcome import Applied, Code, Conflict, Outcome, Refused
from portal.policies import tickets as policy
from portal.queries import tickets as shown
from portal.verbs import (
    bookings,
    cash,
    documents,
    stay_changes,
    stay_plans,
    stays,
    ticket_books,
    ticket_offers,
)
from portal.verbs.bookings import NewStay
from portal.verbs.guests import NewGuest
from sandbox.watch import statements
from tests.cast import GUEST, Booked, Cast, HouseOf
from tests.outside import Owner, at_once

HOUR = timedelta(hours=1)
DAY = 24 * HOUR
NOW = datetime(2026, 11, 10, 3, tzinfo=UTC)
SPACES = tuple(f"T{n:02}" for n in range(12))
PRICE = 1800
LAST_DAY = date(2027, 5, 10)


@pytest.fixture(autouse=True)
def now(inside: Flask) -> Iterator[None]:
    clock.set_source(lambda: NOW)
    yield
    clock.set_source(None)


@pytest.fixture
def house(cast: Cast) -> HouseOf:
    """A sauna with a place for everybody who comes at once."""
    made = cast.open_house(
        "umeda-sauna",
        "梅田サウナ",
        "Umeda Sauna",
        kind="sauna",
        spaces=SPACES,
        plans=(
            ("visit", "サウナ入浴", "Sauna visit", "day_use", "visit", PRICE, 0),
            ("nap", "仮眠", "Nap", "day_use", "hour", 900, 0),
            ("night", "宿泊", "Overnight", "lodging", "night", 6000, 0),
        ),
    )
    cast.__dict__["osaka"] = made
    _ = cast.sato, cast.suzuki
    return made


@pytest.fixture
def sold(cast: Cast, house: HouseOf) -> Booked:
    """The stay on whose account books are sold; it has been paid."""
    stay = visit(cast, 0)
    do(cast, cash.take, stay.id, PRICE, uuid4())
    return stay


@pytest.fixture
def book(cast: Cast, sold: Booked) -> tuple[UUID, str]:
    """Three tickets for 5,000 yen, paid."""
    made = cast.sell_tickets(sold, cast.tickets())
    do(cast, cash.take, sold.id, 5000, uuid4())
    return made


def visit(cast: Cast, space: int, *, days: int = 1, plan: str = "visit", **more: Any) -> Booked:
    starts = NOW + days * DAY
    wanted = {"starts_at": starts, "ends_at": starts + 2 * HOUR, "price": PRICE, "plan": plan}
    return cast.book(cast.osaka, space=SPACES[space], **{**wanted, **more})


def form(cast: Cast, code: str, space: int = 1, **more: Any) -> NewStay:
    starts = more.pop("starts_at", NOW + DAY)
    values: dict[str, Any] = {
        "form_key": uuid4(),
        "guest": NewGuest(**cast.emma),
        "space_id": cast.osaka.spaces[SPACES[space]],
        "plan_id": cast.osaka.plans["visit"],
        "starts_at": starts,
        "ends_at": starts + 2 * HOUR,
        "price": 0,
        "ticket": code,
    }
    return NewStay(**{**values, **more})


def do(cast: Cast, verb: Any, *args: Any, **more: Any) -> Any:
    with cast.transaction(cast.osaka.id) as tx:
        return verb(tx, cast.sato.actor, *args, **more)


def create(cast: Cast, wanted: NewStay) -> Outcome:
    said: Outcome = do(cast, bookings.create, wanted)
    return said


def booked(cast: Cast, wanted: NewStay) -> UUID:
    said = create(cast, wanted)
    assert isinstance(said, Applied), said
    assert said.subject is not None
    return said.subject


def left(owner: Owner) -> tuple[int, int, int]:
    """Granted, used and worth of the one book; and each figure is the sum of its lines."""
    apart = owner.rows(
        "select b.id from ticket_books b left join ticket_lines l on l.book_id = b.id"
        " group by b.id, b.granted, b.used, b.worth having"
        " coalesce(sum(l.amount) filter (where l.kind in ('sold', 'taken_back')), 0) <> b.granted"
        " or -coalesce(sum(l.amount) filter (where l.kind in ('taken', 'returned')), 0) <> b.used"
        " or coalesce(sum(l.worth), 0) <> b.worth"
    )
    assert apart == []
    granted, used, worth = owner.row("select granted, used, worth from ticket_books")
    return granted, used, worth


def lines(owner: Owner) -> list[tuple[str, int, int]]:
    return owner.rows("select kind, amount, worth from ticket_lines order by id")


def balance(owner: Owner, stay: Booked) -> int:
    return int(
        owner.one("select coalesce(sum(amount), 0) from ledger_lines where stay_id = %s", stay.id)
    )


# Offers -----------------------------------------------------------------------------------------


def offered(cast: Cast, plan: str = "visit", **more: Any) -> Outcome:
    values: dict[str, Any] = {
        "form_key": uuid4(),
        "name_ja": "回数券",
        "name_en": "Book",
        "plan_id": cast.osaka.plans[plan],
        "tickets": 3,
        "price": 5000,
        "months": 6,
    }
    said: Outcome = do(cast, ticket_offers.create, ticket_offers.NewOffer(**{**values, **more}))
    return said


@pytest.mark.parametrize("plan", ["nap", "night"])
def test_only_visits_are_paid_by_tickets(cast: Cast, house: HouseOf, plan: str) -> None:
    assert offered(cast, plan) == Refused(Code.TICKET_OFFER_NOT_A_VISIT)


def test_a_members_plan_and_a_retired_one_are_paid_by_none(
    cast: Cast, house: HouseOf, owner: Owner
) -> None:
    members_only = cast.for_members(house)
    assert offered(cast, members_only) == Refused(Code.TICKET_OFFER_NOT_A_VISIT)
    owner.run("update plans set active = false where code = 'visit'")
    assert offered(cast) == Refused(Code.TICKET_OFFER_NOT_A_VISIT)


def test_another_houses_plan_is_not_offered(cast: Cast, house: HouseOf) -> None:
    assert offered(cast, plan_id=cast.tokyo.plans["night"]) == Refused(Code.NOT_FOUND)


def test_h1_one_form_offers_one(cast: Cast, app: Flask, house: HouseOf, owner: Owner) -> None:
    key = uuid4()
    said = at_once(app, *[lambda: offered(cast, form_key=key)] * 4)
    codes = Counter(getattr(one, "code", repr(one)) for one in said)
    assert codes == {Code.TICKET_OFFER_CREATED: 1, Code.TICKET_OFFER_ALREADY_CREATED: 3}
    assert owner.one("select count(*) from ticket_offers") == 1


def test_what_is_withdrawn_is_sold_no_more_and_still_pays(
    cast: Cast, sold: Booked, book: tuple[UUID, str], owner: Owner
) -> None:
    offer = owner.one("select id from ticket_offers")
    assert do(cast, ticket_offers.withdraw, offer, 7).code == Code.STALE_PAGE
    assert do(cast, ticket_offers.withdraw, offer, 1).code == Code.TICKET_OFFER_WITHDRAWN
    assert do(cast, ticket_offers.withdraw, offer, 1).code == Code.TICKET_OFFER_ALREADY_WITHDRAWN
    said = do(cast, ticket_books.sell, sold.id, offer, uuid4())
    assert said == Refused(Code.TICKET_OFFER_NOT_SOLD)
    assert isinstance(create(cast, form(cast, book[1])), Applied)


# Selling ----------------------------------------------------------------------------------------


def test_a_book_stands_on_the_account_on_which_it_is_sold(
    cast: Cast, sold: Booked, owner: Owner
) -> None:
    _, code = cast.sell_tickets(sold, cast.tickets())
    assert left(owner) == (3, 0, 5000)
    assert lines(owner) == [("sold", 3, 5000)]
    assert balance(owner, sold) == 5000
    assert owner.row(
        "select kind, item, amount, tax_rate from ledger_lines order by id desc limit 1"
    ) == ("charge", "ticket_book", 5000, 0)
    assert owner.row("select code, last_day from ticket_books") == (code, LAST_DAY)
    assert owner.one("select count(*) from outbox where event_type = 'ticket_book_sold'") == 1


def test_h1_one_form_sells_one(cast: Cast, app: Flask, sold: Booked, owner: Owner) -> None:
    offer, key = cast.tickets(), uuid4()
    said = at_once(app, *[lambda: do(cast, ticket_books.sell, sold.id, offer, key)] * 6)
    codes = Counter(getattr(one, "code", repr(one)) for one in said)
    assert codes == {Code.TICKET_BOOK_SOLD: 1, Code.TICKET_BOOK_ALREADY_SOLD: 5}
    assert balance(owner, sold) == 5000


def test_nothing_is_sold_on_an_account_that_is_over(cast: Cast, sold: Booked) -> None:
    offer = cast.tickets()
    do(cast, stays.cancel, sold.id, 1)
    assert do(cast, ticket_books.sell, sold.id, offer, uuid4()) == Refused(Code.STAY_OVER)


def test_another_houses_offer_or_stay_is_not_there(cast: Cast, sold: Booked) -> None:
    offer, other = cast.tickets(), cast.book()
    assert do(cast, ticket_books.sell, other.id, offer, uuid4()) == Refused(Code.NOT_FOUND)
    assert do(cast, ticket_books.sell, sold.id, uuid4(), uuid4()) == Refused(Code.NOT_FOUND)


def test_the_receipt_says_that_the_book_is_untaxed(
    cast: Cast, sold: Booked, book: tuple[UUID, str], owner: Owner
) -> None:
    do(cast, documents.issue, documents.Folio(stay_id=sold.id), "", uuid4())
    parts = owner.one("select stated -> 'parts' from documents")
    assert [(part["item"], part["rate"], part["amount"]) for part in parts] == [
        ("", 10, PRICE),
        ("ticket_book", 0, 5000),
    ]


# Using ------------------------------------------------------------------------------------------


def test_a_ticket_pays_a_visit_whole(cast: Cast, book: tuple[UUID, str], owner: Owner) -> None:
    said = create(cast, form(cast, book[1]))
    assert isinstance(said, Applied), said
    assert left(owner) == (3, 1, 3334)
    assert lines(owner)[-1] == ("taken", -1, -1666)
    assert owner.one("select count(*) from ledger_lines where stay_id = %s", said.subject) == 0


def test_c13_the_tickets_are_worth_the_price_to_the_yen(
    cast: Cast, book: tuple[UUID, str], owner: Owner
) -> None:
    for space in (1, 2, 3):
        assert isinstance(create(cast, form(cast, book[1], space)), Applied)
    assert [worth for _, _, worth in lines(owner)] == [5000, -1666, -1667, -1667]
    assert left(owner) == (3, 3, 0)
    assert create(cast, form(cast, book[1], 4)).code == Code.TICKET_BOOK_EMPTY
    assert owner.one("select count(*) from stays") == 4, "nothing of the refused one stays"


@pytest.mark.parametrize("typed", ["NOSUCHCD", "A", "' or 1=1 --"])
def test_a_code_that_nobody_has(cast: Cast, book: tuple[UUID, str], typed: str) -> None:
    assert create(cast, form(cast, typed)).code == Code.TICKET_BOOK_UNKNOWN


def test_a_book_of_another_house_is_unknown(cast: Cast, book: tuple[UUID, str]) -> None:
    starts = NOW + DAY
    wanted = NewStay(
        form_key=uuid4(),
        guest=NewGuest(**cast.emma),
        space_id=cast.tokyo.spaces["A01"],
        plan_id=cast.tokyo.plans["nap"],
        starts_at=starts,
        ends_at=starts + HOUR,
        price=0,
        ticket=book[1],
    )
    with cast.transaction(cast.tokyo.id) as tx:
        assert bookings.create(tx, cast.sato.actor, wanted).code == Code.TICKET_BOOK_UNKNOWN


def test_it_pays_its_own_plan_and_no_other(cast: Cast, book: tuple[UUID, str]) -> None:
    other = form(cast, book[1], plan_id=cast.osaka.plans["nap"])
    assert create(cast, other).code == Code.TICKET_BOOK_OF_ANOTHER_PLAN
    none = form(cast, book[1], plan_id=None)
    assert create(cast, none).code == Code.TICKET_BOOK_OF_ANOTHER_PLAN


def test_e2_the_last_day_is_the_houses_and_of_the_use(
    cast: Cast, book: tuple[UUID, str], owner: Owner
) -> None:
    """23:59:59 on the last day in Japan, and the second after it."""
    end = datetime(2027, 5, 10, 15, tzinfo=UTC)
    last = form(cast, book[1], 1, starts_at=end - timedelta(seconds=1))
    assert isinstance(create(cast, last), Applied)
    said = create(cast, form(cast, book[1], 2, starts_at=end))
    assert isinstance(said, Refused)
    assert (said.code, said.details["day"]) == (Code.TICKET_BOOK_EXPIRED, LAST_DAY)
    assert left(owner)[1] == 1


def test_what_is_not_paid_pays_only_the_visit_on_its_own_account(
    cast: Cast, sold: Booked, owner: Owner
) -> None:
    _, code = cast.sell_tickets(sold, cast.tickets())
    said = create(cast, form(cast, code))
    assert isinstance(said, Refused)
    assert (said.code, said.details["amount"]) == (Code.TICKET_BOOK_UNPAID, Money(5000, "JPY"))
    assert do(cast, ticket_books.use, sold.id, 1, code).code == Code.TICKET_TAKEN
    assert balance(owner, sold) == 5000 - PRICE, "what was paid for the visit pays for the book"
    assert do(cast, cash.take, sold.id, 5000 - PRICE, uuid4()).code == Code.CASH_TAKEN
    assert isinstance(create(cast, form(cast, code)), Applied)


def test_a_book_whose_money_went_back_pays_nothing(
    cast: Cast, sold: Booked, book: tuple[UUID, str], owner: Owner
) -> None:
    owner.run(
        "insert into ledger_lines (facility_id, stay_id, kind, amount, currency, actor_kind,"
        " actor_name, at) values (%s, %s, 'cash_returned', 1, 'JPY', 'staff', 'x', now())",
        cast.osaka.id,
        sold.id,
    )
    assert create(cast, form(cast, book[1])).code == Code.TICKET_BOOK_UNPAID


def test_a_member_needs_none(cast: Cast, book: tuple[UUID, str]) -> None:
    wanted = form(cast, book[1], guest=None, membership_id=uuid4())
    assert create(cast, wanted) == Refused(Code.TICKET_NOT_FOR_MEMBERS)


def test_e10_ten_at_once_for_the_last_ticket_are_one(
    cast: Cast, app: Flask, book: tuple[UUID, str], owner: Owner
) -> None:
    create(cast, form(cast, book[1], 11))
    create(cast, form(cast, book[1], 10))
    wanted = [form(cast, book[1], space) for space in range(10) if space != 0]
    said = at_once(app, *[_creating(cast, one) for one in [*wanted, form(cast, book[1], 1)]])
    codes = Counter(getattr(one, "code", repr(one)) for one in said)
    assert codes[Code.STAY_CREATED] == 1
    assert codes[Code.TICKET_BOOK_EMPTY] + codes[Code.SPACE_TAKEN] == 9
    assert left(owner) == (3, 3, 0)


def _creating(cast: Cast, wanted: NewStay) -> Any:
    return lambda: create(cast, wanted)


def test_the_database_itself_refuses_one_too_many(
    cast: Cast, book: tuple[UUID, str], owner: Owner
) -> None:
    for wrong in ("used = 4", "used = -1", "used = 3", "worth = 5001", "granted = 0"):
        with pytest.raises(psycopg.errors.CheckViolation):
            owner.run(f"update ticket_books set {wrong}")


# A stay that was booked at its price -------------------------------------------------------------


def test_a_ticket_pays_what_was_booked_and_the_money_goes_back(
    cast: Cast, book: tuple[UUID, str], owner: Owner
) -> None:
    stay = visit(cast, 1)
    do(cast, cash.take, stay.id, PRICE, uuid4())
    assert do(cast, ticket_books.use, stay.id, 9, book[1]).code == Code.STALE_PAGE
    assert do(cast, ticket_books.use, stay.id, 1, book[1]).code == Code.TICKET_TAKEN
    assert do(cast, ticket_books.use, stay.id, 1, book[1]).code == Code.TICKET_ALREADY_TAKEN
    assert balance(owner, stay) == -PRICE, "cash is handed back at the desk"
    assert left(owner) == (3, 1, 3334)
    assert do(cast, cash.hand_back, stay.id, PRICE, uuid4()).code == Code.CASH_RETURNED


def test_a_ticket_that_is_not_given_leaves_the_price(
    cast: Cast, book: tuple[UUID, str], owner: Owner
) -> None:
    stay = visit(cast, 1)
    said = do(cast, ticket_books.use, stay.id, 1, "NOSUCHCD")
    assert said.code == Code.TICKET_BOOK_UNKNOWN
    assert balance(owner, stay) == PRICE
    assert owner.one("select version from stays where id = %s", stay.id) == 1


def test_what_costs_nothing_and_what_is_over_takes_none(
    cast: Cast, book: tuple[UUID, str], owner: Owner
) -> None:
    free, over = visit(cast, 1, price=0), visit(cast, 2)
    assert do(cast, ticket_books.use, free.id, 1, book[1]) == Refused(Code.NOTHING_DUE)
    do(cast, stays.cancel, over.id, 1)
    assert do(cast, ticket_books.use, over.id, 2, book[1]) == Refused(Code.STAY_OVER)
    assert left(owner)[1] == 0


def test_a_ticket_is_one_persons(cast: Cast, book: tuple[UUID, str], owner: Owner) -> None:
    assert create(cast, form(cast, book[1], persons=2)).code == Code.VISIT_IS_ONE_PERSONS
    two = visit(cast, 1, persons=2)
    assert do(cast, ticket_books.use, two.id, 1, book[1]).code == Code.VISIT_IS_ONE_PERSONS
    one = booked(cast, form(cast, book[1], 2))
    said = do(cast, stay_changes.change_persons, one, 1, 2)
    assert said.code == Code.VISIT_IS_ONE_PERSONS
    assert left(owner)[1] == 1


# Giving back ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("hours", "back"), [(49, 1), (48, 1), (47, 0), (0, 0)])
def test_by_the_terms_it_comes_back_or_it_does_not(
    cast: Cast, book: tuple[UUID, str], owner: Owner, hours: int, back: int
) -> None:
    cast.policy((72, 0, True), (47, 0, False), house=cast.osaka, plan="visit")
    stay = booked(cast, form(cast, book[1], starts_at=NOW + 96 * HOUR))
    clock.set_source(lambda: NOW + (96 - hours) * HOUR)
    do(cast, stays.cancel, stay, 1)
    assert left(owner) == ((3, 0, 5000) if back else (3, 1, 3334))
    assert owner.one("select last_day from ticket_books") == LAST_DAY, "it keeps its end"


def test_a_guest_is_told_and_a_late_one_mints_nothing(
    cast: Cast, book: tuple[UUID, str], owner: Owner
) -> None:
    cast.policy((24, 50, False), house=cast.osaka, plan="visit")
    stay = booked(cast, form(cast, book[1], starts_at=NOW + 25 * HOUR))
    clock.set_source(lambda: NOW + 2 * HOUR)
    with cast.transaction(cast.osaka.id) as tx:
        said = stays.cancel_as_agreed(tx, GUEST, stay, 1, 0, returns=True)
    assert said.code == Code.CANCELLATION_CHANGED
    with cast.transaction(cast.osaka.id) as tx:
        said = stays.cancel_as_agreed(tx, GUEST, stay, 1, 0, returns=False)
    assert said.code == Code.STAY_CANCELLED, "a visit that costs nothing has no fee"
    assert left(owner) == (3, 1, 3334)


def test_h1_two_cancellations_return_one(
    cast: Cast, app: Flask, book: tuple[UUID, str], owner: Owner
) -> None:
    stay = booked(cast, form(cast, book[1]))
    said = at_once(app, *[lambda: do(cast, stays.cancel, stay, 1)] * 6)
    codes = Counter(getattr(one, "code", repr(one)) for one in said)
    assert codes == {Code.STAY_CANCELLED: 1, Code.STAY_ALREADY_CANCELLED: 5}
    assert left(owner) == (3, 0, 5000)


def test_what_comes_back_is_worth_what_it_was_and_can_be_used_again(
    cast: Cast, book: tuple[UUID, str], owner: Owner
) -> None:
    first = booked(cast, form(cast, book[1], 1))
    create(cast, form(cast, book[1], 2))
    do(cast, stays.cancel, first, 1)
    assert left(owner) == (3, 1, 3333)
    for space in (3, 4):
        assert isinstance(create(cast, form(cast, book[1], space)), Applied)
    assert left(owner) == (3, 3, 0)
    used = -sum(worth for kind, _, worth in lines(owner) if kind in ("taken", "returned"))
    assert used == 5000


def test_cancelling_the_stay_keeps_the_book_that_was_sold_on_it(
    cast: Cast, sold: Booked, book: tuple[UUID, str], owner: Owner
) -> None:
    do(cast, stays.cancel, sold.id, 1)
    assert balance(owner, sold) == -PRICE, "only the visit goes back"
    assert isinstance(create(cast, form(cast, book[1])), Applied)


# Other times ------------------------------------------------------------------------------------


def test_a_visit_moves_within_the_life_of_its_book(
    cast: Cast, book: tuple[UUID, str], owner: Owner
) -> None:
    stay = booked(cast, form(cast, book[1]))
    last = datetime(2027, 5, 10, 3, tzinfo=UTC)
    said = do(cast, stay_changes.change_times, stay, 1, last, last + HOUR, 0)
    assert isinstance(said, Applied)
    said = do(cast, stay_changes.change_times, stay, 2, last + DAY, last + DAY + HOUR, 0)
    assert said == Refused(Code.TICKET_BOOK_EXPIRED, {"day": LAST_DAY})
    assert left(owner)[1] == 1


# Taking back ------------------------------------------------------------------------------------


def take_back(cast: Cast, book: UUID, seen: int, amount: int) -> Outcome:
    said: Outcome = do(cast, ticket_books.take_back, book, seen, amount, "お客様のご希望")
    return said


def test_what_is_left_is_taken_back_and_its_money_returned(
    cast: Cast, sold: Booked, book: tuple[UUID, str], owner: Owner
) -> None:
    create(cast, form(cast, book[1]))
    assert isinstance(take_back(cast, book[0], 1, 3334), Conflict), "a ticket was used meanwhile"
    assert take_back(cast, book[0], 2, 3334).code == Code.TICKET_BOOK_TAKEN_BACK
    assert take_back(cast, book[0], 2, 3334).code == Code.TICKET_BOOK_TAKEN_BACK_ALREADY
    assert left(owner) == (1, 1, 0)
    assert balance(owner, sold) == -3334
    assert create(cast, form(cast, book[1], 2)).code == Code.TICKET_BOOK_VOID


def test_bad_amounts_take_nothing_back(cast: Cast, book: tuple[UUID, str], owner: Owner) -> None:
    for amount in (-1, 5001):
        said = take_back(cast, book[0], 1, amount)
        assert said == Refused(Code.TICKET_BOOK_COST_LESS, {"amount": Money(5000, "JPY")})
    assert left(owner) == (3, 0, 5000)


def test_a_book_that_is_used_up_is_not_taken_back(cast: Cast, book: tuple[UUID, str]) -> None:
    for space in (1, 2, 3):
        create(cast, form(cast, book[1], space))
    assert take_back(cast, book[0], 4, 0) == Refused(Code.TICKET_BOOK_EMPTY)


def test_a_ticket_that_comes_back_to_a_book_that_is_gone_goes_with_it(
    cast: Cast, book: tuple[UUID, str], owner: Owner
) -> None:
    stay = booked(cast, form(cast, book[1]))
    take_back(cast, book[0], 2, 3334)
    do(cast, stays.cancel, stay, 1)
    assert left(owner) == (0, 0, 0)
    assert lines(owner)[-2:] == [("returned", 1, 1666), ("taken_back", -1, -1666)]
    assert create(cast, form(cast, book[1], 2)).code == Code.TICKET_BOOK_VOID


def test_a_use_beside_the_taking_back(
    cast: Cast, app: Flask, book: tuple[UUID, str], owner: Owner
) -> None:
    said = at_once(
        app,
        lambda: create(cast, form(cast, book[1])),
        lambda: take_back(cast, book[0], 1, 5000),
    )
    codes = {getattr(one, "code", repr(one)) for one in said}
    assert codes in (
        {Code.STAY_CREATED, Code.STALE_PAGE},
        {Code.TICKET_BOOK_VOID, Code.TICKET_BOOK_TAKEN_BACK},
    )
    left(owner)


# The plan that it pays --------------------------------------------------------------------------


def test_a_plan_is_sold_while_its_tickets_pay_for_it(
    cast: Cast, book: tuple[UUID, str], owner: Owner
) -> None:
    plan = cast.osaka.plans["visit"]
    said = do(cast, stay_plans.withdraw, plan, 1)
    assert said == Refused(Code.STAY_PLAN_HAS_TICKETS, {"day": LAST_DAY})
    owner.run("update ticket_books set last_day = '2026-11-09'")
    assert do(cast, stay_plans.withdraw, plan, 1).code == Code.STAY_PLAN_WITHDRAWN


def test_a_plan_of_used_tickets_is_withdrawn(cast: Cast, book: tuple[UUID, str]) -> None:
    take_back(cast, book[0], 1, 5000)
    said = do(cast, stay_plans.withdraw, cast.osaka.plans["visit"], 1)
    assert said.code == Code.STAY_PLAN_WITHDRAWN


def test_what_is_offered_as_tickets_stays_a_visit(cast: Cast, house: HouseOf) -> None:
    cast.tickets()
    terms = stay_plans.Terms("x", "x", "day_use", "hour", PRICE, 0, "standard", members_only=False)
    said = do(cast, stay_plans.change, house.plans["visit"], 1, terms)
    assert said == Refused(Code.STAY_PLAN_KIND_FIXED)


# What it costs, and what pages show --------------------------------------------------------------


def test_statements(cast: Cast, book: tuple[UUID, str]) -> None:
    paid = visit(cast, 1)
    for most, act in (
        (13, lambda: create(cast, form(cast, book[1], 2))),
        (7, lambda: do(cast, ticket_books.use, paid.id, 1, book[1])),
        (10, lambda: take_back(cast, book[0], 3, 1000)),
    ):
        with statements() as said:
            assert isinstance(act(), Applied)
        assert len(said) <= most, said


def test_the_page_opens_every_figure_into_its_lines(
    cast: Cast, sold: Booked, book: tuple[UUID, str]
) -> None:
    create(cast, form(cast, book[1]))
    with cast.transaction(cast.osaka.id) as tx:
        seen = shown.load(tx, book[0])
        here = shown.of_stay(tx, sold.id)
        found = [
            [row.code for row in shown.page(tx, words, shown.Cursor()).rows]
            for words in (book[1], "ハナコ", "スミス", "")
        ]
    assert seen is not None
    assert sum(line.amount for line in seen.lines) == seen.book.left == 2
    assert sum(line.worth for line in seen.lines) == seen.book.worth
    assert [(one.id, one.pays, one.sold_here) for one in here] == [(book[0], False, True)]
    assert found == [[book[1]], [book[1]], [], [book[1]]]


# Any life of a book ------------------------------------------------------------------------------


@settings(
    max_examples=15,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(steps=st.lists(st.sampled_from(("use", "use", "cancel", "late", "back")), max_size=10))
def test_no_life_of_a_book_pays_more_than_it_was_sold_for(
    cast: Cast, house: HouseOf, owner: Owner, steps: list[str]
) -> None:
    for table in ("ticket_lines", "ticket_books"):
        owner.run(f"delete from {table}")
    owner.run("set session_replication_role = replica")
    owner.run("delete from stays")
    owner.run("set session_replication_role = origin")
    stay = visit(cast, 0)
    book, code = cast.sell_tickets(stay, cast.tickets())
    do(cast, cash.take, stay.id, 5000 + PRICE, uuid4())
    held: list[UUID] = []
    used, back = 0, False
    for number, step in enumerate(steps, start=1):
        if step == "use":
            said = create(cast, form(cast, code, number))
            assert isinstance(said, Applied) == (not back and used < 3)
            if isinstance(said, Applied) and said.subject:
                held.append(said.subject)
                used += 1
        elif step == "back":
            seen = owner.one("select version from ticket_books")
            said = take_back(cast, book, seen, 0)
            back = back or isinstance(said, Applied)
        elif held:
            then = NOW + (2 * DAY if step == "late" else 0 * DAY)
            clock.set_source(partial(datetime.fromtimestamp, then.timestamp(), UTC))
            do(cast, stays.cancel, held.pop(), 1)
            clock.set_source(lambda: NOW)
            used -= 0 if step == "late" else 1
        granted, counted, worth = left(owner)
        assert counted == used
        assert granted == (used if back else 3)
        assert 0 <= worth <= 5000


# The rules ---------------------------------------------------------------------------------------


@given(sold_on=st.dates(date(2000, 1, 1), date(2090, 12, 31)), months=st.integers(1, 60))
def test_the_last_day_has_the_same_number_or_ends_the_month(sold_on: date, months: int) -> None:
    last = policy.last_day(sold_on, months)
    assert (last.year - sold_on.year) * 12 + last.month - sold_on.month == months
    assert last.day == sold_on.day or (
        last.day < sold_on.day and (last + timedelta(days=1)).day == 1
    )


@given(
    left=st.integers(-1, 3),
    owed=st.integers(-1, 2),
    taken_back=st.booleans(),
    mine=st.booleans(),
    day=st.dates(date(2026, 1, 1), date(2026, 1, 5)),
)
def test_a_book_pays_only_where_nothing_stands_in_the_way(
    left: int, owed: int, taken_back: bool, mine: bool, day: date
) -> None:
    plan, other = uuid4(), uuid4()
    book = policy.Book(plan, left, date(2026, 1, 3), taken_back, owed)
    said = policy.refusal(book, plan if mine else other, day)
    pays = mine and left > 0 and owed <= 0 and not taken_back and day <= date(2026, 1, 3)
    assert (said is None) == pays
