"""How far the comparison has looked: a run that ends early, or reads only a part, goes on there."""

from datetime import datetime

from portal.db import transaction


def reached(name: str) -> datetime | None:
    with transaction(None) as tx:
        found: datetime | None = tx.scalar(
            "select reached from checkpoints where name = :name", name=f"reconcile:{name}"
        )
        return found


def reach(name: str, moment: datetime) -> None:
    with transaction(None) as tx:
        tx.run(
            """
            insert into checkpoints (name, reached) values (:name, :moment)
            on conflict (name) do update set reached = excluded.reached
            """,
            name=f"reconcile:{name}",
            moment=moment,
        )
