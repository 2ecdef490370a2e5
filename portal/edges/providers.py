"""The real providers, made from configuration: one set for the web, one for each worker."""

from dataclasses import dataclass

from portal.config import Config
from portal.edges.line.adapter import LineMessages
from portal.edges.line.port import Line
from portal.edges.locks.adapter import SeamLocks
from portal.edges.locks.port import Locks
from portal.edges.mail.adapter import SmtpMail
from portal.edges.mail.port import Mail
from portal.edges.payments.adapter import StripePayments
from portal.edges.payments.port import Payments


@dataclass(frozen=True, slots=True)
class Providers:
    payments: Payments
    locks: Locks


@dataclass(frozen=True, slots=True)
class Channels:
    """How words leave the house. Only the outbox's dispatch holds them."""

    mail: Mail
    line: Line | None


def providers(config: Config) -> Providers:
    """No connection is opened here."""
    return Providers(
        payments=StripePayments(config.stripe_secret_key, api_base=config.stripe_api_base),
        locks=SeamLocks(config.seam_api_key, endpoint=config.seam_endpoint),
    )


def channels(config: Config) -> Channels:
    line = (
        LineMessages(config.line_channel_token, api_base=config.line_api_base)
        if config.line_channel_token
        else None
    )
    return Channels(mail=SmtpMail(config.smtp_url, sender=config.mail_from), line=line)
