"""Who a member is at the card provider, and at what price a plan is sold there."""

from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    op.execute("alter table members add column customer_id text")
    op.execute(
        "alter table membership_plans add column price_id text, add column price_id_for text"
    )
