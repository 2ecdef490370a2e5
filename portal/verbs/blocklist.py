"""The verbs of the blocklist. An entry is made and lifted; what was wrong with one is lifted and
made anew, so that the history of who was refused, why and by whom stays whole."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy.exc import IntegrityError

from portal import clock
from portal.db import Actor, Row, Tx, violated
from portal.models import BlocklistEntry, RefusalGround
from portal.move import record
from portal.outcome import Applied, Code, Conflict, Noop, Outcome, Refused, Standing
from portal.policies.blocklist import Listed, Mark, marks
from portal.verbs.guests import document_mark

KIND = "blocklist_entry"
GROUND = "refusal_ground"


@dataclass(frozen=True, slots=True)
class NewEntry:
    """At least one of name, kana, variants, `phone` (E.164), `email` and `document` (the number as
    typed, of which only a fingerprint is kept). `refusal_ground_id`: the law's ground."""

    form_key: UUID
    ground: str
    name: str = ""
    kana: str = ""
    variants: str = ""
    phone: str | None = None
    email: str | None = None
    document: str = ""
    refusal_ground_id: UUID | None = None
    expires_at: datetime | None = None

    def marks(self) -> tuple[Mark, ...]:
        names = [self.name, self.kana, *self.variants.splitlines()]
        return marks(names, self.phone, self.email, document_mark(self.document))


def add(tx: Tx, actor: Actor, wanted: NewEntry) -> Outcome:
    """→ listed. Holds at the gate at once, for stays that are booked already as well."""
    if again := tx.made_by(BlocklistEntry, wanted.form_key):
        return Noop(Code.BLOCKLIST_ALREADY_ADDED, subject=again)
    if not wanted.marks():
        return Refused(Code.BLOCKLIST_NAMES_NOBODY)
    if wanted.expires_at is not None and wanted.expires_at <= clock.now():
        return Refused(Code.BLOCKLIST_OVER_ALREADY)
    if wanted.refusal_ground_id and not _is_ground(tx, wanted.refusal_ground_id):
        return Refused(Code.NOT_FOUND)
    try:
        with tx.savepoint():
            entry_id = _insert(tx, actor, wanted)
    except IntegrityError:
        if again := tx.made_by(BlocklistEntry, wanted.form_key):
            return Noop(Code.BLOCKLIST_ALREADY_ADDED, subject=again)
        raise
    record(tx, actor, KIND, entry_id, "created", (None, "listed"), "add")
    return Applied(Code.BLOCKLIST_ADDED, to="listed", subject=entry_id)


def lift(tx: Tx, actor: Actor, entry_id: UUID, seen: int, why: str) -> Outcome:
    """listed → lifted. The entry and its history stay."""
    entry = tx.row(
        "select version, lifted_at from blocklist_entries where id = :id for no key update",
        id=entry_id,
    )
    if entry is None:
        return Refused(Code.NOT_FOUND)
    if entry.lifted_at is not None:
        return Noop(Code.BLOCKLIST_ALREADY_LIFTED, subject=entry_id)
    if entry.version != seen:
        return Conflict(Code.STALE_PAGE, Standing(KIND, "listed", entry.version))
    tx.run(
        "update blocklist_entries set lifted_at = :now, version = version + 1 where id = :id",
        id=entry_id,
        now=clock.now(),
    )
    record(tx, actor, KIND, entry_id, "lifted", ("listed", "lifted"), "lift", why)
    return Applied(Code.BLOCKLIST_LIFTED, to="lifted", subject=entry_id)


def add_ground(tx: Tx, actor: Actor, code: str, words_ja: str, words_en: str) -> Outcome:
    """→ in use. A ground of the law that can be chosen from now on; its words are never changed."""
    if tx.scalar("select 1 from refusal_grounds where code = :code", code=code):
        return Noop(Code.GROUND_ALREADY_THERE)
    try:
        with tx.savepoint():
            ground_id = tx.add(
                RefusalGround,
                facility_id=tx.facility_id,
                code=code,
                words_ja=words_ja,
                words_en=words_en,
            )
    except IntegrityError as fault:
        if violated(fault) != "uq_refusal_grounds_facility_id_code":
            raise
        return Noop(Code.GROUND_ALREADY_THERE)
    record(tx, actor, GROUND, ground_id, "created", (None, "used"), "add_ground", code)
    return Applied(Code.GROUND_ADDED, to="used", subject=ground_id)


def retire_ground(tx: Tx, actor: Actor, ground_id: UUID) -> Outcome:
    """in use → retired. Chosen no more; what was refused on it stays refused."""
    retired = tx.run(
        "update refusal_grounds set retired_at = now() where id = :id and retired_at is null",
        id=ground_id,
    )
    if retired.rowcount:
        record(tx, actor, GROUND, ground_id, "retired", ("used", "retired"), "retire_ground")
        return Applied(Code.GROUND_RETIRED, to="retired", subject=ground_id)
    if tx.get(RefusalGround, ground_id) is None:
        return Refused(Code.NOT_FOUND)
    return Noop(Code.GROUND_ALREADY_RETIRED, subject=ground_id)


def person(guest: Row) -> tuple[Mark, ...]:
    """What a guest is known by; `guest` has `guest`, `kana`, `phone`, `email`, `document_mark`."""
    return marks([guest.guest, guest.kana], guest.phone, guest.email, guest.document_mark)


def naming(tx: Tx, people: Iterable[Mark]) -> tuple[Listed, ...]:
    """The entries that have any of these marks and are not lifted. One statement, by their keys."""
    asked = sorted(set(people))
    if not asked:
        return ()
    found = tx.rows(
        """
        select e.id, e.ground, e.expires_at,
               case f.default_locale when 'ja' then g.words_ja else g.words_en end as statute,
               array_agg(k.kind order by k.kind, k.value) as kinds,
               array_agg(k.value order by k.kind, k.value) as keys
        from (select distinct b.entry_id
              from unnest(cast(:kinds as text[]), cast(:keys as text[])) asked (kind, value)
              join blocklist_keys b on b.facility_id = :facility
                and b.kind = asked.kind and b.value = asked.value) hit
        join blocklist_entries e on e.id = hit.entry_id and e.lifted_at is null
        join facilities f on f.id = e.facility_id
        left join refusal_grounds g on g.id = e.refusal_ground_id
        join blocklist_keys k on k.entry_id = e.id
        group by e.id, statute
        order by e.id
        """,
        facility=tx.facility_id,
        kinds=[mark.kind for mark in asked],
        keys=[mark.value for mark in asked],
    )
    return tuple(
        Listed(
            row.id,
            tuple(Mark(kind, key) for kind, key in zip(row.kinds, row.keys, strict=True)),
            row.ground,
            row.statute,
            row.expires_at,
        )
        for row in found
    )


def _is_ground(tx: Tx, ground_id: UUID) -> bool:
    """Of this house, and not retired."""
    found = tx.scalar(
        "select 1 from refusal_grounds where id = :id and retired_at is null", id=ground_id
    )
    return found is not None


def _insert(tx: Tx, actor: Actor, wanted: NewEntry) -> UUID:
    entry_id = tx.add(
        BlocklistEntry,
        facility_id=tx.facility_id,
        name=wanted.name,
        kana=wanted.kana,
        variants=wanted.variants,
        phone=wanted.phone,
        email=wanted.email,
        by_document=bool(document_mark(wanted.document)),
        ground=wanted.ground,
        refusal_ground_id=wanted.refusal_ground_id,
        author_id=actor.id,
        author_name=actor.name,
        expires_at=wanted.expires_at,
        form_key=wanted.form_key,
        created_at=clock.now(),
    )
    found = wanted.marks()
    tx.run(
        """
        insert into blocklist_keys (facility_id, entry_id, kind, value)
        select :facility, :entry, kind, value
        from unnest(cast(:kinds as text[]), cast(:keys as text[])) asked (kind, value)
        """,
        facility=tx.facility_id,
        entry=entry_id,
        kinds=[mark.kind for mark in found],
        keys=[mark.value for mark in found],
    )
    return entry_id
