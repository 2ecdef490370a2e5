-- A link ends: that of a stay half a year after it, that of a membership after its last year's books.

create or replace function stay_by_token(hash bytea)
returns table (facility_id uuid, stay_id uuid)
language sql stable security definer set search_path = pg_catalog, public
as $$
    select facility_id, id from stays
    where token_hash = hash and now() < ends_at + interval '180 days'
$$;

create or replace function membership_by_token(hash bytea)
returns table (facility_id uuid, membership_id uuid)
language sql stable security definer set search_path = pg_catalog, public
as $$
    select facility_id, id from memberships
    where token_hash = hash and (ended_at is null or now() < ended_at + interval '400 days')
$$;
