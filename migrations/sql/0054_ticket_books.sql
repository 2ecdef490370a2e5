-- Books of tickets, sold on a stay's account: what is left of each, and the lines that say how it
-- came so.

create table ticket_offers (
    id uuid default gen_random_uuid() not null,
    facility_id uuid not null,
    name_ja text not null,
    name_en text not null,
    plan_id uuid not null,
    tickets integer not null,
    price integer not null,
    months integer not null,
    withdrawn_at timestamp with time zone,
    form_key uuid not null,
    version integer default 1 not null,
    created_at timestamp with time zone default now() not null,
    constraint pk_ticket_offers primary key (id),
    constraint uq_ticket_offers_facility_id_id unique (facility_id, id),
    constraint uq_ticket_offers_facility_id_form_key unique (facility_id, form_key),
    constraint fk_ticket_offers_facility_id_plan_id_plans foreign key (facility_id, plan_id)
        references plans (facility_id, id),
    constraint ck_ticket_offers_tickets check (tickets between 1 and 100),
    constraint ck_ticket_offers_price check (price >= 0),
    constraint ck_ticket_offers_months check (months between 1 and 60),
    constraint fk_ticket_offers_facility_id_facilities foreign key (facility_id)
        references facilities (id)
);

create table ticket_books (
    id uuid default gen_random_uuid() not null,
    facility_id uuid not null,
    offer_id uuid not null,
    plan_id uuid not null,
    stay_id uuid not null,
    code text not null,
    granted integer not null,
    used integer default 0 not null,
    price integer not null,
    worth integer not null,
    currency text not null,
    last_day date not null,
    taken_back_at timestamp with time zone,
    form_key uuid not null,
    version integer default 1 not null,
    created_at timestamp with time zone default now() not null,
    constraint pk_ticket_books primary key (id),
    constraint uq_ticket_books_facility_id_id unique (facility_id, id),
    constraint uq_ticket_books_facility_id_code unique (facility_id, code),
    constraint uq_ticket_books_facility_id_form_key unique (facility_id, form_key),
    constraint fk_ticket_books_facility_id_offer_id_ticket_offers foreign key (facility_id, offer_id)
        references ticket_offers (facility_id, id),
    constraint fk_ticket_books_facility_id_plan_id_plans foreign key (facility_id, plan_id)
        references plans (facility_id, id),
    constraint fk_ticket_books_facility_id_stay_id_stays foreign key (facility_id, stay_id)
        references stays (facility_id, id),
    constraint ck_ticket_books_used check (used between 0 and granted),
    constraint ck_ticket_books_worth
        check (worth between 0 and price and (used < granted or worth = 0)),
    constraint ck_ticket_books_taken_back check (taken_back_at is null or used = granted),
    constraint fk_ticket_books_facility_id_facilities foreign key (facility_id)
        references facilities (id)
);

create index ix_ticket_books_stay on ticket_books (facility_id, stay_id);
create index ix_ticket_books_created on ticket_books (facility_id, created_at, id);

create table ticket_lines (
    id bigint generated always as identity,
    facility_id uuid not null,
    book_id uuid not null,
    kind text not null,
    amount integer not null,
    worth integer not null,
    stay_id uuid,
    actor_kind text not null,
    actor_id uuid,
    actor_name text not null,
    request_id text default '' not null,
    at timestamp with time zone not null,
    written_at timestamp with time zone default now() not null,
    constraint pk_ticket_lines primary key (id),
    constraint fk_ticket_lines_facility_id_book_id_ticket_books foreign key (facility_id, book_id)
        references ticket_books (facility_id, id),
    constraint fk_ticket_lines_facility_id_stay_id_stays foreign key (facility_id, stay_id)
        references stays (facility_id, id),
    constraint ck_ticket_lines_kind check (kind in ('sold', 'taken', 'returned', 'taken_back')),
    constraint ck_ticket_lines_amount check (case kind when 'sold' then amount > 0
        when 'taken' then amount = -1 when 'returned' then amount = 1 else amount < 0 end),
    constraint ck_ticket_lines_worth
        check (case when kind in ('sold', 'returned') then worth >= 0 else worth <= 0 end),
    constraint ck_ticket_lines_stay
        check ((kind in ('taken', 'returned')) = (stay_id is not null)),
    constraint fk_ticket_lines_facility_id_facilities foreign key (facility_id)
        references facilities (id)
);

create index ix_ticket_lines_book on ticket_lines (facility_id, book_id, id);
create index ix_ticket_lines_stay on ticket_lines (facility_id, stay_id) where stay_id is not null;
create index ix_ticket_lines_at on ticket_lines (facility_id, at, id);

do $$
declare
    scoped text;
begin
    foreach scoped in array array['ticket_offers', 'ticket_books', 'ticket_lines']
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

-- What was agreed never changes, and a line not at all.
grant update (withdrawn_at, version) on ticket_offers to portal_app;
grant update (granted, used, worth, taken_back_at, version) on ticket_books to portal_app;
