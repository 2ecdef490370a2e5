"""A stay that a membership gives. By itself: a change that held two of the house's tables at once
could wait for somebody who waits for it."""

from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    # The rows that are there have none; they are looked through later, while others work.
    op.execute(
        "alter table stays add column membership_id uuid,"
        " add constraint fk_stays_facility_id_membership_id_memberships"
        " foreign key (facility_id, membership_id)"
        " references memberships (facility_id, id) not valid"
    )
