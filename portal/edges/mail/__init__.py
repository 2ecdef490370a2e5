"""E-mail to guests and staff."""

from portal.edges.mail.port import Mail, MailMessage

__all__ = ["Mail", "MailMessage"]
