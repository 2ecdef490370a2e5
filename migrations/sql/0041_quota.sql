-- Visits of a membership in a calendar month: what is left, and the lines that say how it came so.

CREATE TABLE quota_months (
    id UUID DEFAULT gen_random_uuid() NOT NULL,
    facility_id UUID NOT NULL,
    membership_id UUID NOT NULL,
    month DATE NOT NULL,
    granted INTEGER NOT NULL,
    used INTEGER DEFAULT 0 NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT pk_quota_months PRIMARY KEY (id),
    CONSTRAINT uq_quota_months_facility_id_id UNIQUE (facility_id, id),
    CONSTRAINT uq_quota_months_facility_id_membership_id_month UNIQUE (facility_id, membership_id, month),
    CONSTRAINT fk_quota_months_facility_id_membership_id_memberships FOREIGN KEY(facility_id, membership_id) REFERENCES memberships (facility_id, id),
    CONSTRAINT ck_quota_months_used CHECK (used between 0 and granted),
    CONSTRAINT ck_quota_months_month CHECK (extract(day from month) = 1),
    CONSTRAINT fk_quota_months_facility_id_facilities FOREIGN KEY(facility_id) REFERENCES facilities (id)
);

CREATE TABLE quota_lines (
    id BIGINT GENERATED ALWAYS AS IDENTITY,
    facility_id UUID NOT NULL,
    month_id UUID NOT NULL,
    kind TEXT NOT NULL,
    amount INTEGER NOT NULL,
    stay_id UUID,
    actor_kind TEXT NOT NULL,
    actor_id UUID,
    actor_name TEXT NOT NULL,
    request_id TEXT DEFAULT '' NOT NULL,
    at TIMESTAMP WITH TIME ZONE NOT NULL,
    written_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT pk_quota_lines PRIMARY KEY (id),
    CONSTRAINT fk_quota_lines_facility_id_month_id_quota_months FOREIGN KEY(facility_id, month_id) REFERENCES quota_months (facility_id, id),
    CONSTRAINT fk_quota_lines_facility_id_stay_id_stays FOREIGN KEY(facility_id, stay_id) REFERENCES stays (facility_id, id),
    CONSTRAINT ck_quota_lines_kind CHECK (kind in ('granted', 'taken', 'returned', 'moved_here', 'moved_away')),
    CONSTRAINT ck_quota_lines_amount CHECK (case when kind = 'granted' then amount <> 0 when kind in ('taken', 'moved_here') then amount = -1 else amount = 1 end),
    CONSTRAINT ck_quota_lines_stay CHECK ((kind = 'granted') = (stay_id is null)),
    CONSTRAINT fk_quota_lines_facility_id_facilities FOREIGN KEY(facility_id) REFERENCES facilities (id)
);

CREATE INDEX ix_quota_lines_month ON quota_lines (facility_id, month_id, id);
CREATE INDEX ix_quota_lines_stay ON quota_lines (facility_id, stay_id) WHERE stay_id is not null;

do $$
declare
    scoped text;
begin
    foreach scoped in array array['quota_months', 'quota_lines']
    loop
        execute format('alter table %I enable row level security', scoped);
        execute format('alter table %I force row level security', scoped);
        execute format('create policy owner_all on %I to current_user using (true) with check (true)',
                       scoped);
        execute format('create policy own_facility on %I to portal_app'
                       ' using (facility_id = current_facility())'
                       ' with check (facility_id = current_facility())', scoped);
        execute format('revoke all on %I from public', scoped);
    end loop;
end $$;

grant select, insert on quota_months, quota_lines to portal_app;
-- Whose month it is never changes, and a line not at all.
grant update (granted, used) on quota_months to portal_app;
