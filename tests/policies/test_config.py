"""Configuration: read once, plain URLs taken, unsafe combinations refused in one line."""

import pytest

from portal.config import UnsafeConfigurationError, from_environment, is_local, sqlalchemy_url

SAFE = {
    "DATABASE_URL": "postgresql://portal_app:p%40ss@/monban?host=/run/pg",
    "REDIS_URL": "redis://127.0.0.1/0",
    "SECRET_KEY": "a real one",
    "PUBLIC_URL": "https://monban.example",
    "STRIPE_SECRET_KEY": "sk_live_x",
    "STRIPE_WEBHOOK_SECRET": "whsec_new, whsec_old",
    "SEAM_API_KEY": "seam_x",
    "SEAM_WEBHOOK_SECRET": "whsec_y",
    "SMTP_URL": "smtp://u:secret@mail.example",
}
TEST = {"STRIPE_SECRET_KEY": "sk_test_x"}


def test_a_safe_environment_is_read() -> None:
    config = from_environment(SAFE)
    assert config.stripe_webhook_secrets == ("whsec_new", "whsec_old")
    assert config.database_url == "postgresql+psycopg://portal_app:p%40ss@/monban?host=/run/pg"
    assert (config.stripe_live, config.https, config.webhook_mode) == (True, True, "queued")
    assert config.seal_keys == ("a real one",)


def test_secrets_are_not_printed() -> None:
    printed = repr(from_environment({**SAFE, "LINE_CHANNEL_TOKEN": "line-token"}))
    for secret in ("a real one", "sk_live_x", "whsec_new", "seam_x", "whsec_y", "line-token"):
        assert secret not in printed
    assert "u:secret" not in printed


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"SECRET_KEY": ""}, "SECRET_KEY"),
        ({"SECRET_KEY": "development-only-secret-key"}, "SECRET_KEY"),
        ({"PUBLIC_URL": "http://monban.example"}, "PUBLIC_URL"),
        ({"PUBLIC_URL": "http://127.0.0.1.evil.example"}, "PUBLIC_URL"),
        ({"STRIPE_API_BASE": "http://127.0.0.1:4000"}, "STRIPE_API_BASE"),
        ({"STRIPE_SECRET_KEY": "rk_live_x", "STRIPE_API_BASE": "http://x"}, "STRIPE_API_BASE"),
        ({**TEST, "STRIPE_API_BASE": "http://127.0.0.1:4000"}, "STRIPE_API_BASE"),
        ({"SEAM_ENDPOINT": "http://127.0.0.1:5000"}, "SEAM_ENDPOINT"),
        ({"SEAM_ENDPOINT": "http://localhost:5000"}, "SEAM_ENDPOINT"),
        ({"LINE_API_BASE": "http://127.0.0.1:5001"}, "LINE_API_BASE"),
        ({"STRIPE_WEBHOOK_SECRET": ""}, "STRIPE_WEBHOOK_SECRET"),
        ({"STRIPE_WEBHOOK_SECRET": " , "}, "STRIPE_WEBHOOK_SECRET"),
        ({"SEAM_WEBHOOK_SECRET": ""}, "SEAM_WEBHOOK_SECRET"),
        ({"WEBHOOK_MODE": "sometimes"}, "WEBHOOK_MODE"),
        ({"WEBHOOK_MODE": "inline", "SMTP_URL": ""}, "SMTP_URL"),
        ({"DATABASE_POOL_SIZE": "0"}, "DATABASE_POOL_SIZE"),
        ({"DATABASE_POOL_SIZE": "-1"}, "DATABASE_POOL_SIZE"),
        ({"DATABASE_POOL_SIZE": "１０"}, "DATABASE_POOL_SIZE"),
        ({"DATABASE_POOL_SIZE": "many"}, "DATABASE_POOL_SIZE"),
        ({"DATABASE_URL": ""}, "DATABASE_URL"),
        ({"REDIS_URL": ""}, "REDIS_URL"),
    ],
)
def test_an_unsafe_environment_stops_the_start(change: dict[str, str], named: str) -> None:
    with pytest.raises(UnsafeConfigurationError, match=named) as caught:
        from_environment({**SAFE, **change})
    line = str(caught.value)
    assert "\n" not in line
    assert isinstance(caught.value, SystemExit)
    for name in ("SECRET_KEY", "STRIPE_SECRET_KEY", "STRIPE_WEBHOOK_SECRET", "SEAM_API_KEY"):
        assert SAFE[name] not in line


@pytest.mark.parametrize(
    "change",
    [
        {"PUBLIC_URL": "http://127.0.0.1:8000", "SECRET_KEY": "", **TEST},
        {"PUBLIC_URL": "http://localhost", **TEST, "STRIPE_API_BASE": "http://127.0.0.1:4000"},
        {"PUBLIC_URL": "http://[::1]:8000", **TEST, "SEAM_ENDPOINT": "http://127.0.0.1:5000"},
        {"WEBHOOK_MODE": "inline", "SMTP_URL": "smtp://127.0.0.1:25"},
        {"STRIPE_SECRET_KEY": "", "STRIPE_WEBHOOK_SECRET": ""},
    ],
)
def test_safe_combinations_start(change: dict[str, str]) -> None:
    assert from_environment({**SAFE, **change}).database_url


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ("postgres://u@h/d", "postgresql+psycopg://u@h/d"),
        ("postgresql://u@/d?host=/tmp/a b", "postgresql+psycopg://u@/d?host=/tmp/a b"),
        ("postgresql+psycopg://u@h/d", "postgresql+psycopg://u@h/d"),
    ],
)
def test_plain_database_urls_are_taken(given: str, taken: str) -> None:
    assert sqlalchemy_url(given) == taken


@pytest.mark.parametrize(
    ("url", "local"),
    [
        ("http://127.0.0.1:1", True),
        ("http://LOCALHOST", True),
        ("http://localhost.evil.example", False),
        ("http://0.0.0.0", False),
        ("http://evil.example/?127.0.0.1", False),
        ("", False),
    ],
)
def test_what_is_local(url: str, local: bool) -> None:
    assert is_local(url) == local
