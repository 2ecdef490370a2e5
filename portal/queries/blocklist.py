"""The blocklist's pages: who is on it, and one entry with its history."""

from collections.abc import Sequence
from uuid import UUID

from portal.db import Row, Tx
from portal.queries import keyset
from portal.queries.keyset import Cursor, Page

SHOWN = """
    e.id, e.version, e.name, e.kana, e.variants, e.phone, e.email, e.by_document, e.ground,
    e.author_name, e.created_at, e.expires_at, e.lifted_at,
    g.code as ground_code, g.words_ja, g.words_en
"""


def page(tx: Tx, cursor: Cursor, size: int = keyset.SIZE) -> Page:
    """Latest first, the lifted ones among them. One statement."""
    beyond, params = cursor.condition("blocklist_entries", "e")
    found = tx.rows(
        f"""
        with found as materialized (
            select e.id from blocklist_entries e
            where {beyond}
            order by e.created_at {cursor.direction}, e.id {cursor.direction}
            limit :size
        )
        select {SHOWN}
        from found join blocklist_entries e on e.id = found.id
        left join refusal_grounds g on g.id = e.refusal_ground_id
        order by e.created_at desc, e.id desc
        """,
        size=size + 1,
        **params,
    )
    return keyset.cut(found, cursor, size)


def head(tx: Tx, entry_id: UUID) -> Row | None:
    return tx.row(
        f"""
        select {SHOWN} from blocklist_entries e
        left join refusal_grounds g on g.id = e.refusal_ground_id where e.id = :id
        """,
        id=entry_id,
    )


def history(tx: Tx, entry_id: UUID) -> Sequence[Row]:
    return tx.rows(
        """
        select event, reason, actor_kind, actor_name, at from transitions
        where machine = 'blocklist_entry' and subject_id = :id order by at desc, id desc
        """,
        id=entry_id,
    )


def grounds(tx: Tx) -> Sequence[Row]:
    """The law's grounds, those in use first."""
    return tx.rows(
        "select id, code, words_ja, words_en, retired_at from refusal_grounds"
        " order by retired_at desc nulls first, code"
    )
