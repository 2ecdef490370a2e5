-- The day's close: the drawer counted, what belongs to it, and the seal that chains it to the last.

-- A line is named together with its house, so that nothing can point at another's.
alter table ledger_lines drop constraint pk_ledger_lines;
alter table ledger_lines add constraint pk_ledger_lines primary key (facility_id, id);

CREATE TABLE day_closes (
    id UUID DEFAULT gen_random_uuid() NOT NULL,
    facility_id UUID NOT NULL,
    no INTEGER NOT NULL,
    day DATE NOT NULL,
    closed_at TIMESTAMP WITH TIME ZONE NOT NULL,
    currency TEXT NOT NULL,
    opening BIGINT NOT NULL,
    cash_in BIGINT NOT NULL,
    cash_out BIGINT NOT NULL,
    card_in BIGINT NOT NULL,
    card_out BIGINT NOT NULL,
    counted BIGINT NOT NULL,
    taken BIGINT NOT NULL,
    left_open INTEGER NOT NULL,
    reason TEXT DEFAULT '' NOT NULL,
    lines INTEGER NOT NULL,
    lines_digest TEXT NOT NULL,
    seal TEXT NOT NULL,
    form_key UUID NOT NULL,
    actor_kind TEXT NOT NULL,
    actor_id UUID,
    actor_name TEXT NOT NULL,
    request_id TEXT DEFAULT '' NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT pk_day_closes PRIMARY KEY (id),
    CONSTRAINT uq_day_closes_facility_id_id UNIQUE (facility_id, id),
    CONSTRAINT uq_day_closes_facility_id_no UNIQUE (facility_id, no),
    CONSTRAINT uq_day_closes_facility_id_day UNIQUE (facility_id, day),
    CONSTRAINT uq_day_closes_facility_id_form_key UNIQUE (facility_id, form_key),
    CONSTRAINT ck_day_closes_amounts CHECK (no > 0 and opening >= 0 and cash_in >= 0 and cash_out >= 0 and card_in >= 0 and card_out >= 0 and counted >= 0 and taken between 0 and counted and lines >= 0 and left_open >= 0),
    CONSTRAINT ck_day_closes_reason CHECK (reason <> '' or (counted = opening + cash_in - cash_out and left_open = 0)),
    CONSTRAINT fk_day_closes_facility_id_facilities FOREIGN KEY(facility_id) REFERENCES facilities (id)
);

CREATE TABLE day_close_lines (
    facility_id UUID NOT NULL,
    line_id BIGINT NOT NULL,
    close_id UUID NOT NULL,
    CONSTRAINT pk_day_close_lines PRIMARY KEY (facility_id, line_id),
    CONSTRAINT fk_day_close_lines_facility_id_line_id_ledger_lines FOREIGN KEY(facility_id, line_id) REFERENCES ledger_lines (facility_id, id),
    CONSTRAINT fk_day_close_lines_facility_id_close_id_day_closes FOREIGN KEY(facility_id, close_id) REFERENCES day_closes (facility_id, id),
    CONSTRAINT fk_day_close_lines_facility_id_facilities FOREIGN KEY(facility_id) REFERENCES facilities (id)
);

CREATE INDEX ix_day_close_lines_close ON day_close_lines (facility_id, close_id, line_id);
CREATE INDEX ix_day_closes_listed ON day_closes (facility_id, created_at, id);

do $$
declare
    scoped text;
begin
    foreach scoped in array array['day_closes', 'day_close_lines']
    loop
        execute format('alter table %I enable row level security', scoped);
        execute format('alter table %I force row level security', scoped);
        execute format('create policy owner_all on %I to current_user using (true) with check (true)',
                       scoped);
        execute format('create policy own_facility on %I to portal_app'
                       ' using (facility_id = current_facility())'
                       ' with check (facility_id = current_facility())', scoped);
        execute format('revoke all on %I from public', scoped);
        -- What is sealed is neither changed nor taken away.
        execute format('grant select, insert on %I to portal_app', scoped);
    end loop;
end $$;
