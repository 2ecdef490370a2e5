-- A double submit makes one plan, and nobody changes what they have not seen.

alter table plans
    add column form_key uuid,
    add column version integer default 1 not null,
    add constraint uq_plans_facility_id_form_key unique (facility_id, form_key);

-- An entry of the register for each person of a stay.

alter table guest_registers
    add column person smallint default 1 not null,
    add constraint ck_guest_registers_person check (person >= 1),
    drop constraint uq_guest_registers_facility_id_stay_id,
    add constraint uq_guest_registers_facility_id_stay_id_person
        unique (facility_id, stay_id, person);

-- Where fewer come than were registered: the entries beyond the persons of the stay, and no others.
-- With `purge_registers` the only way in which the portal takes any away.
create function drop_superfluous_registers(of_stay uuid)
returns bigint
language sql volatile security definer set search_path = pg_catalog, public
as $$
    with gone as (
        delete from guest_registers r using stays s
        where s.id = of_stay and s.facility_id = current_facility()
          and r.facility_id = s.facility_id and r.stay_id = s.id and r.person > s.persons
        returning 1
    )
    select count(*) from gone
$$;

revoke all on function drop_superfluous_registers(uuid) from public;
grant execute on function drop_superfluous_registers(uuid) to portal_app;
