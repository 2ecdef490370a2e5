-- Who is not let in. Entries are made and lifted; nothing of them is changed or deleted.
CREATE TABLE refusal_grounds (
    id UUID DEFAULT gen_random_uuid() NOT NULL,
    facility_id UUID NOT NULL,
    code TEXT NOT NULL,
    words_ja TEXT NOT NULL,
    words_en TEXT NOT NULL,
    retired_at TIMESTAMP WITH TIME ZONE,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT pk_refusal_grounds PRIMARY KEY (id),
    CONSTRAINT uq_refusal_grounds_facility_id_id UNIQUE (facility_id, id),
    CONSTRAINT uq_refusal_grounds_facility_id_code UNIQUE (facility_id, code),
    CONSTRAINT fk_refusal_grounds_facility_id_facilities FOREIGN KEY(facility_id) REFERENCES facilities (id)
);

CREATE TABLE blocklist_entries (
    id UUID DEFAULT gen_random_uuid() NOT NULL,
    facility_id UUID NOT NULL,
    name TEXT DEFAULT '' NOT NULL,
    kana TEXT DEFAULT '' NOT NULL,
    variants TEXT DEFAULT '' NOT NULL,
    phone TEXT,
    email TEXT,
    by_document BOOLEAN DEFAULT false NOT NULL,
    ground TEXT NOT NULL,
    refusal_ground_id UUID,
    author_id UUID,
    author_name TEXT NOT NULL,
    expires_at TIMESTAMP WITH TIME ZONE,
    lifted_at TIMESTAMP WITH TIME ZONE,
    form_key UUID NOT NULL,
    version INTEGER DEFAULT 1 NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT pk_blocklist_entries PRIMARY KEY (id),
    CONSTRAINT uq_blocklist_entries_facility_id_id UNIQUE (facility_id, id),
    CONSTRAINT uq_blocklist_entries_facility_id_form_key UNIQUE (facility_id, form_key),
    CONSTRAINT fk_blocklist_entries_facility_id_refusal_ground_id_refu_ce6e FOREIGN KEY(facility_id, refusal_ground_id) REFERENCES refusal_grounds (facility_id, id),
    CONSTRAINT ck_blocklist_entries_expires_at CHECK (expires_at > created_at),
    CONSTRAINT fk_blocklist_entries_facility_id_facilities FOREIGN KEY(facility_id) REFERENCES facilities (id)
);

CREATE INDEX ix_blocklist_entries_listed ON blocklist_entries (facility_id, created_at, id);

CREATE TABLE blocklist_keys (
    facility_id UUID NOT NULL,
    entry_id UUID NOT NULL,
    kind TEXT NOT NULL,
    value TEXT NOT NULL,
    CONSTRAINT pk_blocklist_keys PRIMARY KEY (entry_id, kind, value),
    CONSTRAINT fk_blocklist_keys_facility_id_entry_id_blocklist_entries FOREIGN KEY(facility_id, entry_id) REFERENCES blocklist_entries (facility_id, id),
    CONSTRAINT ck_blocklist_keys_kind CHECK (kind in ('name', 'phone', 'email', 'document')),
    CONSTRAINT fk_blocklist_keys_facility_id_facilities FOREIGN KEY(facility_id) REFERENCES facilities (id)
);

CREATE INDEX ix_blocklist_keys_value ON blocklist_keys (facility_id, kind, value);

do $$
declare
    scoped text;
begin
    foreach scoped in array array['refusal_grounds', 'blocklist_entries', 'blocklist_keys']
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

grant update (lifted_at, version) on blocklist_entries to portal_app;
grant update (retired_at) on refusal_grounds to portal_app;

-- 旅館業法第5条第1項: the grounds on which a house of the hotel business may refuse lodging. Every
-- house has its own rows, to which a manager adds those of its prefecture's ordinance.
insert into refusal_grounds (facility_id, code, words_ja, words_en)
select f.id, g.code, g.ja, g.en
from facilities f, (values
    ('ryokan-5-1-1', '特定感染症の患者等であるとき（旅館業法第5条第1項第1号）',
     'A patient of a specified infectious disease (Hotel Business Act, article 5, 1, i)'),
    ('ryokan-5-1-2', '賭博その他の違法行為又は風紀を乱す行為をするおそれがあると認められるとき（同第2号）',
     'Feared to gamble, act unlawfully or disturb public morals (article 5, 1, ii)'),
    ('ryokan-5-1-3', '負担が過重で、他の宿泊者へのサービスの提供を著しく阻害するおそれのある要求を繰り返したとき（同第3号）',
     'Repeated demands that burden the house unduly and hinder service to other guests (article 5, 1, iii)'),
    ('ryokan-5-1-4', '宿泊施設に余裕がないとき、その他都道府県の条例で定める事由があるとき（同第4号）',
     'No room, or another ground that the prefecture''s ordinance sets (article 5, 1, iv)')
) g (code, ja, en);
