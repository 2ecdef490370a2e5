"""Configuration, read once from the environment. An unsafe combination stops the start."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

DEVELOPMENT_SECRET = "development-only-secret-key"
STRIPE_HOSTED_API = "api.stripe.com"

WebhookMode = Literal["queued", "inline"]


class UnsafeConfigurationError(SystemExit):
    """One clear line, and the process does not start."""


@dataclass(frozen=True, slots=True)
class Config:
    """Every setting. Secrets are kept out of `repr`."""

    database_url: str
    database_owner_url: str | None
    redis_url: str
    public_url: str
    secret_key: str = field(repr=False)
    seal_keys: tuple[str, ...] = field(repr=False)
    stripe_secret_key: str = field(repr=False)
    stripe_publishable_key: str
    stripe_webhook_secrets: tuple[str, ...] = field(repr=False)
    stripe_api_base: str | None
    seam_api_key: str = field(repr=False)
    seam_endpoint: str | None
    seam_webhook_secrets: tuple[str, ...] = field(repr=False)
    smtp_url: str = field(repr=False)
    mail_from: str
    mail_archive_url: str | None
    line_channel_token: str | None = field(repr=False)
    line_api_base: str | None
    webhook_mode: WebhookMode
    pool_size: int
    log_level: str

    @property
    def stripe_live(self) -> bool:
        return self.stripe_secret_key.startswith(("sk_live_", "rk_live_"))

    @property
    def https(self) -> bool:
        return self.public_url.startswith("https://")


def from_environment(env: Mapping[str, str] | None = None) -> Config:
    """Read the environment, refuse what is unsafe, and return the settings."""
    values = os.environ if env is None else env
    secret = values.get("SECRET_KEY") or DEVELOPMENT_SECRET
    config = Config(
        database_url=sqlalchemy_url(_required(values, "DATABASE_URL")),
        database_owner_url=_optional_url(values.get("DATABASE_OWNER_URL")),
        redis_url=_required(values, "REDIS_URL"),
        public_url=values.get("PUBLIC_URL", "http://127.0.0.1:8000").rstrip("/"),
        secret_key=secret,
        seal_keys=_split(values.get("SEAL_KEYS", "")) or (secret,),
        stripe_secret_key=values.get("STRIPE_SECRET_KEY", ""),
        stripe_publishable_key=values.get("STRIPE_PUBLISHABLE_KEY", ""),
        stripe_webhook_secrets=_split(values.get("STRIPE_WEBHOOK_SECRET", "")),
        stripe_api_base=values.get("STRIPE_API_BASE") or None,
        seam_api_key=values.get("SEAM_API_KEY", ""),
        seam_endpoint=values.get("SEAM_ENDPOINT") or None,
        seam_webhook_secrets=_split(values.get("SEAM_WEBHOOK_SECRET", "")),
        smtp_url=values.get("SMTP_URL", ""),
        mail_from=values.get("MAIL_FROM", "monban@localhost.localdomain"),
        mail_archive_url=values.get("MAIL_ARCHIVE_URL") or None,
        line_channel_token=values.get("LINE_CHANNEL_TOKEN") or None,
        line_api_base=values.get("LINE_API_BASE") or None,
        webhook_mode=_webhook_mode(values.get("WEBHOOK_MODE", "queued")),
        pool_size=_whole(values, "DATABASE_POOL_SIZE", 10),
        log_level=values.get("LOG_LEVEL", "INFO").upper(),
    )
    refuse_unsafe(config)
    return config


def refuse_unsafe(config: Config) -> None:
    """Stop the start when two settings contradict each other dangerously."""
    local = is_local(config.public_url)
    if config.secret_key == DEVELOPMENT_SECRET and not local:
        raise UnsafeConfigurationError("SECRET_KEY must be set when PUBLIC_URL is not local")
    if not config.https and not local:
        raise UnsafeConfigurationError("PUBLIC_URL must be https unless it is local")
    if config.stripe_live and config.stripe_api_base is not None:
        raise UnsafeConfigurationError("a live STRIPE_SECRET_KEY must not meet STRIPE_API_BASE")
    if config.stripe_live and config.seam_endpoint and is_local(config.seam_endpoint):
        raise UnsafeConfigurationError("live money must not open pretended doors: SEAM_ENDPOINT")
    if config.stripe_live and config.line_api_base:
        raise UnsafeConfigurationError("live money must not speak to a pretended LINE_API_BASE")
    if config.stripe_secret_key and not config.stripe_webhook_secrets:
        raise UnsafeConfigurationError("STRIPE_WEBHOOK_SECRET is missing beside STRIPE_SECRET_KEY")
    if config.webhook_mode == "inline" and not config.smtp_url:
        raise UnsafeConfigurationError("SMTP_URL is missing: inline mode works without a worker")
    if config.seam_api_key and not config.seam_webhook_secrets:
        raise UnsafeConfigurationError("SEAM_WEBHOOK_SECRET is missing beside SEAM_API_KEY")
    if not config.stripe_live and not local and config.stripe_api_base:
        raise UnsafeConfigurationError("STRIPE_API_BASE is for local use; PUBLIC_URL is public")


def is_local(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    return host in {"localhost", "127.0.0.1", "::1"}


def sqlalchemy_url(url: str) -> str:
    """Accept plain `postgresql://` (and `postgres://`) URLs, socket hosts included."""
    for plain in ("postgresql://", "postgres://"):
        if url.startswith(plain):
            return "postgresql+psycopg://" + url[len(plain) :]
    return url


def _optional_url(url: str | None) -> str | None:
    return sqlalchemy_url(url) if url else None


def _required(values: Mapping[str, str], name: str) -> str:
    if not values.get(name):
        raise UnsafeConfigurationError(f"{name} is not set")
    return values[name]


def _split(value: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in value.split(",") if part.strip())


def _webhook_mode(value: str) -> WebhookMode:
    if value == "queued":
        return "queued"
    if value == "inline":
        return "inline"
    raise UnsafeConfigurationError("WEBHOOK_MODE must be queued or inline")


def _whole(values: Mapping[str, str], name: str, default: int) -> int:
    raw = values.get(name, str(default))
    if not raw.isascii() or not raw.isdigit() or int(raw) < 1:
        raise UnsafeConfigurationError(f"{name} must be a whole number above zero")
    return int(raw)
