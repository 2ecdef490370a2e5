"""A message as bytes. Pure. Nothing in a name or subject can become a header of its own."""

from __future__ import annotations

import re
from datetime import datetime
from email import policy
from email.headerregistry import Address
from email.message import EmailMessage

from portal.edges.mail.port import MailMessage

# Seven bits everywhere: no server has to support anything for Japanese to arrive.
WIRE = policy.SMTP.clone(cte_type="7bit")

# Controls (CR and LF among them), line and paragraph separators, and the characters that turn
# the direction of what follows: with them a name can look like another one.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]+")
_ADDRESS = re.compile(r"[^\s@<>()\[\],;:\\\"]+@[^\s@<>()\[\],;:\\\"]+\.?")


_ID = re.compile(r"[^A-Za-z0-9@._+=-]")
_TAG = re.compile(r"[^A-Za-z0-9-]")
LONGEST = 200  # characters; a line has at most 998 bytes, and an unbroken name cannot be folded


class BadAddressError(ValueError):
    """Not one bare address that can be sent to."""


def compose(message: MailMessage, sender: str, now: datetime) -> bytes:
    """The whole message with CRLF line ends. `sender` is our address, `now` is aware."""
    mail = EmailMessage(policy=WIRE)
    mail["From"] = Address(header_text(message.sender_name), addr_spec=sender)
    mail["To"] = Address(addr_spec=deliverable(message.to))
    mail["Subject"] = header_text(message.subject)
    mail["Date"] = now
    mail["Message-ID"] = _message_id(message.message_id, sender)
    mail["Auto-Submitted"] = "auto-generated"  # holiday notes do not answer it (RFC 3834)
    mail.set_content(_encodable(message.text))
    if message.html is not None:
        mail.add_alternative(_encodable(message.html), subtype="html")
    # After the bodies: making a message multipart moves its Content- headers into the first part.
    mail["Content-Language"] = _only(_TAG, message.language)
    return mail.as_bytes()


def header_text(value: str) -> str:
    """One line without invisible characters.

    "=?" is broken up, because the email package decodes an encoded word on assignment and a
    name could carry its line break past this function in one.
    """
    visible = _UNSEEN.sub(" ", _encodable(value)).replace("=?", "= ?")
    line = " ".join(visible.split())
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"


def deliverable(address: str) -> str:
    """The address with its domain in ASCII. Raises BadAddressError when it is not just one."""
    if not _ADDRESS.fullmatch(address) or _UNSEEN.search(address) or "=?" in address:
        raise BadAddressError("not one bare address")
    local, _, domain = address.rpartition("@")
    if not local.isascii():
        # It would need SMTPUTF8 all the way to the mailbox, and bounces far from here.
        raise BadAddressError("not ASCII before the @")
    try:
        return f"{local}@{domain.encode('idna').decode()}"
    except UnicodeError:
        raise BadAddressError("not a domain") from None


def _message_id(ours: str, sender: str) -> str:
    """<left@right>, whatever came: the email package breaks on an empty half."""
    left, _, right = _only(_ID, ours).partition("@")
    left, right = left.strip("."), right.replace("@", "").strip(".")
    return f"<{left or 'message'}@{right or sender.rpartition('@')[2]}>"


def _only(unwanted: re.Pattern[str], ours: str) -> str:
    """For the headers that we make ourselves and nobody reads: nothing but their own alphabet."""
    return unwanted.sub("", ours)[:LONGEST]


def _encodable(text: str) -> str:
    """Half a surrogate pair, as broken input leaves it, must not stop a message."""
    return text.encode("utf-8", "replace").decode()
