"""Books of tickets: sold on a stay's account, used visit by visit, taken back. The only writer of
their counters and lines.

A counter and the line that accounts for it are one statement, which takes only where something is
left. Whoever calls holds the stay; the book is locked after it.
"""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from portal import clock, ledger, outbox
from portal.db import Actor, Row, Tx
from portal.machines.stay import MACHINE
from portal.models import TicketBook
from portal.money import LARGEST, Money
from portal.move import note, record, row_standing, signed, standing
from portal.outcome import Applied, Code, Conflict, Noop, Outcome, Refused, RefusedError
from portal.policies import tickets
from portal.policies.stay_codes import new_code
from portal.verbs import facts, refunds_owed

KIND = "ticket_book"
OPEN = ("reserved", "admitted")


@dataclass(frozen=True, slots=True)
class Visit:
    """What a ticket is to pay: a stay of this plan that begins then, on the house's calendar."""

    stay_id: UUID
    plan_id: UUID | None
    starts_at: datetime
    time_zone: str


def sell(tx: Tx, actor: Actor, stay_id: UUID, offer_id: UUID, form_key: UUID) -> Outcome:
    """→ sold. The stay's account is charged with it: paid, refunded and receipted like the rest."""
    stay = facts.stay(tx, stay_id)
    if stay is None:
        return Refused(Code.NOT_FOUND)
    if again := tx.made_by(TicketBook, form_key):
        return Noop(Code.TICKET_BOOK_ALREADY_SOLD, subject=again)
    offer = tx.row("select * from ticket_offers where id = :id for share", id=offer_id)
    if offer is None:
        return Refused(Code.NOT_FOUND)
    if stay.state not in OPEN:
        return Refused(Code.STAY_OVER)
    if offer.withdrawn_at is not None:
        return Refused(Code.TICKET_OFFER_NOT_SOLD)
    if int(stay.charged) + offer.price > LARGEST:
        return Refused(Code.PRICE_BELOW_ZERO)

    book_id = _insert(tx, actor, stay, offer, form_key)
    if offer.price:
        _book(tx, actor, "charge", stay, offer.price)
    record(tx, actor, KIND, book_id, "created", (None, "sold"), "sell")
    outbox.enqueue(tx, stay_id, "ticket_book_sold", str(book_id), {})
    return Applied(Code.TICKET_BOOK_SOLD, to="sold", subject=book_id)


def use(tx: Tx, actor: Actor, stay_id: UUID, seen: int, code: str) -> Outcome:
    """A ticket pays a stay that was booked at its price: the price is taken back, and what was paid
    of it goes back."""
    stay = facts.stay(tx, stay_id)
    if stay is None:
        return Refused(Code.NOT_FOUND)
    if stay.ticket_book_id is not None:
        return Noop(Code.TICKET_ALREADY_TAKEN, subject=stay_id)
    if stay.version != seen:
        return Conflict(Code.STALE_PAGE, standing(tx, MACHINE, stay_id))
    if stay.state not in OPEN:
        return Refused(Code.STAY_OVER)
    if stay.membership_id is not None:
        return Refused(Code.TICKET_NOT_FOR_MEMBERS)
    if stay.persons > 1:
        return Refused(Code.VISIT_IS_ONE_PERSONS)
    if stay.price <= 0:
        return Refused(Code.NOTHING_DUE)
    try:
        take(tx, actor, code, Visit(stay_id, stay.plan_id, stay.starts_at, stay.time_zone))
    except RefusedError as none_taken:
        return none_taken.refusal

    tx.run("update stays set version = version + 1 where id = :id", id=stay_id)
    note(tx, actor, MACHINE, stay_id, stay.state, "use_ticket", code)
    ledger.take_back(tx, actor, stay_id, ("",))
    _return_what_is_over(tx, actor, stay, int(stay.balance) - int(stay.price))
    return Applied(Code.TICKET_TAKEN, to=stay.state, subject=stay_id)


def take_back(tx: Tx, actor: Actor, book_id: UUID, seen: int, amount: int, reason: str) -> Outcome:
    """sold → taken_back: what is left of it pays nothing any more. `amount` of its price, in the
    smallest unit, is taken off the account on which it was sold."""
    stay_id = tx.scalar("select stay_id from ticket_books where id = :id", id=book_id)
    stay = facts.stay(tx, stay_id) if stay_id else None
    book = tx.get(TicketBook, book_id, lock=True)
    if stay is None or book is None:
        return Refused(Code.NOT_FOUND)
    if book.taken_back_at is not None:
        return Noop(Code.TICKET_BOOK_TAKEN_BACK_ALREADY, subject=book_id)
    if book.version != seen:
        return Conflict(Code.STALE_PAGE, row_standing(tx, KIND, book_id, "sold", book.version))
    if book.used == book.granted:
        return Refused(Code.TICKET_BOOK_EMPTY)
    if not 0 <= amount <= book.price:
        return Refused(Code.TICKET_BOOK_COST_LESS, {"amount": Money(book.price, book.currency)})

    _withdraw_the_rest(tx, actor, book_id)
    record(tx, actor, KIND, book_id, "taken_back", ("sold", "taken_back"), "take_back", reason)
    if amount:
        _book(tx, actor, "charge_reversed", stay, amount)
    _return_what_is_over(tx, actor, stay, int(stay.balance) - amount)
    return Applied(Code.TICKET_BOOK_TAKEN_BACK, to="taken_back", subject=book_id)


def take(tx: Tx, actor: Actor, code: str, visit: Visit) -> None:
    """One ticket of the book with this code, for this visit. Raises RefusedError."""
    day = clock.local_day(visit.starts_at, visit.time_zone)
    taken = tx.scalar(
        """
        with was as materialized (
            select b.id, b.worth / (b.granted - b.used) as share from ticket_books b
            where b.code = :code and b.plan_id = :plan and b.last_day >= :day
              and b.taken_back_at is null and b.used < b.granted
              and (b.stay_id = :stay or 0 >= (
                  select coalesce(sum(l.amount), 0) from ledger_lines l
                  where l.stay_id = b.stay_id))
            for no key update of b
        ), counted as (
            update ticket_books b set used = b.used + 1, worth = b.worth - was.share,
                version = b.version + 1
            from was where b.id = was.id
            returning b.id, was.share
        ), line as (
            insert into ticket_lines (facility_id, book_id, kind, amount, worth, stay_id,
                actor_kind, actor_id, actor_name, request_id, at)
            select :facility_id, id, 'taken', -1, -share, :stay, :actor_kind, :actor_id,
                   :actor_name, :request_id, :at
            from counted
        )
        select id from counted
        """,
        code=code,
        plan=visit.plan_id,
        day=day,
        stay=visit.stay_id,
        **signed(tx, actor),
    )
    if taken is None:
        raise RefusedError(_why_not(tx, code, visit))


def give_back(tx: Tx, actor: Actor, stay: Row) -> None:
    """The ticket that the stay holds, to its book, whose last day stays. Of a book that was taken
    back meanwhile it goes with the rest."""
    tx.run(
        """
        with was as materialized (
            select b.id, b.taken_back_at is not null as gone, (
                select -l.worth from ticket_lines l
                where l.stay_id = :stay and l.kind = 'taken' order by l.id desc limit 1) as share
            from ticket_books b
            where b.id = :book and b.used > 0
            for no key update of b
        ), counted as (
            update ticket_books b set used = b.used - 1, granted = b.granted - was.gone::int,
                worth = b.worth + case when was.gone then 0 else was.share end,
                version = b.version + 1
            from was where b.id = was.id
            returning b.id, was.gone, was.share
        )
        insert into ticket_lines (facility_id, book_id, kind, amount, worth, stay_id, actor_kind,
            actor_id, actor_name, request_id, at)
        select :facility_id, id, kind, amount, worth, stay, :actor_kind, :actor_id, :actor_name,
               :request_id, :at
        from (
            select id, 'returned' as kind, 1 as amount, share as worth,
                   cast(:stay as uuid) as stay, 1 as no from counted
            union all
            select id, 'taken_back', -1, -share, null, 2 from counted where gone
        ) line
        order by no
        """,
        book=stay.ticket_book_id,
        stay=stay.id,
        **signed(tx, actor),
    )


def lasts(tx: Tx, stay: Row, starts_at: datetime) -> Refused | None:
    """A stay that a ticket pays begins at another time: on a day on which the book still pays."""
    if stay.ticket_book_id is None:
        return None
    last = tx.scalar("select last_day from ticket_books where id = :id", id=stay.ticket_book_id)
    if clock.local_day(starts_at, stay.time_zone) <= last:
        return None
    return Refused(Code.TICKET_BOOK_EXPIRED, {"day": last})


def _insert(tx: Tx, actor: Actor, stay: Row, offer: Row, form_key: UUID) -> UUID:
    now = clock.now()
    book_id = tx.add(
        TicketBook,
        facility_id=tx.facility_id,
        offer_id=offer.id,
        plan_id=offer.plan_id,
        stay_id=stay.id,
        code=new_code(),
        granted=offer.tickets,
        price=offer.price,
        worth=offer.price,
        currency=stay.currency,
        last_day=tickets.last_day(clock.local_day(now, stay.time_zone), offer.months),
        form_key=form_key,
    )
    tx.run(
        """
        insert into ticket_lines (facility_id, book_id, kind, amount, worth, actor_kind, actor_id,
            actor_name, request_id, at)
        values (:facility_id, :book, 'sold', :tickets, :price, :actor_kind, :actor_id, :actor_name,
            :request_id, :at)
        """,
        book=book_id,
        tickets=offer.tickets,
        price=offer.price,
        **signed(tx, actor),
    )
    return book_id


def _withdraw_the_rest(tx: Tx, actor: Actor, book_id: UUID) -> None:
    tx.run(
        """
        with was as materialized (
            select id, used - granted as amount, -worth as worth from ticket_books
            where id = :id for no key update
        ), counted as (
            update ticket_books b set granted = b.used, worth = 0, taken_back_at = :at,
                version = b.version + 1
            from was where b.id = was.id
            returning b.id, was.amount, was.worth
        )
        insert into ticket_lines (facility_id, book_id, kind, amount, worth, actor_kind, actor_id,
            actor_name, request_id, at)
        select :facility_id, id, 'taken_back', amount, worth, :actor_kind, :actor_id, :actor_name,
               :request_id, :at
        from counted
        """,
        id=book_id,
        **signed(tx, actor),
    )


def _why_not(tx: Tx, code: str, visit: Visit) -> Refused:
    found = tx.row(
        """
        select b.plan_id, b.granted - b.used as left, b.last_day,
               b.taken_back_at is not null as taken_back,
               case when b.stay_id = :stay then 0 else (
                   select coalesce(sum(l.amount), 0) from ledger_lines l
                   where l.stay_id = b.stay_id) end::bigint as owed,
               b.currency
        from ticket_books b where b.code = :code
        """,
        code=code,
        stay=visit.stay_id,
    )
    if found is None:
        return Refused(Code.TICKET_BOOK_UNKNOWN)
    *told, currency = found
    book = tickets.Book(*told)
    day = clock.local_day(visit.starts_at, visit.time_zone)
    # What stood in the way may be gone since: another gave a ticket back. Then it was empty.
    why = tickets.refusal(book, visit.plan_id, day) or Code.TICKET_BOOK_EMPTY
    return Refused(why, {"day": book.last_day, "amount": Money(book.owed, currency)})


def _book(tx: Tx, actor: Actor, kind: ledger.Kind, stay: Row, amount: int) -> None:
    ledger.book(
        tx,
        actor,
        kind,
        stay_id=stay.id,
        amount=amount,
        currency=stay.currency,
        item="ticket_book",
    )


def _return_what_is_over(tx: Tx, actor: Actor, stay: Row, balance: int) -> None:
    if balance < 0:
        refunds_owed.owe_back(tx, actor, stay.id, -balance, reason="cancellation")
