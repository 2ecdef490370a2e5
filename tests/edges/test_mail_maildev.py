"""What MailDev shows of a mail, as the walkthrough reads it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from portal.edges.mail import MailMessage
from portal.edges.mail.adapter import SmtpMail
from portal.edges.mail_archive.adapter import HttpMailArchive
from sandbox.mail import MailDevInbox, MailSink
from sandbox.mail_archive import MailArchive
from sandbox.parts import Part, maildev
from sandbox.seam.running import eventually


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


def test_the_sinks_archive_tells_what_maildev_tells(part: Part, mail: MailSink) -> None:
    """Both were handed the same mails, and the portal's own adapter asks both."""
    MailDevInbox(part.url).clear()
    for name in ("first", "second"):
        message = MailMessage("hana@guest.example", name, "番号", None, "宿", f"<{name}@m>", "ja")
        for server in (part.also["smtp"], mail.url):
            SmtpMail(server, sender="no-reply@monban.example").send(message)
    since = datetime.now(UTC) - timedelta(days=1)
    with MailArchive(mail) as archive:
        asked = [HttpMailArchive(url) for url in (part.url, archive.url)]
        assert eventually(lambda: len(asked[0].taken_since(since).message_ids) == 2)
        theirs, ours = (one.taken_since(since) for one in asked)
        assert sorted(ours.message_ids) == sorted(theirs.message_ids) == ["<first@m>", "<second@m>"]
        assert abs(ours.since - theirs.since) <= timedelta(seconds=2)
        mail.lose("<first@m>")
        assert asked[1].taken_since(since).message_ids == ["<second@m>"]
