"""The demo's ticket books: one that the sauna sells, and one that a guest in house has bought."""

from uuid import UUID

from portal.db import Actor, transaction
from portal.demo.houses import UMEDA, made
from portal.verbs import cash, ticket_books, ticket_offers
from portal.verbs.ticket_offers import NewOffer

TICKETS, PRICE, MONTHS = 11, 19_800, 6


def offer(house_id: UUID, slug: str, clerk: Actor) -> None:
    """Eleven visits for the price of ten."""
    if slug != UMEDA.slug:
        return
    with transaction(house_id) as tx:
        plan = tx.scalar("select id from plans where code = 'sauna'")
        key = made(slug, "ticket-offer")
        names = ("サウナ回数券（11枚つづり）", "Book of eleven sauna visits")
        ticket_offers.create(tx, clerk, NewOffer(key, *names, plan, TICKETS, PRICE, MONTHS))


def sell(house_id: UUID, slug: str, clerk: Actor) -> None:
    """On the account of whoever came first and is still there, paid in cash."""
    with transaction(house_id) as tx:
        bought = tx.row(
            """
            select s.id, o.id as offer_id from stays s cross join ticket_offers o
            where s.state = 'admitted' and s.plan_id = o.plan_id
            order by s.starts_at, s.id limit 1
            """
        )
        if bought is None:
            return
        key = made(slug, "ticket-book")
        ticket_books.sell(tx, clerk, bought.id, bought.offer_id, key)
        cash.take(tx, clerk, bought.id, PRICE, made(slug, "ticket-book-cash"))
