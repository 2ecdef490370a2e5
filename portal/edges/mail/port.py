"""What the portal asks of e-mail: one message to one person. There is no retry key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class MailMessage:
    """One person gets it, so that nobody's refusal touches another.

    `to` is a bare address; `sender_name` is shown before our own address; `message_id` is the
    row's own, with or without angle brackets; `language` is the tag of the text (ja, en).
    """

    to: str
    subject: str
    text: str
    html: str | None
    sender_name: str
    message_id: str
    language: str


class Mail(Protocol):
    def send(self, message: MailMessage) -> None:
        """Returns when the server has taken the message over.

        Unreachable: it was certainly not taken, try later; `code` is the SMTP code where there
        is one. Unknown: the text was on its way when the connection broke; sending it again
        can deliver it twice. Rejected: this address or text is refused for good.
        """
        ...
