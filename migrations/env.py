"""Alembic, run as the owner: `flask --app app db upgrade`."""

import os

from alembic import context
from sqlalchemy import create_engine

import portal.models  # noqa: F401  (declares the tables)
from portal.config import UnsafeConfigurationError, sqlalchemy_url
from portal.db import Base


def owner_url() -> str:
    url = os.environ.get("DATABASE_OWNER_URL")
    if not url:
        raise UnsafeConfigurationError("DATABASE_OWNER_URL is not set: migrations run as the owner")
    return sqlalchemy_url(url)


LOCK_TIMEOUT = "-c lock_timeout=5s"
"""A change of a table waits for whoever uses it, and everybody else waits behind the change. Past
this the upgrade stops, with nothing changed, and is run again at a calmer time."""


def run() -> None:
    engine = create_engine(owner_url(), connect_args={"options": LOCK_TIMEOUT})
    with engine.connect() as connection:
        context.configure(
            connection=connection,
            target_metadata=Base.metadata,
            transaction_per_migration=True,
            compare_server_default=False,
        )
        with context.begin_transaction():
            context.run_migrations()
    engine.dispose()


run()
