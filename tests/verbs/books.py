"""Money that stands in the books without a provider having been asked, and a hand on its rows."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import psycopg

from portal.edges.payments.port import Refund as ProviderRefund
from sandbox.stripe.testing import StandIn, client
from tests.cast import Booked
from tests.outside import STRIPE_KEY, Owner


def put_payment(owner: Owner, stay: Booked, amount: int = 10_000, **more: Any) -> UUID:
    """A card payment of the stay that succeeded."""
    values = {
        "facility_id": stay.facility_id,
        "purpose": "reservation_balance",
        "subject_id": stay.id,
        "stay_id": stay.id,
        "attempt": 1 + owner.one("select count(*) from payments"),
        "amount": amount,
        "currency": "JPY",
        "state": "succeeded",
        "idempotency_key": str(uuid4()),
        "intent_id": f"pi_{uuid4().hex}",
        "succeeded_at": datetime.now(UTC),
    }
    return _put(owner, "payments", values | more)


def put_refund(owner: Owner, payment: UUID, state: str, amount: int = 1000, **more: Any) -> UUID:
    facility, stay = owner.row("select facility_id, stay_id from payments where id = %s", payment)
    values = {
        "facility_id": facility,
        "payment_id": payment,
        "stay_id": stay,
        "amount": amount,
        "currency": "JPY",
        "state": state,
        "reason": "staff",
    }
    return _put(owner, "refunds", values | more)


def intent_there(stripe: StandIn, *, paid: bool = True) -> str:
    """Of 10,000 yen, which the provider has and no row of ours may know of."""
    card = {"payment_method": "pm_card_visa", "confirm": True}
    back = {"return_url": "https://example.com/back"}
    asked = {"amount": 10_000, "currency": "jpy", **(card | back if paid else {})}
    made: str = client(stripe.base, STRIPE_KEY).payment_intents.create(asked).id
    return made


def _put(owner: Owner, table: str, values: dict[str, Any]) -> UUID:
    """As nobody but a test may: past the guard that lets only verbs write a state."""
    owner.run("set session_replication_role = replica")
    places = ", ".join(["%s"] * len(values))
    made: UUID = owner.one(
        f"insert into {table} ({', '.join(values)}) values ({places}) returning id",
        *values.values(),
    )
    owner.run("set session_replication_role = origin")
    return made


def answer(status: Any = "succeeded", **more: Any) -> ProviderRefund:
    """What the provider says of a refund."""
    said: dict[str, Any] = {
        "id": "re_1",
        "status": status,
        "amount": 1000,
        "currency": "JPY",
        "intent_id": None,
        "charge_id": None,
        "metadata": {},
        "failure_reason": None,
        "created": datetime.now(UTC),
    }
    return ProviderRefund(**said | more)


@contextmanager
def another_writes(owner: Owner, statement: str, *params: Any) -> Iterator[None]:
    """Another transaction has made this change: it is committed once somebody waits for it, or at
    the end of the block where nobody has."""
    url = {"conninfo": owner.wire.info.dsn, "password": owner.wire.info.password}
    over = threading.Event()

    def commit_when_waited_for() -> None:
        with psycopg.connect(**url, autocommit=True) as watching:
            while not over.is_set() and watching.execute(SOMEBODY_WAITS).fetchone() is None:
                time.sleep(0.005)
        other.commit()

    with psycopg.connect(**url) as other:
        other.execute("set session_replication_role = replica")
        other.execute(statement, params)
        thread = threading.Thread(target=commit_when_waited_for)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join(30)


SOMEBODY_WAITS = "select 1 from pg_locks where not granted limit 1"
