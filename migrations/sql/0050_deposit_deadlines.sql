-- The stays that are there are held without end, as they were promised. They are looked through
-- later.
alter table stays
    add column deposit_by timestamp with time zone,
    add constraint ck_stays_deposit_by
        check (deposit_by is null or deposit_due > 0 and deposit_by <= starts_at) not valid;

-- What of a deposit has never come: what is given back later, by the house or by a bank's word, is a
-- person's matter, and no deadline's. Nor is more waited for than is owed.
create function deposit_to_come(stay stays) returns bigint
language sql stable set search_path = pg_catalog, public
as $$
    select greatest(0, least(coalesce(sum(l.amount), 0),
        stay.deposit_due + coalesce(sum(l.amount) filter (
            where l.kind in ('deposit', 'payment', 'cash')), 0)))::bigint
    from ledger_lines l where l.facility_id = stay.facility_id and l.stay_id = stay.id
$$;

-- What of a deposit nothing received covers now, as `policies.pricing.deposit_open` has it: for
-- letters, which do not read the folio.
create function deposit_open(stay stays) returns bigint
language sql stable set search_path = pg_catalog, public
as $$
    select greatest(0, least(coalesce(sum(l.amount), 0),
        stay.deposit_due + coalesce(sum(l.amount) filter (
            where l.kind not in ('charge', 'charge_reversed', 'fee')), 0)))::bigint
    from ledger_lines l where l.facility_id = stay.facility_id and l.stay_id = stay.id
$$;

-- Stays whose deposit did not come in time, one page after the other, by this clock. Money that may
-- be on its way is waited for; the verb looks again before it does anything.
create function deposits_missed(after_by timestamptz, after_id uuid, at_most int)
returns table (id uuid, facility_id uuid, deposit_by timestamptz)
language sql stable security definer set search_path = pg_catalog, public
as $$
    select s.id, s.facility_id, s.deposit_by
    from stays s
    where s.state = 'reserved' and s.deposit_by is not null and s.deposit_by <= now()
      and (s.deposit_by, s.id) > (after_by, after_id)
      and deposit_to_come(s) > 0
      and not exists (select 1 from payments p
                      where p.facility_id = s.facility_id and p.stay_id = s.id
                        and p.state in ('processing', 'unknown'))
    order by s.deposit_by, s.id
    limit at_most
$$;

revoke all on function deposit_to_come(stays) from public;
revoke all on function deposit_open(stays) from public;
revoke all on function deposits_missed(timestamptz, uuid, int) from public;
grant execute on function deposit_to_come(stays) to portal_app;
grant execute on function deposit_open(stays) to portal_app;
grant execute on function deposits_missed(timestamptz, uuid, int) to portal_app;
