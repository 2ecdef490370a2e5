"""The application's entry: `flask --app app …`, and `app:production()` for a server."""

from flask import Flask

from portal import config, isolation
from portal.web import factory


def create_app() -> Flask:
    """The portal, configured by the environment. Touches neither database nor queue."""
    return factory.create_app(config.from_environment())


def production() -> Flask:
    """The portal, once it is proven that facilities are kept apart in this database."""
    app = create_app()
    with app.app_context():
        isolation.prove()
    return app
