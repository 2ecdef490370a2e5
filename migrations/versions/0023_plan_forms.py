"""One form makes one plan that can be joined, however often it is sent."""

from alembic import op

revision = "0023"
down_revision = "0022"


def upgrade() -> None:
    # The plans that are there came from no form.
    op.execute(
        "alter table membership_plans add column form_key uuid,"
        " add constraint uq_membership_plans_facility_id_form_key unique (facility_id, form_key)"
    )
