"""The account of a membership. A line belongs to one account, a stay's or a membership's."""

from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    op.execute(
        "alter table ledger_lines alter column stay_id drop not null,"
        " add column membership_id uuid,"
        " add constraint fk_ledger_lines_facility_id_membership_id_memberships"
        " foreign key (facility_id, membership_id)"
        " references memberships (facility_id, id) not valid,"
        " add constraint ck_ledger_lines_folio"
        " check (num_nonnulls(stay_id, membership_id) = 1) not valid"
    )
