"""The books beside the far side, in both directions: money, the codes on locks, and mail.

Work under way looks like a difference for a moment. What a first look finds is therefore looked at
once more after a pause, and only what both have seen is written down.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Protocol
from uuid import UUID

from portal import log
from portal.db import transaction
from portal.edges.errors import EdgeError
from portal.edges.providers import Providers
from portal.jobs import checkpoints
from portal.jobs.compare_doors import Door, due_doors
from portal.jobs.compare_mail import Mail
from portal.jobs.compare_money import Money, older_span, recent_span
from portal.jobs.compare_subscriptions import Subscriptions
from portal.verbs import divergences
from portal.verbs.divergences import Look

SETTLES_SECONDS = 10.0
"""How long work under way is given to arrive before a difference counts."""

BUDGET_SECONDS = 60.0
"""Past this nothing further is begun: the next look goes on from there."""


class Part(Protocol):
    """One far side's share. Its checkpoint is moved once its looks are remembered."""

    name: str
    reached: datetime | None

    def __call__(self) -> Sequence[Look]:
        """Read both sides. The same looks in the same order each time; raises EdgeError."""
        ...


@dataclass(slots=True)
class Told:
    """What a run did. `unread` counts what could not be asked: nothing is concluded from it."""

    new: dict[str, int] = field(default_factory=dict)
    """How many of each kind."""
    healed: int = 0
    open: int = 0
    doors: int = 0
    unread: int = 0


def reconcile(far: Providers, settle: float = SETTLES_SECONDS) -> Told:
    """Compare everything within the bounds; write down the differences; heal what agrees again."""
    told = Told()
    with transaction(None) as tx:
        houses = [row.facility_id for row in tx.rows("select facility_id from all_facilities()")]
    first = _first_looks(_parts(far, houses), told)
    doubtful = [part for part, looks in first if any(look.found for look in looks)]
    if doubtful:
        time.sleep(settle)
    again = {part.name: _seen(part, told) for part in doubtful}
    for part, looks in first:
        if part.name in again:
            looks = list(_both(looks, again[part.name]))
        _remember(part, looks, told)
    told.open = sum(_open(facility_id) for facility_id in houses)
    logger.info("reconciled", open=told.open, healed=told.healed, new=told.new)
    return told


def _parts(far: Providers, houses: Sequence[UUID]) -> Iterator[Part]:
    """What everybody shares is first; then doors, those looked at longest ago before the rest."""
    yield from _walks("money", houses, partial(Money, payments=far.payments))
    yield from _walks("subscriptions", houses, partial(Subscriptions, billing=far.billing))
    if far.mail_archive is not None:
        yield Mail(far.mail_archive, houses)
    for facility_id, door in due_doors(houses):
        yield Door(far.locks, facility_id, door)


def _walks(
    name: str, houses: Sequence[UUID], walk: Callable[..., Money | Subscriptions]
) -> Iterator[Part]:
    """The recent, and a slice of the older. Each is read before the next is made: the older begins
    where the recent was whole."""
    recent = walk(name=name, houses=houses, window=recent_span())
    yield recent
    before = f"{name} before"
    older = older_span(before, recent.begins)
    yield walk(name=before, houses=houses, window=older, beside=recent)


def _first_looks(parts: Iterator[Part], told: Told) -> list[tuple[Part, Sequence[Look]]]:
    began = time.monotonic()
    looks: list[tuple[Part, Sequence[Look]]] = []
    for part in parts:
        if time.monotonic() - began > BUDGET_SECONDS:
            break
        looks.append((part, _seen(part, told)))
    return looks


def _seen(part: Part, told: Told) -> Sequence[Look]:
    """A part that cannot be read holds up no other, and says nothing."""
    part.reached = None
    try:
        return part()
    except EdgeError as fault:
        logger.warning("reconcile_unread", part=part.name, fault=type(fault).__name__)
    except Exception:  # one that cannot be compared holds up no other
        logger.exception("reconcile_broken", part=part.name)
    told.unread += 1
    return []


def _both(first: Sequence[Look], second: Sequence[Look]) -> Iterator[Look]:
    """Only what both looks saw, in the words of the second: what one of them alone saw was on its
    way. Where the second could not be made, nothing is concluded."""
    for before, after in zip(first, second, strict=False):
        known = {found.about for found in before.found}
        yield replace(after, found=[found for found in after.found if found.about in known])


def _remember(part: Part, looks: Sequence[Look], told: Told) -> None:
    for look in looks:
        with transaction(look.facility_id) as tx:
            noted = divergences.remember(tx, look)
        for kind in noted.new:
            told.new[kind] = told.new.get(kind, 0) + 1
        told.healed += noted.healed
        told.doors += look.door_id is not None
        for found in look.found:
            logger.warning("divergence", kind=found.kind, subject=found.subject)
    if part.reached is not None:
        checkpoints.reach(part.name, part.reached)


def _open(facility_id: UUID) -> int:
    with transaction(facility_id) as tx:
        return int(tx.scalar("select count(*) from divergences where healed_at is null"))


logger = log.get(__name__)
