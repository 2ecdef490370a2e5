"""Ticket books: offered, sold, used, given back with a cancellation, taken back."""

from dataclasses import replace
from typing import Any
from uuid import uuid4

from portal.verbs import bookings, stays, ticket_books, ticket_offers
from tests.matrix import scenes
from tests.matrix import tickets as books
from tests.matrix.act import Act, Doing, button, form
from tests.matrix.scenes import HOUR


def create(do: Doing, **more: Any) -> Any:
    return do.form(bookings.create, replace(do["wanted"], **{**do["more"], **more}))


def tomorrow(times: dict[str, Any]) -> dict[str, Any]:
    return {name: times[name] + 24 * HOUR for name in ("starts_at", "ends_at")}


ACTS = (
    Act(
        "ticket_offers.create",
        books.a_new_offer,
        lambda do: do.form(ticket_offers.create, do["wanted"]),
    ),
    form("ticket_offers.withdraw", books.an_offer, ticket_offers.withdraw, "offer", "seen"),
    # A colleague's form would sell another one.
    Act(
        "ticket_books.sell",
        scenes.with_a_form(books.a_guest_who_wants_a_book),
        lambda do: do.form(ticket_books.sell, do["stay"], do["offer"], do["form"]),
    ),
    form("ticket_books.take_back", books.a_book, ticket_books.take_back, "book", "seen", "back",
         "why"),
    button("ticket_books.use", books.a_visit_to_pay, ticket_books.use, "code"),
    Act(
        "bookings.create with the last ticket",
        books.a_new_visit,
        lambda do: create(do),
        lambda do: create(do, form_key=uuid4(), **tomorrow(do["more"])),
    ),
    button("stays.cancel what a ticket pays", books.a_visit_that_is_paid, stays.cancel),
    button("stays.cancel, its book gone", books.a_visit_of_a_book_that_is_gone, stays.cancel),
)  # fmt: skip
