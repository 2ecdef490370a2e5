"""The day's close at the desk: what is open, the drawer, what was sealed, the journal as a file."""

import csv
from collections.abc import Iterator
from datetime import time, timedelta
from io import StringIO
from typing import Any
from uuid import uuid4

import pytest
from flask.testing import FlaskClient

from portal import clock
from portal.verbs import cash, stays
from portal.web import sheet
from sandbox.watch import statements
from tests.cast import Cast
from tests.outside import Owner
from tests.verbs.test_stays import do
from tests.web.audit import form_data
from tests.web.staff.desk import HTMX, at, code, look, press, read, text

PAGE = "/staff/day-close"
JOURNAL = f"{PAGE}/journal.csv"
BUDGET = 7


@pytest.fixture
def client(cast: Cast) -> FlaskClient:
    return cast.signed_in(cast.sato, cast.tokyo)


@pytest.fixture(autouse=True)
def afternoon() -> Iterator[None]:
    """The day that the form proposes is today's."""
    today = clock.local_day(clock.now(), "Asia/Tokyo")
    there = clock.instant_at(today, time(15), "Asia/Tokyo")
    clock.set_source(lambda: there)
    yield
    clock.set_source(None)


def paid(cast: Cast, amount: int = 6000, **more: Any) -> Any:
    stay = cast.book(price=amount, **more)
    do(cast, cash.take, stay.id, amount, uuid4())
    return stay


def test_the_day_is_closed_in_both_languages(cast: Cast, lang: str) -> None:
    client = cast.signed_in(cast.sato, cast.tokyo, locale=lang)
    paid(cast)
    page = look(client, PAGE, lang)
    assert {"ja": "￥6,000", "en": "¥6,000"}[lang] in text(page)
    done = press(client, page, PAGE, opening="20,000", counted="２６０００", taken="6000")
    assert done.status_code == 303
    page = look(client, done.location, lang)
    assert code(page) == "DAY_CLOSED"
    for amount in ("20,000", "26,000"):
        assert amount in text(page)
    assert {"ja": "封印済み", "en": "Sealed"}[lang] in text(page)
    page = look(client, PAGE, lang)
    assert "20,000" in text(page), "what it left is what the next begins with"


def test_with_htmx_it_leads_to_the_close(cast: Cast, client: FlaskClient) -> None:
    data = form_data(look(client, PAGE), PAGE)
    done = client.post(PAGE, data={**data, "counted": "0"}, headers=HTMX)
    assert done.status_code == 303
    assert code(look(client, done.location)) == "DAY_CLOSED"


def test_what_is_open_stands_first(cast: Cast, client: FlaskClient, lang: str) -> None:
    client = cast.signed_in(cast.sato, cast.tokyo, locale=lang)
    stay = cast.book(price=0, ends_at=clock.now() + timedelta(minutes=1))
    do(cast, stays.admit, stay.id, 1)
    with at(clock.now() + timedelta(minutes=2)):
        page = look(client, PAGE, lang)
        assert {"ja": "未チェックアウト", "en": "is not checked out"}[lang] in text(page)
        said = press(client, page, PAGE, counted="0")
        page = read(client, said, 422)
        assert code(page) == "DAY_NEEDS_REASON"
        done = press(client, page, PAGE, counted="0", reason="清掃中 <b>")
        page = look(client, done.location, lang)
        assert "清掃中 <b>" in text(page)


def test_a_difference_without_a_reason_keeps_what_was_typed(
    cast: Cast, client: FlaskClient
) -> None:
    paid(cast)
    page = read(client, press(client, look(client, PAGE), PAGE, counted="5900", taken="100"), 422)
    assert code(page) == "DAY_NEEDS_REASON"
    kept = form_data(page, PAGE)
    assert (kept["counted"], kept["taken"]) == ("5900", "100")


def test_money_that_came_meanwhile_is_shown_and_counted_again(
    cast: Cast, client: FlaskClient
) -> None:
    page = look(client, PAGE)
    paid(cast)
    page = read(client, press(client, page, PAGE, counted="0"), 422)
    assert code(page) == "DAY_MOVED_ON"
    done = press(client, page, PAGE, counted="6000")
    assert done.status_code == 303, "the fresh page carries the fresh figures"


@pytest.mark.parametrize(
    "typed",
    [
        {"counted": ""},
        {"counted": "-1"},
        {"counted": "1.5"},
        {"counted": "many"},
        {"day": ""},
        {"day": "2026-02-30"},
        {"taken": "x"},
        {"cash_moved": "x"},
        {"left_open": ""},
        {"form_key": "x"},
        {"reason": "x" * 501},
    ],
)
def test_what_cannot_be_read_is_told_at_its_field(
    cast: Cast, client: FlaskClient, owner: Owner, typed: dict[str, str]
) -> None:
    data = {**form_data(look(client, PAGE), PAGE), "counted": "0", **typed}
    read(client, client.post(PAGE, data=data), 422)
    assert owner.rows("select 1 from day_closes") == []


def test_more_taken_than_counted(cast: Cast, client: FlaskClient) -> None:
    page = read(client, press(client, look(client, PAGE), PAGE, counted="0", taken="1"), 422)
    assert code(page) == "DRAWER_HOLDS_LESS"


def test_another_houses_close_is_not_there(cast: Cast, client: FlaskClient) -> None:
    done = press(client, look(client, PAGE), PAGE, counted="0")
    there = cast.signed_in(cast.tanaka, cast.osaka)
    assert there.get(done.location).status_code == 404
    assert client.get(f"{PAGE}/{uuid4()}").status_code == 404


def test_a_changed_book_is_told(cast: Cast, client: FlaskClient, owner: Owner, lang: str) -> None:
    client = cast.signed_in(cast.sato, cast.tokyo, locale=lang)
    paid(cast)
    done = press(client, look(client, PAGE), PAGE, counted="6000")
    owner.run("update ledger_lines set memo = 'x' where kind = 'cash'")
    page = look(client, done.location, lang)
    assert {"ja": "封印と一致しません", "en": "Does not agree with its seal"}[lang] in text(page)


def test_before_noon_the_nights_day_is_proposed(cast: Cast, client: FlaskClient) -> None:
    today = clock.local_day(clock.now(), "Asia/Tokyo")
    assert form_data(look(client, PAGE), PAGE)["day"] == today.isoformat()
    with at(clock.now() - timedelta(hours=4)):
        page = look(client, PAGE)
        yesterday = today - timedelta(days=1)
        assert form_data(page, PAGE)["day"] == yesterday.isoformat()
        press(client, page, PAGE, counted="0")
        assert form_data(look(client, PAGE), PAGE)["day"] == today.isoformat()


# The journal ------------------------------------------------------------------------------------


def journal(client: FlaskClient, **days: Any) -> list[dict[str, str]]:
    today = clock.local_day(clock.now(), "Asia/Tokyo").isoformat()
    got = client.get(JOURNAL, query_string={"from": today, "to": today, **days})
    assert got.status_code == 200, got.status
    assert got.mimetype == "text/csv"
    assert got.data.startswith("\ufeff".encode()), "spreadsheets know UTF-8 by it"
    return list(csv.DictReader(StringIO(got.data.decode("utf-8-sig"))))


def test_the_journal_has_every_line_once(
    cast: Cast, owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sheet, "IN_A_BATCH", 2)
    client = cast.signed_in(cast.suzuki, cast.tokyo, locale="en")
    paid(cast)
    press(client, look(client, PAGE), PAGE, counted="6000")
    paid(cast, 1500, space="A02", guest=cast.emma)
    cast.book(cast.osaka, price=900)
    found = journal(client)
    assert [(one["Entry"], one["What the guest owes by it"], one["Close"]) for one in found] == [
        ("Charge", "6000", "1"),
        ("Cash received", "-6000", "1"),
        ("Charge", "1500", ""),
        ("Cash received", "-1500", ""),
    ]
    assert [one["Name"] for one in found[1:3]] == ["山田 花子", "Emma Smith"]
    assert {one["Currency"] for one in found} == {"JPY"}
    told = owner.rows(
        "select id from ledger_lines where facility_id = %s order by id", cast.tokyo.id
    )
    assert [int(one["Line"]) for one in found] == [key for (key,) in told]


def test_a_day_is_the_houses(cast: Cast) -> None:
    client = cast.signed_in(cast.suzuki, cast.tokyo, locale="en")
    paid(cast)
    tomorrow = clock.local_day(clock.now(), "Asia/Tokyo") + timedelta(days=1)
    assert journal(client, **{"from": tomorrow, "to": tomorrow}) == []
    assert len(journal(client, to=tomorrow)) == 2


@pytest.mark.parametrize("name", ["=1+1", "+81", "-1", "@sum", "\t=1"])
def test_no_cell_is_a_formula(cast: Cast, owner: Owner, name: str) -> None:
    client = cast.signed_in(cast.suzuki, cast.tokyo, locale="en")
    paid(cast)
    owner.run("update guests set name = %s", name)
    assert {one["Name"] for one in journal(client)} == {f"'{name}"}


@pytest.mark.parametrize(
    "days",
    [
        {"from": "", "to": ""},
        {"from": "x"},
        {"from": "2026-12-02", "to": "2026-12-01"},
        {"from": "2024-01-01", "to": "2026-01-01"},
    ],
)
def test_days_that_cannot_be_are_told(cast: Cast, days: dict[str, str]) -> None:
    client = cast.signed_in(cast.suzuki, cast.tokyo)
    got = client.get(JOURNAL, query_string={"to": "2026-12-01", **days})
    assert got.status_code == 303
    assert code(look(client, got.location)) == "JOURNAL_DAYS_IMPOSSIBLE"


def test_the_journal_is_the_managers(cast: Cast, client: FlaskClient) -> None:
    assert client.get(JOURNAL).status_code == 403
    assert "journal.csv" not in client.get(PAGE).text
    assert "journal.csv" in cast.signed_in(cast.suzuki, cast.tokyo).get(PAGE).text


# What it costs ----------------------------------------------------------------------------------


def test_the_pages_cost_few_statements_however_much_there_is(
    cast: Cast, client: FlaskClient
) -> None:
    stay = paid(cast)
    do(cast, stays.admit, stay.id, 1)
    done = press(client, look(client, PAGE), PAGE, counted="6000")
    for url in (PAGE, done.location):
        with statements() as said:
            look(client, url)
        assert len(said) <= BUDGET, said
