"""The entrance that leads to a door: one at most, and none for the doors there are. By itself, as
every change of a table that is in use; a house has few doors, so they are looked through here."""

from alembic import op

revision = "0031"
down_revision = "0030"


def upgrade() -> None:
    op.execute(
        "alter table doors add column entrance_id uuid,"
        " add constraint fk_doors_facility_id_entrance_id_entrances"
        " foreign key (facility_id, entrance_id) references entrances (facility_id, id)"
    )
