"""Who is asking: a person of staff with the facility in use, or a guest with a link.

Each is read once a request, in one transaction.
"""

from dataclasses import dataclass
from datetime import time
from typing import Any, Literal, cast
from uuid import UUID

from flask import g, has_request_context, session
from flask_login import UserMixin, current_user

from portal import seal
from portal.db import Actor, transaction

ROLES = ("front_desk", "manager", "owner")
"""From the fewest rights to the most; each may do what those before it may."""

HOUSE = """h.id, h.slug, h.name_ja, h.name_en, h.kind, h.time_zone, h.default_locale, h.currency,
           h.phone, h.email, h.address_ja, h.address_en, h.check_in_from, h.check_out_by"""


@dataclass(frozen=True, slots=True)
class House:
    """The facility in use, as pages need it."""

    id: UUID
    slug: str
    name_ja: str
    name_en: str
    kind: str
    time_zone: str
    default_locale: str
    currency: str
    phone: str | None
    email: str | None
    address_ja: str
    address_en: str
    check_in_from: time
    check_out_by: time

    def name(self, locale: str) -> str:
        return self.name_ja if locale == "ja" else self.name_en

    def address(self, locale: str) -> str:
        return self.address_ja if locale == "ja" else self.address_en


@dataclass(frozen=True, slots=True)
class Workplace:
    """A facility where a person works, and as what."""

    id: UUID
    slug: str
    name_ja: str
    name_en: str
    role: str

    def name(self, locale: str) -> str:
        return self.name_ja if locale == "ja" else self.name_en


@dataclass(frozen=True)
class Person(UserMixin):
    """Someone of staff who is signed in. `facility` is None until one of several is chosen."""

    token: str
    id: UUID
    email: str
    name: str
    locale: str
    workplaces: tuple[Workplace, ...]
    facility: House | None
    role: str

    @property
    def actor(self) -> Actor:
        return Actor("staff", self.id, self.name)

    def may(self, role: str) -> bool:
        return self.facility is not None and ROLES.index(self.role) >= ROLES.index(role)

    def get_id(self) -> str:
        """What the browser's session holds: a token that only a live row of ours makes valid."""
        return self.token


Of = Literal["stay", "membership", "facility", "entrance"]
"""What a visit's address names: the link of a stay or of a membership, the house itself, or a way
in to it with a tablet."""


@dataclass(frozen=True, slots=True)
class Visit:
    """Somebody who is not of the house. `subject_id`: what the address names."""

    token: str
    subject_id: UUID
    facility: House
    actor: Actor
    locale: str | None


def person() -> Person | None:
    """The signed-in person of this request."""
    user = current_user._get_current_object()
    return user if isinstance(user, Person) else None


def visit() -> Visit | None:
    return g.get("visit") if has_request_context() else None


def facility() -> House | None:
    """The facility that this request is about, if any."""
    guest = visit()
    if guest:
        return guest.facility
    somebody = person() if has_request_context() and not g.get("bare") else None
    return somebody.facility if somebody else None


def actor() -> Actor:
    """Who acts. Only endpoints for staff and guests have one."""
    someone = visit() or person()
    if someone is None:
        raise RuntimeError("nobody acts here: the endpoint is neither for staff nor for guests")
    return someone.actor


def load_person(token: str) -> Person | None:
    """By the token of a live session.

    The facility that the browser names is only the scope to look with; the row decides. So the
    usual request costs one statement beside the scope's own.
    """
    hinted = uuid_of(session.get("facility"))
    rows = _person_rows(token, hinted)
    if rows and rows[0].chosen_facility != hinted:
        rows = _person_rows(token, rows[0].chosen_facility)
    return _person(token, rows) if rows else None


def _person_rows(token: str, scope: UUID | None) -> list[Any]:
    """A row for each workplace; only that of `scope` tells what its facility is like."""
    with transaction(scope) as tx:
        found = tx.rows(
            f"""
            select s.id as staff_id, s.email as staff_email, s.name, s.locale,
                   signed.chosen_facility,
                   work.facility_id, work.slug as work_slug, work.name_ja as work_ja,
                   work.name_en as work_en, work.role, {HOUSE}
            from staff_sessions signed
            join staff s on s.id = signed.staff_id and s.active
            left join lateral staff_facilities(s.id) work on true
            left join facilities h on h.id = work.facility_id and h.id = signed.chosen_facility
            where signed.token_hash = :hash and signed.ended_at is null
              and signed.expires_at > now()
            order by work.name_ja, work.facility_id
            """,
            hash=seal.token_hash(token),
        )
    return list(found)


def _person(token: str, rows: list[Any]) -> Person:
    first = rows[0]
    works = [row for row in rows if row.facility_id]
    here = next((row for row in works if row.id), None)
    return Person(
        token=token,
        id=first.staff_id,
        email=first.staff_email,
        name=first.name,
        locale=first.locale,
        workplaces=tuple(
            Workplace(row.facility_id, row.work_slug, row.work_ja, row.work_en, row.role)
            for row in works
        ),
        facility=_house(here) if here else None,
        role=here.role if here else ROLES[0],
    )


_FOUND: dict[Of, str] = {
    "stay": "stay_by_token(:hash)",
    "membership": "membership_by_token(:hash)",
    "entrance": "entrance_by_public_name(:token)",
    "facility": """(select house as facility_id, house as id
                   from facility_by_slug(:token) house where house is not null)""",
}

_VISITORS: dict[Of, str] = {
    "stay": "stays subject join guests guest on guest.id = subject.guest_id",
    "membership": """memberships subject join members member on member.id = subject.member_id
                     join guests guest on guest.id = member.guest_id""",
    # Whoever stands there is nobody yet: what they do is done by the tablet.
    "entrance": """entrances subject
                   cross join lateral (select null::uuid as id, subject.name_ja as name,
                                              null::text as preferred_locale) guest""",
    # Whoever applies is nobody yet.
    "facility": """(select id, id as facility_id from facilities) subject
                   left join guests guest on false""",
}


def load_visit(of: Of, token: str) -> Visit | None:
    """By the token of a link, or a house's own name; None for what opens nothing."""
    with transaction(None) as tx:
        subject_id = tx.enter(_FOUND[of], hash=seal.token_hash(token), token=token)
        if subject_id is None:
            return None
        row = tx.row(
            f"""
            select guest.id as guest_id, coalesce(guest.name, '') as guest_name,
                   guest.preferred_locale, {HOUSE}
            from {_VISITORS[of]}
            join facilities h on h.id = subject.facility_id
            where subject.id = :id
            """,
            id=subject_id,
        )
    if row is None:
        return None
    actor = Actor("guest", row.guest_id, row.guest_name)
    return Visit(token, subject_id, _house(row), actor, row.preferred_locale)


def _house(row: Any) -> House:
    return House(*(getattr(row, name) for name in House.__slots__))


def uuid_of(value: object) -> UUID | None:
    try:
        return UUID(cast("str", value)) if value else None
    except (ValueError, TypeError, AttributeError):
        return None
