"""dj-stripe, in its own environment: events stored, and stored and synced to its tables."""

import os
from typing import Any

import django
from django.conf import settings
from django.core.management import call_command
from psycopg.conninfo import conninfo_to_dict

from benchmarks.peers.pipe import serve

KEY = "sk_test_" + "b" * 24  # it refuses shorter ones
waiting: list[dict[str, Any]] = []


def configure() -> None:
    named = conninfo_to_dict(os.environ["PEER_DATABASE"])
    database = {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": named["dbname"],
        "USER": named["user"],
        "PASSWORD": named.get("password", ""),
        "HOST": named["host"],
        "PORT": named.get("port", ""),
        "CONN_MAX_AGE": None,
    }
    settings.configure(
        DATABASES={"default": database},
        INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "djstripe"],
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        STRIPE_LIVE_MODE=False,
        STRIPE_TEST_SECRET_KEY=KEY,
        DJSTRIPE_FOREIGN_KEY_TO_FIELD="id",
        USE_TZ=True,
        SECRET_KEY="bench",
    )
    django.setup()
    call_command("migrate", verbosity=0)


def no_network() -> None:
    """It asks the provider whose key this is, and again for each object that an event is about.
    Both are answered here at once, from what it would hear: the network is nobody's merit."""
    from djstripe.models import Account, APIKey, PaymentIntent

    account = Account.objects.create(id="acct_bench", livemode=False, stripe_data={})
    APIKey.objects.create(
        id="key_bench", type="secret", secret=KEY, livemode=False, djstripe_owner_account=account
    )
    PaymentIntent.api_retrieve = lambda intent, **_: told[intent.id]


told: dict[str, dict[str, Any]] = {}


def give(events: list[dict[str, Any]]) -> None:
    waiting[:] = events
    told.clear()
    told.update((one["data"]["object"]["id"], one["data"]["object"]) for one in events)


def store() -> None:
    from django.db import transaction
    from djstripe.models import Event

    for one in waiting:
        with transaction.atomic():
            Event._create_from_stripe_object(one)


def sync() -> None:
    from djstripe.models import Event

    for one in waiting:
        Event.process(one)


def main() -> None:
    configure()
    no_network()
    serve(give=give, store=store, sync=sync)
