-- Memberships that the card provider bills: what was asked of it, what it has said, what it granted.

CREATE TABLE billing_legs (
    id UUID DEFAULT gen_random_uuid() NOT NULL,
    facility_id UUID NOT NULL,
    membership_id UUID NOT NULL,
    kind TEXT NOT NULL,
    progress TEXT DEFAULT 'open' NOT NULL,
    seen INTEGER NOT NULL,
    wish JSONB NOT NULL,
    actor_kind TEXT NOT NULL,
    actor_id UUID,
    actor_name TEXT NOT NULL,
    last_error TEXT,
    reads INTEGER DEFAULT 0 NOT NULL,
    next_read_at TIMESTAMP WITH TIME ZONE,
    settled_at TIMESTAMP WITH TIME ZONE,
    request_id TEXT DEFAULT '' NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT pk_billing_legs PRIMARY KEY (id),
    CONSTRAINT fk_billing_legs_facility_id_membership_id_memberships FOREIGN KEY(facility_id, membership_id) REFERENCES memberships (facility_id, id),
    CONSTRAINT ck_billing_legs_kind CHECK (kind in ('subscribe', 'set_end', 'end_now', 'abandon_checkout', 'go_on', 'switch')),
    CONSTRAINT ck_billing_legs_progress CHECK (progress in ('open', 'unknown', 'done', 'refused')),
    CONSTRAINT ck_billing_legs_settled CHECK ((progress in ('done', 'refused')) = (settled_at is not null)),
    CONSTRAINT ck_billing_legs_read CHECK (next_read_at is null or settled_at is null),
    CONSTRAINT fk_billing_legs_facility_id_facilities FOREIGN KEY(facility_id) REFERENCES facilities (id)
);

CREATE UNIQUE INDEX uq_billing_legs_one_open ON billing_legs (facility_id, membership_id) WHERE progress in ('open', 'unknown');
CREATE INDEX ix_billing_legs_membership ON billing_legs (facility_id, membership_id, created_at);
CREATE INDEX ix_billing_legs_to_read ON billing_legs (next_read_at) WHERE next_read_at is not null;

CREATE TABLE subscription_mirror (
    membership_id UUID NOT NULL,
    facility_id UUID NOT NULL,
    subscription_id TEXT NOT NULL,
    customer_id TEXT NOT NULL,
    status TEXT NOT NULL,
    item_id TEXT NOT NULL,
    price_id TEXT NOT NULL,
    amount BIGINT NOT NULL,
    currency TEXT NOT NULL,
    livemode BOOLEAN NOT NULL,
    period_start TIMESTAMP WITH TIME ZONE NOT NULL,
    period_end TIMESTAMP WITH TIME ZONE NOT NULL,
    ends_at TIMESTAMP WITH TIME ZONE,
    ended_at TIMESTAMP WITH TIME ZONE,
    trial_end TIMESTAMP WITH TIME ZONE,
    paused BOOLEAN NOT NULL,
    resumes_at TIMESTAMP WITH TIME ZONE,
    latest_invoice_id TEXT,
    told_at TIMESTAMP WITH TIME ZONE NOT NULL,
    reads INTEGER DEFAULT 0 NOT NULL,
    next_read_at TIMESTAMP WITH TIME ZONE,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT pk_subscription_mirror PRIMARY KEY (membership_id),
    CONSTRAINT uq_subscription_mirror_subscription_id UNIQUE (subscription_id),
    CONSTRAINT fk_subscription_mirror_facility_id_membership_id_memberships FOREIGN KEY(facility_id, membership_id) REFERENCES memberships (facility_id, id),
    CONSTRAINT fk_subscription_mirror_facility_id_facilities FOREIGN KEY(facility_id) REFERENCES facilities (id)
);

CREATE INDEX ix_subscription_mirror_to_read ON subscription_mirror (next_read_at) WHERE next_read_at is not null;
CREATE INDEX ix_subscription_mirror_listed ON subscription_mirror (facility_id, created_at, membership_id);

CREATE TABLE membership_periods (
    id BIGINT GENERATED ALWAYS AS IDENTITY,
    facility_id UUID NOT NULL,
    membership_id UUID NOT NULL,
    subscription_id TEXT NOT NULL,
    invoice_id TEXT NOT NULL,
    starts_at TIMESTAMP WITH TIME ZONE NOT NULL,
    ends_at TIMESTAMP WITH TIME ZONE NOT NULL,
    amount BIGINT NOT NULL,
    currency TEXT NOT NULL,
    paid_at TIMESTAMP WITH TIME ZONE NOT NULL,
    reason TEXT NOT NULL,
    granted_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT pk_membership_periods PRIMARY KEY (id),
    CONSTRAINT uq_membership_periods_subscription_id_starts_at UNIQUE (subscription_id, starts_at),
    CONSTRAINT uq_membership_periods_invoice_id UNIQUE (invoice_id),
    CONSTRAINT fk_membership_periods_facility_id_membership_id_memberships FOREIGN KEY(facility_id, membership_id) REFERENCES memberships (facility_id, id),
    CONSTRAINT ck_membership_periods_amount CHECK (amount >= 0),
    CONSTRAINT ck_membership_periods_span CHECK (starts_at < ends_at),
    CONSTRAINT fk_membership_periods_facility_id_facilities FOREIGN KEY(facility_id) REFERENCES facilities (id)
);

CREATE INDEX ix_membership_periods_membership ON membership_periods (facility_id, membership_id, starts_at);

do $$
declare
    scoped text;
begin
    foreach scoped in array array['billing_legs', 'subscription_mirror', 'membership_periods']
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

grant select, insert, update on billing_legs, subscription_mirror to portal_app;
-- What was granted stays granted in the books.
grant select, insert on membership_periods to portal_app;

-- Doors across facilities -----------------------------------------------------------------------
create function membership_by_subscription(subscription text, named uuid)
returns table (facility_id uuid, membership_id uuid)
language sql stable security definer set search_path = pg_catalog, public
as $$
    select found.facility_id, found.id from (
        select s.facility_id, s.membership_id as id, 1 as rank from subscription_mirror s
        where s.subscription_id = subscription
        union all
        select m.facility_id, m.id, 2 from memberships m where m.id = named
    ) found
    order by found.rank
    limit 1
$$;

create function legs_to_read(at_most int)
returns table (id uuid, facility_id uuid)
language sql volatile security definer set search_path = pg_catalog, public
as $$
    with due as materialized (
        select d.id from billing_legs d
        where d.next_read_at <= now()
        order by d.next_read_at
        limit at_most
        for no key update skip locked
    )
    update billing_legs l
    set next_read_at = now() + least(interval '30 seconds' * (l.reads + 1), interval '1 hour'),
        reads = l.reads + 1
    from due
    where l.id = due.id
    returning l.id, l.facility_id
$$;

create function subscriptions_to_read(at_most int)
returns table (membership_id uuid, facility_id uuid)
language sql volatile security definer set search_path = pg_catalog, public
as $$
    with due as materialized (
        select d.membership_id from subscription_mirror d
        where d.next_read_at <= now()
        order by d.next_read_at
        limit at_most
        for no key update skip locked
    )
    update subscription_mirror s
    set next_read_at = now() + least(interval '1 minute' * (s.reads + 1), interval '6 hours'),
        reads = s.reads + 1
    from due
    where s.membership_id = due.membership_id
    returning s.membership_id, s.facility_id
$$;

revoke all on function membership_by_subscription(text, uuid), legs_to_read(int),
    subscriptions_to_read(int) from public;
grant execute on function membership_by_subscription(text, uuid), legs_to_read(int),
    subscriptions_to_read(int) to portal_app;
