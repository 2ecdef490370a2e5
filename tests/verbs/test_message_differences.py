"""Messages beside a mail archive: sent again, recorded, or both agree by now."""

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from uuid import UUID, uuid4

import pytest

from portal import doorbell
from portal.edges.mail_archive.adapter import HttpMailArchive
from portal.jobs.house import House
from portal.outcome import Applied, Code, Noop
from portal.verbs import message_differences
from tests.cast import Cast
from tests.outside import Owner
from tests.verbs.test_differences import AGREED, OPEN, ended, put, row_of
from tests.verbs.test_stays import HOUR


class Archive:
    """A mail server that tells what it holds as MailDev does, and was told by hand."""

    def __init__(self) -> None:
        self.holds: list[UUID] = []
        archive = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                said = json.dumps(archive.told()).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                """Quiet."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def told(self) -> list[dict[str, Any]]:
        """Newest first: somebody else's mail of just now, and ours of an hour ago."""
        now = datetime.now(UTC)
        return [
            {"time": now.isoformat(), "headers": {"message-id": "<1@shop.example>"}},
            *(
                {"time": (now - HOUR).isoformat(), "headers": {"message-id": f"<{one}@monban>"}}
                for one in self.holds
            ),
        ]


@pytest.fixture
def archive() -> Iterator[Archive]:
    made = Archive()
    yield made
    made.server.shutdown()
    made.server.server_close()


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
    cast: Cast, owner: Owner, worker: House, archive: Archive, verb: Any, message: UUID
) -> tuple[Any, UUID]:
    """The answer of the verb, and the row of the difference."""
    row = put(cast, owner, "message_not_there", message, message_id=message)
    desk = replace(worker.desk(cast.tokyo.id), mail_archive=HttpMailArchive(archive.url))
    return verb(desk, cast.sato.actor, row_of(cast, row)), row


def test_a_message_that_is_sent_again_begins_anew_and_once(
    cast: Cast, owner: Owner, worker: House, archive: Archive
) -> None:
    message = mailed(cast, owner)
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
    cast: Cast, owner: Owner, worker: House, archive: Archive, verb: Any
) -> None:
    message = mailed(cast, owner)
    archive.holds = [uuid4(), message]
    before = owner.row("select sent_at, consumer_key from outbox")
    said, row = of_message(cast, owner, worker, archive, verb, message)
    assert said == Noop(Code.MESSAGE_NOT_WAITING, subject=message)
    assert ended(owner, row) == AGREED
    assert owner.row("select sent_at, consumer_key from outbox") == before
    assert owner.one("select count(*) from consumed_effects") == 0


@pytest.mark.parametrize("state", ["dead_at", "unknown_at"])
@pytest.mark.parametrize("there", [True, False])
def test_a_message_that_did_not_end_is_sent_if_the_archive_has_it(
    cast: Cast, owner: Owner, worker: House, archive: Archive, state: str, there: bool
) -> None:
    message = mailed(cast, owner, state)
    archive.holds = [message] if there else [uuid4()]
    record = message_differences.record_sent
    said, row = of_message(cast, owner, worker, archive, record, message)
    now = owner.row(f"select sent_at is not null, {state} is not null from outbox")
    if there:
        assert said == Applied(Code.MESSAGE_RECORDED, to="sent", subject=message)
        assert (now, ended(owner, row)) == ((True, False), OPEN)
    else:
        assert said == Noop(Code.MESSAGE_NOT_WAITING, subject=message)
        assert (now, ended(owner, row)) == ((False, True), AGREED)
