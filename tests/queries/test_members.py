"""The list of a plan's memberships, and the look for those of retired plans, read their index."""

from typing import Any
from uuid import UUID

import pytest
from flask import Flask

from portal.db import Tx
from portal.queries import members
from portal.queries.keyset import BEGINNING, Cursor
from tests.cast import Cast
from tests.endurance.test_retired_plan import JOINED
from tests.outside import Owner

LIVING = 4000


@pytest.fixture
def plans(cast: Cast, inside: Flask, owner: Owner) -> list[UUID]:
    """One with many members, one with few."""
    made = [cast.offer("many", "会員", "Member"), cast.offer("few", "会員", "Member")]
    for plan, many in zip(made, (LIVING, 40), strict=True):
        owner.wire.execute(JOINED.format(plan=plan, many=many))
    owner.run("update memberships set created_at = now() - random() * interval '90 days'")
    owner.run("analyze memberships")
    owner.run("analyze membership_plans")
    return made


@pytest.mark.parametrize(
    ("state", "index"),
    [("", "ix_memberships_plan_listed"), ("active", "ix_memberships_plan_")],
)
@pytest.mark.parametrize("deep", [True, False])
def test_a_page_of_a_plan_among_many_members_is_read_from_its_index(
    cast: Cast,
    plans: list[UUID],
    owner: Owner,
    monkeypatch: pytest.MonkeyPatch,
    state: str,
    index: str,
    deep: bool,
) -> None:
    asked: list[tuple[str, dict[str, Any]]] = []
    rows = Tx.rows

    def kept(tx: Tx, sql: str, **params: Any) -> Any:
        asked.append((sql, params))
        return rows(tx, sql, **params)

    monkeypatch.setattr(Tx, "rows", kept)
    middle = owner.one(
        "select id from memberships where plan_id = %s order by created_at offset 30 limit 1",
        plans[1],
    )
    with cast.transaction(cast.tokyo.id) as tx:
        cursor = Cursor(after=middle) if deep else BEGINNING
        page = members.page(tx, state, cursor, plan=plans[1])
        sql, params = asked[-1]
        plan = "\n".join(row[0] for row in rows(tx, f"explain {sql}", **params))
    assert len(page.rows) == 25
    assert index in plan, plan
    assert "Seq Scan on memberships" not in plan, plan


def test_the_look_for_members_of_retired_plans_reads_those_only(
    plans: list[UUID], owner: Owner
) -> None:
    owner.run(
        "update membership_plans set sold = false, retired_at = now() where id = %s", plans[1]
    )
    owner.run("analyze membership_plans")
    (body,) = owner.row("select prosrc from pg_proc where proname = 'memberships_of_retired_plans'")
    said = "\n".join(row[0] for row in owner.rows("explain " + body.replace("at_most", "20")))
    assert "ix_memberships_to_retire" in said, said
    assert owner.one("select count(*) from memberships_of_retired_plans(20)") == 20
    assert owner.one("select count(*) from memberships where end_tries > 0") == 20
