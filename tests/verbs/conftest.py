"""Fixtures of the tests of verbs."""

from tests.verbs.nearby import first_writer, nearby  # noqa: F401
