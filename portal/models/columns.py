"""Column shapes that every table shares."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from sqlalchemy import ForeignKey, ForeignKeyConstraint, Text, func, text
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.postgresql import TIMESTAMP
from sqlalchemy.orm import mapped_column

Key = Annotated[
    UUID,
    mapped_column(
        postgresql.UUID(as_uuid=True), primary_key=True, server_default=text("gen_random_uuid()")
    ),
]
Ref = Annotated[UUID, mapped_column(postgresql.UUID(as_uuid=True))]
House = Annotated[UUID, mapped_column(postgresql.UUID(as_uuid=True), ForeignKey("facilities.id"))]
Instant = Annotated[datetime, mapped_column(TIMESTAMP(timezone=True))]
Created = Annotated[datetime, mapped_column(TIMESTAMP(timezone=True), server_default=func.now())]
Words = Annotated[str, mapped_column(Text)]
Version = Annotated[int, mapped_column(server_default=text("1"))]
Attempts = Annotated[int, mapped_column(server_default=text("0"))]


def belongs_to(table: str, column: str) -> ForeignKeyConstraint:
    """A reference that cannot leave its facility: the key is (facility_id, id)."""
    return ForeignKeyConstraint(["facility_id", column], [f"{table}.facility_id", f"{table}.id"])
