"""Messages beside a mail archive. LINE is not compared: its retry key answers only to a send."""

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from portal import clock
from portal.db import Tx, transaction
from portal.edges.mail_archive.port import MailArchive
from portal.policies import divergences as policy
from portal.policies.divergences import LOOK_BACK_MAIL, OurMessage
from portal.verbs.divergences import Look

LAG = timedelta(seconds=10)
"""A mail that was just taken over may not be in the archive yet."""

PAGE = 500

MESSAGES = ("message_not_here", "message_not_there")


class Mail:
    name = "mail"

    def __init__(self, archive: MailArchive, houses: Sequence[UUID]) -> None:
        self.archive, self.houses = archive, houses
        self.reached: datetime | None = None

    def __call__(self) -> Sequence[Look]:
        began = clock.now()
        taken = self.archive.taken_since(began - LOOK_BACK_MAIL)
        there = {named for one in taken.message_ids if (named := policy.message_of(one))}
        return [_of(facility_id, there, taken.since, began - LAG) for facility_id in self.houses]


def _of(facility_id: UUID, there: Collection[UUID], since: datetime, until: datetime) -> Look:
    with transaction(facility_id) as tx:
        ours = [*_sent(tx, since, until), *_waiting(tx, there)]
    return Look(
        facility_id,
        MESSAGES,
        list(policy.messages(ours, there)),
        subjects=[*(str(one.id) for one in ours), *map(str, there)],
    )


def _sent(tx: Tx, since: datetime, until: datetime) -> Iterator[OurMessage]:
    """A page after the other, along the index on what was mailed and when."""
    at, last = since, UUID(int=0)
    while True:
        rows = tx.rows(
            """
            select id, sent_at from outbox
            where channel = 'email' and sent_at is not null
              and sent_at < :until and (sent_at, id) > (:at, :last)
            order by sent_at, id limit :page
            """,
            until=until,
            at=at,
            last=last,
            page=PAGE,
        )
        yield from (OurMessage(row.id, "sent") for row in rows)
        if len(rows) < PAGE:
            return
        at, last = rows[-1].sent_at, rows[-1].id


def _waiting(tx: Tx, there: Collection[UUID]) -> Iterator[OurMessage]:
    """Those that wait for a person, and that the archive has."""
    rows = tx.rows(
        """
        select id, case when dead_at is not null then 'dead' else 'unknown' end as state
        from outbox
        where id = any(:there) and channel = 'email'
          and (dead_at is not null or unknown_at is not null)
          and sent_at is null and dropped_at is null
          and withdrawn_at is null and suppressed_at is null
        """,
        there=list(there),
    )
    return (OurMessage(row.id, row.state) for row in rows)
