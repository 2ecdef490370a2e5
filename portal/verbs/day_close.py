"""The day's close: the drawer is counted beside the folios, and the day's lines are sealed."""

from dataclasses import asdict, dataclass
from datetime import date, datetime
from typing import Any
from uuid import UUID

from portal import clock, journal
from portal.db import Actor, Row, Tx
from portal.journal import Batch
from portal.log import request_id
from portal.models import DayClose
from portal.money import LARGEST, Money
from portal.outcome import Applied, Code, Noop, Outcome, Refused
from portal.policies import day_close
from portal.policies.day_close import Figures


@dataclass(frozen=True, slots=True)
class Count:
    """What the person counted and saw, in the smallest unit. `opening` is asked for the first close
    only; `cash_moved` is what the page said came into the drawer since, less what went out, and
    `left_open` how many matters it named."""

    form_key: UUID
    day: date
    opening: int
    counted: int
    taken: int
    cash_moved: int
    left_open: int
    reason: str


def close(tx: Tx, actor: Actor, count: Count) -> Outcome:
    """→ closed, for good. Seals every line that no close has; what comes to light later is a line
    of a later day. Refused while the figures are not those that the person counted beside."""
    house = tx.row(
        "select currency, time_zone from facilities where id = :id for no key update",
        id=tx.facility_id,
    )
    if house is None:
        return Refused(Code.NOT_FOUND)
    last = journal.last_close(tx)
    now = clock.now()
    if said := _not_this_day(tx, count, last, clock.local_day(now, house.time_zone)):
        return said
    opening = last.kept if last else count.opening
    batch = journal.batch(tx, last, opening)
    matters = len(journal.open_matters(tx, last, now))
    if code := _unfit(count, batch.figures, matters):
        return Refused(code, {"amount": Money(batch.figures.expected, house.currency)})

    close_id = _insert(tx, actor, count, last, batch, house.currency, now)
    journal.take(tx, close_id, batch.lines)
    return Applied(Code.DAY_CLOSED, to="closed", subject=close_id)


def _not_this_day(tx: Tx, count: Count, last: Row | None, today: date) -> Outcome | None:
    again: UUID | None = tx.scalar(
        "select id from day_closes where form_key = :key or day = :day",
        key=count.form_key,
        day=count.day,
    )
    if again:
        return Noop(Code.DAY_ALREADY_CLOSED, subject=again)
    if count.day > today:
        return Refused(Code.DAY_NOT_YET)
    if last and count.day < last.day:
        return Refused(Code.DAY_BEFORE_LAST_CLOSE, {"day": last.day})
    return None


def _unfit(count: Count, figures: Figures, matters: int) -> Code | None:
    if (count.cash_moved, count.left_open) != (figures.cash_moved, matters):
        return Code.DAY_MOVED_ON
    if not (0 <= count.taken <= count.counted <= LARGEST and 0 <= count.opening <= LARGEST):
        return Code.DRAWER_HOLDS_LESS
    if not count.reason and (count.counted != figures.expected or matters):
        return Code.DAY_NEEDS_REASON
    return None


def _insert(
    tx: Tx,
    actor: Actor,
    count: Count,
    last: Row | None,
    batch: Batch,
    currency: str,
    now: datetime,
) -> UUID:
    told: dict[str, Any] = {
        "no": last.no + 1 if last else 1,
        "day": count.day,
        "closed_at": now,
        "currency": currency,
        **asdict(batch.figures),
        "counted": count.counted,
        "taken": count.taken,
        "left_open": count.left_open,
        "reason": count.reason,
        "lines": len(batch.lines),
        "lines_digest": batch.digest,
        "actor_kind": actor.kind,
        "actor_name": actor.name,
    }
    return tx.add(
        DayClose,
        facility_id=tx.facility_id,
        form_key=count.form_key,
        actor_id=actor.id,
        request_id=request_id(),
        seal=day_close.seal(last.seal if last else "", told),
        **told,
    )
