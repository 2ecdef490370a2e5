"""Payments of memberships. By itself: one busy table at a time."""

from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    op.execute(
        "alter table payments add column membership_id uuid, add column invoice_id text,"
        " add constraint fk_payments_facility_id_membership_id_memberships"
        " foreign key (facility_id, membership_id)"
        " references memberships (facility_id, id) not valid,"
        " add constraint ck_payments_folio"
        " check (num_nonnulls(stay_id, membership_id) <= 1) not valid"
    )
