"""Refunds of memberships. By itself: one busy table at a time."""

from alembic import op

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    op.execute(
        "alter table refunds add column membership_id uuid,"
        " add constraint fk_refunds_facility_id_membership_id_memberships"
        " foreign key (facility_id, membership_id)"
        " references memberships (facility_id, id) not valid,"
        " add constraint ck_refunds_folio"
        " check (num_nonnulls(stay_id, membership_id) <= 1) not valid"
    )
