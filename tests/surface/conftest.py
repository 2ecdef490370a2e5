"""The desk's portal before its stand-ins, full of rows, and nothing that slows a stranger down."""

from collections.abc import Iterator

import pytest

from portal.web import extensions
from tests.web.conftest import quick_passwords  # noqa: F401
from tests.web.staff.houses import desk_app, front  # noqa: F401


@pytest.fixture
def unlimited() -> Iterator[None]:
    """The limits of attempts have their own tests; here they would hide what lies behind them."""
    was = extensions.limiter.enabled
    extensions.limiter.enabled = False
    yield
    extensions.limiter.enabled = was
