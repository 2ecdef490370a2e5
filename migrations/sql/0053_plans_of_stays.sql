-- A double submit makes one plan, and nobody changes what they have not seen.

alter table plans
    add column form_key uuid,
    add column version integer default 1 not null,
    add constraint uq_plans_facility_id_form_key unique (facility_id, form_key);
