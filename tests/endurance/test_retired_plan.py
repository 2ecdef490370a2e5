"""A plan with a thousand members is retired, and the worker that ends their memberships is killed
in the middle, again and again: in the end each has one end, and each member one letter."""

import time
from uuid import uuid4

import pytest

from portal.jobs import memberships
from portal.outcome import Applied
from portal.verbs import membership_plans
from sandbox.watch import statements
from tests.endurance.ground import Ground, records_equal_transitions
from tests.figures import Figure
from tests.outside import Owner
from tests.proofs.processes import Nursery

pytestmark = pytest.mark.proof

MEMBERS = 1000
SHARE = 300
KILLS = 5

# Written by the owner with triggers off: as the verbs would have, a thousand times quicker.
JOINED = """
    set session_replication_role = replica;
    with plan as (select * from membership_plans where id = '{plan}'),
    people as (
        insert into guests (facility_id, name, email, search_key, preferred_locale)
        select plan.facility_id, '会員 ' || n, n || '@' || plan.code || '.example', '', 'ja'
        from plan, generate_series(1, {many}) n
        returning id, facility_id, email
    ), joined as (
        insert into members (facility_id, guest_id, email_key)
        select facility_id, id, email from people returning id, facility_id
    ), made as (
        insert into memberships (facility_id, member_id, plan_id, state, billing, price, currency,
            billed_every, terms_version, confirmation, form_key, token_hash, token_sealed,
            started_at)
        select j.facility_id, j.id, plan.id, 'active', 'desk', plan.price, 'JPY', 'month',
               plan.terms_version, '{{}}', gen_random_uuid(), sha256(j.id::text::bytea), '',
               now() - interval '40 days'
        from joined j, plan
        returning id, facility_id
    )
    insert into transitions (facility_id, machine, subject_id, verb, event, from_state, to_state,
        actor_kind, actor_name, request_id, at)
    select facility_id, 'membership', id, 'apply', 'created', null, 'active', 'system', 'x', '',
           now()
    from made;
    set session_replication_role = origin
"""

ENDS = "select count(*) from transitions where event = 'end_scheduled'"
ONCE = """
    select count(*), count(distinct m.id), count(*) filter (where m.state = 'scheduled_to_end'
        and m.end_reason = 'plan_retired' and m.version = 2)
    from memberships m join transitions t on t.subject_id = m.id and t.event = 'end_scheduled'
"""
LETTERS = """
    select count(*), count(distinct membership_id) from outbox
    where event_type = 'membership_end_scheduled'
"""


def retired(ground: Ground, code: str, many: int) -> None:
    plan = ground.cast.offer(code, "会員", "Member")
    ground.owner.wire.execute(JOINED.format(plan=plan, many=many))
    with ground.cast.transaction(ground.cast.tokyo.id) as tx:
        said = membership_plans.retire(tx, ground.cast.suzuki.actor, plan, 1)
    assert isinstance(said, Applied), said


def until(owner: Owner, many: int) -> None:
    end = time.monotonic() + 60
    while owner.one(ENDS) < many:
        assert time.monotonic() < end, f"{owner.one(ENDS)} of {many}"
        time.sleep(0.005)


def test_a_killed_worker_ends_each_membership_of_a_retired_plan_once(
    ground: Ground, nursery: Nursery, whole: bool, figure: Figure
) -> None:
    owner, many = ground.owner, MEMBERS if whole else SHARE
    retired(ground, "plan", many)
    left = []
    for kill in range(1, KILLS + 1):
        worker = nursery.child()
        worker.begin("memberships")
        until(owner, many * kill // (KILLS + 1))
        worker.kill()
        left.append(many - owner.one(ENDS))
    assert all(left), f"a worker was done before it was killed: {left}"
    # What the killed ones held is due again once their claims are over.
    owner.run("update memberships set next_look_at = now()")
    worker = nursery.child()
    worker.work("memberships")
    worker.close()
    assert owner.row(ONCE) == (many, many, many)
    assert owner.row(LETTERS) == (many, many)
    records_equal_transitions(owner)
    figure(
        "a retired plan",
        members=many,
        kills=KILLS,
        ends_lost=0,
        ended_twice=0,
        told_twice=0,
    )


@pytest.mark.parametrize(("few", "many"), [(40, 160)])
def test_a_member_costs_as_many_statements_among_many_as_among_few(
    ground: Ground, figure: Figure, few: int, many: int
) -> None:
    def each(members: int) -> float:
        retired(ground, uuid4().hex, members)
        with statements() as said:
            while memberships.retire_due(ground.worker):
                pass
        # Each batch is one statement, and the last finds nothing.
        return (len(said) - members / memberships.BATCH - 1) / members

    cost = each(few)
    assert cost == each(many)
    figure("a retired plan, statements a member", statements=cost)
