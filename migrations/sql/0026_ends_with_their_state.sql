-- The membership's version when an act was asked for: the row is held while it is decided.
alter table billing_legs drop column if exists seen;

drop function if exists memberships_to_end(int);

-- With the state, which is the reason for the end.
create function memberships_to_end(at_most int)
returns table (id uuid, facility_id uuid, state text)
language sql volatile security definer set search_path = pg_catalog, public
as $$
    with ended as materialized (
        select d.id from memberships d
        where d.state = 'scheduled_to_end' and d.ends_at <= now() and d.next_look_at <= now()
        order by d.next_look_at, d.ends_at
        limit at_most
        for no key update skip locked
    ), unpaid as materialized (
        select d.id from memberships d
        where d.state = 'checkout' and d.checkout_until <= now() and d.next_look_at <= now()
        order by d.next_look_at, d.checkout_until
        limit at_most
        for no key update skip locked
    )
    update memberships m
    set next_look_at = now() + interval '1 minute'
    from (select ended.id from ended union all select unpaid.id from unpaid) due
    where m.id = due.id
    returning m.id, m.facility_id, m.state
$$;

revoke all on function memberships_to_end(int) from public;
grant execute on function memberships_to_end(int) to portal_app;
