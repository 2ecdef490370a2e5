-- The tables of the backbone. Frozen with its release: later changes are later migrations.

CREATE TABLE checkpoints (
    name TEXT NOT NULL,
    reached TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_checkpoints PRIMARY KEY (name)
);


CREATE TABLE dead_letters (
    id UUID DEFAULT gen_random_uuid() NOT NULL,
    facility_id UUID,
    source_kind TEXT NOT NULL,
    source_id UUID NOT NULL,
    title TEXT NOT NULL,
    error TEXT NOT NULL,
    at TIMESTAMP WITH TIME ZONE NOT NULL,
    closed_at TIMESTAMP WITH TIME ZONE,
    closed_by TEXT,
    closed_how TEXT,
    CONSTRAINT pk_dead_letters PRIMARY KEY (id),
    CONSTRAINT uq_dead_letters_source_kind_source_id_at UNIQUE (source_kind, source_id, at)
);


CREATE TABLE facilities (
    id UUID DEFAULT gen_random_uuid() NOT NULL,
    slug TEXT NOT NULL,
    name_ja TEXT NOT NULL,
    name_en TEXT NOT NULL,
    kind TEXT NOT NULL,
    time_zone TEXT NOT NULL,
    default_locale TEXT DEFAULT 'ja' NOT NULL,
    currency TEXT DEFAULT 'JPY' NOT NULL,
    phone TEXT,
    email TEXT,
    address_ja TEXT DEFAULT '' NOT NULL,
    address_en TEXT DEFAULT '' NOT NULL,
    check_in_from TIME WITHOUT TIME ZONE DEFAULT '15:00' NOT NULL,
    check_out_by TIME WITHOUT TIME ZONE DEFAULT '10:00' NOT NULL,
    early_minutes INTEGER DEFAULT 0 NOT NULL,
    key_lead_minutes INTEGER DEFAULT 0 NOT NULL,
    key_lag_minutes INTEGER DEFAULT 0 NOT NULL,
    key_alarm_minutes INTEGER DEFAULT 15 NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT pk_facilities PRIMARY KEY (id),
    CONSTRAINT ck_facilities_locale CHECK (default_locale in ('ja', 'en')),
    CONSTRAINT ck_facilities_currency CHECK (currency ~ '^[A-Z]{3}$'),
    CONSTRAINT ck_facilities_minutes CHECK (early_minutes >= 0 and key_lead_minutes >= 0 and key_lag_minutes >= 0 and key_alarm_minutes >= 0),
    CONSTRAINT uq_facilities_slug UNIQUE (slug)
);


CREATE TABLE legal_transitions (
    table_name TEXT NOT NULL,
    machine TEXT NOT NULL,
    from_state TEXT NOT NULL,
    event TEXT NOT NULL,
    to_state TEXT NOT NULL,
    CONSTRAINT pk_legal_transitions PRIMARY KEY (table_name, from_state, event)
);


CREATE TABLE staff (
    id UUID DEFAULT gen_random_uuid() NOT NULL,
    email TEXT NOT NULL,
    name TEXT NOT NULL,
    password_hash TEXT NOT NULL,
    locale TEXT DEFAULT 'ja' NOT NULL,
    active BOOLEAN DEFAULT true NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT pk_staff PRIMARY KEY (id),
    CONSTRAINT ck_staff_locale CHECK (locale in ('ja', 'en'))
);

CREATE UNIQUE INDEX uq_staff_email ON staff (lower(email));

CREATE TABLE transitions (
    id BIGINT GENERATED ALWAYS AS IDENTITY,
    facility_id UUID,
    machine TEXT NOT NULL,
    subject_id UUID NOT NULL,
    verb TEXT NOT NULL,
    event TEXT NOT NULL,
    from_state TEXT,
    to_state TEXT NOT NULL,
    reason TEXT,
    actor_kind TEXT NOT NULL,
    actor_id UUID,
    actor_name TEXT NOT NULL,
    request_id TEXT NOT NULL,
    at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_transitions PRIMARY KEY (id)
);

CREATE INDEX ix_transitions_at ON transitions (facility_id, at);
CREATE INDEX ix_transitions_subject ON transitions (machine, subject_id, at);

CREATE TABLE webhook_events (
    id UUID DEFAULT gen_random_uuid() NOT NULL,
    source TEXT NOT NULL,
    event_id TEXT NOT NULL,
    type TEXT NOT NULL,
    state TEXT NOT NULL,
    version INTEGER DEFAULT 1 NOT NULL,
    created TIMESTAMP WITH TIME ZONE NOT NULL,
    livemode BOOLEAN,
    account TEXT,
    api_version TEXT,
    payload BYTEA NOT NULL,
    headers JSONB NOT NULL,
    received_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    claimed_at TIMESTAMP WITH TIME ZONE,
    claim_token UUID,
    attempts INTEGER DEFAULT 0 NOT NULL,
    next_attempt_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    last_error TEXT,
    outcome TEXT,
    detail TEXT,
    completed_at TIMESTAMP WITH TIME ZONE,
    request_id TEXT NOT NULL,
    CONSTRAINT pk_webhook_events PRIMARY KEY (id),
    CONSTRAINT uq_webhook_events_source_event_id UNIQUE (source, event_id),
    CONSTRAINT ck_webhook_events_source CHECK (source in ('stripe', 'seam')),
    CONSTRAINT ck_webhook_events_state CHECK (state in ('processing', 'completed')),
    CONSTRAINT ck_webhook_events_completed_at CHECK ((state = 'completed') = (completed_at is not null)),
    CONSTRAINT ck_webhook_events_outcome CHECK ((state = 'completed') = (outcome is not null))
);

CREATE INDEX ix_webhook_events_completed ON webhook_events (completed_at);
CREATE INDEX ix_webhook_events_due ON webhook_events (next_attempt_at) WHERE state = 'processing';
CREATE INDEX ix_webhook_events_request ON webhook_events (request_id);

CREATE TABLE consumed_effects (
    facility_id UUID NOT NULL,
    consumer_key TEXT NOT NULL,
    at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT pk_consumed_effects PRIMARY KEY (facility_id, consumer_key),
    CONSTRAINT fk_consumed_effects_facility_id_facilities FOREIGN KEY(facility_id) REFERENCES facilities (id)
);


CREATE TABLE doors (
    id UUID DEFAULT gen_random_uuid() NOT NULL,
    facility_id UUID NOT NULL,
    no BIGINT GENERATED ALWAYS AS IDENTITY,
    name_ja TEXT NOT NULL,
    name_en TEXT NOT NULL,
    device_id TEXT NOT NULL,
    online BOOLEAN,
    battery SMALLINT,
    asked_at TIMESTAMP WITH TIME ZONE,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT pk_doors PRIMARY KEY (id),
    CONSTRAINT uq_doors_facility_id_id UNIQUE (facility_id, id),
    CONSTRAINT uq_doors_facility_id_device_id UNIQUE (facility_id, device_id),
    CONSTRAINT fk_doors_facility_id_facilities FOREIGN KEY(facility_id) REFERENCES facilities (id),
    CONSTRAINT uq_doors_no UNIQUE (no)
);


CREATE TABLE gate_audits (
    id BIGINT GENERATED ALWAYS AS IDENTITY,
    facility_id UUID NOT NULL,
    stay_id UUID,
    code TEXT NOT NULL,
    rule TEXT NOT NULL,
    digest TEXT NOT NULL,
    actor_kind TEXT NOT NULL,
    actor_id UUID,
    actor_name TEXT NOT NULL,
    request_id TEXT NOT NULL,
    at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_gate_audits PRIMARY KEY (id),
    CONSTRAINT fk_gate_audits_facility_id_facilities FOREIGN KEY(facility_id) REFERENCES facilities (id)
);

CREATE INDEX ix_gate_audits_at ON gate_audits (facility_id, at);
CREATE INDEX ix_gate_audits_stay ON gate_audits (facility_id, stay_id);

CREATE TABLE guests (
    id UUID DEFAULT gen_random_uuid() NOT NULL,
    facility_id UUID NOT NULL,
    name TEXT NOT NULL,
    kana TEXT DEFAULT '' NOT NULL,
    search_key TEXT NOT NULL,
    email TEXT,
    phone TEXT,
    phone_digits TEXT DEFAULT '' NOT NULL,
    line_user_id TEXT,
    preferred_locale TEXT,
    version INTEGER DEFAULT 1 NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT pk_guests PRIMARY KEY (id),
    CONSTRAINT uq_guests_facility_id_id UNIQUE (facility_id, id),
    CONSTRAINT ck_guests_locale CHECK (preferred_locale in ('ja', 'en')),
    CONSTRAINT fk_guests_facility_id_facilities FOREIGN KEY(facility_id) REFERENCES facilities (id)
);

CREATE INDEX ix_guests_phone ON guests (facility_id, phone_digits);

CREATE TABLE plans (
    id UUID DEFAULT gen_random_uuid() NOT NULL,
    facility_id UUID NOT NULL,
    code TEXT NOT NULL,
    name_ja TEXT NOT NULL,
    name_en TEXT NOT NULL,
    kind TEXT NOT NULL,
    unit TEXT NOT NULL,
    unit_price INTEGER NOT NULL,
    deposit INTEGER DEFAULT 0 NOT NULL,
    active BOOLEAN DEFAULT true NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT pk_plans PRIMARY KEY (id),
    CONSTRAINT uq_plans_facility_id_id UNIQUE (facility_id, id),
    CONSTRAINT uq_plans_facility_id_code UNIQUE (facility_id, code),
    CONSTRAINT ck_plans_unit CHECK (unit in ('night', 'hour', 'visit')),
    CONSTRAINT ck_plans_kind CHECK (kind in ('lodging', 'day_use')),
    CONSTRAINT ck_plans_amounts CHECK (unit_price >= 0 and deposit >= 0),
    CONSTRAINT fk_plans_facility_id_facilities FOREIGN KEY(facility_id) REFERENCES facilities (id)
);


CREATE TABLE staff_roles (
    staff_id UUID NOT NULL,
    facility_id UUID NOT NULL,
    role TEXT NOT NULL,
    CONSTRAINT pk_staff_roles PRIMARY KEY (staff_id, facility_id),
    CONSTRAINT ck_staff_roles_role CHECK (role in ('front_desk', 'manager', 'owner')),
    CONSTRAINT fk_staff_roles_staff_id_staff FOREIGN KEY(staff_id) REFERENCES staff (id),
    CONSTRAINT fk_staff_roles_facility_id_facilities FOREIGN KEY(facility_id) REFERENCES facilities (id)
);


CREATE TABLE staff_sessions (
    token_hash BYTEA NOT NULL,
    staff_id UUID NOT NULL,
    chosen_facility UUID,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    expires_at TIMESTAMP WITH TIME ZONE NOT NULL,
    ended_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT pk_staff_sessions PRIMARY KEY (token_hash),
    CONSTRAINT fk_staff_sessions_staff_id_staff FOREIGN KEY(staff_id) REFERENCES staff (id)
);


CREATE TABLE spaces (
    id UUID DEFAULT gen_random_uuid() NOT NULL,
    facility_id UUID NOT NULL,
    no BIGINT GENERATED ALWAYS AS IDENTITY,
    code TEXT NOT NULL,
    name_ja TEXT NOT NULL,
    name_en TEXT NOT NULL,
    door_id UUID NOT NULL,
    active BOOLEAN DEFAULT true NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT pk_spaces PRIMARY KEY (id),
    CONSTRAINT uq_spaces_facility_id_id UNIQUE (facility_id, id),
    CONSTRAINT uq_spaces_facility_id_code UNIQUE (facility_id, code),
    CONSTRAINT uq_spaces_no_id UNIQUE (no, id),
    CONSTRAINT fk_spaces_facility_id_door_id_doors FOREIGN KEY(facility_id, door_id) REFERENCES doors (facility_id, id),
    CONSTRAINT fk_spaces_facility_id_facilities FOREIGN KEY(facility_id) REFERENCES facilities (id)
);


CREATE TABLE stays (
    id UUID DEFAULT gen_random_uuid() NOT NULL,
    facility_id UUID NOT NULL,
    code TEXT NOT NULL,
    guest_id UUID NOT NULL,
    space_id UUID NOT NULL,
    space_no BIGINT NOT NULL,
    plan_id UUID,
    source TEXT NOT NULL,
    state TEXT NOT NULL,
    version INTEGER DEFAULT 1 NOT NULL,
    starts_at TIMESTAMP WITH TIME ZONE NOT NULL,
    ends_at TIMESTAMP WITH TIME ZONE NOT NULL,
    period TSTZRANGE GENERATED ALWAYS AS (tstzrange(starts_at, ends_at, '[)')) STORED NOT NULL,
    currency TEXT NOT NULL,
    deposit_due INTEGER DEFAULT 0 NOT NULL,
    note TEXT DEFAULT '' NOT NULL,
    token_hash BYTEA NOT NULL,
    token_sealed TEXT NOT NULL,
    form_key UUID NOT NULL,
    admitted_at TIMESTAMP WITH TIME ZONE,
    departed_at TIMESTAMP WITH TIME ZONE,
    cancelled_at TIMESTAMP WITH TIME ZONE,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT pk_stays PRIMARY KEY (id),
    CONSTRAINT uq_stays_facility_id_id UNIQUE (facility_id, id),
    CONSTRAINT uq_stays_facility_id_code UNIQUE (facility_id, code),
    CONSTRAINT uq_stays_facility_id_form_key UNIQUE (facility_id, form_key),
    CONSTRAINT fk_stays_facility_id_guest_id_guests FOREIGN KEY(facility_id, guest_id) REFERENCES guests (facility_id, id),
    CONSTRAINT fk_stays_facility_id_space_id_spaces FOREIGN KEY(facility_id, space_id) REFERENCES spaces (facility_id, id),
    CONSTRAINT fk_stays_facility_id_plan_id_plans FOREIGN KEY(facility_id, plan_id) REFERENCES plans (facility_id, id),
    CONSTRAINT fk_stays_space_no_space_id_spaces FOREIGN KEY(space_no, space_id) REFERENCES spaces (no, id),
    CONSTRAINT ck_stays_state CHECK (state in ('reserved', 'admitted', 'no_show', 'cancelled', 'departed')),
    CONSTRAINT ck_stays_source CHECK (source in ('desk', 'web', 'walk_in')),
    CONSTRAINT ck_stays_times CHECK (ends_at > starts_at),
    CONSTRAINT ck_stays_deposit CHECK (deposit_due >= 0),
    CONSTRAINT ck_stays_admitted_at CHECK ((state in ('admitted', 'departed')) = (admitted_at is not null)),
    CONSTRAINT ck_stays_departed_at CHECK ((state = 'departed') = (departed_at is not null)),
    CONSTRAINT ck_stays_cancelled_at CHECK ((state = 'cancelled') = (cancelled_at is not null)),
    CONSTRAINT ex_stays_space_period EXCLUDE USING gist (int8range(space_no, space_no, '[]') WITH &&, period WITH &&) WHERE (state in ('reserved', 'admitted')),
    CONSTRAINT fk_stays_facility_id_facilities FOREIGN KEY(facility_id) REFERENCES facilities (id),
    CONSTRAINT uq_stays_token_hash UNIQUE (token_hash)
);

CREATE INDEX ix_stays_arrivals ON stays (facility_id, starts_at, id);
CREATE INDEX ix_stays_departures ON stays (facility_id, ends_at);
CREATE INDEX ix_stays_guest ON stays (facility_id, guest_id);
CREATE INDEX ix_stays_live ON stays (facility_id, starts_at) WHERE state in ('reserved', 'admitted');
CREATE INDEX ix_stays_space ON stays (facility_id, space_id);

CREATE TABLE entry_keys (
    id UUID DEFAULT gen_random_uuid() NOT NULL,
    facility_id UUID NOT NULL,
    stay_id UUID NOT NULL,
    space_id UUID NOT NULL,
    door_id UUID NOT NULL,
    door_no BIGINT NOT NULL,
    state TEXT NOT NULL,
    version INTEGER DEFAULT 1 NOT NULL,
    pin_sealed TEXT NOT NULL,
    pin_mark BIGINT NOT NULL,
    starts_at TIMESTAMP WITH TIME ZONE NOT NULL,
    ends_at TIMESTAMP WITH TIME ZONE NOT NULL,
    on_lock TSTZRANGE GENERATED ALWAYS AS (tstzrange(starts_at, ends_at, '[)')) STORED NOT NULL,
    code_name TEXT NOT NULL,
    provider_code_id TEXT,
    observed TEXT,
    observed_at TIMESTAMP WITH TIME ZONE,
    next_poll_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    failure TEXT,
    issued_at TIMESTAMP WITH TIME ZONE,
    revoked_at TIMESTAMP WITH TIME ZONE,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT pk_entry_keys PRIMARY KEY (id),
    CONSTRAINT uq_entry_keys_facility_id_id UNIQUE (facility_id, id),
    CONSTRAINT fk_entry_keys_facility_id_stay_id_stays FOREIGN KEY(facility_id, stay_id) REFERENCES stays (facility_id, id),
    CONSTRAINT fk_entry_keys_facility_id_door_id_doors FOREIGN KEY(facility_id, door_id) REFERENCES doors (facility_id, id),
    CONSTRAINT fk_entry_keys_facility_id_space_id_spaces FOREIGN KEY(facility_id, space_id) REFERENCES spaces (facility_id, id),
    CONSTRAINT ck_entry_keys_state CHECK (state in ('requested', 'issued', 'missing', 'revoking', 'revoked', 'failed')),
    CONSTRAINT ck_entry_keys_times CHECK (ends_at > starts_at),
    CONSTRAINT ck_entry_keys_issued_at CHECK (state not in ('issued', 'missing') or issued_at is not null),
    CONSTRAINT ck_entry_keys_revoked_at CHECK ((state = 'revoked') = (revoked_at is not null)),
    CONSTRAINT ex_entry_keys_code EXCLUDE USING gist (int8range(door_no, door_no, '[]') WITH &&, int8range(pin_mark, pin_mark, '[]') WITH &&, on_lock WITH &&) WHERE (state not in ('revoked', 'failed')),
    CONSTRAINT fk_entry_keys_facility_id_facilities FOREIGN KEY(facility_id) REFERENCES facilities (id),
    CONSTRAINT uq_entry_keys_code_name UNIQUE (code_name),
    CONSTRAINT uq_entry_keys_provider_code_id UNIQUE (provider_code_id)
);

CREATE INDEX ix_entry_keys_space ON entry_keys (facility_id, space_id) WHERE state not in ('revoked', 'failed');
CREATE INDEX ix_entry_keys_stay ON entry_keys (facility_id, stay_id);
CREATE INDEX ix_entry_keys_to_poll ON entry_keys (next_poll_at) WHERE state in ('requested', 'issued', 'missing', 'revoking');
CREATE UNIQUE INDEX uq_entry_keys_one_live ON entry_keys (stay_id, door_id) WHERE state in ('requested', 'issued', 'missing');

CREATE TABLE outbox (
    id UUID DEFAULT gen_random_uuid() NOT NULL,
    facility_id UUID NOT NULL,
    stay_id UUID,
    dedupe_key TEXT NOT NULL,
    consumer_key TEXT NOT NULL,
    event_type TEXT NOT NULL,
    channel TEXT NOT NULL,
    recipient TEXT NOT NULL,
    locale TEXT NOT NULL,
    payload JSONB NOT NULL,
    priority SMALLINT NOT NULL,
    not_before TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    claimed_at TIMESTAMP WITH TIME ZONE,
    claim_token UUID,
    sending_at TIMESTAMP WITH TIME ZONE,
    sent_at TIMESTAMP WITH TIME ZONE,
    suppressed_at TIMESTAMP WITH TIME ZONE,
    withdrawn_at TIMESTAMP WITH TIME ZONE,
    dropped_at TIMESTAMP WITH TIME ZONE,
    unknown_at TIMESTAMP WITH TIME ZONE,
    dead_at TIMESTAMP WITH TIME ZONE,
    attempts INTEGER DEFAULT 0 NOT NULL,
    next_attempt_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    last_error TEXT,
    request_id TEXT DEFAULT '' NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT pk_outbox PRIMARY KEY (id),
    CONSTRAINT uq_outbox_facility_id_id UNIQUE (facility_id, id),
    CONSTRAINT uq_outbox_facility_id_dedupe_key UNIQUE (facility_id, dedupe_key),
    CONSTRAINT fk_outbox_facility_id_stay_id_stays FOREIGN KEY(facility_id, stay_id) REFERENCES stays (facility_id, id),
    CONSTRAINT ck_outbox_channel CHECK (channel in ('email', 'line')),
    CONSTRAINT ck_outbox_locale CHECK (locale in ('ja', 'en')),
    CONSTRAINT ck_outbox_one_end CHECK (num_nonnulls(sent_at, suppressed_at, withdrawn_at, dropped_at) <= 1),
    CONSTRAINT fk_outbox_facility_id_facilities FOREIGN KEY(facility_id) REFERENCES facilities (id)
);

CREATE INDEX ix_outbox_due ON outbox (priority, next_attempt_at) WHERE sent_at is null and suppressed_at is null and withdrawn_at is null and dropped_at is null and dead_at is null and unknown_at is null;
CREATE INDEX ix_outbox_stay ON outbox (facility_id, stay_id);

CREATE TABLE payments (
    id UUID DEFAULT gen_random_uuid() NOT NULL,
    facility_id UUID NOT NULL,
    purpose TEXT NOT NULL,
    subject_id UUID NOT NULL,
    stay_id UUID,
    attempt INTEGER NOT NULL,
    amount BIGINT NOT NULL,
    currency TEXT NOT NULL,
    state TEXT NOT NULL,
    version INTEGER DEFAULT 1 NOT NULL,
    idempotency_key TEXT NOT NULL,
    intent_id TEXT,
    client_secret_sealed TEXT,
    livemode BOOLEAN,
    decline_code TEXT,
    last_error TEXT,
    reads INTEGER DEFAULT 0 NOT NULL,
    next_read_at TIMESTAMP WITH TIME ZONE,
    succeeded_at TIMESTAMP WITH TIME ZONE,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT pk_payments PRIMARY KEY (id),
    CONSTRAINT uq_payments_facility_id_id UNIQUE (facility_id, id),
    CONSTRAINT uq_payments_purpose_subject_id_attempt UNIQUE (purpose, subject_id, attempt),
    CONSTRAINT fk_payments_facility_id_stay_id_stays FOREIGN KEY(facility_id, stay_id) REFERENCES stays (facility_id, id),
    CONSTRAINT ck_payments_state CHECK (state in ('open', 'processing', 'unknown', 'succeeded', 'refund_owed', 'canceled', 'refunded')),
    CONSTRAINT ck_payments_purpose CHECK (purpose in ('walk_in', 'reservation_deposit', 'reservation_balance', 'membership_initial', 'membership_renewal', 'order', 'credit')),
    CONSTRAINT ck_payments_amount CHECK (amount > 0 and attempt > 0),
    CONSTRAINT ck_payments_succeeded_at CHECK ((state in ('succeeded', 'refund_owed', 'refunded')) = (succeeded_at is not null)),
    CONSTRAINT fk_payments_facility_id_facilities FOREIGN KEY(facility_id) REFERENCES facilities (id),
    CONSTRAINT uq_payments_idempotency_key UNIQUE (idempotency_key),
    CONSTRAINT uq_payments_intent_id UNIQUE (intent_id)
);

CREATE INDEX ix_payments_listed ON payments (facility_id, created_at, id);
CREATE INDEX ix_payments_stay ON payments (facility_id, stay_id);
CREATE INDEX ix_payments_to_read ON payments (next_read_at) WHERE next_read_at is not null;
CREATE UNIQUE INDEX uq_payments_one_attempt_open ON payments (purpose, subject_id) WHERE state in ('open', 'processing', 'unknown');

CREATE TABLE lock_commands (
    id UUID DEFAULT gen_random_uuid() NOT NULL,
    no BIGINT GENERATED ALWAYS AS IDENTITY,
    facility_id UUID NOT NULL,
    key_id UUID NOT NULL,
    kind TEXT NOT NULL,
    idempotency_key TEXT NOT NULL,
    claimed_at TIMESTAMP WITH TIME ZONE,
    claim_token UUID,
    attempts INTEGER DEFAULT 0 NOT NULL,
    next_attempt_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    unknown_at TIMESTAMP WITH TIME ZONE,
    done_at TIMESTAMP WITH TIME ZONE,
    dead_at TIMESTAMP WITH TIME ZONE,
    result TEXT,
    last_error TEXT,
    request_id TEXT DEFAULT '' NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT pk_lock_commands PRIMARY KEY (id),
    CONSTRAINT uq_lock_commands_facility_id_id UNIQUE (facility_id, id),
    CONSTRAINT fk_lock_commands_facility_id_key_id_entry_keys FOREIGN KEY(facility_id, key_id) REFERENCES entry_keys (facility_id, id),
    CONSTRAINT ck_lock_commands_kind CHECK (kind in ('set', 'update', 'remove')),
    CONSTRAINT ck_lock_commands_one_end CHECK (done_at is null or dead_at is null),
    CONSTRAINT fk_lock_commands_facility_id_facilities FOREIGN KEY(facility_id) REFERENCES facilities (id),
    CONSTRAINT uq_lock_commands_idempotency_key UNIQUE (idempotency_key)
);

CREATE INDEX ix_lock_commands_due ON lock_commands (next_attempt_at) WHERE done_at is null and dead_at is null;
CREATE INDEX ix_lock_commands_key ON lock_commands (facility_id, key_id);

CREATE TABLE refunds (
    id UUID DEFAULT gen_random_uuid() NOT NULL,
    facility_id UUID NOT NULL,
    payment_id UUID NOT NULL,
    stay_id UUID,
    amount BIGINT NOT NULL,
    currency TEXT NOT NULL,
    state TEXT NOT NULL,
    version INTEGER DEFAULT 1 NOT NULL,
    reason TEXT NOT NULL,
    lowers_price BOOLEAN DEFAULT false NOT NULL,
    form_key UUID,
    provider_refund_id TEXT,
    failure TEXT,
    claimed_at TIMESTAMP WITH TIME ZONE,
    claim_token UUID,
    attempts INTEGER DEFAULT 0 NOT NULL,
    next_attempt_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    last_error TEXT,
    request_id TEXT DEFAULT '' NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT pk_refunds PRIMARY KEY (id),
    CONSTRAINT uq_refunds_facility_id_id UNIQUE (facility_id, id),
    CONSTRAINT uq_refunds_facility_id_form_key UNIQUE (facility_id, form_key),
    CONSTRAINT fk_refunds_facility_id_payment_id_payments FOREIGN KEY(facility_id, payment_id) REFERENCES payments (facility_id, id),
    CONSTRAINT fk_refunds_facility_id_stay_id_stays FOREIGN KEY(facility_id, stay_id) REFERENCES stays (facility_id, id),
    CONSTRAINT ck_refunds_state CHECK (state in ('asked', 'unknown', 'pending', 'succeeded', 'failed')),
    CONSTRAINT ck_refunds_reason CHECK (reason in ('staff', 'surplus', 'late_payment', 'cancellation', 'external')),
    CONSTRAINT ck_refunds_amount CHECK (amount > 0),
    CONSTRAINT fk_refunds_facility_id_facilities FOREIGN KEY(facility_id) REFERENCES facilities (id),
    CONSTRAINT uq_refunds_provider_refund_id UNIQUE (provider_refund_id)
);

CREATE INDEX ix_refunds_due ON refunds (next_attempt_at) WHERE state in ('asked', 'unknown', 'pending');
CREATE INDEX ix_refunds_payment ON refunds (facility_id, payment_id);
CREATE INDEX ix_refunds_stay ON refunds (facility_id, stay_id);

CREATE TABLE ledger_lines (
    id BIGINT GENERATED ALWAYS AS IDENTITY,
    facility_id UUID NOT NULL,
    stay_id UUID NOT NULL,
    kind TEXT NOT NULL,
    amount BIGINT NOT NULL,
    currency TEXT NOT NULL,
    payment_id UUID,
    refund_id UUID,
    form_key UUID,
    memo TEXT DEFAULT '' NOT NULL,
    actor_kind TEXT NOT NULL,
    actor_id UUID,
    actor_name TEXT NOT NULL,
    request_id TEXT DEFAULT '' NOT NULL,
    at TIMESTAMP WITH TIME ZONE NOT NULL,
    written_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT pk_ledger_lines PRIMARY KEY (id),
    CONSTRAINT uq_ledger_lines_facility_id_form_key UNIQUE (facility_id, form_key),
    CONSTRAINT fk_ledger_lines_facility_id_stay_id_stays FOREIGN KEY(facility_id, stay_id) REFERENCES stays (facility_id, id),
    CONSTRAINT fk_ledger_lines_facility_id_payment_id_payments FOREIGN KEY(facility_id, payment_id) REFERENCES payments (facility_id, id),
    CONSTRAINT fk_ledger_lines_facility_id_refund_id_refunds FOREIGN KEY(facility_id, refund_id) REFERENCES refunds (facility_id, id),
    CONSTRAINT ck_ledger_lines_kind CHECK (kind in ('charge', 'charge_reversed', 'fee', 'deposit', 'payment', 'cash', 'cash_returned', 'refund', 'refund_reversed')),
    CONSTRAINT ck_ledger_lines_sign CHECK (case when kind in ('charge', 'fee', 'cash_returned', 'refund') then amount > 0 else amount < 0 end),
    CONSTRAINT ck_ledger_lines_payment CHECK ((kind in ('deposit', 'payment')) = (payment_id is not null and refund_id is null)),
    CONSTRAINT ck_ledger_lines_refund CHECK ((kind in ('refund', 'refund_reversed')) = (refund_id is not null)),
    CONSTRAINT fk_ledger_lines_facility_id_facilities FOREIGN KEY(facility_id) REFERENCES facilities (id)
);

CREATE INDEX ix_ledger_lines_at ON ledger_lines (facility_id, at, id);
CREATE INDEX ix_ledger_lines_stay ON ledger_lines (facility_id, stay_id, id);
CREATE UNIQUE INDEX uq_ledger_lines_payment ON ledger_lines (payment_id) WHERE kind in ('deposit', 'payment');
CREATE UNIQUE INDEX uq_ledger_lines_refund ON ledger_lines (refund_id, kind) WHERE refund_id is not null;

-- The state tables, as the guard trigger reads them. A test compares them with the Python machines.
insert into legal_transitions (table_name, machine, from_state, event, to_state) values
    ('stays', 'stay', '', 'created', 'reserved'),
    ('stays', 'stay', 'reserved', 'admitted', 'admitted'),
    ('stays', 'stay', 'reserved', 'cancelled', 'cancelled'),
    ('stays', 'stay', 'reserved', 'no_show', 'no_show'),
    ('stays', 'stay', 'no_show', 'reinstated', 'reserved'),
    ('stays', 'stay', 'no_show', 'cancelled', 'cancelled'),
    ('stays', 'stay', 'admitted', 'departed', 'departed'),
    ('entry_keys', 'entry_key', '', 'created', 'requested'),
    ('entry_keys', 'entry_key', 'requested', 'set_on_lock', 'issued'),
    ('entry_keys', 'entry_key', 'requested', 'lock_refused', 'failed'),
    ('entry_keys', 'entry_key', 'requested', 'revoke_asked', 'revoking'),
    ('entry_keys', 'entry_key', 'issued', 'revoke_asked', 'revoking'),
    ('entry_keys', 'entry_key', 'issued', 'vanished_from_lock', 'missing'),
    ('entry_keys', 'entry_key', 'missing', 'set_on_lock', 'issued'),
    ('entry_keys', 'entry_key', 'missing', 'revoke_asked', 'revoking'),
    ('entry_keys', 'entry_key', 'revoking', 'removed_from_lock', 'revoked'),
    ('payments', 'payment', '', 'created', 'open'),
    ('payments', 'payment', 'open', 'provider_processing', 'processing'),
    ('payments', 'payment', 'open', 'provider_succeeded', 'succeeded'),
    ('payments', 'payment', 'open', 'provider_canceled', 'canceled'),
    ('payments', 'payment', 'open', 'answer_lost', 'unknown'),
    ('payments', 'payment', 'processing', 'provider_succeeded', 'succeeded'),
    ('payments', 'payment', 'processing', 'provider_declined', 'open'),
    ('payments', 'payment', 'processing', 'provider_canceled', 'canceled'),
    ('payments', 'payment', 'processing', 'answer_lost', 'unknown'),
    ('payments', 'payment', 'unknown', 'provider_processing', 'processing'),
    ('payments', 'payment', 'unknown', 'provider_declined', 'open'),
    ('payments', 'payment', 'unknown', 'provider_succeeded', 'succeeded'),
    ('payments', 'payment', 'unknown', 'provider_canceled', 'canceled'),
    ('payments', 'payment', 'succeeded', 'refund_owed', 'refund_owed'),
    ('payments', 'payment', 'refund_owed', 'refunded_in_full', 'refunded'),
    ('payments', 'payment', 'refund_owed', 'refund_withdrawn', 'succeeded'),
    ('payments', 'payment', 'refunded', 'refund_withdrawn', 'succeeded'),
    ('refunds', 'refund', '', 'created', 'asked'),
    ('refunds', 'refund', 'asked', 'accepted', 'pending'),
    ('refunds', 'refund', 'asked', 'provider_succeeded', 'succeeded'),
    ('refunds', 'refund', 'asked', 'provider_refused', 'failed'),
    ('refunds', 'refund', 'asked', 'answer_lost', 'unknown'),
    ('refunds', 'refund', 'unknown', 'accepted', 'pending'),
    ('refunds', 'refund', 'unknown', 'provider_succeeded', 'succeeded'),
    ('refunds', 'refund', 'unknown', 'provider_refused', 'failed'),
    ('refunds', 'refund', 'unknown', 'nothing_sent', 'asked'),
    ('refunds', 'refund', 'pending', 'provider_succeeded', 'succeeded'),
    ('refunds', 'refund', 'pending', 'provider_failed', 'failed'),
    ('refunds', 'refund', 'succeeded', 'provider_failed', 'failed'),
    ('webhook_events', 'webhook_event', '', 'created', 'processing'),
    ('webhook_events', 'webhook_event', 'processing', 'completed', 'completed');
