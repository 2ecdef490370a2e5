"""The inbox: received once, claimed with a token, completed with the grant or not at all."""

import threading
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from flask import Flask
from sqlalchemy.exc import OperationalError

from portal import clock, doorbell, inbox, log
from portal.db import SYSTEM, transaction
from portal.edges.payments.port import ProviderEvent
from portal.jobs import drain, payment_events
from portal.jobs import events as jobs
from portal.jobs.applying import Applying, Handled
from portal.jobs.house import House
from portal.outcome import Applied, Code, Noop, Refused
from portal.policies import backoff
from portal.verbs import events as verbs
from portal.verbs import payment_answers, payments
from sandbox.stripe.testing import StandIn
from sandbox.watch import statements
from tests.cast import Booked, Cast
from tests.conftest import psycopg_url
from tests.outside import Owner, at_once, events, pay, receive, recorded, work
from tests.verbs.test_payments import opened
from tests.verbs.test_stays import balance, do

SUCCEEDED = "payment_intent.succeeded"


@pytest.fixture
def stay(cast: Cast, worker: House, stripe: StandIn, owner: Owner) -> Booked:
    """6,000 yen, paid at the provider; nobody here has heard of it."""
    stay = cast.book()
    pay(stripe, opened(worker, cast, owner, stay))
    return stay


def told(worker: House, kind: str = SUCCEEDED) -> ProviderEvent:
    return next(one for one in events(worker) if one.type == kind)


def event(owner: Owner) -> tuple[Any, ...]:
    found: tuple[Any, ...] = owner.row(
        "select state, outcome, attempts, claimed_at is not null, last_error is not null"
        " from webhook_events order by received_at limit 1"
    )
    return found


def claimed(token: UUID) -> list[Any]:
    with transaction(None) as tx:
        return list(inbox.claim(tx, token))


def paid_once(owner: Owner, stay: Booked) -> bool:
    lines = owner.one("select count(*) from ledger_lines where kind = 'payment'")
    mails = owner.one("select count(*) from outbox where event_type = 'payment_received'")
    return (balance(owner, stay.id), lines, mails) == (0, 1, 1)


def stored(kind: str, **more: Any) -> None:
    """An event of our own making, verified already."""
    values: dict[str, Any] = {
        "event_id": f"evt_{uuid4().hex}",
        "kind": kind,
        "created": clock.now(),
        "payload": b'{"data": {"object": {}}}',
        "headers": {},
        "livemode": False,
    }
    with transaction(None) as tx:
        inbox.receive(tx, "stripe", **{**values, **more})


def test_one_event_needs_at_most_ten_statements(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner, stay: Booked
) -> None:
    one = told(worker)
    with statements() as said:
        receive(one)
        jobs.apply_due(worker)
    assert 0 < len(said) <= 10, "\n".join(said)
    assert paid_once(owner, stay)


def test_three_deliveries_are_one_payment(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner, stay: Booked
) -> None:
    one = told(worker)
    assert receive(one, one) == ["received", "received"]
    work(worker, "inbox")
    assert receive(one) == ["completed"]
    work(worker, "inbox")
    assert paid_once(owner, stay)
    assert owner.one("select count(*) from webhook_events") == 1
    assert event(owner)[:3] == ("completed", "applied", 1)
    assert recorded(owner, owner.one("select id from webhook_events")) == [
        ("completed", "processing", "completed")
    ]


def test_eight_deliveries_at_once_are_one_row(
    cast: Cast, worker: House, app: Flask, stripe: StandIn, owner: Owner, stay: Booked
) -> None:
    one = told(worker)
    held = at_once(app, *[lambda: receive(one)] * 8)
    assert held == [["received"]] * 8
    at_once(app, *[lambda: drain.drain("inbox")] * 4)
    assert owner.one("select count(*) from webhook_events") == 1
    assert paid_once(owner, stay)


def test_a_twin_under_another_id_pays_nothing_again(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner, stay: Booked
) -> None:
    one = told(worker)
    receive(one)
    work(worker, "inbox")
    stripe.post("webhooks/twin", event=one.id)
    receive(*events(worker))
    work(worker, "inbox")
    assert paid_once(owner, stay)


def test_a1_processing_after_succeeded_changes_nothing(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner
) -> None:
    stay = cast.book()
    intent = opened(worker, cast, owner, stay)
    pay(stripe, intent, "pm_card_processing")
    stripe.post(f"payment_intents/{intent}/finish", outcome="succeeded")
    for kind in (SUCCEEDED, "payment_intent.processing", "payment_intent.created"):
        receive(told(worker, kind))
        work(worker, "inbox")
    assert owner.one("select state from payments") == "succeeded"
    assert paid_once(owner, stay)
    assert owner.rows("select type, outcome from webhook_events order by received_at") == [
        (SUCCEEDED, "applied"),
        ("payment_intent.processing", "superseded"),
        ("payment_intent.created", "ignored"),
    ]


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (2, 1, 0)])
def test_a2_events_delivered_days_late_rewind_nothing(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner, order: tuple[int, ...]
) -> None:
    """The payment went through; then, days later, all that was told before it arrives at last."""
    stay = cast.book()
    intent = opened(worker, cast, owner, stay)
    pay(stripe, intent, "pm_card_processing")
    stripe.post(f"payment_intents/{intent}/finish", outcome="succeeded")
    receive(told(worker, SUCCEEDED))
    work(worker, "inbox")
    before = owner.row("select state, version, amount from payments")
    mails = owner.one("select count(*) from outbox")
    late = clock.now() + timedelta(days=4)
    clock.set_source(lambda: late)
    old = [
        told(worker, kind)
        for kind in ("payment_intent.created", "payment_intent.processing", SUCCEEDED)
    ]
    for place in order:
        assert receive(old[place]) in (["received"], ["completed"])
        work(worker, "inbox")
    assert owner.row("select state, version, amount from payments") == before
    assert paid_once(owner, stay)
    assert owner.one("select count(*) from outbox") == mails
    assert owner.one("select outcome from webhook_events where type like '%%processing'") == (
        "superseded"
    )
    assert owner.one("select count(*) from webhook_events where state <> 'completed'") == 0


def test_a_claim_that_is_alive_is_told_to_come_later(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner, stay: Booked
) -> None:
    one = told(worker)
    receive(one)
    (mine,) = claimed(uuid4())
    assert receive(one) == ["claimed"]
    assert claimed(uuid4()) == []
    assert balance(owner, stay.id) == 6000
    assert mine.attempts == 1


def test_a5_a_dead_workers_event_is_taken_over(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner, stay: Booked
) -> None:
    one = told(worker)
    receive(one)
    claimed(uuid4())
    owner.run("update webhook_events set claimed_at = now() - interval '61 seconds'")
    assert receive(one) == ["received"]
    work(worker, "inbox")
    assert event(owner)[:3] == ("completed", "applied", 2)
    assert paid_once(owner, stay)


def test_zombie_worker_cannot_complete(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner, stay: Booked
) -> None:
    receive(told(worker))
    token = uuid4()
    (mine,) = claimed(token)
    owner.run("update webhook_events set claimed_at = now() - interval '61 seconds'")
    claimed(uuid4())
    jobs.apply(worker, Applying(mine, token))
    assert balance(owner, stay.id) == 6000
    assert owner.one("select state from payments") == "open"
    assert event(owner)[0] == "processing"
    assert owner.one("select count(*) from outbox where event_type = 'payment_received'") == 0


def failing(worker: House, monkeypatch: pytest.MonkeyPatch, faults: list[Exception]) -> list[int]:
    """The real handler, after which the next fault is raised: everything it did must go."""
    real = payment_events.on_intent
    tries: list[int] = []

    def handler(*given: Any) -> Handled:
        handled = real(*given)
        tries.append(1)
        if faults:
            raise faults.pop(0)
        return handled

    monkeypatch.setitem(payment_events.HANDLERS, SUCCEEDED, handler)
    return tries


def test_a4_a_failed_handler_is_tried_again_and_its_failure_seen(
    cast: Cast,
    worker: House,
    stripe: StandIn,
    owner: Owner,
    stay: Booked,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    failing(worker, monkeypatch, [RuntimeError("a fault of ours")])
    one = told(worker)
    receive(one)
    work(worker, "inbox")
    assert event(owner) == ("processing", None, 1, False, True)
    assert (balance(owner, stay.id), owner.one("select state from payments")) == (6000, "open")
    assert owner.one("select next_attempt_at > now() + interval '1 second' from webhook_events")
    work(worker, "inbox")
    assert event(owner)[2] == 1
    assert receive(one) == ["received"]
    work(worker, "inbox")
    assert event(owner) == ("completed", "applied", 2, False, True)
    assert "a fault of ours" in owner.one("select last_error from webhook_events")
    assert paid_once(owner, stay)


def test_a_fault_past_the_limit_is_a_dead_letter_and_can_be_replayed(
    cast: Cast,
    worker: House,
    stripe: StandIn,
    owner: Owner,
    stay: Booked,
    app: Flask,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    failing(worker, monkeypatch, [RuntimeError("a fault of ours")])
    receive(told(worker))
    owner.run("update webhook_events set attempts = %s", backoff.EVENT_LIMIT - 1)
    work(worker, "inbox")
    assert event(owner)[:2] == ("completed", "dead_letter")
    assert balance(owner, stay.id) == 6000
    letter = owner.one("select id from dead_letters where closed_at is null")
    said = at_once(app, *[lambda: do(cast, verbs.replay, letter)] * 4)
    codes = sorted(getattr(answer, "code", repr(answer)) for answer in said)
    assert codes == [Code.EVENT_ALREADY_HANDLED] * 3 + [Code.EVENT_REPLAYED]
    work(worker, "inbox")
    assert paid_once(owner, stay)
    assert owner.row("select closed_how, closed_by from dead_letters") == (
        "replayed",
        cast.sato.name,
    )


def test_a_dead_letter_is_dismissed_once(cast: Cast, worker: House, owner: Owner) -> None:
    stored(SUCCEEDED, payload=b"not json")
    work(worker, "inbox")
    letter = owner.one("select id from dead_letters")
    assert isinstance(do(cast, verbs.dismiss, letter), Applied)
    assert do(cast, verbs.dismiss, letter) == Noop(Code.EVENT_ALREADY_HANDLED, subject=letter)
    assert do(cast, verbs.replay, letter) == Noop(Code.EVENT_ALREADY_HANDLED, subject=letter)
    for verb in (verbs.dismiss, verbs.replay):
        assert do(cast, verb, uuid4()) == Refused(Code.NOT_FOUND)
    assert owner.one("select count(*) from webhook_events") == 1


def test_an_event_that_was_pruned_cannot_be_replayed(
    cast: Cast, worker: House, owner: Owner
) -> None:
    stored(SUCCEEDED, payload=b"not json")
    work(worker, "inbox")
    owner.run("update webhook_events set completed_at = now() - interval '31 days'")
    with transaction(None) as tx:
        assert inbox.prune(tx, timedelta(days=30)) == 1
    letter = owner.one("select id from dead_letters")
    assert do(cast, verbs.replay, letter) == Refused(Code.NOT_FOUND)
    assert owner.one("select closed_at from dead_letters") is None


def test_completed_events_are_kept_as_long_as_they_may_come_again(
    cast: Cast, worker: House, owner: Owner
) -> None:
    stored("customer.tax_id.created")
    work(worker, "inbox")
    stored("customer.tax_id.created")
    owner.run("update webhook_events set received_at = now() - interval '40 days'")
    with transaction(None) as tx:
        assert inbox.prune(tx, timedelta(days=30)) == 0
        with pytest.raises(ValueError, match="four days"):
            inbox.prune(tx, timedelta(days=3))


def test_serialization_conflict_does_not_lose_the_payment(
    cast: Cast,
    worker: House,
    stripe: StandIn,
    owner: Owner,
    stay: Booked,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """PostgreSQL's own 40001: the payment's row is written after this transaction has begun."""
    real = payment_answers.record_intent
    tries: list[int] = []

    def disturbed(*given: Any, **more: Any) -> Any:
        tries.append(1)
        if len(tries) <= 2:
            owner.run("update payments set reads = reads + 1")
        return real(*given, **more)

    monkeypatch.setattr(payment_answers, "record_intent", disturbed)
    receive(told(worker))
    work(worker, "inbox")
    assert len(tries) == 3
    assert event(owner) == ("completed", "applied", 1, False, False)
    assert paid_once(owner, stay)


def test_conflicts_without_end_release_the_claim(
    cast: Cast,
    worker: House,
    stripe: StandIn,
    owner: Owner,
    stay: Booked,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = payment_answers.record_intent

    def disturbed(*given: Any, **more: Any) -> Any:
        owner.run("update payments set reads = reads + 1")
        return real(*given, **more)

    receive(told(worker))
    with monkeypatch.context() as patch:
        patch.setattr(payment_answers, "record_intent", disturbed)
        work(worker, "inbox")
    assert event(owner) == ("processing", None, 1, False, True)
    owner.make_due()
    work(worker, "inbox")
    assert paid_once(owner, stay)


def test_a_connection_cut_in_mid_apply_loses_nothing(
    cast: Cast,
    worker: House,
    stripe: StandIn,
    owner: Owner,
    stay: Booked,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = payment_answers.record_intent
    cut: list[int] = []

    def disturbed(tx: Any, *given: Any, **more: Any) -> Any:
        said = real(tx, *given, **more)
        if not cut:
            cut.append(tx.scalar("select pg_backend_pid()"))
            owner.run("select pg_terminate_backend(%s)", cut[0])
        return said

    monkeypatch.setattr(payment_answers, "record_intent", disturbed)
    receive(told(worker))
    work(worker, "inbox")
    assert event(owner)[0] == "processing"
    assert balance(owner, stay.id) == 6000
    owner.make_due()
    work(worker, "inbox")
    assert paid_once(owner, stay)


def test_an_event_that_overtook_our_commit_waits_for_it(
    cast: Cast,
    worker: House,
    stripe: StandIn,
    owner: Owner,
    stay: Booked,
    database: dict[str, str],
) -> None:
    """The attempt's row is hidden by a transaction that has not committed."""
    one = told(worker)
    row = owner.row("select to_jsonb(p) - 'x' from payments p")[0]
    owner.run("delete from transitions where machine = 'payment'; delete from payments")
    receive(one)
    work(worker, "inbox")
    assert event(owner) == ("processing", None, 1, False, True)
    with psycopg.connect(psycopg_url(database["DATABASE_OWNER_URL"])) as late:
        late.execute(
            "insert into payments select * from jsonb_populate_record(null::payments, %s)",
            [psycopg.types.json.Jsonb(row)],
        )
    owner.make_due()
    work(worker, "inbox")
    assert event(owner)[:3] == ("completed", "applied", 2)
    assert paid_once(owner, stay)


def test_an_event_about_nothing_we_have_becomes_an_orphan(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner, stay: Booked
) -> None:
    one = told(worker)
    owner.run("delete from transitions where machine = 'payment'; delete from payments")
    receive(one)
    for _ in range(jobs.ORPHANED_AFTER_ATTEMPTS):
        assert owner.one("select count(*) from dead_letters") == 0
        owner.make_due()
        work(worker, "inbox")
    assert event(owner)[:3] == ("completed", "orphan", jobs.ORPHANED_AFTER_ATTEMPTS)
    assert owner.one("select count(*) from dead_letters") == 1


@pytest.mark.parametrize("kind", ["customer.tax_id.created", "foo.bar", "charge.succeeded"])
def test_a7_unknown_types_are_ignored(cast: Cast, worker: House, owner: Owner, kind: str) -> None:
    stored(kind)
    work(worker, "inbox")
    assert event(owner) == ("completed", "ignored", 1, False, False)
    assert owner.one("select count(*) from dead_letters") == 0


def test_a8_somebody_elses_events_change_nothing(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner, stay: Booked
) -> None:
    one = told(worker)
    base = {"payload": one.raw, "event_id": "evt_1", "livemode": False}
    stored(SUCCEEDED, **{**base, "account": "acct_other"})
    stored(SUCCEEDED, **{**base, "event_id": "evt_2", "livemode": True})
    foreign = one.raw.replace(b'"payment_id"', b'"other_id"').replace(
        owner.one("select intent_id from payments").encode(), b"pi_unknown"
    )
    stored(SUCCEEDED, **{**base, "event_id": "evt_3", "payload": foreign})
    work(worker, "inbox")
    assert owner.rows("select outcome, detail <> '' from webhook_events") == [("ignored", True)] * 3
    assert balance(owner, stay.id) == 6000
    assert owner.one("select state from payments") == "open"


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"not json",
        b"[]",
        b"null",
        b"3",
        b'"text"',
        b"{}",
        b'{"data": 1}',
        b'{"data": {"object": []}}',
        b'{"data": {"object": {"object": "payment_intent"}}}',
        b"\xff\xfe",
        b'{"data": {"object": {"object": "payment_intent", "id": "pi", "amount": "6000"}}}',
    ],
)
def test_a_payload_that_makes_no_sense_is_a_dead_letter(
    cast: Cast, worker: House, owner: Owner, payload: bytes
) -> None:
    stored(SUCCEEDED, payload=payload)
    work(worker, "inbox")
    assert event(owner)[:3] == ("completed", "dead_letter", 1)
    assert owner.one("select count(*) from dead_letters") == 1


def test_one_bad_event_holds_up_no_other(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner, stay: Booked
) -> None:
    for _ in range(5):
        stored(SUCCEEDED, payload=b"not json")
    receive(told(worker))
    jobs.apply_due(worker)
    assert paid_once(owner, stay)


def two_houses_paid(cast: Cast, worker: House, stripe: StandIn, owner: Owner) -> Booked:
    """Beside Tokyo's stay, one in Osaka that was paid as well; returns Osaka's."""
    theirs = cast.book(cast.osaka, cast.emma)
    payments.open_payment(worker.desk(cast.osaka.id), SYSTEM, theirs.id, "balance")
    intent = owner.one("select intent_id from payments where facility_id = %s", cast.osaka.id)
    pay(stripe, intent)
    return theirs


def test_a_batch_is_one_commit_and_each_event_is_of_its_own_house(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner, stay: Booked
) -> None:
    """Tokyo's, nobody's, Osaka's: one transaction, and the scope of none reaches the next."""
    theirs = two_houses_paid(cast, worker, stripe, owner)
    first, second = [one for one in events(worker) if one.type == SUCCEEDED]
    receive(first)
    stored("customer.created")
    receive(second)
    with statements() as said:
        assert jobs.apply_due(worker) == 3
    assert (balance(owner, stay.id), balance(owner, theirs.id)) == (0, 0)
    assert len(owner.rows("select distinct xmin::text from webhook_events")) == 1
    # One claim; seven statements for each payment; two for the event that means nothing.
    assert len(said) <= 1 + 2 * 7 + 2, "\n".join(said)
    houses = owner.rows(
        "select t.facility_id from transitions t join webhook_events e on e.id = t.subject_id"
        " order by e.created, e.received_at"
    )
    assert set(houses) == {(cast.tokyo.id,), (cast.osaka.id,), (None,)}


def test_a_batch_with_an_event_that_must_wait_is_divided(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner, stay: Booked
) -> None:
    """Nothing of a batch that cannot commit stands; then each event has a fate of its own."""
    theirs = two_houses_paid(cast, worker, stripe, owner)
    payment = str(owner.one("select id from payments where facility_id = %s", cast.tokyo.id))
    intent = str(owner.one("select intent_id from payments where id = %s", payment))
    raw = next(
        one.raw for one in events(worker) if one.type == SUCCEEDED and payment in str(one.raw)
    )
    unheard_of = raw.replace(payment.encode(), str(uuid4()).encode())
    receive(*[one for one in events(worker) if one.type == SUCCEEDED])
    stored(SUCCEEDED, payload=unheard_of.replace(intent.encode(), b"pi_overtakes_us"))
    assert jobs.apply_due(worker) == 3
    assert (balance(owner, stay.id), balance(owner, theirs.id)) == (0, 0)
    assert owner.one("select count(*) from ledger_lines where kind = 'payment'") == 2
    assert owner.one("select count(*) from outbox where event_type = 'payment_received'") == 2
    fates = owner.rows("select state, outcome, attempts from webhook_events order by state")
    assert fates == [("completed", "applied", 1)] * 2 + [("processing", None, 1)]


def test_i11_the_next_event_is_in_its_own_house(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner, stay: Booked
) -> None:
    """Tokyo's, a broken one, Osaka's: in one process, one after another."""
    theirs = two_houses_paid(cast, worker, stripe, owner)
    first, second = [one for one in events(worker) if one.type == SUCCEEDED]
    receive(first)
    stored(SUCCEEDED, payload=b"not json")
    receive(second)
    work(worker, "inbox")
    assert (balance(owner, stay.id), balance(owner, theirs.id)) == (0, 0)
    houses = owner.rows(
        "select distinct facility_id from ledger_lines where kind = 'payment' and stay_id = %s",
        theirs.id,
    )
    assert houses == [(cast.osaka.id,)]
    wrong = owner.one(
        "select count(*) from outbox o join stays s on s.id = o.stay_id"
        " where s.facility_id <> o.facility_id"
    )
    assert wrong == 0
    assert owner.one("select facility_id from dead_letters") is None


def test_j8_a_failed_job_leaves_nothing_to_the_next(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner, stay: Booked
) -> None:
    """Job 1 raises inside its transaction; a row changes elsewhere; job 2 sees the new value."""
    drawn: list[str] = []

    def first() -> None:
        with worker.context(), transaction(cast.tokyo.id) as tx:
            drawn.append(tx.scalar("select note from stays where id = :id", id=stay.id))
            tx.run("update stays set note = 'half done' where id = :id", id=stay.id)
            tx.run("select 1 / 0")

    with pytest.raises(Exception, match="division by zero"):
        first()
    owner.run("update stays set note = 'changed elsewhere' where id = %s", stay.id)
    with worker.context(), transaction(cast.tokyo.id) as tx:
        assert tx.scalar("select note from stays where id = :id", id=stay.id) == "changed elsewhere"
    with worker.context(), transaction(None) as tx:
        assert tx.rows("select 1 from stays") == []
    assert drawn == [""]


def test_a13_long_ids_are_kept_whole(cast: Cast, worker: House, owner: Owner) -> None:
    long = "evt_" + "x" * 251
    stored("foo.bar", event_id=long)
    stored("foo.bar", event_id=long[:-1])
    assert sorted(len(row[0]) for row in owner.rows("select event_id from webhook_events")) == [
        254,
        255,
    ]


def test_receiving_waits_for_nobody(cast: Cast, worker: House, owner: Owner, app: Flask) -> None:
    """A row that a worker holds locked must not stop another event from being stored."""
    stored("foo.bar")
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with app.app_context(), transaction(None) as tx:
            tx.rows("select id from webhook_events for update")
            held.set()
            done.wait(5)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(5)
    try:
        stored("foo.bar")
        assert len(claimed(uuid4())) == 1
    except OperationalError as fault:  # pragma: no cover
        pytest.fail(str(fault))
    finally:
        done.set()
        thread.join()


# Every column of it -----------------------------------------------------------------------------


@pytest.fixture
def kept(inside: Flask) -> dict[str, Any]:
    """An event that names everything an event can name, received under a request of its own."""
    given: dict[str, Any] = {
        "event_id": "evt_whole",
        "kind": SUCCEEDED,
        "created": clock.now() - timedelta(hours=3),
        "payload": b'\x00 as "received" \xff',
        "headers": {"Stripe-Signature": "t=1,v1=x"},
        "livemode": True,
        "account": "acct_1",
        "api_version": "2026-10-28",
    }
    with log.request("the-delivery"):
        stored(given["kind"], **{name: given[name] for name in given if name != "kind"})
    return given


def claim(token: UUID, **more: Any) -> list[Any]:
    with transaction(None) as tx:
        return list(inbox.claim(tx, token, **more))


def test_an_event_is_kept_as_it_was_received(kept: dict[str, Any], owner: Owner) -> None:
    assert owner.row(
        """
        select source, event_id, type, state, version, created, livemode, account, api_version,
               payload, headers, claimed_at, claim_token, attempts, next_attempt_at = received_at,
               last_error, outcome, detail, completed_at, request_id
        from webhook_events
        """
    ) == (
        "stripe",
        "evt_whole",
        SUCCEEDED,
        "processing",
        1,
        kept["created"],
        True,
        "acct_1",
        "2026-10-28",
        kept["payload"],
        kept["headers"],
        None,
        None,
        0,
        True,
        None,
        None,
        None,
        None,
        "the-delivery",
    )


def test_a_claim_hands_out_what_the_worker_needs(kept: dict[str, Any], owner: Owner) -> None:
    token = uuid4()
    (got,) = claim(token)
    row, received = owner.row("select id, received_at from webhook_events")
    assert got._asdict() == {
        "id": row,
        "source": "stripe",
        "event_id": "evt_whole",
        "type": SUCCEEDED,
        "created": kept["created"],
        "livemode": True,
        "account": "acct_1",
        "payload": kept["payload"],
        "attempts": 1,
        "received_at": received,
        "request_id": "the-delivery",
    }
    assert owner.row("select claim_token, claimed_at <= now(), attempts from webhook_events") == (
        token,
        True,
        1,
    )


def test_a_claim_may_name_one_event_or_a_number(inside: Flask, owner: Owner) -> None:
    for number in range(4):
        stored("foo.bar", event_id=f"evt_{number}", created=clock.now() + timedelta(seconds=number))
    with transaction(None) as tx:
        inbox.receive(
            tx, "seam", event_id="evt_2", kind="k", created=clock.now(), payload=b"", headers={}
        )
    (named,) = claim(uuid4(), only=("stripe", "evt_2"))
    assert (named.source, named.event_id) == ("stripe", "evt_2")
    assert claim(uuid4(), only=("stripe", "evt_2")) == []
    assert claim(uuid4(), only=("stripe", "evt_9")) == []
    owner.run("update webhook_events set next_attempt_at = now() - interval '1 second'")
    assert len(claim(uuid4(), at_most=2)) == 2
    assert len(claim(uuid4())) == 2


def test_at_most_fifty_events_are_claimed_at_a_time(inside: Flask, owner: Owner) -> None:
    stored("foo.bar")
    owner.run(
        "insert into webhook_events (source, event_id, type, state, created, payload, headers,"
        " request_id) select source, n::text, type, state, created, payload, headers, request_id"
        " from webhook_events, generate_series(1, 50) n"
    )
    assert [len(claim(uuid4())) for _ in range(3)] == [50, 1, 0]


def test_a_claim_holds_for_a_minute(kept: dict[str, Any], owner: Owner) -> None:
    """Within it the redelivery is told to come later; after it the event is let in at once."""
    claim(uuid4())
    held = "update webhook_events set claimed_at = now() - %s * interval '1 second'"
    owner.run(f"{held}, next_attempt_at = now() + interval '1 hour'", 58)
    again = {name: kept[name] for name in ("event_id", "kind", "created", "payload", "headers")}
    with transaction(None) as tx:
        assert inbox.receive(tx, "stripe", **again) == "claimed"
    assert owner.one("select next_attempt_at > now() from webhook_events")
    owner.run("update webhook_events set next_attempt_at = now()")
    assert claim(uuid4()) == []
    owner.run(f"{held}, next_attempt_at = now() + interval '1 hour'", 60.1)
    with transaction(None) as tx:
        assert inbox.receive(tx, "stripe", **again) == "received"
    assert owner.one("select next_attempt_at <= now() from webhook_events")
    assert len(claim(uuid4())) == 1


def test_only_the_holder_of_a_claim_gives_it_back(kept: dict[str, Any], owner: Owner) -> None:
    token = uuid4()
    (mine,) = claim(token)
    look = (
        "select claimed_at is null, claim_token, last_error, attempts,"
        " next_attempt_at between now() + interval '9 minutes' and now() + interval '11 minutes'"
        " from webhook_events"
    )
    with transaction(None) as tx:
        inbox.release(tx, mine.id, uuid4(), timedelta(minutes=10), "not mine")
    assert owner.row(look) == (False, token, None, 1, False)
    with transaction(None) as tx:
        inbox.release(tx, uuid4(), token, timedelta(minutes=10), "another's")
        inbox.release(tx, mine.id, token, timedelta(minutes=10), "a fault of ours")
    assert owner.row(look) == (True, None, "a fault of ours", 1, True)


def test_only_the_holder_of_a_claim_completes_and_the_record_says_how(
    kept: dict[str, Any], owner: Owner
) -> None:
    now = clock.now()
    clock.set_source(lambda: now)
    token = uuid4()
    (mine,) = claim(token)
    with log.request("the-worker"), transaction(None) as tx:
        assert not inbox.complete(tx, mine.id, uuid4(), SYSTEM, "applied")
        assert inbox.complete(tx, mine.id, token, SYSTEM, "orphan", "whose is it?")
        assert not inbox.complete(tx, mine.id, token, SYSTEM, "applied")
    assert owner.row(
        "select state, version, outcome, detail, completed_at, claimed_at, claim_token"
        " from webhook_events"
    ) == ("completed", 2, "orphan", "whose is it?", now, None, None)
    assert owner.rows(
        "select facility_id, machine, subject_id, verb, event, from_state, to_state, reason,"
        " actor_kind, actor_id, actor_name, request_id, at from transitions"
    ) == [
        (
            None,
            "webhook_event",
            mine.id,
            "apply_event",
            "completed",
            "processing",
            "completed",
            "orphan",
            *(SYSTEM.kind, SYSTEM.id, SYSTEM.name),
            "the-worker",
            now,
        )
    ]


def complete_mine() -> None:
    token = uuid4()
    (mine,) = claim(token)
    with transaction(None) as tx:
        inbox.complete(tx, mine.id, token, SYSTEM, "applied")


def test_an_event_without_a_remark_is_completed_without_one(
    kept: dict[str, Any], owner: Owner
) -> None:
    complete_mine()
    assert owner.row("select outcome, detail from webhook_events") == ("applied", "")


def letter_of(cast: Cast, event_row: UUID) -> UUID:
    with cast.transaction(cast.tokyo.id) as tx:
        inbox.dead_letter(tx, "webhook_event", event_row, "payment", "it does not agree")
        found: UUID = tx.scalar("select id from dead_letters")
        return found


def test_a_dead_letter_names_its_house_its_source_and_its_ground(cast: Cast, owner: Owner) -> None:
    now, source = clock.now(), uuid4()
    clock.set_source(lambda: now)
    letter_of(cast, source)
    assert owner.rows(
        "select facility_id, source_kind, source_id, title, error, at, closed_at, closed_by,"
        " closed_how from dead_letters"
    ) == [
        (
            cast.tokyo.id,
            "webhook_event",
            source,
            "payment",
            "it does not agree",
            now,
            None,
            None,
            None,
        )
    ]


def test_a_replay_is_the_same_event_under_another_id(
    kept: dict[str, Any], cast: Cast, owner: Owner
) -> None:
    now = clock.now()
    clock.set_source(lambda: now)
    event_row = owner.one("select id from webhook_events")
    letter, other = letter_of(cast, event_row), uuid4()
    owner.run(
        "insert into dead_letters (id, facility_id, source_kind, source_id, title, error, at)"
        " select %s, facility_id, source_kind, source_id, title, error, at + interval '1 s'"
        " from dead_letters",
        other,
    )
    doorbell.connection().flushall()
    assert do(cast, verbs.replay, letter) == Applied(
        Code.EVENT_REPLAYED, to="processing", subject=letter
    )
    assert len(doorbell.queue("inbox").jobs) == 1
    columns = (
        "source, type, state, created, livemode, account, api_version, payload, headers, attempts,"
        " claim_token, outcome, request_id"
    )
    first, second = owner.rows(f"select {columns} from webhook_events order by received_at")
    assert first == second
    assert owner.one("select event_id from webhook_events where id <> %s", event_row) == (
        f"evt_whole:replay:{letter}"
    )
    assert owner.rows(
        "select id, closed_at, closed_by, closed_how from dead_letters order by at"
    ) == [
        (letter, now, cast.sato.name, "replayed"),
        (other, None, None, None),
    ]


def test_a_dismissal_is_signed(cast: Cast, owner: Owner) -> None:
    now = clock.now()
    clock.set_source(lambda: now)
    letter = letter_of(cast, uuid4())
    assert do(cast, verbs.dismiss, letter) == Applied(
        Code.EVENT_DISMISSED, to="closed", subject=letter
    )
    assert owner.row("select closed_at, closed_by, closed_how from dead_letters") == (
        now,
        cast.sato.name,
        "dismissed",
    )
    assert len(doorbell.queue("inbox").jobs) == 0


def test_completed_events_go_when_they_are_four_days_old_at_the_earliest(
    kept: dict[str, Any], owner: Owner
) -> None:
    complete_mine()
    four_days = timedelta(days=4)
    with transaction(None) as tx:
        assert inbox.prune(tx, four_days) == 0
        with pytest.raises(ValueError, match="four days"):
            inbox.prune(tx, four_days - timedelta(seconds=1))
    owner.run("update webhook_events set completed_at = now() - interval '4 days 1 second'")
    with transaction(None) as tx:
        assert inbox.prune(tx, four_days + timedelta(hours=1)) == 0
        assert inbox.prune(tx, four_days) == 1
