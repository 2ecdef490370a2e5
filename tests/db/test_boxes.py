"""The inbox and the outbox row by row: what is stored, whose a claim is, when a lease is over."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from portal import clock, inbox, log, outbox
from portal.db import SYSTEM
from tests.cast import Booked, Cast
from tests.outside import Owner

CREATED = datetime(2026, 11, 10, 6, 0, tzinfo=UTC)
PAUSE = timedelta(minutes=3)


# Inbox ------------------------------------------------------------------------------------------


def received(cast: Cast, event_id: str = "evt_1", source: Any = "stripe", **more: Any) -> str:
    values: dict[str, Any] = {
        "kind": "payment_intent.succeeded",
        "created": CREATED,
        "payload": b'{"id": 1}',
        "headers": {"stripe-signature": "t=1"},
    }
    with cast.transaction(None) as tx, log.request("the-one-request"):
        return inbox.receive(tx, source, event_id=event_id, **values | more)


def claimed(cast: Cast, **more: Any) -> list[Any]:
    with cast.transaction(None) as tx:
        return list(inbox.claim(tx, more.pop("token", uuid4()), **more))


def test_an_event_is_stored_as_it_came(cast: Cast, owner: Owner) -> None:
    told = {"livemode": True, "account": "acct_1", "api_version": "2026-10-01"}
    assert received(cast, **told) == "received"
    assert owner.row(
        """
        select source, event_id, type, state, created, livemode, account, api_version, payload,
               headers, request_id, attempts, claimed_at
        from webhook_events
        """
    ) == (
        "stripe",
        "evt_1",
        "payment_intent.succeeded",
        "processing",
        CREATED,
        True,
        "acct_1",
        "2026-10-01",
        b'{"id": 1}',
        {"stripe-signature": "t=1"},
        "the-one-request",
        0,
        None,
    )
    assert received(cast) == "received"  # waiting still
    assert received(cast, "evt_1", "seam") == "received"
    assert received(cast, "evt_2") == "received"
    assert owner.rows("select livemode, account from webhook_events where event_id = 'evt_2'") == [
        (None, None)
    ]
    assert owner.one("select count(*) from webhook_events") == 3


def test_a_claim_is_leased_for_a_minute(cast: Cast, owner: Owner) -> None:
    received(cast)
    token = uuid4()
    (event,) = claimed(cast, token=token)
    assert (event.source, event.event_id, event.attempts) == ("stripe", "evt_1", 1)
    assert received(cast) == "claimed"
    assert claimed(cast) == []
    owner.run("update webhook_events set claimed_at = now() - interval '59.5 s'")
    assert received(cast) == "claimed"
    assert claimed(cast) == []
    owner.run("update webhook_events set claimed_at = now() - interval '60.5 s'")
    assert received(cast) == "received"
    (again,) = claimed(cast)
    assert again.attempts == 2


def test_a_repeated_delivery_lets_a_waiting_event_in_at_once(cast: Cast, owner: Owner) -> None:
    received(cast)
    owner.run("update webhook_events set next_attempt_at = now() + interval '1 hour'")
    assert claimed(cast) == []
    assert received(cast) == "received"
    assert len(claimed(cast)) == 1


def test_one_event_by_its_name_or_the_oldest_first(cast: Cast, owner: Owner) -> None:
    for number in range(3):
        received(cast, f"evt_{number}", created=CREATED - timedelta(minutes=number))
    received(cast, "evt_1", "seam", created=CREATED - timedelta(minutes=9))
    owner.run("update webhook_events set next_attempt_at = '2026-11-10'")
    (named,) = claimed(cast, only=("stripe", "evt_1"))
    assert (named.source, named.event_id) == ("stripe", "evt_1")
    assert [event.event_id for event in claimed(cast, at_most=1)] == ["evt_1"]
    assert [event.event_id for event in claimed(cast)] == ["evt_2", "evt_0"]


def test_fifty_events_are_claimed_at_a_time(cast: Cast) -> None:
    for number in range(51):
        received(cast, f"evt_{number}")
    assert [len(claimed(cast)) for _ in range(3)] == [50, 1, 0]


def test_only_the_claims_holder_completes_and_releases(cast: Cast, owner: Owner) -> None:
    received(cast)
    token, other = uuid4(), uuid4()
    (event,) = claimed(cast, token=token)
    with cast.transaction(None) as tx:
        inbox.release(tx, event.id, other, PAUSE, "not mine")
        assert not inbox.complete(tx, event.id, other, SYSTEM, "applied")
        inbox.release(tx, event.id, token, PAUSE, "busy")
    assert owner.row(
        "select claimed_at, claim_token, last_error, attempts,"
        " next_attempt_at - now() between '170 s' and '180 s' from webhook_events"
    ) == (None, None, "busy", 1, True)
    owner.run("update webhook_events set next_attempt_at = now()")
    claimed(cast, token=token)
    instant = clock.now().replace(microsecond=0)
    clock.set_source(lambda: instant)
    with cast.transaction(None) as tx, log.request("r1"):
        assert inbox.complete(tx, event.id, token, SYSTEM, "orphan", "nobody's") is True
        assert not inbox.complete(tx, event.id, token, SYSTEM, "orphan")
    assert owner.row(
        "select state, outcome, detail, completed_at, claimed_at, claim_token from webhook_events"
    ) == ("completed", "orphan", "nobody's", instant, None, None)
    assert owner.row(
        """
        select machine, verb, event, from_state, to_state, reason, actor_kind, actor_name,
               request_id
        from transitions where subject_id = %s
        """,
        event.id,
    ) == (
        "webhook_event",
        "apply_event",
        "completed",
        "processing",
        "completed",
        "orphan",
        "system",
        "monban",
        "r1",
    )
    assert received(cast) == "completed"


def test_completed_events_are_kept_for_four_days_at_least(cast: Cast, owner: Owner) -> None:
    for number in range(3):
        received(cast, f"evt_{number}")
        token = uuid4()
        (event,) = claimed(cast, token=token)
        if number:
            with cast.transaction(None) as tx:
                inbox.complete(tx, event.id, token, SYSTEM, "applied")
    owner.run(
        "update webhook_events set completed_at = now() - interval '5 days'"
        " where event_id = 'evt_1'"
    )
    with cast.transaction(None) as tx:
        with pytest.raises(ValueError):
            inbox.prune(tx, timedelta(days=4) - timedelta(seconds=1))
        assert inbox.prune(tx, timedelta(days=4)) == 1
    assert owner.rows("select event_id from webhook_events order by 1") == [("evt_0",), ("evt_2",)]


def test_a_dead_letter_says_whose_and_why(cast: Cast, owner: Owner) -> None:
    source = uuid4()
    instant = clock.now().replace(microsecond=0)
    clock.set_source(lambda: instant)
    with cast.transaction(cast.tokyo.id) as tx:
        inbox.dead_letter(tx, "webhook_event", source, "stripe x", "unread")
    assert owner.row(
        "select facility_id, source_kind, source_id, title, error, at, closed_at from dead_letters"
    ) == (cast.tokyo.id, "webhook_event", source, "stripe x", "unread", instant, None)


# Outbox -----------------------------------------------------------------------------------------


@pytest.fixture
def stay(cast: Cast, owner: Owner) -> Booked:
    """Of a guest who has been told nothing yet."""
    booked = cast.book(price=0)
    owner.run("delete from outbox")
    return booked


def written(
    cast: Cast, stay: Booked, kind: str = "stay_created", fact: str = "1", **more: Any
) -> Any:
    with cast.transaction(stay.facility_id) as tx, log.request("r1"):
        return outbox.enqueue(tx, stay.id, kind, fact, {"a": 1}, **more), set(tx.rings)


def test_a_message_is_addressed_as_it_is_written(cast: Cast, owner: Owner, stay: Booked) -> None:
    assert written(cast, stay) == (True, {"outbox"})
    assert written(cast, stay, consumer_key="other")[0] is True  # said already
    written(cast, stay, "entry_key_issued", consumer_key="evt_1")
    assert owner.rows(
        """
        select facility_id, stay_id, dedupe_key, consumer_key, event_type, channel, recipient,
               locale, payload, priority, request_id
        from outbox order by created_at
        """
    ) == [
        (
            stay.facility_id,
            stay.id,
            f"{kind}:1",
            consumer,
            kind,
            "email",
            "hanako@guest.example",
            "ja",
            {"a": 1},
            priority,
            "r1",
        )
        for kind, consumer, priority in (
            ("stay_created", "stay_created:1", 2),
            ("entry_key_issued", "evt_1", 0),
        )
    ]


@pytest.mark.parametrize(
    ("kind", "priority"),
    [
        ("entry_key_issued", 0),
        ("entry_key_changed", 0),
        ("payment_received", 1),
        ("refund_sent", 1),
        ("refund_failed", 2),
        ("stay_changed", 2),
        ("stay_cancelled", 2),
    ],
)
def test_doors_before_money_before_the_rest(
    cast: Cast, owner: Owner, stay: Booked, kind: str, priority: int
) -> None:
    written(cast, stay, kind)
    assert owner.one("select priority from outbox") == priority


def test_line_first_then_mail_then_nobody(cast: Cast, owner: Owner, stay: Booked) -> None:
    owner.run("update guests set line_user_id = 'U1'")
    written(cast, stay, fact="1")
    written(cast, stay, fact="2", by_mail_in="en")
    owner.run("update guests set line_user_id = '', preferred_locale = null")
    written(cast, stay, fact="3")
    owner.run("update guests set email = null")
    assert written(cast, stay, fact="4") == (False, set())
    assert owner.rows("select channel, recipient, locale from outbox order by created_at") == [
        ("line", "U1", "ja"),
        ("email", "hanako@guest.example", "en"),
        ("email", "hanako@guest.example", "ja"),
    ]
    with cast.transaction(cast.osaka.id) as tx, pytest.raises(LookupError):
        outbox.enqueue(tx, stay.id, "stay_created", "5", {})


def taken(cast: Cast, token: UUID) -> list[tuple[UUID, UUID]]:
    with cast.transaction(None) as tx:
        return outbox.claim(tx, token)


def test_a_message_is_leased_for_five_minutes(cast: Cast, owner: Owner, stay: Booked) -> None:
    written(cast, stay)
    message = owner.one("select id from outbox")
    assert taken(cast, uuid4()) == [(message, stay.facility_id)]
    owner.run("update outbox set claimed_at = now() - interval '299 s'")
    assert taken(cast, uuid4()) == []
    owner.run("update outbox set claimed_at = now() - interval '300.5 s'")
    assert taken(cast, uuid4()) == [(message, stay.facility_id)]


STANDS = """
    select sent_at is not null, suppressed_at is not null, withdrawn_at is not null,
           unknown_at is not null, dropped_at is not null, dead_at is not null,
           sending_at is not null, claimed_at is null, claim_token is null, last_error
    from outbox
"""


@pytest.mark.parametrize(
    ("verb", "rest", "place", "error"),
    [
        ("suppress", (), 1, None),
        ("withdraw", (), 2, None),
        ("lose", ("cut off",), 3, "cut off"),
        ("replace", ("blocked",), 4, "blocked"),
        ("bury", ("no such",), 5, "no such"),
    ],
)
def test_how_a_message_ends_without_being_sent(
    cast: Cast, owner: Owner, stay: Booked, verb: str, rest: Any, place: int, error: str | None
) -> None:
    written(cast, stay)
    token, message = uuid4(), owner.one("select id from outbox")
    taken(cast, token)
    with cast.transaction(stay.facility_id) as tx:
        assert getattr(outbox, verb)(tx, message, uuid4(), *rest) is False
        assert getattr(outbox, verb)(tx, message, token, *rest) is True
    marks = [number == place for number in range(7)]
    assert owner.row(STANDS) == (*marks, True, True, error)


def test_a_message_that_was_not_sent_is_tried_later(cast: Cast, owner: Owner, stay: Booked) -> None:
    written(cast, stay)
    token, message = uuid4(), owner.one("select id from outbox")
    taken(cast, token)
    with cast.transaction(stay.facility_id) as tx:
        assert outbox.begin_sending(tx, message, uuid4()) is None
        begun = outbox.begin_sending(tx, message, token)
        assert begun is not None
        assert begun.id == message
        assert outbox.release(tx, message, uuid4(), PAUSE, "greylisted") is False
        assert outbox.release(tx, message, token, PAUSE, "greylisted") is True
    assert owner.row(STANDS) == (*[False] * 7, True, True, "greylisted")
    assert owner.one("select next_attempt_at - now() between '170 s' and '180 s' from outbox")


def test_what_was_sent_is_remembered(cast: Cast, owner: Owner, stay: Booked) -> None:
    for fact in ("1", "2"):
        written(cast, stay, fact=fact)
    token = uuid4()
    (first, second) = (message for message, _ in taken(cast, token))
    with cast.transaction(stay.facility_id) as tx:
        assert outbox.begin_sending(tx, first, token) is not None
        # The next one begins as the one before it is marked.
        begun = outbox.begin_sending(tx, second, token, sent=first)
        assert begun is not None
        outbox.sent(tx, second, uuid4())
    assert owner.rows("select id from outbox where sent_at is not null") == [(first,)]
    with cast.transaction(stay.facility_id) as tx:
        outbox.sent(tx, second, token)
        loaded = outbox.load(tx, second)
        assert loaded is not None
        assert (loaded.id, loaded.already_heard, loaded.still_true) == (second, True, True)
        assert outbox.load(tx, uuid4()) is None
    assert owner.rows("select consumer_key from consumed_effects order by 1") == [
        ("stay_created:1",),
        ("stay_created:2",),
    ]
    assert owner.one("select count(*) from outbox where claim_token is not null") == 0
