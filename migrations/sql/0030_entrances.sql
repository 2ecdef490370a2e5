-- Ways into a house. Houses that exist get none: a door without an entrance is as it was.
CREATE TABLE entrances (
    id UUID DEFAULT gen_random_uuid() NOT NULL,
    facility_id UUID NOT NULL,
    slug TEXT NOT NULL,
    public_name TEXT DEFAULT substr(replace(gen_random_uuid()::text, '-', ''), 1, 20) NOT NULL,
    name_ja TEXT NOT NULL,
    name_en TEXT NOT NULL,
    mode TEXT NOT NULL,
    opens TIME WITHOUT TIME ZONE,
    closes TIME WITHOUT TIME ZONE,
    capacity INTEGER,
    form_key UUID NOT NULL,
    version INTEGER DEFAULT 1 NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT pk_entrances PRIMARY KEY (id),
    CONSTRAINT uq_entrances_facility_id_id UNIQUE (facility_id, id),
    CONSTRAINT uq_entrances_facility_id_slug UNIQUE (facility_id, slug),
    CONSTRAINT uq_entrances_facility_id_form_key UNIQUE (facility_id, form_key),
    CONSTRAINT uq_entrances_public_name UNIQUE (public_name),
    CONSTRAINT ck_entrances_mode CHECK (mode in ('reservation_only', 'walk_in')),
    CONSTRAINT ck_entrances_hours CHECK ((opens is null) = (closes is null) and opens <> closes),
    CONSTRAINT ck_entrances_capacity CHECK (capacity > 0),
    CONSTRAINT fk_entrances_facility_id_facilities FOREIGN KEY(facility_id) REFERENCES facilities (id)
);

CREATE TABLE entrance_plans (
    facility_id UUID NOT NULL,
    entrance_id UUID NOT NULL,
    plan_id UUID NOT NULL,
    CONSTRAINT pk_entrance_plans PRIMARY KEY (entrance_id, plan_id),
    CONSTRAINT fk_entrance_plans_facility_id_entrance_id_entrances FOREIGN KEY(facility_id, entrance_id) REFERENCES entrances (facility_id, id),
    CONSTRAINT fk_entrance_plans_facility_id_plan_id_plans FOREIGN KEY(facility_id, plan_id) REFERENCES plans (facility_id, id),
    CONSTRAINT fk_entrance_plans_facility_id_facilities FOREIGN KEY(facility_id) REFERENCES facilities (id)
);

do $$
declare
    scoped text;
begin
    foreach scoped in array array['entrances', 'entrance_plans']
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

-- Its address, its code and its form are fixed.
grant update (name_ja, name_en, mode, opens, closes, capacity, version) on entrances to portal_app;
grant delete on entrance_plans to portal_app;
