"""The control door: what tests turn. JSON in, JSON out, never a failure of its own.

Its paths are listed in `DOORS`; a body that makes no sense is answered 400 with the reason.
"""

import json
import re
from collections.abc import Callable
from typing import Any

from sandbox.stripe import doors_money, doors_setup, doors_webhooks
from sandbox.stripe.bench import Bench
from sandbox.stripe.errors import ApiError

Door = Callable[..., Any]
"""(bench, given, *ids from the path) → anything that JSON can hold."""

DOORS: tuple[tuple[str, str, Door], ...] = (
    ("POST", "faults", doors_setup.add_fault),
    ("GET", "faults", doors_setup.list_faults),
    ("DELETE", "faults", doors_setup.clear_faults),
    ("POST", "down", doors_setup.set_down),
    ("POST", "listening", doors_setup.set_listening),
    ("POST", "clock", doors_setup.set_clock),
    ("GET", "clock", doors_setup.read_clock),
    ("POST", "age", doors_setup.age),
    ("GET", "objects", doors_setup.dump),
    ("GET", "objects/([^/]+)", doors_setup.dump_one),
    ("GET", "counters", doors_setup.counters),
    ("GET", "calls", doors_setup.calls),
    ("POST", "reset", doors_setup.reset),
    ("POST", "refunds", doors_money.external_refund),
    ("POST", "refunds/next", doors_money.next_refunds),
    ("POST", "refunds/([^/]+)", doors_money.settle_refund),
    ("POST", "payment_intents/([^/]+)/finish", doors_money.finish_intent),
    ("POST", "payment_intents/([^/]+)/expire", doors_money.expire_authorisation),
    ("POST", "payment_intents/([^/]+)/challenge", doors_money.answer_challenge),
    ("POST", "disputes", doors_money.open_dispute),
    ("POST", "disputes/([^/]+)/close", doors_money.close_dispute),
    ("POST", "subscriptions/([^/]+)/renew", doors_money.renew),
    ("POST", "webhooks/endpoints", doors_webhooks.add_endpoint),
    ("DELETE", "webhooks/endpoints", doors_webhooks.clear_endpoints),
    ("POST", "webhooks", doors_webhooks.set_webhooks),
    ("POST", "webhooks/reverse", doors_webhooks.reverse),
    ("POST", "webhooks/flush", doors_webhooks.flush),
    ("GET", "webhooks/deliveries", doors_webhooks.deliveries),
    ("POST", "webhooks/redeliver", doors_webhooks.redeliver),
    ("POST", "webhooks/twin", doors_webhooks.twin),
    ("POST", "webhooks/send", doors_webhooks.send),
    ("POST", "webhooks/record", doors_webhooks.record),
)


def answer(bench: Bench, method: str, path: str, body: bytes) -> tuple[int, Any]:
    """HTTP status and JSON body."""
    try:
        given = json.loads(body) if body.strip() else {}
        for known, pattern, door in DOORS:
            match = re.fullmatch("/_control/" + pattern, path)
            if known == method and match:
                return 200, door(bench, given, *match.groups())
        return 404, {"error": f"no such door: {method} {path}"}
    except ApiError as error:
        return error.status, error.body()
    except (KeyError, TypeError, ValueError, re.error) as error:
        return 400, {"error": f"{type(error).__name__}: {error}"}
