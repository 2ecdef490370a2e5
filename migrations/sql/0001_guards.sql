-- What the database itself holds: scope, guard, append-only, and the few doors across facilities.

-- Scope -----------------------------------------------------------------------------------------
-- After a transaction-local setting a connection reads '' and not null, so '' must mean none.
create function current_facility() returns uuid
language sql stable parallel safe
as $$ select nullif(current_setting('app.facility_id', true), '')::uuid $$;

do $$
declare
    scoped record;
begin
    for scoped in
        select c.table_name, c.is_nullable = 'YES' as may_be_nobodys
        from information_schema.columns c
        where c.table_schema = 'public' and c.column_name = 'facility_id'
    loop
        execute format('alter table %I enable row level security', scoped.table_name);
        execute format('alter table %I force row level security', scoped.table_name);
        execute format('create policy owner_all on %I to current_user using (true) with check (true)',
                       scoped.table_name);
        if scoped.may_be_nobodys then
            -- A record that belongs to no facility yet is not a facility's row.
            execute format('create policy own_facility on %I to portal_app'
                           ' using (facility_id is null or facility_id = current_facility())'
                           ' with check (facility_id is null or facility_id = current_facility())',
                           scoped.table_name);
        else
            execute format('create policy own_facility on %I to portal_app'
                           ' using (facility_id = current_facility())'
                           ' with check (facility_id = current_facility())',
                           scoped.table_name);
        end if;
    end loop;
end $$;

alter table facilities enable row level security;
alter table facilities force row level security;
create policy owner_all on facilities to current_user using (true) with check (true);
create policy own_facility on facilities to portal_app
    using (id = current_facility()) with check (id = current_facility());

-- Grants ----------------------------------------------------------------------------------------
revoke all on all tables in schema public from public;
grant usage on schema public to portal_app;
grant select on all tables in schema public to portal_app;
grant insert, update on
    checkpoints, dead_letters, doors, entry_keys, facilities, guests, lock_commands, outbox,
    payments, plans, refunds, spaces, staff, staff_roles, staff_sessions, stays, webhook_events
    to portal_app;
grant insert on consumed_effects, gate_audits, ledger_lines, transitions to portal_app;
grant delete on webhook_events, staff_sessions to portal_app;

-- Guard -----------------------------------------------------------------------------------------
-- A state changes only through a verb: the writer must have named this very row and target in a
-- transaction-local mark, which serves once, and the pair must stand in the transition table.
create function guard_state() returns trigger
language plpgsql
as $$
declare
    was text := case when tg_op = 'UPDATE' then old.state else '' end;
begin
    if tg_op = 'UPDATE' and new.state is not distinct from old.state then
        return new;
    end if;
    if not exists (
        select 1 from legal_transitions
        where table_name = tg_table_name and from_state = was and to_state = new.state
    ) then
        raise exception '%: % -> % is not a legal transition', tg_table_name, was, new.state
            using errcode = 'check_violation';
    end if;
    if tg_op = 'UPDATE' then
        if current_setting('app.move', true) is distinct from
           tg_table_name || ':' || new.id || ':' || new.state then
            raise exception '%: state changes through a verb only', tg_table_name
                using errcode = 'insufficient_privilege';
        end if;
        perform set_config('app.move', '', true);
    end if;
    return new;
end $$;

do $$
declare
    guarded text;
begin
    for guarded in select distinct table_name from legal_transitions loop
        execute format('create trigger guard_state before insert or update on %I'
                       ' for each row execute function guard_state()', guarded);
    end loop;
end $$;

-- Doors across facilities -----------------------------------------------------------------------
-- Work that starts before a facility is known: a link, an event, a claim. Each gives out no more
-- than the facility, the row and what the worker needs to begin.
create function staff_facilities(who uuid)
returns table (facility_id uuid, slug text, name_ja text, name_en text, role text)
language sql stable security definer set search_path = pg_catalog, public
as $$
    select f.id, f.slug, f.name_ja, f.name_en, r.role
    from staff_roles r join facilities f on f.id = r.facility_id
    where r.staff_id = who
    order by f.name_ja, f.id
$$;

create function stay_by_token(hash bytea)
returns table (facility_id uuid, stay_id uuid)
language sql stable security definer set search_path = pg_catalog, public
as $$ select facility_id, id from stays where token_hash = hash $$;

create function payment_by_intent(intent text, named uuid)
returns table (facility_id uuid, payment_id uuid)
language sql stable security definer set search_path = pg_catalog, public
as $$
    select facility_id, id from payments
    where intent_id = intent or id = named
    order by intent_id is not distinct from intent desc
    limit 1
$$;

create function key_by_code(code_id text, name text)
returns table (facility_id uuid, key_id uuid)
language sql stable security definer set search_path = pg_catalog, public
as $$
    select facility_id, id from entry_keys
    where provider_code_id = code_id or (code_name = name and provider_code_id is null)
$$;

create function facility_by_slug(wanted text)
returns uuid
language sql stable security definer set search_path = pg_catalog, public
as $$ select id from facilities where slug = wanted $$;

-- Claims: counted, leased in the database's own time, skipping what another worker holds. --------
-- An update returns its rows in no order, so the claimed ones are put in order once more.
create function claim_outbox(claim uuid, at_most int, lease interval)
returns table (id uuid, facility_id uuid)
language sql volatile security definer set search_path = pg_catalog, public
as $$
    with claimed as (
        update outbox o
        set claimed_at = now(), claim_token = claim, attempts = o.attempts + 1
        from (
            select d.id from outbox d
            where d.sent_at is null and d.suppressed_at is null and d.withdrawn_at is null
              and d.dropped_at is null and d.dead_at is null and d.unknown_at is null
              and d.next_attempt_at <= now() and d.not_before <= now()
              and (d.claimed_at is null or d.claimed_at < now() - lease)
            order by d.priority, d.next_attempt_at
            limit at_most
            for update skip locked
        ) due
        where o.id = due.id
        returning o.id, o.facility_id, o.priority, o.next_attempt_at
    )
    select c.id, c.facility_id from claimed c order by c.priority, c.next_attempt_at
$$;

create function claim_lock_commands(claim uuid, at_most int, lease interval)
returns table (id uuid, facility_id uuid)
language sql volatile security definer set search_path = pg_catalog, public
as $$
    update lock_commands c
    set claimed_at = now(), claim_token = claim, attempts = c.attempts + 1
    from (
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
    ) due
    where c.id = due.id
    returning c.id, c.facility_id
$$;

create function claim_refunds(claim uuid, at_most int, lease interval)
returns table (id uuid, facility_id uuid)
language sql volatile security definer set search_path = pg_catalog, public
as $$
    update refunds r
    set claimed_at = now(), claim_token = claim, attempts = r.attempts + 1
    from (
        select d.id from refunds d
        where d.state in ('asked', 'unknown', 'pending') and d.next_attempt_at <= now()
          and (d.claimed_at is null or d.claimed_at < now() - lease)
        order by d.next_attempt_at
        limit at_most
        for update skip locked
    ) due
    where r.id = due.id
    returning r.id, r.facility_id
$$;

create function payments_to_read(at_most int)
returns table (id uuid, facility_id uuid)
language sql volatile security definer set search_path = pg_catalog, public
as $$
    update payments p
    set next_read_at = now() + least(interval '2 minutes' * (p.reads + 1), interval '6 hours'),
        reads = p.reads + 1
    from (
        select d.id from payments d
        where d.next_read_at <= now()
        order by d.next_read_at
        limit at_most
        for update skip locked
    ) due
    where p.id = due.id
    returning p.id, p.facility_id
$$;

create function keys_to_poll(at_most int)
returns table (id uuid, facility_id uuid)
language sql volatile security definer set search_path = pg_catalog, public
as $$
    update entry_keys k
    set next_poll_at = now() + case
        when k.state in ('requested', 'revoking') then interval '15 seconds'
        else interval '15 minutes' end
    from (
        select d.id from entry_keys d
        where d.state in ('requested', 'issued', 'missing', 'revoking')
          and d.provider_code_id is not null and d.next_poll_at <= now()
        order by d.next_poll_at
        limit at_most
        for update skip locked
    ) due
    where k.id = due.id
    returning k.id, k.facility_id
$$;

create function work_waiting()
returns table (kind text, due bigint, dead bigint)
language sql stable security definer set search_path = pg_catalog, public
as $$
    select 'inbox', count(*) filter (where next_attempt_at <= now()), 0
    from webhook_events where state = 'processing'
    union all
    select 'outbox', count(*) filter (where dead_at is null and unknown_at is null),
           count(*) filter (where dead_at is not null or unknown_at is not null)
    from outbox
    where sent_at is null and suppressed_at is null and withdrawn_at is null and dropped_at is null
    union all
    select 'lock_commands', count(*) filter (where dead_at is null),
           count(*) filter (where dead_at is not null)
    from lock_commands where done_at is null
    union all
    select 'refunds', count(*), 0 from refunds where state in ('asked', 'unknown', 'pending')
    union all
    select 'unknown_payments', count(*), 0 from payments where state = 'unknown'
$$;

revoke all on all functions in schema public from public;
grant execute on all functions in schema public to portal_app;
