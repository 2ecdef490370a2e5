"""Ticket books at the desk: offered, sold on a stay, used for one, found, taken back, taken out."""

import csv
from io import StringIO
from typing import Any
from uuid import UUID

import pytest
from flask.testing import FlaskClient

from portal import clock
from sandbox.watch import statements
from tests.cast import Booked, Cast
from tests.outside import Owner
from tests.web.audit import form_data
from tests.web.staff.desk import HTMX, code, count, look, pay, press, read, text

OFFERS = "/staff/settings/tickets"
BOOKS = "/staff/tickets"
ROWS = {
    "name_ja": "五枚つづり",
    "name_en": "Book of five",
    "tickets": "５",
    "price": "8,000",
    "months": "12",
}


def manager(cast: Cast, lang: str | None = None) -> FlaskClient:
    return cast.signed_in(cast.suzuki, cast.tokyo, locale=lang)


def visit(cast: Cast, **more: Any) -> Booked:
    cast.for_visits(cast.tokyo)
    return cast.book(**{"plan": "visit", "price": 1800, **more})


def sold(cast: Cast) -> tuple[Booked, UUID, str]:
    """On a stay that is paid, with the book."""
    stay = visit(cast)
    book, said = cast.sell_tickets(stay, cast.tickets(cast.tokyo))
    pay(cast, stay, 6800)
    return stay, book, said


def test_a_book_is_offered_and_withdrawn(cast: Cast, lang: str) -> None:
    client = manager(cast, lang)
    assert OFFERS in [one.get("href") for one in look(client, "/staff/settings", lang).iter("a")]
    assert "form" not in [one.tag for one in look(client, f"{OFFERS}/new", lang).iter("main")]
    plan = cast.for_visits(cast.tokyo)
    page = look(client, f"{OFFERS}/new", lang)
    assert form_data(page, OFFERS)["months"] == "6"
    done = press(client, page, OFFERS, plan_id=str(plan), **ROWS)
    assert (done.status_code, done.location) == (303, OFFERS)
    page = look(client, OFFERS, lang)
    assert code(page) == "TICKET_OFFER_CREATED"
    assert ("五枚つづり" if lang == "ja" else "Book of five") in text(page)
    with cast.transaction(cast.tokyo.id) as tx:
        offer = tx.row("select id, tickets, price, months from ticket_offers")
    assert offer is not None
    assert tuple(offer)[1:] == (5, 8000, 12)
    press(client, page, f"{OFFERS}/{offer.id}/withdraw")
    assert code(look(client, OFFERS, lang)) == "TICKET_OFFER_WITHDRAWN"


@pytest.mark.parametrize(
    ("wrong", "at"),
    [
        ({"tickets": "0"}, "tickets"),
        ({"tickets": "101"}, "tickets"),
        ({"tickets": "ten"}, "tickets"),
        ({"price": "-1"}, "price"),
        ({"price": ""}, "price"),
        ({"months": "61"}, "months"),
        ({"name_ja": " "}, "name_ja"),
        ({"plan_id": "00000000-0000-0000-0000-000000000000"}, "plan_id"),
    ],
)
def test_what_is_not_right_is_said_beside_it(cast: Cast, wrong: dict[str, str], at: str) -> None:
    client, plan = manager(cast), cast.for_visits(cast.tokyo)
    page = look(client, f"{OFFERS}/new")
    page = read(client, press(client, page, OFFERS, **{"plan_id": str(plan), **ROWS, **wrong}), 422)
    field = next(e for e in page.iter() if e.get("name") == at)
    assert field.get("aria-invalid") == "true"
    assert count(cast, "ticket_offers") == 0


def test_another_houses_plan_cannot_be_chosen(cast: Cast) -> None:
    client, _ = manager(cast), cast.for_visits(cast.tokyo)
    theirs = str(cast.osaka.plans["visit"])
    page = look(client, f"{OFFERS}/new")
    read(client, press(client, page, OFFERS, **{**ROWS, "plan_id": theirs}), 422)
    assert count(cast, "ticket_offers") == 0


def test_the_desk_sells_none_of_its_own_making(cast: Cast) -> None:
    client = cast.signed_in(cast.sato)
    for url in (OFFERS, f"{OFFERS}/new"):
        assert client.get(url).status_code == 403
    assert client.get(f"{BOOKS}/uses.csv?from=2026-01-01&to=2026-01-02").status_code == 403


@pytest.mark.parametrize("script", [False, True])
def test_a_book_is_sold_on_a_stay_and_pays_it(cast: Cast, owner: Owner, script: bool) -> None:
    stay, client = visit(cast), cast.signed_in(cast.sato)
    url, headers = f"/staff/stays/{stay.id}", HTMX if script else None
    links = {str(one.get("href")) for one in look(client, url).iter("a")}
    assert f"{url}/ticket-book" not in links, "nothing is offered yet"
    offer = cast.tickets(cast.tokyo)
    assert f"{url}/ticket-book" in {str(one.get("href")) for one in look(client, url).iter("a")}

    page = look(client, f"{url}/ticket-book")
    done = press(client, page, f"{url}/ticket-book", offer=str(offer), headers=headers)
    page = read(client, done, 200) if script else look(client, url)
    assert code(page) == "TICKET_BOOK_SOLD"
    said = owner.one("select code from ticket_books")
    assert said in text(page)

    page = look(client, f"{url}/ticket")
    typed = f" {said[:4].lower()}-{said[4:]} "
    done = press(client, page, f"{url}/ticket", ticket=typed, headers=headers)
    page = read(client, done, 200) if script else look(client, url)
    assert code(page) == "TICKET_TAKEN"
    assert owner.one("select sum(amount) from ledger_lines") == 5000
    assert f"{url}/ticket" not in {str(one.get("href")) for one in page.iter("a")}


def test_a_code_that_is_not_right_is_said_and_kept(cast: Cast) -> None:
    stay, client = visit(cast), cast.signed_in(cast.sato)
    url = f"/staff/stays/{stay.id}/ticket"
    again = read(client, press(client, look(client, url), url, ticket="NOSUCHCD"), 422)
    assert code(again) == "TICKET_BOOK_UNKNOWN"
    assert form_data(again, url)["ticket"] == "NOSUCHCD"


def test_a_booking_is_paid_by_a_ticket(cast: Cast, owner: Owner) -> None:
    _, _, said = sold(cast)
    client = cast.signed_in(cast.sato)
    page = look(client, "/staff/stays/new")
    typed = {
        "plan_id": str(cast.tokyo.plans["visit"]),
        "space_id": str(cast.tokyo.spaces["A02"]),
        "name": "Emma Smith",
        "ticket": said.lower(),
    }
    wrong = press(client, page, "/staff/stays", **typed, price="1800")
    assert "ticket" in [
        e.get("name") for e in read(client, wrong, 422).iter() if e.get("aria-invalid") == "true"
    ]
    done = press(client, page, "/staff/stays", **typed)
    assert code(look(client, done.location)) == "STAY_CREATED"
    assert owner.row("select granted, used from ticket_books") == (3, 1)
    page = look(client, "/staff/stays/new")
    typed["space_id"] = str(cast.tokyo.spaces["A03"])
    again = read(
        client, press(client, page, "/staff/stays", **{**typed, "ticket": "NOSUCHCD"}), 422
    )
    assert code(again) == "TICKET_BOOK_UNKNOWN"
    assert form_data(again, "/staff/stays")["name"] == "Emma Smith", "nothing typed is lost"


def test_books_are_found_and_opened_into_their_lines(cast: Cast, lang: str) -> None:
    stay, book, said = sold(cast)
    cast.book(space="A02", plan="visit", price=0, ticket=said, guest=cast.emma)
    client = cast.signed_in(cast.sato, locale=lang)
    here = f"{BOOKS}/{book}"
    for words, there in ((said.lower(), True), ("花子", True), ("Smith", False), ("%", False)):
        page = look(client, f"{BOOKS}?q={words}", lang)
        assert (here in [one.get("href") for one in page.iter("a")]) == there, words
    page = look(client, here, lang)
    assert "¥3,334" in text(page).replace("￥", "¥")
    assert f"/staff/stays/{stay.id}" in [one.get("href") for one in page.iter("a")]


def test_a_book_is_taken_back(cast: Cast, owner: Owner) -> None:
    stay, book, _ = sold(cast)
    client, url = cast.signed_in(cast.sato), f"{BOOKS}/{book}/take-back"
    page = look(client, url)
    assert form_data(page, url)["amount"] == "5000"
    for wrong in (
        {"reason": ""},
        {"amount": "5,001", "reason": "x"},
        {"amount": "", "reason": "x"},
    ):
        read(client, press(client, page, url, **wrong), 422)
    done = press(client, page, url, amount="4000", reason="閉館のため")
    assert (done.status_code, done.location) == (303, f"{BOOKS}/{book}")
    page = look(client, f"{BOOKS}/{book}")
    assert code(page) == "TICKET_BOOK_TAKEN_BACK"
    assert "閉館のため" in text(page)
    assert owner.one("select sum(amount) from ledger_lines") == -4000
    assert f"{url}" not in [one.get("href") for one in page.iter("a")]
    look(client, url)
    assert look(client, f"/staff/stays/{stay.id}") is not None


def test_another_houses_book_is_not_there(cast: Cast) -> None:
    _, book, said = sold(cast)
    client = cast.signed_in(cast.hire("o@x.example", "Ono", [(cast.osaka, "manager")]), cast.osaka)
    for url in (f"{BOOKS}/{book}", f"{BOOKS}/{book}/take-back"):
        assert client.get(url).status_code == 404
    assert said not in text(look(client, f"{BOOKS}?q={said}"))


def test_what_was_used_is_taken_out_as_a_file(cast: Cast) -> None:
    _, _, said = sold(cast)
    used = cast.book(space="A02", plan="visit", price=0, ticket=said)
    today = clock.local_day(clock.now(), cast.tokyo.zone).isoformat()
    client = manager(cast, "en")
    assert client.get(f"{BOOKS}/uses.csv").status_code == 303
    assert code(look(client, BOOKS)) == "JOURNAL_DAYS_IMPOSSIBLE"
    answer = client.get(f"{BOOKS}/uses.csv?from={today}&to={today}")
    heads, *rows = csv.reader(StringIO(answer.text.removeprefix("\ufeff")))
    assert len(rows) == 1
    told = dict(zip(heads, rows[0], strict=True))
    with cast.transaction(cast.tokyo.id) as tx:
        stay_code = tx.scalar("select code from stays where id = :id", id=used.id)
    assert (told["Ticket book"], told["Stay"]) == (said, stay_code)
    assert (told["Tickets"], told["Worth"]) == ("1", "1666")


def test_what_the_pages_cost(cast: Cast) -> None:
    stay, book, _ = sold(cast)
    client = manager(cast)
    client.get(BOOKS)
    for url, most in (
        (BOOKS, 4),
        (f"{BOOKS}/{book}", 6),
        (f"{BOOKS}/{book}/take-back", 6),
        (OFFERS, 4),
        (f"{OFFERS}/new", 4),
        (f"/staff/stays/{stay.id}/ticket-book", 6),
        (f"/staff/stays/{stay.id}/ticket", 4),
    ):
        with statements() as said:
            assert client.get(url).status_code == 200
        assert len(said) <= most, (url, said)
