"""The register of guests: filled in, opened for a reason, taken out for an official request."""

from datetime import date
from typing import Any
from uuid import UUID

from portal import clock, seal
from portal.db import Actor, Row, Tx
from portal.log import request_id
from portal.machines.stay import MACHINE as STAY
from portal.models.register import COMPLETED
from portal.move import note
from portal.outcome import Applied, Code, Noop, Outcome, Refused
from portal.policies import register
from portal.policies.register import Entry
from portal.verbs import guests

OPEN = ("reserved", "admitted")
SEALED = ("name", "address", "nationality", "passport", "occupation")


def fill(tx: Tx, actor: Actor, stay_id: UUID, entry: Entry, person: int = 1) -> Outcome:
    """→ complete, or corrected, or one entry more. Until the guest has left. `person`: 1 for the
    guest who has booked, then whoever comes along."""
    stay = _stay(tx, stay_id)
    if stay is None:
        return Refused(Code.NOT_FOUND)
    if not stay.lodging:
        return Refused(Code.REGISTER_NOT_NEEDED)
    if stay.state not in OPEN:
        return Refused(Code.STAY_OVER)
    if not 1 <= person <= most(stay, actor):
        return Refused(Code.NOT_FOUND)
    entry = _completed(tx, stay_id, entry) if person > 1 else entry
    if register.missing(entry):
        return Refused(Code.REGISTER_INCOMPLETE)
    known = _entry(tx, stay_id, person)
    if known is not None and unsealed(known) == _plain(entry):
        return Noop(Code.REGISTER_UNCHANGED, subject=stay_id)

    _write(tx, actor, stay_id, person, _plain(entry))
    if person == 1 and (passport := _plain(entry)["passport"]):
        guests.known_by(tx, stay.guest_id, passport)
    complete = tx.scalar(f"select {COMPLETED} from stays s where s.id = :stay", stay=stay_id)
    code = Code.REGISTER_FILLED if complete else Code.REGISTER_ENTRY_FILLED
    return Applied(code, to="filled", subject=stay_id)


def most(stay: Row, actor: Actor) -> int:
    """How many the register takes of a stay. Who joins a guest in house is registered first, at the
    desk, so that the gate can let them in."""
    joins = stay.state == "admitted" and actor.kind == "staff"
    return int(stay.persons) + joins


def let_go(tx: Tx, actor: Actor, stay: Row) -> None:
    """Entries beyond the persons that the stay has by now are taken out; that is recorded."""
    gone = tx.scalar("select drop_superfluous_registers(:stay)", stay=stay.id)
    if gone:
        note(tx, actor, STAY, stay.id, stay.state, "take_out_of_register", str(gone))


def _write(tx: Tx, actor: Actor, stay_id: UUID, person: int, plain: dict[str, str]) -> None:
    tx.run(
        """
        insert into guest_registers as r (facility_id, stay_id, person, name_sealed,
            address_sealed, contact, nationality_sealed, passport_sealed, occupation_sealed,
            actor_kind, actor_id, actor_name, filled_at)
        values (:facility_id, :stay, :person, :name, :address, :contact, :nationality, :passport,
            :occupation, :actor_kind, :actor_id, :actor_name, :at)
        on conflict (facility_id, stay_id, person) do update
        set name_sealed = excluded.name_sealed, address_sealed = excluded.address_sealed,
            contact = excluded.contact, nationality_sealed = excluded.nationality_sealed,
            passport_sealed = excluded.passport_sealed,
            occupation_sealed = excluded.occupation_sealed, actor_kind = excluded.actor_kind,
            actor_id = excluded.actor_id, actor_name = excluded.actor_name,
            filled_at = excluded.filled_at, version = r.version + 1
        """,
        stay=stay_id,
        person=person,
        contact=plain["contact"],
        **{name: _closed(plain[name]) for name in SEALED},
        **_by(tx, actor),
    )


def _entry(tx: Tx, stay_id: UUID, person: int) -> Row | None:
    return tx.row(
        f"select {_COLUMNS} from guest_registers where stay_id = :stay and person = :person",
        stay=stay_id,
        person=person,
    )


def _completed(tx: Tx, stay_id: UUID, entry: Entry) -> Entry:
    """Of whoever comes along: with the address and contact of the first, where none is written."""
    first = _entry(tx, stay_id, 1)
    return register.sharing(entry, unsealed(first)) if first else entry


def open_sealed(tx: Tx, actor: Actor, stay_id: UUID, reason: str) -> Outcome:
    """What is sealed of a stay's persons may be read once, by whoever gave the reason; that is
    recorded."""
    many = tx.scalar("select count(*) from guest_registers where stay_id = :stay", stay=stay_id)
    if not many:
        return Refused(Code.NOT_FOUND)
    if not reason.strip():
        return Refused(Code.REASON_MISSING)
    _record(tx, actor, reason, kind="opened", stay_id=stay_id, rows_read=many)
    return Applied(Code.REGISTER_OPENED, to="opened", subject=stay_id)


def export(tx: Tx, actor: Actor, first: date, last: date, reason: str) -> Outcome:
    """The entries of the arrivals of these days may be taken out; that is recorded first."""
    if not reason.strip():
        return Refused(Code.REASON_MISSING)
    if last < first or (last - first).days > LONGEST:
        return Refused(Code.REGISTER_DAYS_IMPOSSIBLE)
    many = len(entries(tx, first, last))
    _record(tx, actor, reason, kind="exported", first_day=first, last_day=last, rows_read=many)
    return Applied(Code.REGISTER_EXPORTED, to="exported")


LONGEST = 366
"""Days of one export."""

_COLUMNS = """
    name_sealed, address_sealed, contact, nationality_sealed, passport_sealed, occupation_sealed
"""


def entries(tx: Tx, first: date, last: date) -> list[Row]:
    """Sealed as they are, one a person, by arrival on the facility's days `first` to `last`."""
    return list(
        tx.rows(
            f"""
            select s.code, p.code as space_code, s.starts_at, s.ends_at, s.admitted_at,
                   s.departed_at, {_COLUMNS}
            from guest_registers r join stays s on s.id = r.stay_id
            join spaces p on p.id = s.space_id join facilities f on f.id = s.facility_id
            where s.starts_at >= cast(:first as date)::timestamp at time zone f.time_zone
              and s.starts_at < (cast(:last as date) + 1)::timestamp at time zone f.time_zone
              and r.person <= s.persons
            order by s.starts_at, s.id, r.person
            """,
            first=first,
            last=last,
        )
    )


def unsealed(row: Row) -> dict[str, str]:
    """By field; '' for what is not asked of this guest."""
    told = {name: getattr(row, f"{name}_sealed") for name in SEALED}
    opened = {name: seal.unseal(value) if value else "" for name, value in told.items()}
    return opened | {"contact": row.contact}


def _stay(tx: Tx, stay_id: UUID) -> Row | None:
    return tx.row(
        """
        select s.state, s.persons, s.guest_id, coalesce(p.kind = 'lodging', false) as lodging
        from stays s left join plans p on p.id = s.plan_id
        where s.id = :id for no key update of s
        """,
        id=stay_id,
    )


def _plain(entry: Entry) -> dict[str, str]:
    """Nothing is kept of a passport that nobody has to show."""
    abroad = entry.lives_abroad
    return {
        "name": entry.name,
        "address": entry.address,
        "contact": entry.contact,
        "nationality": entry.nationality if abroad else "",
        "passport": entry.passport if abroad else "",
        "occupation": entry.occupation,
    }


def _closed(value: str) -> str | None:
    return seal.close(value) if value else None


def _by(tx: Tx, actor: Actor) -> dict[str, Any]:
    return {
        "facility_id": tx.facility_id,
        "actor_kind": actor.kind,
        "actor_id": actor.id,
        "actor_name": actor.name,
        "at": clock.now(),
    }


def _record(tx: Tx, actor: Actor, reason: str, **what: Any) -> None:
    values = {**_by(tx, actor), "reason": reason.strip(), "request_id": request_id(), **what}
    named = ", ".join(f":{name}" for name in values)
    tx.run(f"insert into register_readings ({', '.join(values)}) values ({named})", **values)
