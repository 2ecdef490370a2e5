"""Visits that nobody pays in money: of a membership's month, and of a ticket book; with what a
clerk with a pencil would have written down of both."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from portal import clock
from portal.outcome import Applied, Code, Outcome
from portal.verbs import bookings, stays, ticket_books
from portal.verbs.bookings import NewStay
from portal.verbs.guests import NewGuest
from tests.cast import Booked, Cast, HouseOf, Joined
from tests.outside import Owner

DAY = timedelta(days=1)
A_MONTH = 2
BOOK, PRICE = 3, 5000
SPACES = tuple(f"V{n:02}" for n in range(24))


@dataclass
class Held:
    """A visit, and what of the book's price its ticket is worth."""

    stay: UUID
    worth: int


@dataclass
class Visits:
    """In a house of its own. `sold_on`: on whose account the book stands, once it is sold."""

    cast: Cast
    owner: Owner
    house: HouseOf
    member: Joined
    offer: UUID
    begins: datetime
    """All of them, so that they are of one month."""
    book: UUID | None = None
    code: str = "NOTSOLDY"
    left: int = 0
    worth: int = 0
    taken_back: bool = False
    by_ticket: list[Held] = field(default_factory=list)
    by_month: list[UUID] = field(default_factory=list)
    tickets_used: int = 0
    month_used: int = 0
    booked: int = 0

    def do(self, verb: Callable[..., Any], *args: Any, **more: Any) -> Outcome:
        with self.cast.transaction(self.house.id) as tx:
            said: Outcome = verb(tx, self.cast.sato.actor, *args, **more)
            return said

    def sell(self, stay: Booked) -> int:
        """Once. Returns what the account is charged."""
        if self.book is not None:
            return 0
        said = self.do(ticket_books.sell, stay.id, self.offer, uuid4())
        if not isinstance(said, Applied):
            assert said.code == Code.STAY_OVER
            return 0
        self.book, self.left, self.worth = said.subject, BOOK, PRICE
        self.code = self.owner.one("select code from ticket_books where id = %s", said.subject)
        return PRICE

    def take_back(self) -> int:
        """What is left of the book, at its worth. Returns what the account is charged less."""
        if self.book is None:
            return 0
        seen = self.owner.one("select version from ticket_books where id = %s", self.book)
        said = self.do(ticket_books.take_back, self.book, seen, self.worth, "x")
        assert isinstance(said, Applied) == (self.left > 0 and not self.taken_back), said
        if not isinstance(said, Applied):
            return 0
        back, self.left, self.worth, self.taken_back = self.worth, 0, 0, True
        return back

    def with_ticket(self, *, paid: bool) -> None:
        said = self._visit(ticket=self.code, guest=NewGuest(**self.cast.emma))
        assert isinstance(said, Applied) == (self.left > 0 and paid), said
        if isinstance(said, Applied) and said.subject:
            share = self.worth // self.left
            self.left -= 1
            self.worth -= share
            self.tickets_used += 1
            self.by_ticket.append(Held(said.subject, share))

    def of_the_month(self) -> None:
        said = self._visit(guest=None, membership_id=self.member.id)
        assert isinstance(said, Applied) == (self.month_used < A_MONTH), said
        if isinstance(said, Applied) and said.subject:
            self.month_used += 1
            self.by_month.append(said.subject)

    def cancel(self, *, late: bool) -> None:
        """The last of each. Before it begins it comes back, and after that it does not."""
        back = 0 if late else 1
        for held in self.by_ticket[-1:]:
            self._cancel(held.stay, late=late)
            self.by_ticket.pop()
            self.tickets_used -= back
            if not self.taken_back:
                self.left, self.worth = self.left + back, self.worth + back * held.worth
        for stay in self.by_month[-1:]:
            self._cancel(stay, late=late)
            self.by_month.pop()
            self.month_used -= back

    def _visit(self, **more: Any) -> Outcome:
        """Tomorrow, wherever nobody has been yet."""
        self.booked += 1
        starts = self.begins
        return self.do(
            bookings.create,
            NewStay(
                form_key=uuid4(),
                space_id=self.house.spaces[SPACES[self.booked]],
                plan_id=self.house.plans["visit"],
                starts_at=starts,
                ends_at=starts + timedelta(hours=1),
                price=0,
                **more,
            ),
        )

    def _cancel(self, stay: UUID, *, late: bool) -> None:
        now = clock.now()
        clock.set_source(lambda: now + (2 * DAY if late else 0 * DAY))
        try:
            assert isinstance(self.do(stays.cancel, stay, 1), Applied)
        finally:
            clock.set_source(None)

    def check(self) -> None:
        """Every figure is the pencil's and the sum of its lines; nothing is below zero."""
        month = self.owner.rows(
            "select q.granted, q.used, coalesce(sum(l.amount), 0) from quota_months q"
            " left join quota_lines l on l.month_id = q.id"
            " where q.membership_id = %s group by q.id",
            self.member.id,
        )
        assert month in ([], [(A_MONTH, self.month_used, A_MONTH - self.month_used)])
        assert bool(month) or not self.month_used
        if self.book is None:
            return
        figures = self.owner.row(
            "select b.granted - b.used, b.used, b.worth, sum(l.amount), sum(l.worth)"
            " from ticket_books b join ticket_lines l on l.book_id = b.id where b.id = %s"
            " group by b.id",
            self.book,
        )
        assert figures == (self.left, self.tickets_used, self.worth, self.left, self.worth)
        assert min(self.left, self.tickets_used, self.worth) >= 0


def opened(cast: Cast, owner: Owner, house: HouseOf) -> Visits:
    """A member of two visits a month, and a book of three tickets that is offered."""
    cast.for_visits(house)
    plan = cast.offer("twice", "月二回", "Twice a month", house=house, quota=A_MONTH)
    member = cast.join(plan, house=house)
    offer = cast.tickets(house, tickets=BOOK, price=PRICE)
    return Visits(cast, owner, house, member, offer, clock.now() + DAY)
