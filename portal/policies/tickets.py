"""When a book of tickets pays a visit, and until which day it does."""

from dataclasses import dataclass
from datetime import date
from uuid import UUID

from portal.outcome import Code
from portal.policies import periods


@dataclass(frozen=True, slots=True)
class Book:
    """`left`: tickets. `owed`: what is not paid of the account on which it was sold, in the
    smallest unit; 0 for the visit that is on that very account."""

    plan_id: UUID
    left: int
    last_day: date
    taken_back: bool
    owed: int


def last_day(sold_on: date, months: int) -> date:
    """The last day of use: of the same number, so many months later. The day of the sale is not
    counted: Civil Code of Japan, articles 140 and 143."""
    return periods.nth_start(sold_on, "month", months)


def refusal(book: Book, plan_id: UUID | None, day: date) -> Code | None:
    """Why it does not pay a visit under `plan_id` on the house's `day`; None where it does."""
    if book.taken_back:
        return Code.TICKET_BOOK_VOID
    if book.plan_id != plan_id:
        return Code.TICKET_BOOK_OF_ANOTHER_PLAN
    if day > book.last_day:
        return Code.TICKET_BOOK_EXPIRED
    if book.left <= 0:
        return Code.TICKET_BOOK_EMPTY
    return Code.TICKET_BOOK_UNPAID if book.owed > 0 else None
