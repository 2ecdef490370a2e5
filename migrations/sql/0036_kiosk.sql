-- What a tablet at an entrance holds for a short while, and the way from its address to its house.
CREATE TABLE kiosk_sessions (
    id UUID DEFAULT gen_random_uuid() NOT NULL,
    facility_id UUID NOT NULL,
    entrance_id UUID NOT NULL,
    stay_id UUID NOT NULL,
    token_hash BYTEA NOT NULL,
    expires_at TIMESTAMP WITH TIME ZONE NOT NULL,
    ended_at TIMESTAMP WITH TIME ZONE,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT pk_kiosk_sessions PRIMARY KEY (id),
    CONSTRAINT uq_kiosk_sessions_facility_id_id UNIQUE (facility_id, id),
    CONSTRAINT uq_kiosk_sessions_token_hash UNIQUE (token_hash),
    CONSTRAINT fk_kiosk_sessions_facility_id_entrance_id_entrances FOREIGN KEY(facility_id, entrance_id) REFERENCES entrances (facility_id, id),
    CONSTRAINT fk_kiosk_sessions_facility_id_stay_id_stays FOREIGN KEY(facility_id, stay_id) REFERENCES stays (facility_id, id),
    CONSTRAINT fk_kiosk_sessions_facility_id_facilities FOREIGN KEY(facility_id) REFERENCES facilities (id)
);

CREATE INDEX ix_kiosk_sessions_over ON kiosk_sessions (expires_at);

alter table kiosk_sessions enable row level security;
alter table kiosk_sessions force row level security;
create policy owner_all on kiosk_sessions to current_user using (true) with check (true);
create policy own_facility on kiosk_sessions to portal_app
    using (facility_id = current_facility()) with check (facility_id = current_facility());
revoke all on kiosk_sessions from public;
grant select, insert on kiosk_sessions to portal_app;
grant update (expires_at, ended_at) on kiosk_sessions to portal_app;

create function entrance_by_public_name(wanted text)
returns table (facility_id uuid, entrance_id uuid)
language sql stable security definer set search_path = pg_catalog, public
as $$ select facility_id, id from entrances where public_name = wanted $$;

-- Booked at a tablet, never paid, and nobody stands there any more: the space is wanted back. What
-- may still be paid for is let be, and so is what another tablet shows just now.
create function walk_ins_to_let_go(at_most int)
returns table (id uuid, facility_id uuid)
language sql stable security definer set search_path = pg_catalog, public
as $$
    select s.id, s.facility_id
    from stays s
    where s.state = 'reserved' and s.source = 'walk_in'
      and exists (select 1 from kiosk_sessions k where k.stay_id = s.id
                  and k.expires_at < now() - interval '10 minutes')
      and not exists (select 1 from kiosk_sessions k where k.stay_id = s.id
                      and k.expires_at >= now() - interval '10 minutes')
      and not exists (select 1 from payments p where p.stay_id = s.id
                      and p.state in ('processing', 'unknown', 'succeeded'))
      and exists (select 1 from ledger_lines l where l.stay_id = s.id)
      and not exists (select 1 from ledger_lines l where l.stay_id = s.id and l.kind <> 'charge')
    order by s.created_at
    limit at_most
$$;

revoke all on function entrance_by_public_name(text) from public;
revoke all on function walk_ins_to_let_go(int) from public;
grant execute on function entrance_by_public_name(text) to portal_app;
grant execute on function walk_ins_to_let_go(int) to portal_app;
