"""Guests' pages are tested in a house that takes cards."""

import pytest
from flask.testing import FlaskClient

from tests.web.shop import Shop, card_rail, open_shop, shop, shop_app

__all__ = ["card_rail", "open_shop", "shop", "shop_app"]


@pytest.fixture
def client(shop: Shop) -> FlaskClient:
    """A phone without script."""
    return shop.app.test_client()
