-- What a provider or a lock holds otherwise than we do: found, shown to a person, healed.

CREATE TABLE divergences (
    id UUID DEFAULT gen_random_uuid() NOT NULL,
    facility_id UUID NOT NULL,
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    payment_id UUID,
    key_id UUID,
    door_id UUID,
    ours TEXT DEFAULT '' NOT NULL,
    theirs TEXT DEFAULT '' NOT NULL,
    first_seen TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    last_seen TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    healed_at TIMESTAMP WITH TIME ZONE,
    healed_by TEXT,
    let_be BOOLEAN DEFAULT false NOT NULL,
    CONSTRAINT pk_divergences PRIMARY KEY (id),
    CONSTRAINT fk_divergences_facility_id_payment_id_payments FOREIGN KEY(facility_id, payment_id) REFERENCES payments (facility_id, id),
    CONSTRAINT fk_divergences_facility_id_key_id_entry_keys FOREIGN KEY(facility_id, key_id) REFERENCES entry_keys (facility_id, id),
    CONSTRAINT fk_divergences_facility_id_door_id_doors FOREIGN KEY(facility_id, door_id) REFERENCES doors (facility_id, id),
    CONSTRAINT ck_divergences_kind CHECK (kind in ('payment_not_here', 'payment_not_there', 'payment_differs', 'refund_not_here', 'refund_not_there', 'refund_differs', 'code_stray', 'code_missing', 'code_differs')),
    CONSTRAINT ck_divergences_healed CHECK ((healed_at is null) = (healed_by is null)),
    CONSTRAINT ck_divergences_let_be CHECK (not let_be or healed_at is not null),
    CONSTRAINT fk_divergences_facility_id_facilities FOREIGN KEY(facility_id) REFERENCES facilities (id)
);

CREATE UNIQUE INDEX uq_divergences_open ON divergences (facility_id, kind, subject) WHERE healed_at is null;
CREATE INDEX ix_divergences_subject ON divergences (facility_id, kind, subject);

alter table divergences enable row level security;
alter table divergences force row level security;
create policy owner_all on divergences to current_user using (true) with check (true);
create policy own_facility on divergences to portal_app
    using (facility_id = current_facility()) with check (facility_id = current_facility());

revoke all on divergences from public;
grant select, insert, update on divergences to portal_app;

-- A job that looks into every facility has to know which there are; it learns no more than that.
create function all_facilities()
returns table (facility_id uuid)
language sql stable security definer set search_path = pg_catalog, public
as $$ select id from facilities order by id $$;

revoke all on function all_facilities() from public;
grant execute on function all_facilities() to portal_app;
