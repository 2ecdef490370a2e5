"""A message that is about a membership."""

from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.execute(
        "alter table outbox add column membership_id uuid,"
        " add constraint fk_outbox_facility_id_membership_id_memberships"
        " foreign key (facility_id, membership_id)"
        " references memberships (facility_id, id) not valid,"
        " add constraint ck_outbox_subject"
        " check (num_nonnulls(stay_id, membership_id) <= 1) not valid"
    )
