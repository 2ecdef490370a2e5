"""What MailDev shows of a mail, as the walkthrough reads it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from portal.edges.mail import MailMessage
from portal.edges.mail.adapter import SmtpMail
from sandbox.mail import MailDevInbox
from sandbox.parts import Part, maildev


@pytest.fixture(scope="module")
def part() -> Iterator[Part]:
    started = maildev()
    yield started
    started.stop()


def test_maildev_shows_the_mail_as_it_was_meant(part: Part) -> None:
    inbox = MailDevInbox(part.url)
    mail = SmtpMail(part.also["smtp"], sender="no-reply@monban.example")
    for subject in ("鍵の準備ができました", "Another"):
        message = MailMessage(
            "hana@guest.example", subject, "番号 0482", "<p>番号 0482</p>", "紅葉の宿", "r@m", "ja"
        )
        mail.send(message)
    shown = inbox.wait_for("hana@guest.example", "鍵")
    assert shown["subject"] == "鍵の準備ができました"
    assert shown["from"] == [{"address": "no-reply@monban.example", "name": "紅葉の宿"}]
    assert shown["text"].strip() == "番号 0482"
    assert "<p>番号 0482</p>" in shown["html"]
    assert shown["headers"]["content-language"] == "ja"
    assert len(inbox.all()) == 2
    inbox.clear()
    assert inbox.all() == []
    with pytest.raises(TimeoutError):
        inbox.wait_for("hana@guest.example", seconds=0.2)
