-- A claim that lapsed is an answer that was lost: its worker may have been killed between the request
-- and our record of it, and the request may still be on its way to the lock.

create or replace function claim_lock_commands(claim uuid, at_most int, lease interval)
returns table (id uuid, facility_id uuid)
language sql volatile security definer set search_path = pg_catalog, public
as $$
    with due as materialized (
        select d.id from lock_commands d
        where d.done_at is null and d.dead_at is null and d.next_attempt_at <= now()
          and (d.claimed_at is null or d.claimed_at < now() - lease)
          -- One after another for one key: a removal must not overtake the setting before it.
          and not exists (
              select 1 from lock_commands earlier
              where earlier.key_id = d.key_id and earlier.no < d.no
                and earlier.done_at is null and earlier.dead_at is null
          )
        order by d.next_attempt_at
        limit at_most
        for update skip locked
    )
    update lock_commands c
    set unknown_at = coalesce(c.claimed_at, c.unknown_at),
        claimed_at = now(), claim_token = claim, attempts = c.attempts + 1
    from due
    where c.id = due.id
    returning c.id, c.facility_id
$$;
