-- Until when an approved application may be paid.

alter table memberships add column checkout_until timestamp with time zone;

create index ix_memberships_unpaid on memberships (next_look_at, checkout_until)
    where state = 'checkout';

create or replace function memberships_to_end(at_most int)
returns table (id uuid, facility_id uuid)
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
    returning m.id, m.facility_id
$$;
