-- The register that the law asks of lodging (Hotel Business Act, article 6).

alter table facilities add column register_required boolean not null default false;

create table guest_registers (
    id uuid default gen_random_uuid() not null,
    facility_id uuid not null,
    stay_id uuid not null,
    name_sealed text not null,
    address_sealed text not null,
    contact text not null,
    nationality_sealed text,
    passport_sealed text,
    occupation_sealed text,
    actor_kind text not null,
    actor_id uuid,
    actor_name text not null,
    filled_at timestamp with time zone not null,
    version integer default 1 not null,
    constraint pk_guest_registers primary key (id),
    constraint uq_guest_registers_facility_id_id unique (facility_id, id),
    constraint uq_guest_registers_facility_id_stay_id unique (facility_id, stay_id),
    constraint ck_guest_registers_abroad
        check ((nationality_sealed is null) = (passport_sealed is null)),
    constraint fk_guest_registers_facility_id_facilities foreign key (facility_id)
        references facilities (id),
    constraint fk_guest_registers_facility_id_stay_id_stays foreign key (facility_id, stay_id)
        references stays (facility_id, id)
);

create index ix_guest_registers_filled on guest_registers (filled_at);

-- Who read what is sealed, and why. It outlives what was read.
create table register_readings (
    id bigint generated always as identity,
    facility_id uuid not null,
    kind text not null,
    stay_id uuid,
    first_day date,
    last_day date,
    rows_read integer not null,
    reason text not null,
    actor_kind text not null,
    actor_id uuid,
    actor_name text not null,
    request_id text default '' not null,
    at timestamp with time zone not null,
    constraint pk_register_readings primary key (id),
    constraint ck_register_readings_kind check (kind in ('opened', 'exported')),
    constraint ck_register_readings_reason check (reason <> ''),
    constraint ck_register_readings_what check (
        case when kind = 'opened' then stay_id is not null
        else num_nonnulls(first_day, last_day) = 2 end),
    constraint fk_register_readings_facility_id_facilities foreign key (facility_id)
        references facilities (id),
    constraint fk_register_readings_facility_id_stay_id_stays foreign key (facility_id, stay_id)
        references stays (facility_id, id)
);

create index ix_register_readings_at on register_readings (facility_id, at, id);

do $$
declare
    scoped text;
begin
    foreach scoped in array array['guest_registers', 'register_readings']
    loop
        execute format('alter table %I enable row level security', scoped);
        execute format('alter table %I force row level security', scoped);
        execute format('create policy owner_all on %I to current_user using (true) with check (true)',
                       scoped);
        execute format('create policy own_facility on %I to portal_app'
                       ' using (facility_id = current_facility())'
                       ' with check (facility_id = current_facility())', scoped);
        execute format('revoke all on %I from public', scoped);
        execute format('grant select, insert on %I to portal_app', scoped);
    end loop;
end $$;

grant update (name_sealed, address_sealed, contact, nationality_sealed, passport_sealed,
    occupation_sealed, actor_kind, actor_id, actor_name, filled_at, version)
    on guest_registers to portal_app;

-- Three years after a guest has left, a row at a time and a bounded number of them: the only way in
-- which the portal takes any away.
create function purge_registers(at_most int)
returns bigint
language sql volatile security definer set search_path = pg_catalog, public
as $$
    with old as materialized (
        select r.id from guest_registers r
        join stays s on s.facility_id = r.facility_id and s.id = r.stay_id
        -- It is filled in before the guest leaves.
        where r.filled_at < now() - interval '3 years'
          and coalesce(s.departed_at, s.ends_at) < now() - interval '3 years'
        order by r.id
        limit at_most
        for update of r skip locked
    ), gone as (
        delete from guest_registers r using old where r.id = old.id returning 1
    )
    select count(*) from gone
$$;

revoke all on function purge_registers(int) from public;
grant execute on function purge_registers(int) to portal_app;
