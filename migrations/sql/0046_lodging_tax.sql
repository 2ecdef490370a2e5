-- Lodging tax is a city's or a prefecture's, so each house has its own table. One that is replaced
-- stays as it was: what was booked by it can be explained.
create table lodging_tax_tables (
    id uuid default gen_random_uuid() not null,
    facility_id uuid not null,
    valid_from date not null,
    form_key uuid not null,
    actor_kind text not null,
    actor_id uuid,
    actor_name text not null,
    request_id text default '' not null,
    made_at timestamp with time zone default now() not null,
    no bigint generated always as identity,
    constraint pk_lodging_tax_tables primary key (id),
    constraint uq_lodging_tax_tables_facility_id_id unique (facility_id, id),
    constraint uq_lodging_tax_tables_facility_id_form_key unique (facility_id, form_key),
    constraint fk_lodging_tax_tables_facility_id_facilities foreign key (facility_id)
        references facilities (id)
);

create index ix_lodging_tax_tables_valid on lodging_tax_tables (facility_id, valid_from, no);

create table lodging_tax_bands (
    facility_id uuid not null,
    table_id uuid not null,
    min_price integer not null,
    max_price integer,
    amount integer not null,
    constraint pk_lodging_tax_bands primary key (facility_id, table_id, min_price),
    constraint ck_lodging_tax_bands_prices check (0 <= min_price and min_price <= max_price),
    constraint ck_lodging_tax_bands_amount check (amount >= 0),
    constraint fk_lodging_tax_bands_facility_id_facilities foreign key (facility_id)
        references facilities (id),
    constraint fk_lodging_tax_bands_facility_id_table_id_lodging_tax_tables
        foreign key (facility_id, table_id) references lodging_tax_tables (facility_id, id)
);

do $$
declare
    scoped text;
begin
    foreach scoped in array array['lodging_tax_tables', 'lodging_tax_bands']
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
