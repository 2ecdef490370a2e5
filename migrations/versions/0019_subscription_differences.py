"""What the provider tells of a subscription otherwise than we do is a difference of its own."""

from alembic import op

revision = "0019"
down_revision = "0018"

KINDS = (
    "payment_not_here",
    "payment_not_there",
    "payment_differs",
    "refund_not_here",
    "refund_not_there",
    "refund_differs",
    "code_stray",
    "code_missing",
    "code_differs",
    "code_pin_differs",
    "message_not_here",
    "message_not_there",
    "subscription_not_here",
    "subscription_not_there",
    "subscription_differs",
)


def upgrade() -> None:
    kinds = ", ".join(f"'{kind}'" for kind in KINDS)
    op.execute(
        "alter table divergences add column membership_id uuid,"
        " add constraint fk_divergences_facility_id_membership_id_memberships"
        " foreign key (facility_id, membership_id) references memberships (facility_id, id),"
        " drop constraint ck_divergences_kind,"
        f" add constraint ck_divergences_kind check (kind in ({kinds}))"
    )
