"""The owner's view of the database."""

from tests.outside import owner  # noqa: F401
