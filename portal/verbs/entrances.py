"""The verbs of an entrance: opened and changed. What it says holds at the gate from then on, for
stays that are booked already as well."""

import json
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy.exc import IntegrityError

from portal.db import Actor, Row, Tx, violated
from portal.models import Entrance
from portal.move import record, row_standing
from portal.outcome import Applied, Code, Conflict, Noop, Outcome, Refused
from portal.policies import opening
from portal.policies.opening import Week

KIND = "entrance"
ONE_SLUG = "uq_entrances_facility_id_slug"


@dataclass(frozen=True, slots=True)
class Terms:
    """`week`: None where it never closes; `capacity`: None for as many as the spaces take. `plans`
    are sold there, `doors` are reached through it."""

    name_ja: str
    name_en: str
    mode: str
    week: Week | None
    capacity: int | None
    plans: frozenset[UUID]
    doors: frozenset[UUID]

    def columns(self) -> dict[str, Any]:
        named = ("name_ja", "name_en", "mode", "capacity")
        return {name: getattr(self, name) for name in named} | opening.columns(self.week)


@dataclass(frozen=True, slots=True)
class NewEntrance:
    """`slug` is the house's own name for it; `form_key` makes a double submit one entrance."""

    form_key: UUID
    slug: str
    terms: Terms


def create(tx: Tx, actor: Actor, wanted: NewEntrance) -> Outcome:
    """→ open. One entrance for one form; its address is drawn and never changes."""
    if again := tx.made_by(Entrance, wanted.form_key):
        return Noop(Code.ENTRANCE_ALREADY_CREATED, subject=again)
    if code := _impossible(tx, wanted.terms, None):
        return Refused(code)
    try:
        with tx.savepoint():
            entrance_id = tx.add(
                Entrance,
                facility_id=tx.facility_id,
                slug=wanted.slug,
                form_key=wanted.form_key,
                **wanted.terms.columns(),
            )
    except IntegrityError as fault:
        return _not_inserted(tx, wanted, fault)
    _lead_to(tx, entrance_id, wanted.terms)
    record(tx, actor, KIND, entrance_id, "created", (None, "open"), "create", wanted.slug)
    return Applied(Code.ENTRANCE_CREATED, to="open", subject=entrance_id)


def change(tx: Tx, actor: Actor, entrance_id: UUID, seen: int, wanted: Terms) -> Outcome:
    """open → open. Its hours, mode, capacity, plans and doors; a door that it lets go stands under
    no entrance's rules."""
    entrance = _held(tx, entrance_id)
    if entrance is None:
        return Refused(Code.NOT_FOUND)
    changed = _changed(entrance, wanted)
    if not changed:
        return Noop(Code.ENTRANCE_UNCHANGED, subject=entrance_id)
    if entrance.version != seen:
        return Conflict(
            Code.STALE_PAGE,
            row_standing(tx, KIND, entrance_id, "open", entrance.version),
        )
    if code := _impossible(tx, wanted, entrance_id):
        return Refused(code)

    named = ", ".join(f"{name} = :{name}" for name in wanted.columns())
    tx.run(
        f"update entrances set {named}, version = version + 1 where id = :id",
        id=entrance_id,
        **wanted.columns(),
    )
    _lead_to(tx, entrance_id, wanted)
    told = json.dumps(changed, ensure_ascii=False, default=str)
    record(tx, actor, KIND, entrance_id, "changed", ("open", "open"), "change", told)
    return Applied(Code.ENTRANCE_UPDATED, to="open", subject=entrance_id)


def _not_inserted(tx: Tx, wanted: NewEntrance, fault: IntegrityError) -> Outcome:
    if again := tx.made_by(Entrance, wanted.form_key):
        return Noop(Code.ENTRANCE_ALREADY_CREATED, subject=again)
    if violated(fault) == ONE_SLUG:
        return Refused(Code.ENTRANCE_SLUG_TAKEN)
    raise fault


def _impossible(tx: Tx, wanted: Terms, entrance_id: UUID | None) -> Code | None:
    """What of it is not this house's, or is another entrance's. The doors are held: two entrances
    that want one at once wait for one another."""
    if wanted.week is not None and (code := _no_hours(wanted.week)):
        return code
    doors = tx.rows(
        "select entrance_id from doors where id = any(:doors) order by id for no key update",
        doors=list(wanted.doors),
    )
    plans = tx.rows("select id from plans where id = any(:plans)", plans=list(wanted.plans))
    if (len(doors), len(plans)) != (len(wanted.doors), len(wanted.plans)):
        return Code.NOT_FOUND
    if any(door.entrance_id not in (None, entrance_id) for door in doors):
        return Code.DOOR_HAS_ENTRANCE
    return None


def _no_hours(week: Week) -> Code | None:
    """Why no entrance can keep them; the schema refuses the same."""
    if not any(week):
        return Code.ENTRANCE_NEVER_OPENS
    empty = [day for day in week if day and day.opens == day.closes and day != opening.ALL_DAY]
    return Code.ENTRANCE_HOURS_IMPOSSIBLE if empty or len(week) != opening.DAYS else None


def _lead_to(tx: Tx, entrance_id: UUID, wanted: Terms) -> None:
    """Its doors and plans are those of `wanted`, and no others."""
    tx.run(
        """
        update doors set entrance_id = case when id = any(:doors) then cast(:entrance as uuid) end
        where id = any(:doors) or entrance_id = :entrance
        """,
        entrance=entrance_id,
        doors=list(wanted.doors),
    )
    tx.run(
        "delete from entrance_plans where entrance_id = :entrance and plan_id <> all(:plans)",
        entrance=entrance_id,
        plans=list(wanted.plans),
    )
    tx.run(
        """
        insert into entrance_plans (facility_id, entrance_id, plan_id)
        select :facility, :entrance, unnest(cast(:plans as uuid[]))
        on conflict do nothing
        """,
        facility=tx.facility_id,
        entrance=entrance_id,
        plans=list(wanted.plans),
    )


def _held(tx: Tx, entrance_id: UUID) -> Row | None:
    return tx.row(
        """
        select e.*,
               array(select plan_id from entrance_plans where entrance_id = e.id) as plans,
               array(select id from doors where entrance_id = e.id) as doors
        from entrances e where e.id = :id
        for no key update of e
        """,
        id=entrance_id,
    )


def _changed(entrance: Row, wanted: Terms) -> dict[str, Any]:
    """For the record: what each was and is."""
    was = {name: getattr(entrance, name) for name in wanted.columns()}
    found = {
        name: [was[name], value] for name, value in wanted.columns().items() if was[name] != value
    }
    for name in ("plans", "doors"):
        before, now = set(getattr(entrance, name)), getattr(wanted, name)
        if before != now:
            found[name] = [sorted(before, key=str), sorted(now, key=str)]
    return found
