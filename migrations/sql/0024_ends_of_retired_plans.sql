-- A plan that is retired ends its memberships, one by one.

alter table memberships
    add column end_tries integer default 0 not null,
    add column end_refusal text;

-- A claim is a try: whoever dies with one in hand, or is refused, comes back to it later, and each
-- time later still, up to some four hours. One that has an end already needs nothing.
create function memberships_of_retired_plans(at_most int)
returns table (id uuid, facility_id uuid, tries int)
language sql volatile security definer set search_path = pg_catalog, public
as $$
    with due as materialized (
        select of_plan.id
        from membership_plans p cross join lateral (
            select d.id, d.next_look_at from memberships d
            where d.plan_id = p.id
              and d.state in ('applying', 'checkout', 'active', 'past_due')
              and d.next_look_at <= now()
            order by d.next_look_at
            limit at_most
            for no key update skip locked
        ) of_plan
        where p.retired_at is not null
        order by of_plan.next_look_at
        limit at_most
    )
    update memberships m
    set end_tries = m.end_tries + 1,
        next_look_at = now() + interval '1 minute' * power(2, least(m.end_tries, 8))
    from due
    where m.id = due.id
    returning m.id, m.facility_id, m.end_tries
$$;

revoke all on function memberships_of_retired_plans(int) from public;
grant execute on function memberships_of_retired_plans(int) to portal_app;
