-- Memberships: what is sold, who has joined, and what must hold once one has ended.

CREATE TABLE membership_plans (
    id UUID DEFAULT gen_random_uuid() NOT NULL,
    facility_id UUID NOT NULL,
    code TEXT NOT NULL,
    name_ja TEXT NOT NULL,
    name_en TEXT NOT NULL,
    price BIGINT NOT NULL,
    billed_every TEXT NOT NULL,
    billing TEXT NOT NULL,
    monthly_quota INTEGER,
    terms_ja TEXT DEFAULT '' NOT NULL,
    terms_en TEXT DEFAULT '' NOT NULL,
    terms_version TEXT NOT NULL,
    sold BOOLEAN DEFAULT true NOT NULL,
    retired_at TIMESTAMP WITH TIME ZONE,
    version INTEGER DEFAULT 1 NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT pk_membership_plans PRIMARY KEY (id),
    CONSTRAINT uq_membership_plans_facility_id_id UNIQUE (facility_id, id),
    CONSTRAINT uq_membership_plans_facility_id_code UNIQUE (facility_id, code),
    CONSTRAINT ck_membership_plans_price CHECK (price >= 0),
    CONSTRAINT ck_membership_plans_billed_every CHECK (billed_every in ('month', 'year')),
    CONSTRAINT ck_membership_plans_billing CHECK (billing in ('card', 'desk')),
    CONSTRAINT ck_membership_plans_quota CHECK (monthly_quota > 0),
    CONSTRAINT ck_membership_plans_retired CHECK (not (sold and retired_at is not null)),
    CONSTRAINT fk_membership_plans_facility_id_facilities FOREIGN KEY(facility_id) REFERENCES facilities (id)
);


CREATE TABLE members (
    id UUID DEFAULT gen_random_uuid() NOT NULL,
    facility_id UUID NOT NULL,
    guest_id UUID NOT NULL,
    email_key TEXT NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT pk_members PRIMARY KEY (id),
    CONSTRAINT uq_members_facility_id_id UNIQUE (facility_id, id),
    CONSTRAINT uq_members_facility_id_guest_id UNIQUE (facility_id, guest_id),
    CONSTRAINT uq_members_facility_id_email_key UNIQUE (facility_id, email_key),
    CONSTRAINT fk_members_facility_id_guest_id_guests FOREIGN KEY(facility_id, guest_id) REFERENCES guests (facility_id, id),
    CONSTRAINT fk_members_facility_id_facilities FOREIGN KEY(facility_id) REFERENCES facilities (id)
);


CREATE TABLE memberships (
    id UUID DEFAULT gen_random_uuid() NOT NULL,
    facility_id UUID NOT NULL,
    member_id UUID NOT NULL,
    plan_id UUID NOT NULL,
    state TEXT NOT NULL,
    version INTEGER DEFAULT 1 NOT NULL,
    billing TEXT NOT NULL,
    price BIGINT NOT NULL,
    currency TEXT NOT NULL,
    billed_every TEXT NOT NULL,
    monthly_quota INTEGER,
    terms_version TEXT NOT NULL,
    confirmation JSONB NOT NULL,
    form_key UUID NOT NULL,
    token_hash BYTEA NOT NULL,
    token_sealed TEXT NOT NULL,
    started_at TIMESTAMP WITH TIME ZONE,
    ends_at TIMESTAMP WITH TIME ZONE,
    ended_at TIMESTAMP WITH TIME ZONE,
    end_reason TEXT,
    next_look_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT pk_memberships PRIMARY KEY (id),
    CONSTRAINT uq_memberships_facility_id_id UNIQUE (facility_id, id),
    CONSTRAINT uq_memberships_facility_id_form_key UNIQUE (facility_id, form_key),
    CONSTRAINT fk_memberships_facility_id_member_id_members FOREIGN KEY(facility_id, member_id) REFERENCES members (facility_id, id),
    CONSTRAINT fk_memberships_facility_id_plan_id_membership_plans FOREIGN KEY(facility_id, plan_id) REFERENCES membership_plans (facility_id, id),
    CONSTRAINT ck_memberships_state CHECK (state in ('applying', 'checkout', 'active', 'past_due', 'scheduled_to_end', 'ended')),
    CONSTRAINT ck_memberships_billing CHECK (billing in ('card', 'desk')),
    CONSTRAINT ck_memberships_billed_every CHECK (billed_every in ('month', 'year')),
    CONSTRAINT ck_memberships_price CHECK (price >= 0),
    CONSTRAINT ck_memberships_started_at CHECK (state not in ('active', 'past_due', 'scheduled_to_end') or started_at is not null),
    CONSTRAINT ck_memberships_ended_at CHECK ((state = 'ended') = (ended_at is not null)),
    CONSTRAINT ck_memberships_ends_at CHECK (state <> 'scheduled_to_end' or ends_at is not null),
    CONSTRAINT ck_memberships_end_reason CHECK (ends_at is null or end_reason is not null),
    CONSTRAINT fk_memberships_facility_id_facilities FOREIGN KEY(facility_id) REFERENCES facilities (id),
    CONSTRAINT uq_memberships_token_hash UNIQUE (token_hash)
);

CREATE INDEX ix_memberships_listed ON memberships (facility_id, created_at, id);
CREATE INDEX ix_memberships_plan ON memberships (facility_id, plan_id, state);
CREATE INDEX ix_memberships_state ON memberships (facility_id, state, created_at, id);
CREATE INDEX ix_memberships_to_end ON memberships (next_look_at, ends_at) WHERE state = 'scheduled_to_end';
CREATE UNIQUE INDEX uq_memberships_one_live ON memberships (facility_id, member_id, plan_id) WHERE state <> 'ended';

CREATE TABLE end_obligations (
    id BIGINT GENERATED ALWAYS AS IDENTITY,
    facility_id UUID NOT NULL,
    membership_id UUID NOT NULL,
    kind TEXT NOT NULL,
    since TIMESTAMP WITH TIME ZONE NOT NULL,
    proven_at TIMESTAMP WITH TIME ZONE,
    proof TEXT,
    next_look_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT pk_end_obligations PRIMARY KEY (id),
    CONSTRAINT uq_end_obligations_facility_id_membership_id_kind UNIQUE (facility_id, membership_id, kind),
    CONSTRAINT fk_end_obligations_facility_id_membership_id_memberships FOREIGN KEY(facility_id, membership_id) REFERENCES memberships (facility_id, id),
    CONSTRAINT ck_end_obligations_kind CHECK (kind in ('keys_gone', 'member_told')),
    CONSTRAINT ck_end_obligations_proof CHECK ((proven_at is null) = (proof is null)),
    CONSTRAINT fk_end_obligations_facility_id_facilities FOREIGN KEY(facility_id) REFERENCES facilities (id)
);

CREATE INDEX ix_end_obligations_to_prove ON end_obligations (next_look_at) WHERE proven_at is null;

do $$
declare
    scoped text;
begin
    foreach scoped in array array['membership_plans', 'members', 'memberships', 'end_obligations']
    loop
        execute format('alter table %I enable row level security', scoped);
        execute format('alter table %I force row level security', scoped);
        execute format('create policy owner_all on %I to current_user using (true) with check (true)',
                       scoped);
        execute format('create policy own_facility on %I to portal_app'
                       ' using (facility_id = current_facility())'
                       ' with check (facility_id = current_facility())', scoped);
        execute format('revoke all on %I from public', scoped);
        execute format('grant select, insert, update on %I to portal_app', scoped);
    end loop;
end $$;

insert into legal_transitions (table_name, machine, from_state, event, to_state) values
    ('memberships', 'membership', '', 'created', 'applying'),
    ('memberships', 'membership', 'applying', 'approved_for_checkout', 'checkout'),
    ('memberships', 'membership', 'applying', 'approved_for_desk_billing', 'active'),
    ('memberships', 'membership', 'applying', 'ended', 'ended'),
    ('memberships', 'membership', 'checkout', 'first_payment_landed', 'active'),
    ('memberships', 'membership', 'checkout', 'ended', 'ended'),
    ('memberships', 'membership', 'active', 'payment_overdue', 'past_due'),
    ('memberships', 'membership', 'active', 'end_scheduled', 'scheduled_to_end'),
    ('memberships', 'membership', 'active', 'ended', 'ended'),
    ('memberships', 'membership', 'past_due', 'payment_recovered', 'active'),
    ('memberships', 'membership', 'past_due', 'end_scheduled', 'scheduled_to_end'),
    ('memberships', 'membership', 'past_due', 'ended', 'ended'),
    ('memberships', 'membership', 'scheduled_to_end', 'resumed', 'active'),
    ('memberships', 'membership', 'scheduled_to_end', 'ended', 'ended');

create trigger guard_state before insert or update on memberships
    for each row execute function guard_state();

-- Doors across facilities -----------------------------------------------------------------------
create function membership_by_token(hash bytea)
returns table (facility_id uuid, membership_id uuid)
language sql stable security definer set search_path = pg_catalog, public
as $$ select facility_id, id from memberships where token_hash = hash $$;

-- A deadline is over in the database's time, by which everybody else asks for it as well.
create function memberships_to_end(at_most int)
returns table (id uuid, facility_id uuid)
language sql volatile security definer set search_path = pg_catalog, public
as $$
    with due as materialized (
        select d.id from memberships d
        where d.state = 'scheduled_to_end' and d.ends_at <= now() and d.next_look_at <= now()
        order by d.next_look_at, d.ends_at
        limit at_most
        for no key update skip locked
    )
    update memberships m
    set next_look_at = now() + interval '1 minute'
    from due
    where m.id = due.id
    returning m.id, m.facility_id
$$;

create function obligations_to_prove(at_most int)
returns table (id bigint, facility_id uuid)
language sql volatile security definer set search_path = pg_catalog, public
as $$
    with due as materialized (
        select d.id from end_obligations d
        where d.proven_at is null and d.next_look_at <= now()
        order by d.next_look_at
        limit at_most
        for update skip locked
    )
    update end_obligations o
    set next_look_at = now() + least(greatest(now() - o.since, interval '15 seconds'),
                                     interval '1 hour')
    from due
    where o.id = due.id
    returning o.id, o.facility_id
$$;

revoke all on function membership_by_token(bytea), memberships_to_end(int),
    obligations_to_prove(int) from public;
grant execute on function membership_by_token(bytea), memberships_to_end(int),
    obligations_to_prove(int) to portal_app;
