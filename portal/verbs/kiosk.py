"""The verbs of a tablet at an entrance: whose stay it shows, a stay booked there, and the end of
it. Paying and coming in are the verbs that every other page calls."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from portal import clock, seal
from portal.db import SYSTEM, Actor, Row, Tx
from portal.models import KioskSession
from portal.outcome import Applied, Code, Noop, Outcome, Refused
from portal.policies import kiosk, pricing
from portal.verbs import bookings, stays
from portal.verbs.guests import NewGuest

LASTS = timedelta(minutes=10)
"""A tablet that nobody touches goes back by itself before."""
TRIES = 3
LONGEST_HOURS = 12


@dataclass(frozen=True, slots=True)
class WalkIn:
    """`hours` counts for a plan by the hour; `form_key` makes a double submit one stay. `ticket`:
    the code of a book that pays it."""

    form_key: UUID
    guest: NewGuest
    plan_id: UUID
    hours: int = 1
    ticket: str | None = None


def open_by_code(
    tx: Tx, actor: Actor, entrance_id: UUID, token: str, code: str, proof: str
) -> Outcome:
    """→ open. A code alone shows nobody's stay: it is read aloud, and stands on a screen. What is
    not there, is another entrance's or is not proven is answered alike."""
    stay = tx.row(
        """
        select s.id, g.name, g.kana, g.phone
        from stays s
        join guests g on g.id = s.guest_id
        join spaces p on p.id = s.space_id
        join doors d on d.id = p.door_id
        where s.code = :code and d.entrance_id = :entrance and s.state in ('reserved', 'admitted')
        """,
        code=code,
        entrance=entrance_id,
    )
    if stay is None or not kiosk.proves(proof, (stay.name, stay.kana), stay.phone):
        return Refused(Code.KIOSK_NOTHING_FOUND)
    _open(tx, entrance_id, stay.id, token)
    return Applied(Code.KIOSK_OPENED, to="open", subject=stay.id)


def walk_in(tx: Tx, actor: Actor, entrance_id: UUID, token: str, wanted: WalkIn) -> Outcome:
    """→ open, with a stay in a free space behind the entrance, from now on. The gate decides as it
    does everywhere."""
    plan = tx.row(
        """
        select p.unit, p.unit_price, f.check_out_by, f.time_zone
        from plans p join facilities f on f.id = p.facility_id
        where p.id = :plan
        """,
        plan=wanted.plan_id,
    )
    if plan is None or not 1 <= wanted.hours <= LONGEST_HOURS:
        return Refused(Code.NOT_FOUND)
    said = _booked(tx, actor, wanted, plan, _free(tx, entrance_id))
    if isinstance(said, Applied | Noop) and said.subject:
        _open(tx, entrance_id, said.subject, token)
    return said


def close(tx: Tx, actor: Actor, session_id: UUID) -> Outcome:
    """open → ended."""
    ended = tx.run(
        "update kiosk_sessions set ended_at = :now where id = :id and ended_at is null",
        id=session_id,
        now=clock.now(),
    )
    if ended.rowcount:
        return Applied(Code.KIOSK_CLOSED, to="ended", subject=session_id)
    if tx.get(KioskSession, session_id) is None:
        return Refused(Code.NOT_FOUND)
    return Noop(Code.KIOSK_CLOSED_ALREADY, subject=session_id)


def let_go(tx: Tx, stay_id: UUID) -> Outcome:
    """reserved → cancelled, of a stay that was booked at a tablet and left there unpaid."""
    version = tx.scalar("select version from stays where id = :id", id=stay_id)
    if version is None:
        return Refused(Code.NOT_FOUND)
    return stays.cancel(tx, SYSTEM, stay_id, version)


def _open(tx: Tx, entrance_id: UUID, stay_id: UUID, token: str) -> None:
    """In the database's time, by which it is over as well."""
    tx.run(
        """
        insert into kiosk_sessions (facility_id, entrance_id, stay_id, token_hash, expires_at)
        values (:facility, :entrance, :stay, :hash, now() + :lasts)
        """,
        facility=tx.facility_id,
        entrance=entrance_id,
        stay=stay_id,
        hash=seal.token_hash(token),
        lasts=LASTS,
    )


def _free(tx: Tx, entrance_id: UUID) -> Sequence[Row]:
    """Spaces behind the entrance that nobody has now, each with when the next guest comes."""
    return tx.rows(
        """
        select p.id, (select min(s.starts_at) from stays s
                      where s.space_id = p.id and s.state = 'reserved'
                        and s.starts_at > :now) as until
        from spaces p join doors d on d.id = p.door_id
        where d.entrance_id = :entrance and p.active
          and not exists (select 1 from stays s
                          where s.space_id = p.id and s.state in ('reserved', 'admitted')
                            and s.period @> cast(:now as timestamptz))
          and not exists (select 1 from stays s
                          where s.space_id = p.id and s.state = 'admitted')
          and not exists (select 1 from entry_keys k
                          where k.space_id = p.id and k.state not in ('revoked', 'failed'))
        order by until nulls first, p.code
        """,
        entrance=entrance_id,
        now=clock.now(),
    )


def _booked(tx: Tx, actor: Actor, wanted: WalkIn, plan: Row, free: Sequence[Row]) -> Outcome:
    """In the first space that is free for so long; another tablet may be quicker to one."""
    begins, ends = kiosk.period(
        plan.unit, wanted.hours, plan.check_out_by, plan.time_zone, clock.now()
    )
    price = pricing.quote(plan.unit, plan.unit_price, begins, ends, plan.time_zone)
    long_enough = [space for space in free if space.until is None or space.until >= ends]
    said: Outcome = Refused(Code.ENTRANCE_FULL)
    for space in long_enough[:TRIES]:
        said = bookings.create(
            tx,
            actor,
            bookings.NewStay(
                form_key=wanted.form_key,
                guest=wanted.guest,
                space_id=space.id,
                plan_id=wanted.plan_id,
                starts_at=begins,
                ends_at=ends,
                price=0 if wanted.ticket else price,
                source="walk_in",
                ticket=wanted.ticket,
            ),
        )
        if said != Refused(Code.SPACE_TAKEN):
            return said
    return said
