"""How words leave the house. Only the outbox's dispatch holds these."""

from dataclasses import dataclass

from portal.config import Config
from portal.edges.line.port import Line
from portal.edges.mail.port import Mail


@dataclass(frozen=True, slots=True)
class Channels:
    mail: Mail
    line: Line | None


def channels(config: Config) -> Channels:
    """No connection is opened here. The SDKs are loaded here, since that takes seconds and only a
    process that sends needs them."""
    from portal.edges.line.adapter import LineMessages
    from portal.edges.mail.adapter import SmtpMail

    line = (
        LineMessages(config.line_channel_token, api_base=config.line_api_base)
        if config.line_channel_token
        else None
    )
    return Channels(mail=SmtpMail(config.smtp_url, sender=config.mail_from), line=line)
