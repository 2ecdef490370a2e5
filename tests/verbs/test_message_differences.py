"""Messages beside a mail archive: sent again, recorded, or both agree by now."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from email.message import EmailMessage
from typing import Any
from uuid import UUID, uuid4

import pytest

from portal import doorbell
from portal.edges.mail_archive.adapter import HttpMailArchive
from portal.jobs.house import House
from portal.outcome import Applied, Code, Noop
from portal.verbs import message_differences
from sandbox.mail import MailSink, Received
from sandbox.mail_archive import MailArchive
from tests.cast import Cast
from tests.outside import Owner
from tests.verbs.test_differences import AGREED, OPEN, ended, put, row_of
from tests.verbs.test_stays import HOUR


@pytest.fixture
def archive(mail: MailSink) -> Iterator[MailArchive]:
    with MailArchive(mail) as made:
        yield made


def hold(mail: MailSink, *messages: UUID) -> None:
    """The server keeps these of ours since an hour ago, and somebody else's of just now."""
    now = datetime.now(UTC)
    kept = [(f"<{one}@monban>", now - HOUR) for one in messages]
    for message_id, at in (*kept, ("<1@shop.example>", now)):
        letter = EmailMessage()
        letter["Message-ID"], letter["Date"] = message_id, at
        mail.kept.append(Received("", (), letter.as_bytes(), ""))


def mailed(cast: Cast, owner: Owner, ended: str = "sent_at") -> UUID:
    """A message about a stay, which has been worked at since."""
    stay = cast.book(price=0)
    owner.run(
        f"update outbox set {ended} = now(), attempts = 3, sending_at = now(),"
        " next_attempt_at = now() + interval '1 hour' where stay_id = %s",
        stay.id,
    )
    found: UUID = owner.one("select id from outbox where stay_id = %s", stay.id)
    return found


def of_message(
    cast: Cast, owner: Owner, worker: House, archive: MailArchive, verb: Any, message: UUID
) -> tuple[Any, UUID]:
    """The answer of the verb, and the row of the difference."""
    row = put(cast, owner, "message_not_there", message, message_id=message)
    desk = replace(worker.desk(cast.tokyo.id), mail_archive=HttpMailArchive(archive.url))
    return verb(desk, cast.sato.actor, row_of(cast, row)), row


def test_a_message_that_is_sent_again_begins_anew_and_once(
    cast: Cast, owner: Owner, worker: House, mail: MailSink, archive: MailArchive
) -> None:
    message = mailed(cast, owner)
    hold(mail)
    owner.run("update outbox set claimed_at = now(), claim_token = gen_random_uuid()")
    again = message_differences.send_again
    doorbell.connection().flushall()
    said, row = of_message(cast, owner, worker, archive, again, message)
    assert said == Applied(Code.MESSAGE_REQUEUED, to="waiting", subject=message)
    assert owner.row(
        "select sent_at, sending_at, claimed_at, claim_token, attempts, next_attempt_at <= now(),"
        " consumer_key from outbox"
    ) == (None, None, None, None, 0, True, f"again:{row}")
    assert len(doorbell.queue("outbox").jobs) == 1
    owner.run("delete from divergences")
    said, row = of_message(cast, owner, worker, archive, again, message)
    assert said == Noop(Code.MESSAGE_NOT_WAITING, subject=message)
    assert ended(owner, row) == OPEN


@pytest.mark.parametrize("verb", [message_differences.send_again, message_differences.record_sent])
def test_a_message_on_which_both_agree_by_now_is_neither_sent_nor_recorded(
    cast: Cast, owner: Owner, worker: House, mail: MailSink, archive: MailArchive, verb: Any
) -> None:
    message = mailed(cast, owner)
    hold(mail, message, uuid4())
    before = owner.row("select sent_at, consumer_key from outbox")
    said, row = of_message(cast, owner, worker, archive, verb, message)
    assert said == Noop(Code.MESSAGE_NOT_WAITING, subject=message)
    assert ended(owner, row) == AGREED
    assert owner.row("select sent_at, consumer_key from outbox") == before
    assert owner.one("select count(*) from consumed_effects") == 0


@pytest.mark.parametrize("state", ["dead_at", "unknown_at"])
@pytest.mark.parametrize("there", [True, False])
def test_a_message_that_did_not_end_is_sent_if_the_archive_has_it(
    cast: Cast,
    owner: Owner,
    worker: House,
    mail: MailSink,
    archive: MailArchive,
    state: str,
    there: bool,
) -> None:
    message = mailed(cast, owner, state)
    hold(mail, message if there else uuid4())
    record = message_differences.record_sent
    said, row = of_message(cast, owner, worker, archive, record, message)
    now = owner.row(f"select sent_at is not null, {state} is not null from outbox")
    if there:
        assert said == Applied(Code.MESSAGE_RECORDED, to="sent", subject=message)
        assert (now, ended(owner, row)) == ((True, False), OPEN)
    else:
        assert said == Noop(Code.MESSAGE_NOT_WAITING, subject=message)
        assert (now, ended(owner, row)) == ((False, True), AGREED)
