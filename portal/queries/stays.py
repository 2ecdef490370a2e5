"""Stays in a list: found by what a guest says or a phone shows, one page at a time."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import jaconv

from portal import ways_in
from portal.db import Row, Tx
from portal.models.register import MISSING
from portal.models.stay import AWAITED_BY
from portal.policies.folding import digits, fold, like_pattern

PAGE = 25

SHOWN = f"""
    s.id, s.code, s.state, s.version, s.source, s.starts_at, s.ends_at, s.currency, s.deposit_due,
    {AWAITED_BY} as awaited_by, s.space_id, s.persons, g.name as guest, g.kana,
    p.code as space_code,
    coalesce((select sum(amount) from ledger_lines l where l.stay_id = s.id), 0)::bigint as balance
"""
"""What every list says of a stay `s` with its guest `g` and its space `p`."""

GATE = f"""
    {ways_in.of_stay()}, f.time_zone, plan.kind as plan_kind, g.phone, g.email,
    g.document_mark, f.early_minutes, f.benefits_while_past_due, p.active as space_active,
    s.membership_id,
    {MISSING} as register_missing,
    coalesce(plan.members_only, false) as members_only, m.state as membership_state,
    m.ends_at as membership_ends_at, m.paused as membership_paused,
    not exists (select 1 from ledger_lines l where l.stay_id = s.id and l.item = '')
        as costs_nothing,
    exists (select 1 from payments x where x.stay_id = s.id and x.state = 'processing')
        as payment_processing,
    exists (select 1 from payments x where x.stay_id = s.id and x.state = 'unknown')
        as payment_unknown,
    exists (select 1 from entry_keys k where k.space_id = s.space_id and k.stay_id <> s.id
            and k.state not in ('revoked', 'failed')) as space_quarantined,
    exists (select 1 from stays o where o.space_id = s.space_id and o.id <> s.id
            and o.state = 'admitted') as space_occupied
"""
"""With SHOWN, what the gate decides on; also needs the facility `f` and GIVEN_BY."""

GIVEN_BY = """
    left join plans plan on plan.id = s.plan_id
    left join memberships m on m.id = s.membership_id
    join doors way on way.id = p.door_id
    left join entrances e on e.id = way.entrance_id
"""

# A number as people write it. Anything else is a name or a code, even with figures in it.
_PHONE = re.compile(r"\+?[0-9()\-\s.]{4,}")
_HYPHENS = str.maketrans(dict.fromkeys("‐‑‒–—―−ー", "-"))


@dataclass(frozen=True, slots=True)
class Cursor:
    """The stay that a page of the list ends at."""

    starts_at: datetime
    id: UUID

    def __str__(self) -> str:
        micros = (self.starts_at - _EPOCH) // timedelta(microseconds=1)
        return f"{micros}.{self.id}"

    @classmethod
    def read(cls, text: str | None) -> "Cursor | None":
        """None for whatever is no cursor of ours: the list then begins at its beginning."""
        found = re.fullmatch(r"(-?[0-9]{1,17})\.([0-9a-f-]{36})", text or "")
        if found is None:
            return None
        try:
            return cls(_EPOCH + timedelta(microseconds=int(found[1])), UUID(found[2]))
        except (ValueError, OverflowError):
            return None


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to list. `during`: [start, end) that a stay must touch. `onwards`: where a list without
    a cursor begins. At most one of the cursors."""

    words: str = ""
    state: str = ""
    during: tuple[datetime, datetime] | None = None
    onwards: datetime | None = None
    latest_first: bool = False
    after: Cursor | None = None
    before: Cursor | None = None


@dataclass(frozen=True, slots=True)
class Page:
    rows: Sequence[Row]
    previous: Cursor | None
    following: Cursor | None


@dataclass(slots=True)
class _Conditions:
    parts: list[str] = field(default_factory=list)
    params: dict[str, Any] = field(default_factory=dict)

    def add(self, condition: str, **params: Any) -> None:
        self.parts.append(condition)
        self.params |= params

    def __str__(self) -> str:
        return " and ".join(f"({part})" for part in self.parts) or "true"


def page(tx: Tx, wanted: Wanted, size: int = PAGE) -> Page:
    """In the order of arrival. One statement whatever the table holds, two for a list that begins
    in its middle; never a count."""
    backwards = wanted.before is not None
    conditions = _conditions(wanted)
    if wanted.onwards and not (wanted.after or wanted.before):
        conditions.add("s.starts_at >= :onwards", onwards=wanted.onwards)
    order = "desc" if wanted.latest_first else "asc"
    inner = {"asc": "desc", "desc": "asc"}[order] if backwards else order
    found = tx.rows(
        f"""
        with found as materialized (
            select s.id from stays s
            join guests g on g.id = s.guest_id
            join spaces p on p.id = s.space_id
            where {conditions}
            order by s.starts_at {inner}, s.id {inner}
            limit :size
        )
        select {SHOWN}, g.phone
        from found
        join stays s on s.id = found.id
        join guests g on g.id = s.guest_id
        join spaces p on p.id = s.space_id
        order by s.starts_at {order}, s.id {order}
        """,
        size=size + 1,
        **conditions.params,
    )
    return _cut(tx, found, wanted, size)


def _cut(tx: Tx, found: Sequence[Row], wanted: Wanted, size: int) -> Page:
    """The extra row says whether the list goes on; it is not shown."""
    more, backwards = len(found) > size, wanted.before is not None
    rows = found[-size:] if backwards else found[:size]
    ends = [Cursor(row.starts_at, row.id) for row in (rows[0], rows[-1])] if rows else [None, None]
    if backwards:
        return Page(rows, ends[0] if more else None, ends[1])
    previous = ends[0] if wanted.after else _earlier(tx, wanted)
    return Page(rows, previous, ends[1] if more else None)


def _earlier(tx: Tx, wanted: Wanted) -> Cursor | None:
    """Where the list begins in its middle: whether there is something before it."""
    if wanted.onwards is None:
        return None
    conditions = _conditions(wanted)
    conditions.add("s.starts_at < :onwards", onwards=wanted.onwards)
    found = tx.scalar(
        f"""
        select 1 from stays s
        join guests g on g.id = s.guest_id
        join spaces p on p.id = s.space_id
        where {conditions} limit 1
        """,
        **conditions.params,
    )
    return Cursor(wanted.onwards, UUID(int=0)) if found else None


def _conditions(wanted: Wanted) -> _Conditions:
    conditions = _Conditions()
    if wanted.state:
        conditions.add("s.state = :state", state=wanted.state)
    if wanted.during:
        start, end = wanted.during
        conditions.add(
            "s.starts_at < :day_end and s.ends_at > :day_start", day_start=start, day_end=end
        )
    onwards, back = ("<", ">") if wanted.latest_first else (">", "<")
    for cursor, sign in ((wanted.after, onwards), (wanted.before, back)):
        if cursor:
            conditions.add(
                f"(s.starts_at, s.id) {sign} (:cursor_at, :cursor_id)",
                cursor_at=cursor.starts_at,
                cursor_id=cursor.id,
            )
    if wanted.words.strip():
        _add_words(conditions, wanted.words)
    return conditions


def _add_words(conditions: _Conditions, words: str) -> None:
    """Name or kana anywhere, a code from its beginning, a space by its code, a phone's figures."""
    plain = unicodedata.normalize("NFKC", words).strip()
    ways = ["g.search_key like any(:names)", "s.code like :code", "upper(p.code) = :space"]
    conditions.params |= {
        "names": [like_pattern(name) for name in names(plain)],
        "code": like_pattern(plain.upper())[1:],
        "space": plain.upper(),
    }
    if numbers := phone_digits(plain):
        ways.append("g.phone_digits like any(:phones)")
        conditions.params["phones"] = [like_pattern(number) for number in numbers]
    conditions.add(" or ".join(ways))


def names(plain: str) -> list[str]:
    """What may stand in a guest's search key: as typed, and romaji as the kana it spells."""
    typed = fold(plain)
    spelt = fold(jaconv.alphabet2kana(plain.lower())) if plain.isascii() else ""
    return [typed, spelt] if re.fullmatch(r"[ァ-ヺー]{2,}", spelt) else [typed]


def phone_digits(plain: str) -> list[str]:
    """The figures to look for: without the trunk 0, and without our country's number, since a
    number may be stored either way. Empty when this is no number."""
    number = plain.translate(_HYPHENS)
    if not _PHONE.fullmatch(number):
        return []
    figures = digits(number).removeprefix("0")
    if len(figures) < 4:
        return []
    home = figures.removeprefix("81").removeprefix("0") if number.startswith("+81") else figures
    return list(dict.fromkeys([home, figures])) if len(home) >= 4 else [figures]
