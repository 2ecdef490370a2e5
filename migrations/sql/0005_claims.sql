-- A claim takes at most what it asks for, whatever the plan. As a sub-select, the locked rows could
-- be looked up anew for each row of a join, each time others, and all of them were claimed.

create or replace function claim_outbox(claim uuid, at_most int, lease interval)
returns table (id uuid, facility_id uuid)
language sql volatile security definer set search_path = pg_catalog, public
as $$
    with due as materialized (
        select d.id from outbox d
        where d.sent_at is null and d.suppressed_at is null and d.withdrawn_at is null
          and d.dropped_at is null and d.dead_at is null and d.unknown_at is null
          and d.next_attempt_at <= now() and d.not_before <= now()
          and (d.claimed_at is null or d.claimed_at < now() - lease)
        order by d.priority, d.next_attempt_at
        limit at_most
        for update skip locked
    ), claimed as (
        update outbox o
        set claimed_at = now(), claim_token = claim, attempts = o.attempts + 1
        from due
        where o.id = due.id
        returning o.id, o.facility_id, o.priority, o.next_attempt_at
    )
    select c.id, c.facility_id from claimed c order by c.priority, c.next_attempt_at
$$;

create or replace function claim_lock_commands(claim uuid, at_most int, lease interval)
returns table (id uuid, facility_id uuid)
language sql volatile security definer set search_path = pg_catalog, public
as $$
    with due as materialized (
        select d.id from lock_commands d
        where d.done_at is null and d.dead_at is null and d.next_attempt_at <= now()
          and (d.claimed_at is null or d.claimed_at < now() - lease)
          -- One after another for one key: a removal must not overtake the setting before it.
          and not exists (
              select 1 from lock_commands earlier
              where earlier.key_id = d.key_id and earlier.no < d.no
                and earlier.done_at is null and earlier.dead_at is null
          )
        order by d.next_attempt_at
        limit at_most
        for update skip locked
    )
    update lock_commands c
    set claimed_at = now(), claim_token = claim, attempts = c.attempts + 1
    from due
    where c.id = due.id
    returning c.id, c.facility_id
$$;

create or replace function claim_refunds(claim uuid, at_most int, lease interval)
returns table (id uuid, facility_id uuid)
language sql volatile security definer set search_path = pg_catalog, public
as $$
    with due as materialized (
        select d.id from refunds d
        where d.state in ('asked', 'unknown', 'pending') and d.next_attempt_at <= now()
          and (d.claimed_at is null or d.claimed_at < now() - lease)
        order by d.next_attempt_at
        limit at_most
        for update skip locked
    )
    update refunds r
    set claimed_at = now(), claim_token = claim, attempts = r.attempts + 1
    from due
    where r.id = due.id
    returning r.id, r.facility_id
$$;

create or replace function payments_to_read(at_most int)
returns table (id uuid, facility_id uuid)
language sql volatile security definer set search_path = pg_catalog, public
as $$
    with due as materialized (
        select d.id from payments d
        where d.next_read_at <= now()
        order by d.next_read_at
        limit at_most
        for update skip locked
    )
    update payments p
    set next_read_at = now() + least(interval '2 minutes' * (p.reads + 1), interval '6 hours'),
        reads = p.reads + 1
    from due
    where p.id = due.id
    returning p.id, p.facility_id
$$;

create or replace function keys_to_poll(at_most int)
returns table (id uuid, facility_id uuid)
language sql volatile security definer set search_path = pg_catalog, public
as $$
    with due as materialized (
        select d.id from entry_keys d
        where d.state in ('requested', 'issued', 'missing', 'revoking')
          and d.provider_code_id is not null and d.next_poll_at <= now()
        order by d.next_poll_at
        limit at_most
        for update skip locked
    )
    update entry_keys k
    set next_poll_at = now() + case
        when k.state in ('requested', 'revoking') then interval '15 seconds'
        else interval '15 minutes' end
    from due
    where k.id = due.id
    returning k.id, k.facility_id
$$;
