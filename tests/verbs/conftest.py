"""Fixtures of the tests of verbs."""

from tests.verbs.nearby import nearby  # noqa: F401
