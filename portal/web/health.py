"""For machines that watch: alive, ready, and counted."""

import time
from collections.abc import Callable, Iterator
from functools import lru_cache

import prometheus_client as prometheus
from flask import Blueprint, Flask, Response, current_app, g, jsonify, request
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from redis.exceptions import RedisError
from sqlalchemy.exc import SQLAlchemyError

from portal import doorbell, isolation, log
from portal.config import UnsafeConfigurationError
from portal.db import transaction
from portal.web import access

blueprint = Blueprint("health", __name__)
answered_log = log.get("portal.access")


@blueprint.get("/healthz")
@access.machine
def healthz() -> Response:
    """The process answers. Asks nobody."""
    return Response("ok\n", mimetype="text/plain")


@blueprint.get("/readyz")
@access.machine
def readyz() -> tuple[Response, int]:
    """Everything that a page needs, by name: ok, or what is wrong."""
    checks = {
        "database": _database,
        "queue": _queue,
        "migrations": _migrations,
        "isolation": isolation.require_guards,
    }
    found = {name: _outcome(check) for name, check in checks.items()}
    ready = all(word == "ok" for word in found.values())
    return jsonify(ready=ready, checks=found), 200 if ready else 503


@blueprint.get("/metrics")
@access.machine
def metrics() -> Response:
    registry = current_app.extensions["monban.metrics"].registry
    return Response(
        prometheus.generate_latest(registry), content_type=prometheus.CONTENT_TYPE_LATEST
    )


def _outcome(check: Callable[[], None]) -> str:
    try:
        check()
    except UnsafeConfigurationError as unsafe:
        return str(unsafe)
    except (SQLAlchemyError, RedisError) as fault:
        return type(fault).__name__
    return "ok"


def _database() -> None:
    with transaction(None) as tx:
        tx.scalar("select 1")


def _migrations() -> None:
    isolation.require_head()
    isolation.require_indexes()


def _queue() -> None:
    doorbell.connection().ping()


class Metrics:
    """What this process has answered; what work waits is read from the database when asked."""

    def __init__(self) -> None:
        self.registry = prometheus.CollectorRegistry()
        self.answers = prometheus.Counter(
            "monban_requests", "Answered requests.", ["endpoint", "status"], registry=self.registry
        )
        self.seconds = prometheus.Histogram(
            "monban_request_seconds", "Time to answer.", ["endpoint"], registry=self.registry
        )
        self.registry.register(_Work())
        self._of = lru_cache(maxsize=1024)(self._labelled)

    def answered(self, endpoint: str, status: int, seconds: float) -> None:
        count, took = self._of(endpoint, status)
        count.inc()
        took.observe(seconds)

    def _labelled(
        self, endpoint: str, status: int
    ) -> tuple[prometheus.Counter, prometheus.Histogram]:
        return self.answers.labels(endpoint, status), self.seconds.labels(endpoint)


class _Work(Collector):
    def describe(self) -> Iterator[Metric]:
        yield from self._families()

    def collect(self) -> Iterator[Metric]:
        due, dead = self._families()
        try:
            with transaction(None) as tx:
                for row in tx.rows("select kind, due, dead from work_waiting()"):
                    due.add_metric([row.kind], row.due)
                    dead.add_metric([row.kind], row.dead)
        except SQLAlchemyError:
            log.get(__name__).warning("work_not_counted")
        yield from (due, dead)

    def _families(self) -> tuple[GaugeMetricFamily, GaugeMetricFamily]:
        return (
            GaugeMetricFamily("monban_work_due", "Work that waits.", labels=["kind"]),
            GaugeMetricFamily("monban_work_dead", "Work that waits for a person.", labels=["kind"]),
        )


def init_app(app: Flask) -> None:
    app.extensions["monban.metrics"] = Metrics()


def count(response: Response) -> Response:
    """One line and one count a request. Endpoints, never paths: a guest's link is a secret."""
    endpoint = request.endpoint or "unknown"
    now = time.perf_counter()
    seconds = now - g.get("began", now)
    seen: Metrics = current_app.extensions["monban.metrics"]
    seen.answered(endpoint, response.status_code, seconds)
    if endpoint != "static":
        answered_log.info(
            "answered",
            method=request.method,
            endpoint=endpoint,
            status=response.status_code,
            ms=round(seconds * 1000, 1),
        )
    return response
