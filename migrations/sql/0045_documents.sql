-- Receipts and returns: what they state is written once.

alter table facilities add column issuer_name text not null default '',
    add column tax_number text,
    add constraint ck_facilities_tax_number check (tax_number ~ '^T[1-9][0-9]{12}$');

create table document_counters (
    facility_id uuid not null,
    last bigint not null,
    constraint pk_document_counters primary key (facility_id),
    constraint ck_document_counters_last check (last > 0),
    constraint fk_document_counters_facility_id_facilities foreign key (facility_id)
        references facilities (id)
);

create table documents (
    id uuid default gen_random_uuid() not null,
    facility_id uuid not null,
    number bigint not null,
    kind text not null,
    stay_id uuid,
    membership_id uuid,
    corrects_id uuid,
    day date not null,
    addressee text not null,
    amount bigint not null,
    currency text not null,
    upto bigint not null,
    stated jsonb not null,
    form_key uuid not null,
    actor_kind text not null,
    actor_id uuid,
    actor_name text not null,
    request_id text default '' not null,
    issued_at timestamp with time zone not null,
    constraint pk_documents primary key (id),
    constraint uq_documents_facility_id_id unique (facility_id, id),
    constraint uq_documents_facility_id_number unique (facility_id, number),
    constraint uq_documents_facility_id_form_key unique (facility_id, form_key),
    constraint uq_documents_facility_id_stay_id_upto unique (facility_id, stay_id, upto),
    constraint uq_documents_facility_id_membership_id_upto
        unique (facility_id, membership_id, upto),
    constraint ck_documents_kind check (kind in ('receipt', 'return')),
    constraint ck_documents_folio check (num_nonnulls(stay_id, membership_id) = 1),
    constraint ck_documents_number check (number > 0),
    constraint ck_documents_amount check (amount > 0 or kind = 'return' and amount = 0),
    constraint ck_documents_corrects check (kind = 'return' or corrects_id is null),
    constraint fk_documents_facility_id_facilities foreign key (facility_id)
        references facilities (id),
    constraint fk_documents_facility_id_stay_id_stays foreign key (facility_id, stay_id)
        references stays (facility_id, id),
    constraint fk_documents_facility_id_membership_id_memberships
        foreign key (facility_id, membership_id) references memberships (facility_id, id),
    constraint fk_documents_facility_id_corrects_id_documents
        foreign key (facility_id, corrects_id) references documents (facility_id, id)
);

create table document_copies (
    id bigint generated always as identity,
    facility_id uuid not null,
    document_id uuid not null,
    form_key uuid not null,
    actor_kind text not null,
    actor_id uuid,
    actor_name text not null,
    request_id text default '' not null,
    at timestamp with time zone not null,
    constraint pk_document_copies primary key (id),
    constraint uq_document_copies_facility_id_form_key unique (facility_id, form_key),
    constraint fk_document_copies_facility_id_facilities foreign key (facility_id)
        references facilities (id),
    constraint fk_document_copies_facility_id_document_id_documents
        foreign key (facility_id, document_id) references documents (facility_id, id)
);

create index ix_document_copies_document on document_copies (facility_id, document_id);

do $$
declare
    scoped text;
begin
    foreach scoped in array array['document_counters', 'documents', 'document_copies']
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

grant update on document_counters to portal_app;
