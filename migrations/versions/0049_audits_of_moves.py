"""The gate is asked for a move as well: a row of its audits that says so was refused until now. And
the audits are listed, all of them, by entrance and by rule. The rows that there are keep the rule
that they kept; they are looked through, and the indexes built, beside the work."""

from alembic import op

revision = "0049"
down_revision = "0048"

INDEXES = {
    "ix_gate_audits_listed": "facility_id, at, id",
    "ix_gate_audits_entrance": "facility_id, entrance_id, at, id",
    "ix_gate_audits_rule": "facility_id, rule, at, id",
}


def upgrade() -> None:
    op.execute(
        "alter table gate_audits drop constraint if exists ck_gate_audits_asks,"
        " add constraint ck_gate_audits_asks check (asks in ('booking', 'entry', 'move')) not valid"
    )
    with op.get_context().autocommit_block():
        op.execute("set lock_timeout = 0")  # it waits for others, and nobody waits for it
        op.execute("alter table gate_audits validate constraint ck_gate_audits_asks")
        for index, columns in INDEXES.items():
            # What a cancelled build left is not valid, and "if not exists" would keep it.
            op.execute(f"drop index concurrently if exists {index}")
            op.execute(f"create index concurrently {index} on gate_audits ({columns})")
        op.execute("drop index concurrently if exists ix_gate_audits_at")
