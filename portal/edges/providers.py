"""The providers that verbs speak with, made from configuration: one set a process."""

from dataclasses import dataclass

from portal.config import Config
from portal.edges.billing.adapter import StripeBilling
from portal.edges.billing.port import Billing
from portal.edges.locks.adapter import SeamLocks
from portal.edges.locks.port import Locks
from portal.edges.mail_archive.adapter import HttpMailArchive
from portal.edges.mail_archive.port import MailArchive
from portal.edges.payments.adapter import StripePayments
from portal.edges.payments.port import Payments


@dataclass(frozen=True, slots=True)
class Providers:
    payments: Payments
    billing: Billing
    locks: Locks
    mail_archive: MailArchive | None = None
    """None where the mail server tells nothing of what it has taken."""


def providers(config: Config) -> Providers:
    """No connection is opened here."""
    archive = config.mail_archive_url
    return Providers(
        payments=StripePayments(config.stripe_secret_key, api_base=config.stripe_api_base),
        billing=StripeBilling(config.stripe_secret_key, api_base=config.stripe_api_base),
        locks=SeamLocks(config.seam_api_key, endpoint=config.seam_endpoint),
        mail_archive=HttpMailArchive(archive) if archive else None,
    )
