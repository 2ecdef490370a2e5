"""What a refusal was founded on: the entrance, the entry of the blocklist and its grounds. By
itself, as every change of a table that is in use; nobody waits for the rows there are."""

from alembic import op

revision = "0034"
down_revision = "0033"


def upgrade() -> None:
    op.execute(
        "alter table gate_audits"
        " add column entrance_id uuid, add column blocklist_entry_id uuid,"
        " add column asks text not null default 'entry', add column ground text,"
        " add column statute text, add column let_in boolean not null default false,"
        " add constraint ck_gate_audits_asks check (asks in ('booking', 'entry')) not valid,"
        " add constraint fk_gate_audits_facility_id_entrance_id_entrances"
        " foreign key (facility_id, entrance_id) references entrances (facility_id, id) not valid,"
        " add constraint fk_gate_audits_facility_id_blocklist_entry_id_blocklist_entries"
        " foreign key (facility_id, blocklist_entry_id)"
        " references blocklist_entries (facility_id, id) not valid"
    )
