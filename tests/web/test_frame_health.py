"""For machines that watch."""

import pytest

from portal import config
from portal.web import factory


def test_healthz_asks_nobody(settings, app):
    gone = settings | {
        "DATABASE_URL": "postgresql://portal_app@/gone?host=/nowhere",
        "REDIS_URL": "redis://127.0.0.1:9/0",
    }
    client = factory.create_app(config.from_environment(gone)).test_client()
    assert (client.get("/healthz").status_code, client.get("/healthz").text) == (200, "ok\n")


def test_readyz_is_ready_when_everything_is(client):
    answered = client.get("/readyz")
    assert answered.status_code == 200, answered.text
    assert answered.json == {
        "ready": True,
        "checks": dict.fromkeys(("database", "queue", "migrations", "isolation"), "ok"),
    }


@pytest.mark.parametrize(
    ("change", "failed"),
    [
        ({"REDIS_URL": "redis://127.0.0.1:9/0"}, {"queue"}),
        (
            {"DATABASE_URL": "postgresql://portal_app@/gone?host=/nowhere"},
            {"database", "migrations", "isolation"},
        ),
    ],
)
def test_readyz_names_what_is_wrong(settings, app, change, failed):
    client = factory.create_app(config.from_environment(settings | change)).test_client()
    answered = client.get("/readyz")
    assert answered.status_code == 503
    checks = answered.json["checks"]
    assert {name for name, word in checks.items() if word != "ok"} == failed


def test_readyz_sees_an_unsafe_role(settings, app):
    unsafe = settings | {"DATABASE_URL": settings["DATABASE_OWNER_URL"]}
    client = factory.create_app(config.from_environment(unsafe)).test_client()
    answered = client.get("/readyz")
    assert answered.status_code == 503
    assert "superuser" in answered.json["checks"]["isolation"]


def test_metrics_count_answers_and_waiting_work(client):
    client.get("/staff/sign-in")
    client.get("/g/secret-token")
    text = client.get("/metrics").text
    assert 'monban_requests_total{endpoint="session.sign_in",status="200"}' in text
    assert 'monban_work_due{kind="outbox"} 0.0' in text
    assert 'monban_work_dead{kind="lock_commands"} 0.0' in text
    assert "secret-token" not in text


def test_metrics_survive_a_database_that_is_away(settings, app):
    gone = settings | {"DATABASE_URL": "postgresql://portal_app@/gone?host=/nowhere"}
    client = factory.create_app(config.from_environment(gone)).test_client()
    assert client.get("/metrics").status_code == 200
