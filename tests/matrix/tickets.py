"""Scenes of ticket books: offered, sold, used, about to come back or to be taken back."""

from uuid import UUID, uuid4

from portal import clock
from portal.verbs import cash
from portal.verbs.ticket_offers import NewOffer
from tests.cast import Booked
from tests.matrix import scenes
from tests.matrix.scenes import HOUR
from tests.matrix.stage import Given, Stage

BOOK = 5000


def a_new_offer(stage: Stage) -> Given:
    plan = stage.cast.for_visits(stage.cast.tokyo)
    return {
        "facility": stage.cast.tokyo.id,
        "actor": stage.cast.suzuki.actor,
        "wanted": NewOffer(uuid4(), "回数券", "Book", plan, 3, BOOK, 6),
    }


def an_offer(stage: Stage) -> Given:
    given = a_new_offer(stage)
    return given | {"offer": stage.cast.tickets(stage.cast.tokyo), "seen": 1}


def a_guest_who_wants_a_book(stage: Stage) -> Given:
    given = an_offer(stage)
    return stage.given(scenes.reserved(stage, plan="visit"), offer=given["offer"])


def a_book(stage: Stage) -> Given:
    """Three tickets, paid in cash; the words with which the rest is taken back."""
    stay, book, code = _sold(stage)
    return stage.given(stay, book=book, code=code) | {"seen": 1, "back": 2000, "why": "ご希望"}


def a_visit_to_pay(stage: Stage) -> Given:
    """Booked at its price and paid by card, by somebody who then shows a code."""
    _, _, code = _sold(stage)
    stay, _ = scenes.paid_by_card(stage, plan="visit", space="A02")
    return stage.given(stay, code=code)


def a_new_visit(stage: Stage) -> Given:
    """The form of somebody with the last ticket; a colleague's, for the next day, finds none."""
    _, _, code = _sold(stage, tickets=1)
    begins = clock.now().replace(microsecond=0)
    given = scenes.a_new_stay(stage)
    wanted = {
        "plan_id": stage.cast.tokyo.plans["visit"],
        "space_id": stage.cast.tokyo.spaces["A02"],
        "starts_at": begins,
        "ends_at": begins + 2 * HOUR,
        "price": 0,
        "deposit_due": 0,
        "ticket": code,
    }
    return given | {"more": wanted}


def a_visit_that_is_paid(stage: Stage) -> Given:
    """By a ticket, for tomorrow."""
    _, _, code = _sold(stage)
    begins = clock.now() + 24 * HOUR
    more = {"plan": "visit", "price": 0, "ticket": code, "space": "A02"}
    return stage.given(scenes.reserved(stage, starts_at=begins, **more))


def a_visit_of_a_book_that_is_gone(stage: Stage) -> Given:
    given = a_visit_that_is_paid(stage)
    stage.owner.run(
        "with back as (update ticket_books set granted = used, worth = 0, taken_back_at = now()"
        " returning *) insert into ticket_lines (facility_id, book_id, kind, amount, worth,"
        " actor_kind, actor_name, at) select facility_id, id, 'taken_back', -2, -3334, 'staff',"
        " 'x', now() from back"
    )
    return given


def _sold(stage: Stage, tickets: int = 3) -> tuple[Booked, UUID, str]:
    """On a stay that is paid, and so is the book."""
    stage.cast.for_visits(stage.cast.tokyo)
    stay = scenes.paid_in_cash(stage, plan="visit")
    book, code = stage.cast.sell_tickets(
        stay, stage.cast.tickets(stage.cast.tokyo, tickets=tickets, price=BOOK)
    )
    stage.do(cash.take, stay.id, BOOK, uuid4())
    stage.work()
    return stay, book, code
