"""A page of the list of stays, beside the one statement that it comes down to."""

from __future__ import annotations

from typing import Any

import psycopg

from benchmarks.ground import Ground
from benchmarks.pair import Figure, rates
from portal.db import transaction
from portal.queries import stays

PAGES = 50


def measure(ground: Ground) -> list[Figure]:
    def ours() -> Any:
        return lambda: _pages(ground)

    def floor() -> Any:
        return lambda: _loop(ground)

    return [rates(ground, "stays list", PAGES, ours, floor, unit="ms")]


def _pages(ground: Ground) -> None:
    for _ in range(PAGES):
        with transaction(ground.house) as tx:
            found = stays.page(tx, stays.Wanted(latest_first=True))
        if len(found.rows) != stays.PAGE:
            raise RuntimeError(f"{len(found.rows)} rows")


_LIST = """
    select s.id, s.code, s.state, s.version, s.source, s.starts_at, s.ends_at, s.currency,
           s.deposit_due, s.space_id, g.name, g.kana, g.phone, p.code,
           (select sum(amount) from ledger_lines l where l.stay_id = s.id)
    from stays s join guests g on g.id = s.guest_id join spaces p on p.id = s.space_id
    order by s.starts_at desc, s.id desc limit 26
"""


def _loop(ground: Ground) -> None:
    with psycopg.connect(ground.app_url) as wire:
        for _ in range(PAGES):
            with wire.transaction():
                wire.execute("select set_config('app.facility_id', %s, true)", [str(ground.house)])
                wire.execute(_LIST).fetchall()
