"""The day's close: the drawer beside the folios, sealed once and for good."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from flask import Flask
from sqlalchemy.exc import IntegrityError, ProgrammingError

from portal import clock, journal, ledger
from portal.jobs.house import House
from portal.money import Money
from portal.outcome import Applied, Code, Noop, Outcome, Refused
from portal.queries import day_closes
from portal.verbs import cash, day_close, payments, stays
from portal.verbs.day_close import Count
from sandbox.stripe.testing import StandIn
from sandbox.watch import statements
from tests.cast import Cast
from tests.outside import Owner, at_once
from tests.verbs.test_stays import do

TODAY = "Asia/Tokyo"


def count(cast: Cast, **more: Any) -> Count:
    """As a person would who saw what is true now and counts what is expected."""
    with cast.transaction(cast.tokyo.id) as tx:
        now = day_closes.to_close(tx, clock.now(), more.get("opening", 0))
    seen = Count(
        form_key=uuid4(),
        day=clock.local_day(clock.now(), TODAY),
        opening=0,
        counted=max(0, now.figures.expected),
        taken=0,
        cash_moved=now.figures.cash_moved,
        left_open=len(now.matters),
        reason="",
    )
    return replace(seen, **more)


def close(cast: Cast, wanted: Count) -> Outcome:
    return do(cast, day_close.close, wanted)


def closed(cast: Cast, **more: Any) -> UUID:
    said = close(cast, count(cast, **more))
    assert isinstance(said, Applied), said
    assert said.subject is not None
    return said.subject


def look(cast: Cast, close_id: UUID) -> day_closes.Closed:
    with cast.transaction(cast.tokyo.id) as tx:
        found = day_closes.load(tx, close_id)
    assert found is not None
    return found


def paid_in_cash(cast: Cast, amount: int = 6000, **more: Any) -> UUID:
    stay = cast.book(price=amount, **more)
    assert isinstance(do(cast, cash.take, stay.id, amount, uuid4()), Applied)
    return stay.id


@pytest.fixture
def later() -> Iterator[Callable[..., None]]:
    """The clock moves on; the system's own comes back after the test."""

    def move(**by: int) -> None:
        there = clock.now() + timedelta(**by)
        clock.set_source(lambda: there)

    yield move
    clock.set_source(None)


def test_the_drawer_is_what_it_began_with_and_what_moved(cast: Cast, later: Any) -> None:
    paid_in_cash(cast)
    first = look(cast, closed(cast, opening=20_000, taken=5_000)).close
    assert (first.no, first.opening, first.cash_in, first.counted) == (1, 20_000, 6000, 26_000)
    later(days=1)
    paid_in_cash(cast, 1500, space="A02")
    second = look(cast, closed(cast)).close
    assert (second.no, second.opening, second.cash_in, second.counted) == (2, 21_000, 1500, 22_500)


def test_what_is_handed_back_is_not_in_it(cast: Cast) -> None:
    stay = paid_in_cash(cast)
    do(cast, stays.cancel, stay, 1, 1000)
    assert isinstance(do(cast, cash.hand_back, stay, 5000, uuid4()), Applied)
    row = look(cast, closed(cast)).close
    assert (row.cash_in, row.cash_out, row.counted) == (6000, 5000, 1000)


def test_every_line_belongs_to_one_close(cast: Cast, owner: Owner, later: Any) -> None:
    paid_in_cash(cast)
    first = closed(cast)
    later(days=1)
    paid_in_cash(cast, 1500, space="A02")
    second = closed(cast)
    found = owner.rows(
        "select c.close_id, l.kind from ledger_lines l join day_close_lines c on c.line_id = l.id"
        " order by l.id"
    )
    assert found == [(first, "charge"), (first, "cash"), (second, "charge"), (second, "cash")]


def test_a_line_that_commits_late_is_the_next_closes(cast: Cast, app: Flask, later: Any) -> None:
    """Its id and its time are before the close, and no close could see it: the next one has it."""
    stay = cast.book()
    with cast.transaction(cast.tokyo.id) as tx:
        cash.take(tx, cast.sato.actor, stay.id, 2500, uuid4())
        later(seconds=1)
        first = closed_beside(cast, app)
    assert first.cash_in == 0
    later(days=1)
    second = look(cast, closed(cast))
    assert (second.close.cash_in, [one.kind for one in second.kinds]) == (2500, ["cash"])


def closed_beside(cast: Cast, app: Flask) -> Any:
    """By another connection, while this one has not committed."""
    [said] = at_once(app, lambda: closed(cast))
    assert isinstance(said, UUID), said
    return look(cast, said).close


def test_what_is_booked_while_a_day_is_closed_is_the_next_closes(
    cast: Cast, app: Flask, later: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the adding up and the sealing: what was added up is what is sealed."""
    stay = cast.book(space="A02", price=2500)
    paid_in_cash(cast)
    adding_up = journal.open_matters

    def and_meanwhile(*args: Any) -> Any:
        monkeypatch.undo()
        at_once(app, lambda: do(cast, cash.take, stay.id, 2500, uuid4()))
        return adding_up(*args)

    seen = count(cast)
    monkeypatch.setattr(journal, "open_matters", and_meanwhile)
    said = close(cast, seen)
    assert isinstance(said, Applied), said
    assert said.subject is not None
    first = look(cast, said.subject)
    assert (first.close.cash_in, first.close.lines) == (6000, 3)
    assert (first.whole, first.lines_whole) == (True, True)
    later(days=1)
    assert look(cast, closed(cast)).close.cash_in == 2500


def test_a_difference_needs_its_reason(cast: Cast) -> None:
    paid_in_cash(cast)
    said = close(cast, count(cast, counted=5900))
    assert said == Refused(Code.DAY_NEEDS_REASON, {"amount": Money(6000, "JPY")})
    row = look(cast, closed(cast, counted=5900, reason="釣銭の渡し間違い")).close
    assert (row.counted, row.expected, row.reason) == (5900, 6000, "釣銭の渡し間違い")


def test_what_is_open_is_named_first_and_needs_its_reason(cast: Cast, later: Any) -> None:
    late = cast.book(ends_at=clock.now() + timedelta(minutes=5), price=0)
    do(cast, stays.admit, late.id, 1)
    debtor = paid_in_cash(cast, 1000, space="A02")
    do(cast, stays.admit, debtor, 1)
    with cast.transaction(cast.tokyo.id) as tx:
        ledger.book(tx, cast.sato.actor, "charge", stay_id=debtor, amount=700, currency="JPY")
    do(cast, stays.depart, debtor, 2)
    later(minutes=10)
    with cast.transaction(cast.tokyo.id) as tx:
        matters = journal.open_matters(tx, None, clock.now())
    assert [(one.kind, one.stay_id, one.amount) for one in matters] == [
        ("unpaid", debtor, 700),
        ("not_checked_out", late.id, None),
    ]
    said = close(cast, count(cast))
    assert isinstance(said, Refused)
    assert said.code == Code.DAY_NEEDS_REASON
    assert look(cast, closed(cast, reason="清掃中")).close.left_open == 2
    later(days=1)
    with cast.transaction(cast.tokyo.id) as tx:
        again = day_closes.to_close(tx, clock.now()).matters
    assert [one.kind for one in again] == ["not_checked_out"], "who left is named once"


def test_unknown_money_is_open(cast: Cast, worker: House, stripe: StandIn, owner: Owner) -> None:
    stay = cast.book()
    stripe.fault("error_500_before", "^/v1/payment_intents$")
    payments.open_payment(worker.desk(stay.facility_id), cast.sato.actor, stay.id, "balance")
    with cast.transaction(cast.tokyo.id) as tx:
        [one] = journal.open_matters(tx, None, clock.now())
    payment = owner.one("select id from payments where state = 'unknown'")
    assert (one.kind, one.payment_id, one.amount) == ("money_unknown", payment, 6000)
    assert one.guest == "山田 花子"


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"cash_moved": 1}, Code.DAY_MOVED_ON),
        ({"left_open": 1}, Code.DAY_MOVED_ON),
        ({"taken": 6001}, Code.DRAWER_HOLDS_LESS),
        ({"taken": -1}, Code.DRAWER_HOLDS_LESS),
        ({"counted": -1}, Code.DRAWER_HOLDS_LESS),
        ({"opening": -1, "counted": 5999}, Code.DRAWER_HOLDS_LESS),
        ({"counted": 10**12, "reason": "?"}, Code.DRAWER_HOLDS_LESS),
    ],
)
def test_figures_that_cannot_be_close_nothing(
    cast: Cast, owner: Owner, wrong: dict[str, int], code: Code
) -> None:
    paid_in_cash(cast)
    said = close(cast, replace(count(cast), **wrong))
    assert said == Refused(code, {"amount": Money(6000 + wrong.get("opening", 0), "JPY")})
    assert owner.rows("select 1 from day_closes") == []


def test_money_that_came_meanwhile_is_counted_again(cast: Cast) -> None:
    seen = count(cast)
    paid_in_cash(cast)
    said = close(cast, seen)
    assert said == Refused(Code.DAY_MOVED_ON, {"amount": Money(6000, "JPY")})


def test_days_go_forward(cast: Cast, later: Any) -> None:
    today = clock.local_day(clock.now(), TODAY)
    assert close(cast, count(cast, day=today + timedelta(days=1))) == Refused(Code.DAY_NOT_YET)
    first = closed(cast)
    assert close(cast, count(cast)) == Noop(Code.DAY_ALREADY_CLOSED, subject=first)
    said = close(cast, count(cast, day=today - timedelta(days=1)))
    assert said == Refused(Code.DAY_BEFORE_LAST_CLOSE, {"day": today})
    later(days=3)
    assert look(cast, closed(cast)).close.no == 2, "days without a close are passed over"


def test_h1_one_form_closes_once_and_eight_people_at_once_close_one_day(
    cast: Cast, app: Flask, owner: Owner
) -> None:
    paid_in_cash(cast)
    seen = count(cast)
    said = at_once(app, *[lambda: close(cast, seen)] * 4, *[lambda: closed_or(cast)] * 4)
    codes = sorted(getattr(one, "code", repr(one)) for one in said)
    assert codes == [Code.DAY_ALREADY_CLOSED] * 7 + [Code.DAY_CLOSED]
    assert len(owner.rows("select 1 from day_closes")) == 1
    assert len(owner.rows("select 1 from day_close_lines")) == 2


def closed_or(cast: Cast) -> Outcome:
    return close(cast, replace(count(cast), counted=6000))


def test_the_seal_tells_what_was_changed_from_outside(cast: Cast, owner: Owner, later: Any) -> None:
    """Only who owns the database can, and the page says that it was done."""
    paid_in_cash(cast)
    first = closed(cast)
    later(days=1)
    second = closed(cast)
    assert (look(cast, second).whole, look(cast, second).lines_whole) == (True, True)
    owner.run("update ledger_lines set amount = amount - 1 where kind = 'cash'")
    assert (look(cast, first).whole, look(cast, first).lines_whole) == (True, False)
    owner.run("update ledger_lines set amount = amount + 1 where kind = 'cash'")
    assert look(cast, first).lines_whole
    owner.run("update day_closes set counted = counted + 1, reason = '?' where no = 1")
    assert not look(cast, first).whole
    owner.run("update day_closes set seal = %s where no = 1", ["0" * 64])
    assert not look(cast, second).whole, "the chain: the one after it no longer agrees"


@pytest.mark.parametrize("act", ["update day_closes set taken = 0", "delete from day_closes"])
def test_what_is_sealed_is_out_of_the_apps_reach(cast: Cast, act: str) -> None:
    closed(cast)
    denied = pytest.raises(ProgrammingError, match="permission denied")
    with cast.transaction(cast.tokyo.id) as tx, denied, tx.savepoint():
        tx.run(act)


def test_a_line_is_not_sealed_twice(cast: Cast, later: Any) -> None:
    paid_in_cash(cast)
    closed(cast)
    later(days=1)
    second = closed(cast)
    with cast.transaction(cast.tokyo.id) as tx, pytest.raises(IntegrityError), tx.savepoint():
        tx.run(
            "insert into day_close_lines (facility_id, line_id, close_id)"
            " select facility_id, line_id, :close from day_close_lines",
            close=second,
        )


def test_another_house_is_not_touched(cast: Cast, owner: Owner) -> None:
    stay = cast.book(house=cast.osaka, price=6000)
    with cast.transaction(cast.osaka.id) as tx:
        assert isinstance(cash.take(tx, cast.tanaka.actor, stay.id, 6000, uuid4()), Applied)
    row = look(cast, closed(cast)).close
    assert (row.cash_in, row.lines) == (0, 0)


def test_a_close_needs_few_statements(cast: Cast) -> None:
    for space in ("A01", "A02"):
        paid_in_cash(cast, space=space)
    wanted = count(cast)
    with statements() as said:
        assert isinstance(close(cast, wanted), Applied)
    assert len(said) <= 9, said
