-- Cancellation policies: what is agreed to when a stay is booked, and what a cancellation then costs.

CREATE TABLE cancellation_policies (
    id UUID DEFAULT gen_random_uuid() NOT NULL,
    facility_id UUID NOT NULL,
    form_key UUID NOT NULL,
    version INTEGER DEFAULT 1 NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT pk_cancellation_policies PRIMARY KEY (id),
    CONSTRAINT uq_cancellation_policies_facility_id_id UNIQUE (facility_id, id),
    CONSTRAINT uq_cancellation_policies_facility_id_form_key UNIQUE (facility_id, form_key),
    CONSTRAINT fk_cancellation_policies_facility_id_facilities FOREIGN KEY(facility_id) REFERENCES facilities (id)
);

CREATE TABLE cancellation_terms (
    id UUID DEFAULT gen_random_uuid() NOT NULL,
    facility_id UUID NOT NULL,
    policy_id UUID NOT NULL,
    version INTEGER NOT NULL,
    name_ja TEXT NOT NULL,
    name_en TEXT NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT pk_cancellation_terms PRIMARY KEY (id),
    CONSTRAINT uq_cancellation_terms_facility_id_id UNIQUE (facility_id, id),
    CONSTRAINT uq_cancellation_terms_facility_id_policy_id_version UNIQUE (facility_id, policy_id, version),
    CONSTRAINT fk_cancellation_terms_facility_id_policy_id_cancellatio_d1fb FOREIGN KEY(facility_id, policy_id) REFERENCES cancellation_policies (facility_id, id),
    CONSTRAINT fk_cancellation_terms_facility_id_facilities FOREIGN KEY(facility_id) REFERENCES facilities (id)
);

CREATE TABLE cancellation_steps (
    id BIGINT GENERATED ALWAYS AS IDENTITY,
    facility_id UUID NOT NULL,
    terms_id UUID NOT NULL,
    hours_before INTEGER NOT NULL,
    fee_percent INTEGER NOT NULL,
    returns_quota BOOLEAN NOT NULL,
    CONSTRAINT pk_cancellation_steps PRIMARY KEY (id),
    CONSTRAINT uq_cancellation_steps_facility_id_terms_id_hours_before UNIQUE (facility_id, terms_id, hours_before),
    CONSTRAINT fk_cancellation_steps_facility_id_terms_id_cancellation_terms FOREIGN KEY(facility_id, terms_id) REFERENCES cancellation_terms (facility_id, id),
    CONSTRAINT ck_cancellation_steps_hours CHECK (hours_before between 0 and 8760),
    CONSTRAINT ck_cancellation_steps_fee CHECK (fee_percent between 0 and 100),
    CONSTRAINT fk_cancellation_steps_facility_id_facilities FOREIGN KEY(facility_id) REFERENCES facilities (id)
);

do $$
declare
    scoped text;
begin
    foreach scoped in array
        array['cancellation_policies', 'cancellation_terms', 'cancellation_steps']
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

grant select, insert, update on cancellation_policies to portal_app;
-- What somebody has agreed to is never written anew.
grant select, insert on cancellation_terms, cancellation_steps to portal_app;
