"""To which terms of cancellation a guest agreed. By itself, as every change of a busy table."""

from alembic import op

revision = "0039"
down_revision = "0038"


def upgrade() -> None:
    # The stays that are there were booked under none. They are looked through later.
    op.execute(
        "alter table stays add column cancellation_terms_id uuid,"
        " add constraint fk_stays_facility_id_cancellation_terms_id_cancellation_terms"
        " foreign key (facility_id, cancellation_terms_id)"
        " references cancellation_terms (facility_id, id) not valid"
    )
