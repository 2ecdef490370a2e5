"""By which policy a plan is cancelled. By itself, as every change of a busy table."""

from alembic import op

revision = "0038"
down_revision = "0037"


def upgrade() -> None:
    # The plans that are there have none: the desk decides, as it did.
    op.execute(
        "alter table plans add column cancellation_policy_id uuid,"
        " add constraint fk_plans_facility_id_cancellation_policy_id_cancellatio_e1ad"
        " foreign key (facility_id, cancellation_policy_id)"
        " references cancellation_policies (facility_id, id) not valid"
    )
