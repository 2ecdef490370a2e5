"""The floor of the receive route: Flask, one statement, no promise beyond it."""

from __future__ import annotations

import json
import os
import threading

import psycopg
from flask import Flask, request

app = Flask(__name__)
_held = threading.local()

_STORE = """
    insert into webhook_events (source, event_id, type, state, created, livemode, payload, headers,
        request_id)
    values ('stripe', %s, %s, 'processing', now(), %s, %s, '{}', 'bench')
    on conflict (source, event_id) do nothing
"""


@app.get("/healthz")
def healthz() -> str:
    return "ok"


@app.post("/webhooks/stripe")
def store() -> str:
    if not hasattr(_held, "wire"):
        _held.wire = psycopg.connect(os.environ["BARE_DATABASE"], autocommit=True)
    raw = request.get_data()
    told = json.loads(raw)
    _held.wire.execute(_STORE, (told["id"], told["type"], told["livemode"], raw))
    return "received"
