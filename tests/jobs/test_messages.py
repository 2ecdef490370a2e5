"""The outbox's dispatch, counted at the far side: SMTP DATA and LINE pushes."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from flask import Flask

from portal import doorbell, log, outbox
from portal.db import transaction
from portal.jobs import drain, messages
from portal.jobs.house import House
from portal.outcome import Applied, Code, Noop, Refused
from portal.policies import backoff
from portal.verbs import messages as verbs
from portal.verbs import stays
from sandbox.mail import MailSink
from sandbox.seam.running import Running
from sandbox.watch import statements
from tests.cast import Booked, Cast
from tests.conftest import psycopg_url
from tests.outside import Owner, at_once, work
from tests.verbs.test_stays import do

LATER = timedelta(hours=1)


def booked(cast: Cast, number: int = 0, **guest: Any) -> Booked:
    """One stay, and so one message that waits."""
    starts = datetime(2027, 1, 1, 6, tzinfo=UTC) + timedelta(days=number)
    return cast.book(
        guest={**cast.hanako, **guest}, starts_at=starts, ends_at=starts + timedelta(hours=12)
    )


def ends(owner: Owner) -> list[str]:
    """What became of each message, oldest first."""
    return [
        row[0]
        for row in owner.rows(
            "select case when sent_at is not null then 'sent'"
            " when suppressed_at is not null then 'suppressed'"
            " when withdrawn_at is not null then 'withdrawn'"
            " when dropped_at is not null then 'dropped'"
            " when dead_at is not null then 'dead'"
            " when unknown_at is not null then 'unknown' else 'waiting' end"
            " from outbox order by created_at, id"
        )
    ]


def enqueue(
    house: UUID, stay: UUID, kind: str, fact: str, consumer: str | None = None, **payload: Any
) -> None:
    with transaction(house) as tx:
        outbox.enqueue(tx, stay, kind, fact, payload, consumer_key=consumer)


def test_a_message_is_sent_once_and_remembered(
    cast: Cast, worker: House, mail: MailSink, owner: Owner
) -> None:
    stay = booked(cast)
    for _ in range(3):
        work(worker, "outbox")
    (got,) = mail.kept
    assert got.rcpt_to == ("hanako@guest.example",)
    assert stay.token in got.message.get_content()
    assert got.message["Message-ID"] == f"<{owner.one('select id from outbox')}@monban>"
    assert ends(owner) == ["sent"]
    assert owner.rows("select consumer_key from consumed_effects") == [(f"stay_created:{stay.id}",)]


def test_f1_two_senders_at_once_send_each_message_once(
    cast: Cast, worker: House, mail: MailSink, app: Flask, owner: Owner
) -> None:
    for number in range(12):
        booked(cast, number, email=f"guest{number}@guest.example")
    mail.slow(0.1, times=4)
    at_once(app, *[lambda: drain.drain("outbox")] * 4)
    assert sorted(got.rcpt_to[0] for got in mail.received) == sorted(
        f"guest{number}@guest.example" for number in range(12)
    )
    assert set(ends(owner)) == {"sent"}


def test_f1_a_claim_waits_for_no_other(cast: Cast, owner: Owner, database: dict[str, str]) -> None:
    """A sender that is slow to commit its claim holds up its own rows only."""
    for number in range(3):
        booked(cast, number, email=f"guest{number}@guest.example")
    claim = "select id from claim_outbox(gen_random_uuid(), %s, interval '5 minutes')"
    with psycopg.connect(psycopg_url(database["DATABASE_OWNER_URL"])) as slow:
        held = slow.execute(claim, [2]).fetchall()
        owner.run("set statement_timeout = '20s'")
        others = owner.rows(claim, 3)
        slow.rollback()
    assert (len(held), len(others)) == (2, 1)
    assert not set(held) & set(others)


def die(owner: Owner, *, transmitting: bool) -> None:
    """A sender claimed every row and was killed five minutes ago."""
    owner.run(
        "update outbox set claimed_at = now() - interval '6 minutes', claim_token = %s,"
        " attempts = 1, sending_at = case when %s then now() - interval '6 minutes' end",
        uuid4(),
        transmitting,
    )


def test_f2_a_sender_that_died_before_it_began_is_replaced(
    cast: Cast, worker: House, mail: MailSink, owner: Owner
) -> None:
    booked(cast)
    die(owner, transmitting=False)
    work(worker, "outbox")
    assert (ends(owner), len(mail.kept)) == (["sent"], 1)


def test_f2_a_mail_whose_sender_died_in_mid_send_waits_for_a_person(
    cast: Cast, worker: House, mail: MailSink, owner: Owner
) -> None:
    booked(cast)
    die(owner, transmitting=True)
    work(worker, "outbox")
    owner.make_due()
    work(worker, "outbox")
    assert (ends(owner), len(mail.received)) == (["unknown"], 0)


@pytest.mark.parametrize("guest", [{}, {"line_user_id": "Uhanako"}], ids=["mail", "line"])
def test_what_may_have_arrived_is_not_called_withdrawn(
    cast: Cast,
    worker: House,
    mail: MailSink,
    line: Running,
    owner: Owner,
    guest: dict[str, str],
) -> None:
    """Its sender died in mid-send and its fact is no longer true: nobody knows whether it came.
    Asked for once more by a person, it is found untrue and not sent."""
    stay = booked(cast, **guest)
    die(owner, transmitting=True)
    do(cast, stays.cancel, stay.id, 1)
    work(worker, "outbox")
    assert ends(owner) == ["unknown", "sent"]
    with cast.transaction(cast.tokyo.id) as tx:
        (lost,) = tx.rows("select id from outbox where unknown_at is not null")
        assert isinstance(verbs.resend(tx, cast.sato.actor, lost.id), Applied)
    work(worker, "outbox")
    assert ends(owner) == ["withdrawn", "sent"]


def test_f2_a_claim_that_is_alive_is_left_alone(
    cast: Cast, worker: House, mail: MailSink, owner: Owner
) -> None:
    booked(cast)
    owner.run(
        "update outbox set claimed_at = now() - interval '4 minutes', claim_token = %s", uuid4()
    )
    work(worker, "outbox")
    assert (ends(owner), len(mail.received)) == (["waiting"], 0)


def test_f2_line_is_asked_again_under_its_key(
    cast: Cast, worker: House, line: Running, owner: Owner
) -> None:
    booked(cast, line_user_id="Uhanako")
    die(owner, transmitting=True)
    work(worker, "outbox")
    (push,) = line.control("pushes")
    assert push["retry_key"] == str(owner.one("select id from outbox"))
    assert ends(owner) == ["sent"]


def test_an_unclear_mail_is_unknown_and_not_repeated(
    cast: Cast, worker: House, mail: MailSink, owner: Owner
) -> None:
    booked(cast)
    mail.drop("keep_then_drop")
    work(worker, "outbox")
    owner.make_due()
    work(worker, "outbox")
    assert (ends(owner), len(mail.kept)) == (["unknown"], 1)


@pytest.mark.parametrize("fault", ["drop_at_connect", "drop_at_mail", "drop_at_data", "450"])
def test_a_mail_that_was_not_taken_is_sent_later(
    cast: Cast, worker: House, mail: MailSink, owner: Owner, fault: str
) -> None:
    booked(cast)
    if fault == "450":
        mail.answer("RCPT", "450 later")
    else:
        mail.drop(fault)
    work(worker, "outbox")
    assert ends(owner) == ["waiting"]
    waits = (
        "select next_attempt_at > now() + interval '5 seconds', sending_at, attempts from outbox"
    )
    assert owner.row(waits) == (True, None, 1)
    owner.make_due()
    work(worker, "outbox")
    assert (ends(owner), len(mail.kept)) == (["sent"], 1)


def test_f10_a_refused_address_is_dead_and_a_person_decides(
    cast: Cast, worker: House, mail: MailSink, owner: Owner
) -> None:
    booked(cast)
    mail.answer("RCPT", "550 no such user", times=2)
    work(worker, "outbox")
    assert ends(owner) == ["dead"]
    message = owner.one("select id from outbox")
    assert do(cast, verbs.resend, message) == Applied(
        Code.MESSAGE_REQUEUED, to="waiting", subject=message
    )
    work(worker, "outbox")
    assert ends(owner) == ["dead"]
    assert do(cast, verbs.drop, message) == Applied(
        Code.MESSAGE_DROPPED, to="dropped", subject=message
    )
    assert do(cast, verbs.drop, message) == Noop(Code.MESSAGE_NOT_WAITING)
    assert do(cast, verbs.resend, message) == Noop(Code.MESSAGE_NOT_WAITING)
    work(worker, "outbox")
    assert (ends(owner), len(mail.kept)) == (["dropped"], 0)


def test_an_unknown_mail_is_sent_again_when_a_person_says_so(
    cast: Cast, worker: House, mail: MailSink, owner: Owner
) -> None:
    booked(cast)
    mail.drop("keep_then_drop")
    work(worker, "outbox")
    do(cast, verbs.resend, owner.one("select id from outbox"))
    work(worker, "outbox")
    assert ends(owner) == ["sent"]
    ids = {got.message["Message-ID"] for got in mail.kept}
    assert (len(mail.kept), len(ids)) == (2, 1)


def test_the_verbs_know_no_other_houses_messages(cast: Cast, owner: Owner) -> None:
    booked(cast)
    owner.run("update outbox set dead_at = now()")
    message = owner.one("select id from outbox")
    for verb in (verbs.resend, verbs.drop):
        assert do(cast, verb, message, house=cast.osaka.id) == Refused(Code.NOT_FOUND)
        assert do(cast, verb, uuid4()) == Refused(Code.NOT_FOUND)
    assert ends(owner) == ["dead"]


def test_f4_poison_rows_hold_up_nobody(
    cast: Cast, worker: House, mail: MailSink, owner: Owner
) -> None:
    """Twenty that cannot be rendered, or not even be read, before fifty good ones."""
    stay = booked(cast)
    assert isinstance(do(cast, stays.admit, cast.book(price=0, space="A02").id, 1), Applied)
    owner.run("delete from outbox where stay_id <> %s", stay.id)
    for number in range(10):
        enqueue(stay.facility_id, stay.id, "no_such_template", str(number))
        enqueue(stay.facility_id, stay.id, "entry_key_issued", str(number), key_id="not a key")
    owner.run("update outbox set priority = 0 where event_type <> 'stay_created'")
    for number in range(49):
        enqueue(stay.facility_id, stay.id, "stay_changed", str(number))
    drain.drain("outbox")
    assert len(mail.kept) == 50
    assert sorted(ends(owner)) == ["sent"] * 50 + ["waiting"] * 20
    assert owner.one("select count(*) from outbox where last_error is not null") == 20
    for _ in range(8):
        owner.make_due()
        work(worker, "outbox")
    assert sorted(ends(owner)) == ["dead"] * 20 + ["sent"] * 50
    assert owner.one("select max(attempts) from outbox") == 8


def test_f5_a_lower_row_that_commits_later_is_sent_too(
    cast: Cast, worker: House, mail: MailSink, owner: Owner, app: Flask
) -> None:
    stay = booked(cast)
    work(worker, "outbox")
    with transaction(stay.facility_id) as early:
        outbox.enqueue(early, stay.id, "stay_changed", "early", {})
        at_once(app, lambda: enqueue(stay.facility_id, stay.id, "stay_changed", "late"))
        at_once(app, lambda: drain.drain("outbox"))
        assert len(mail.kept) == 2
    work(worker, "outbox")
    assert len(mail.kept) == 3


def test_f7_each_mail_is_wholly_in_the_language_of_its_row(
    cast: Cast, worker: House, mail: MailSink, owner: Owner
) -> None:
    booked(cast, 0)
    english = booked(cast, 1, email="emma@guest.example", name="Emma", locale="en")
    booked(cast, 2)
    owner.run("update guests set preferred_locale = 'ja'")
    work(worker, "outbox")
    by_guest = {got.rcpt_to[0]: got.message for got in mail.kept}
    emma, hanako = by_guest["emma@guest.example"], by_guest["hanako@guest.example"]
    assert emma["Content-Language"] == "en"
    assert hanako["Content-Language"] == "ja"
    for part in (emma["Subject"], emma.get_content()):
        assert part.isascii()
        assert "Haneda Capsule Hotel" in part
    assert "羽田カプセルホテル" in hanako["Subject"]
    assert "2027" in emma.get_content()
    assert "your reservation" not in hanako.get_content()
    assert english.token in emma.get_content()


@pytest.mark.parametrize(
    ("guest", "house", "locale"), [("en", "ja", "en"), (None, "en", "en"), (None, "ja", "ja")]
)
def test_f7_the_language_is_fixed_when_the_row_is_written(
    cast: Cast, owner: Owner, guest: str | None, house: str, locale: str
) -> None:
    owner.run("update facilities set default_locale = %s where id = %s", house, cast.tokyo.id)
    booked(cast, locale=guest)
    assert owner.one("select locale from outbox") == locale


def test_f8_a_name_makes_no_header(cast: Cast, worker: House, mail: MailSink, owner: Owner) -> None:
    owner.run(
        "update facilities set name_ja = %s where id = %s",
        "宿\r\nBcc: y@evil.example\n",
        cast.tokyo.id,
    )
    booked(cast, name="Hana\r\nBcc: x@evil.example")
    work(worker, "outbox")
    (got,) = mail.kept
    assert got.rcpt_to == ("hanako@guest.example",)
    assert got.message["Bcc"] is None
    assert ends(owner) == ["sent"]


def test_f8_an_address_that_is_none_is_dead_and_holds_up_nobody(
    cast: Cast, worker: House, mail: MailSink, owner: Owner
) -> None:
    booked(cast, 0, email="a@guest.example\r\nRCPT TO:<x@evil.example>")
    booked(cast, 1)
    work(worker, "outbox")
    assert ends(owner) == ["dead", "sent"]
    assert [got.rcpt_to for got in mail.received] == [("hanako@guest.example",)]


def test_f11_a_lost_answer_of_line_is_one_message(
    cast: Cast, worker: House, line: Running, owner: Owner
) -> None:
    booked(cast, line_user_id="Uhanako")
    line.fault("do_then_drop", "/v2/bot/message/push")
    work(worker, "outbox")
    assert ends(owner) == ["waiting"]
    owner.make_due()
    work(worker, "outbox")
    assert ends(owner) == ["sent"]
    assert len(line.control("pushes")) == 1
    keys = {seen["headers"]["x-line-retry-key"] for seen in line.control("requests")}
    assert keys == {str(owner.one("select id from outbox"))}


@pytest.mark.parametrize("later", ["do_then_drop", "error_500_before", "refuse", "blocked"])
def test_f11_a_lost_answer_of_line_stays_in_doubt_until_it_is_given_up(
    cast: Cast, worker: House, line: Running, owner: Owner, later: str
) -> None:
    """It may have arrived. That later tries certainly did not proves nothing about the first."""
    booked(cast, line_user_id="Uhanako", email=None)
    line.fault("do_then_drop", "/v2/bot/message/push")
    work(worker, "outbox")
    if later == "blocked":
        line.reset()  # it keeps a retry key for a day
        line.control("block", {"user": "Uhanako"})
    for _ in range(backoff.WORDS_LIMIT):
        if later != "blocked":
            line.fault(later)
        owner.make_due()
        work(worker, "outbox")
    assert ends(owner) == ["unknown"]
    assert owner.one("select attempts from outbox") == (
        2 if later == "blocked" else backoff.WORDS_LIMIT
    )


def test_f11_a_blocked_user_is_written_to_by_mail_in_the_same_language(
    cast: Cast, worker: House, line: Running, mail: MailSink, owner: Owner
) -> None:
    booked(cast, line_user_id="Uhanako", locale="en")
    owner.run("update guests set preferred_locale = 'ja'")
    line.control("block", {"user": "Uhanako"})
    work(worker, "outbox")
    assert sorted(ends(owner)) == ["dropped", "sent"]
    assert [got.message["Content-Language"] for got in mail.kept] == ["en"]
    assert owner.rows("select channel, locale from outbox order by created_at") == [
        ("line", "en"),
        ("email", "en"),
    ]
    owner.make_due()
    work(worker, "outbox")
    assert len(mail.kept) == 1


def test_f11_a_blocked_user_without_mail_waits_for_a_person(
    cast: Cast, worker: House, line: Running, owner: Owner
) -> None:
    booked(cast, line_user_id="Uhanako", email=None)
    line.control("block", {"user": "Uhanako"})
    work(worker, "outbox")
    assert ends(owner) == ["dead"]


def test_f11_a_rate_limit_puts_off_one_and_lets_the_others_go(
    cast: Cast, worker: House, line: Running, owner: Owner
) -> None:
    booked(cast, 0, line_user_id="Uone")
    booked(cast, 1, line_user_id="Utwo")
    line.fault("rate_limit", seconds=120)
    work(worker, "outbox")
    assert sorted(ends(owner)) == ["sent", "waiting"]
    assert owner.one(
        "select next_attempt_at > now() + interval '100 seconds' from outbox where sent_at is null"
    )


def test_line_that_is_not_set_up_falls_back_to_mail(
    cast: Cast, worker: House, mail: MailSink, owner: Owner
) -> None:
    booked(cast, line_user_id="Uhanako")
    work(worker, "outbox")
    assert len(mail.kept) == 1


def test_a_fact_that_is_no_longer_true_is_withdrawn(
    cast: Cast, worker: House, mail: MailSink, owner: Owner
) -> None:
    stay = booked(cast)
    do(cast, stays.cancel, stay.id, 1)
    work(worker, "outbox")
    assert sorted(ends(owner)) == ["sent", "withdrawn"]
    (got,) = mail.kept
    assert "キャンセル" in got.message["Subject"]


def test_an_effect_of_the_same_event_is_told_once(
    cast: Cast, worker: House, mail: MailSink, owner: Owner
) -> None:
    stay = booked(cast)
    work(worker, "outbox")
    enqueue(stay.facility_id, stay.id, "stay_changed", "1", consumer="evt_1:changed")
    work(worker, "outbox")
    enqueue(stay.facility_id, stay.id, "stay_changed", "2", consumer="evt_1:changed")
    work(worker, "outbox")
    assert ends(owner) == ["sent", "sent", "suppressed"]
    assert len(mail.kept) == 2


def test_an_effect_is_told_once_within_a_batch_as_well(
    cast: Cast, worker: House, mail: MailSink, owner: Owner
) -> None:
    """One after the other: what has just been sent is remembered before the next begins."""
    stay = booked(cast)
    for number in range(3):
        enqueue(stay.facility_id, stay.id, "stay_changed", str(number), consumer="evt_1:changed")
    assert messages.dispatch_due(worker) == 4
    assert sorted(ends(owner)) == ["sent", "sent", "suppressed", "suppressed"]
    assert len(mail.kept) == 2


def test_a_batch_needs_at_most_three_statements_a_message(
    cast: Cast, worker: House, mail: MailSink, owner: Owner
) -> None:
    stay = booked(cast)
    for number in range(49):
        enqueue(stay.facility_id, stay.id, "stay_changed", str(number))
    with statements() as said:
        assert messages.dispatch_due(worker) == 50
    assert len(mail.kept) == 50
    assert len(said) <= 3 * 50, "\n".join(said)


def test_a_messages_payment_is_looked_up_and_not_searched_for(
    cast: Cast, inside: Flask, owner: Owner
) -> None:
    """Under row-level security an index is asked by a value, and by no expression that might leak:
    each message would read through every payment of the house."""
    stay = booked(cast)
    owner.run("set session_replication_role = replica")
    owner.run(
        "insert into payments (facility_id, purpose, subject_id, stay_id, attempt, amount,"
        " currency, state, idempotency_key)"
        " select s.facility_id, 'reservation_balance', s.id, s.id, n, 1, 'JPY', 'canceled',"
        " 'long ago ' || n"
        " from stays s, generate_series(1, 3000) n"
    )
    owner.run(
        "insert into guests (facility_id, name, search_key)"
        " select facility_id, 'guest ' || n, '' from stays, generate_series(1, 3000) n"
    )
    owner.run(
        "insert into members (facility_id, guest_id, email_key)"
        " select facility_id, id, name from guests where name like 'guest %%'"
    )
    for table in ("payments", "guests", "members"):
        owner.run(f"analyze {table}")
    named = {"id": owner.one("select id from outbox"), "token": uuid4(), "sent": None}
    with transaction(stay.facility_id) as tx:
        with statements() as said:
            outbox.begin_sending(tx, named["id"], named["token"])
        plan = "\n".join(row[0] for row in tx._send(f"explain {said[-1]}", named))
    assert "Index Cond: (id = o.payment_id)" in plan, plan
    assert "Index Cond: (id = o.guest_id)" in plan, plan
    assert [table for table in ("payments", "guests", "members")
            if f"Seq Scan on {table} " in plan] == [], plan  # fmt: skip


def test_the_same_fact_is_one_row(cast: Cast, inside: Flask, owner: Owner) -> None:
    stay = booked(cast)
    for _ in range(3):
        enqueue(stay.facility_id, stay.id, "stay_changed", "1")
    assert owner.one("select count(*) from outbox") == 2


def test_door_keys_go_before_receipts_before_the_rest(
    cast: Cast, worker: House, mail: MailSink, owner: Owner
) -> None:
    stay = booked(cast)
    for number in range(30):
        kind = ("stay_changed", "refund_sent", "refund_failed")[number % 3]
        enqueue(stay.facility_id, stay.id, kind, str(number), amount=number + 1)
    owner.run("update outbox set priority = 0 where event_type = 'refund_failed'")
    owner.run("analyze outbox")
    token = uuid4()
    with transaction(None) as tx:
        claimed = outbox.claim(tx, token)
    order = [
        owner.one("select priority from outbox where id = %s", message) for message, _ in claimed
    ]
    assert order == sorted(order)
    assert order.count(0) == 10


def test_at_most_fifty_are_claimed_at_a_time(cast: Cast, inside: Flask, owner: Owner) -> None:
    booked(cast)
    owner.run(
        "insert into outbox (facility_id, stay_id, dedupe_key, consumer_key, event_type, channel,"
        " recipient, locale, payload, priority, request_id) select facility_id, stay_id, n::text,"
        " n::text, event_type, channel, recipient, locale, payload, priority, request_id"
        " from outbox, generate_series(1, 60) n"
    )
    for expected in (50, 11, 0):
        with transaction(None) as tx:
            assert len(outbox.claim(tx, uuid4())) == expected


def test_a_sender_that_lost_its_claim_marks_nothing(
    cast: Cast, worker: House, mail: MailSink, owner: Owner
) -> None:
    stay = booked(cast)
    mine = uuid4()
    with transaction(None) as tx:
        ((message, house),) = outbox.claim(tx, mine)
    owner.run("update outbox set claimed_at = now() - interval '6 minutes'")
    work(worker, "outbox")
    messages.dispatch(worker, house, [message], mine)
    assert len(mail.kept) == 1
    assert ends(owner) == ["sent"]
    assert house == stay.facility_id


def test_i11_each_mail_names_its_own_house(
    cast: Cast, worker: House, mail: MailSink, owner: Owner
) -> None:
    booked(cast, 0)
    bad = booked(cast, 1)
    enqueue(bad.facility_id, bad.id, "no_such_template", "1")
    cast.book(cast.osaka, cast.emma)
    work(worker, "outbox")
    (theirs,) = [got for got in mail.kept if got.rcpt_to == ("emma@guest.example",)]
    assert "Umeda Sauna" in theirs.message["From"]
    assert "Haneda" not in theirs.message.get_content()
    assert len(mail.kept) == 3


def test_a_guest_without_an_address_is_not_written_to(
    cast: Cast, inside: Flask, owner: Owner
) -> None:
    stay = booked(cast, email=None)
    enqueue(stay.facility_id, stay.id, "stay_changed", "1")
    assert ends(owner) == []


# Every column of it -----------------------------------------------------------------------------


def claimed(cast: Cast, **guest: Any) -> tuple[UUID, UUID]:
    """(message, token) of one message of Tokyo's that a sender holds."""
    booked(cast, **guest)
    token = uuid4()
    with cast.transaction(None) as tx:
        held = outbox.claim(tx, token)
    ((message, house),) = held
    assert house == cast.tokyo.id
    return message, token


ENDS = ("sent_at", "suppressed_at", "withdrawn_at", "dropped_at", "dead_at", "unknown_at")


def row_of(owner: Owner, message: UUID) -> dict[str, Any]:
    """What is known of a message: which end it has, who holds it, what went wrong, what comes."""
    ends = ", ".join(f"case when {name} is not null then '{name}' end" for name in ENDS)
    end, token, held, sending, error, pause, attempts = owner.row(
        f"select concat({ends}), claim_token, claimed_at is not null, sending_at is not null,"
        " last_error, round(extract(epoch from next_attempt_at - now()) / 60), attempts"
        " from outbox where id = %s",
        message,
    )
    return {
        "end": end,
        "token": token,
        "held": held,
        "sending": sending,
        "error": error,
        "minutes": max(0, int(pause)),
        "attempts": attempts,
    }


def test_a_message_is_claimed_under_a_token_of_its_sender(cast: Cast, owner: Owner) -> None:
    message, token = claimed(cast)
    assert row_of(owner, message) == {
        "end": "",
        "token": token,
        "held": True,
        "sending": False,
        "error": None,
        "minutes": 0,
        "attempts": 1,
    }


def test_a_claim_of_a_message_holds_for_five_minutes(cast: Cast, owner: Owner) -> None:
    message, token = claimed(cast)
    other = uuid4()
    for seconds, holder in ((298, token), (300.1, other)):
        owner.run("update outbox set claimed_at = now() - %s * interval '1 second'", seconds)
        with cast.transaction(None) as tx:
            outbox.claim(tx, other)
        assert row_of(owner, message)["token"] == holder


def test_each_kind_of_message_has_its_place_in_the_queue(
    cast: Cast, inside: Flask, owner: Owner
) -> None:
    stay = booked(cast)
    for kind in ("entry_key_issued", "entry_key_changed", "payment_received", "refund_sent"):
        enqueue(stay.facility_id, stay.id, kind, "1")
    assert owner.rows("select event_type, priority from outbox order by created_at") == [
        ("stay_created", 2),
        ("entry_key_issued", 0),
        ("entry_key_changed", 0),
        ("payment_received", 1),
        ("refund_sent", 1),
    ]


FREE: dict[str, Any] = {"token": None, "held": False}


@pytest.mark.parametrize(
    ("end", "given", "expected"),
    [
        (outbox.suppress, (), {"end": "suppressed_at"}),
        (outbox.withdraw, (), {"end": "withdrawn_at"}),
        (outbox.lose, ("why",), {"end": "unknown_at", "error": "why"}),
        (outbox.replace, ("why",), {"end": "dropped_at", "error": "why"}),
        (outbox.bury, ("why",), {"end": "dead_at", "error": "why"}),
        (
            outbox.release,
            (timedelta(minutes=5), "why"),
            {"sending": False, "minutes": 5, "error": "why"},
        ),
    ],
    ids=["suppress", "withdraw", "lose", "replace", "bury", "release"],
)
def test_each_end_is_written_by_the_holder_alone(
    cast: Cast, owner: Owner, end: Any, given: tuple[Any, ...], expected: dict[str, Any]
) -> None:
    message, token = claimed(cast)
    owner.run("update outbox set sending_at = now()")
    before = row_of(owner, message)
    with cast.transaction(cast.tokyo.id) as tx:
        assert end(tx, message, uuid4(), *given) is False
        assert end(tx, uuid4(), token, *given) is False
    assert row_of(owner, message) == before
    with cast.transaction(cast.tokyo.id) as tx:
        assert end(tx, message, token, *given) is True
    assert row_of(owner, message) == {**before, **FREE, **expected}


def test_a_try_in_doubt_keeps_its_beginning(cast: Cast, owner: Owner) -> None:
    message, token = claimed(cast)
    owner.run("update outbox set sending_at = now() - interval '1 minute'")
    began = owner.one("select sending_at from outbox")
    with cast.transaction(cast.tokyo.id) as tx:
        assert outbox.release(tx, message, token, timedelta(minutes=1), "lost", in_doubt=True)
    assert owner.one("select sending_at from outbox") == began


def test_what_is_begun_is_marked_with_all_that_its_words_need(cast: Cast, owner: Owner) -> None:
    message, token = claimed(cast, line_user_id="Uhanako")
    with cast.transaction(cast.tokyo.id) as tx:
        assert outbox.begin_sending(tx, message, uuid4()) is None
        loaded = outbox.load(tx, message)
        begun = outbox.begin_sending(tx, message, token)
    assert loaded is not None
    assert begun is not None
    assert begun._asdict() == loaded._asdict()
    assert (begun.id, begun.event_type, begun.channel) == (message, "stay_created", "line")
    assert (begun.already_heard, begun.still_true, begun.sending_at) == (False, True, None)
    assert row_of(owner, message)["sending"] is True
    with cast.transaction(cast.tokyo.id) as tx:
        assert outbox.load(tx, uuid4()) is None


@pytest.mark.parametrize("with_the_next", [False, True])
def test_what_is_sent_is_remembered_by_the_holder_alone(
    cast: Cast, inside: Flask, owner: Owner, with_the_next: bool
) -> None:
    stay = booked(cast)
    enqueue(stay.facility_id, stay.id, "stay_changed", "1")
    token = uuid4()
    with cast.transaction(None) as tx:
        (first, _), (second, _) = outbox.claim(tx, token)
    keys = dict(owner.rows("select id, consumer_key from outbox"))
    with cast.transaction(stay.facility_id) as tx:
        outbox.begin_sending(tx, first, token)
        outbox.sent(tx, first, uuid4())
    assert owner.rows("select * from consumed_effects") == []
    assert row_of(owner, first)["end"] == ""
    with cast.transaction(stay.facility_id) as tx:
        if with_the_next:
            assert outbox.begin_sending(tx, second, token, sent=first) is not None
        else:
            outbox.sent(tx, first, token)
    assert owner.rows("select facility_id, consumer_key from consumed_effects") == [
        (stay.facility_id, keys[first])
    ]
    assert (row_of(owner, first)["end"], row_of(owner, first)["token"]) == ("sent_at", None)
    assert row_of(owner, second)["sending"] is with_the_next


@pytest.mark.parametrize("end", ["unknown_at", "dead_at"])
def test_a_message_that_the_far_side_has_is_sent_and_remembered(
    cast: Cast, owner: Owner, end: str
) -> None:
    message, _ = claimed(cast)
    with cast.transaction(cast.tokyo.id) as tx:
        assert outbox.recorded(tx, message) is False
        assert outbox.recorded(tx, uuid4()) is False
    owner.run(f"update outbox set {end} = now(), sending_at = now() - interval '1 minute'")
    with cast.transaction(cast.tokyo.id) as tx:
        assert outbox.recorded(tx, message) is True
        assert outbox.recorded(tx, message) is False
    assert row_of(owner, message)["end"] == "sent_at"
    assert owner.one("select sent_at = sending_at from outbox")
    assert owner.rows("select consumer_key from consumed_effects") == owner.rows(
        "select consumer_key from outbox"
    )


def test_a_message_is_written_once_and_rings(cast: Cast, owner: Owner) -> None:
    stay = booked(cast, line_user_id="Uhanako", locale="ja")
    owner.run("delete from outbox")
    doorbell.connection().flushall()

    def write(**more: Any) -> bool:
        with log.request("the-one"), cast.transaction(stay.facility_id) as tx:
            return outbox.enqueue(tx, stay.id, "refund_sent", "r1", {"amount": 5}, **more)

    columns = (
        "facility_id, stay_id, dedupe_key, consumer_key, event_type, channel, recipient, locale,"
        " payload, priority, request_id"
    )
    rest = ({"amount": 5}, 1, "the-one")
    whose = (stay.facility_id, stay.id, "refund_sent:r1")
    assert write(consumer_key="evt:1") is True
    assert write(consumer_key="evt:2") is True
    assert len(doorbell.queue("outbox").jobs) == 1
    assert owner.rows(f"select {columns} from outbox") == [
        (*whose, "evt:1", "refund_sent", "line", "Uhanako", "ja", *rest)
    ]
    owner.run("delete from outbox")
    assert write(by_mail_in="en") is True
    assert owner.rows(f"select {columns} from outbox") == [
        (*whose, "refund_sent:r1", "refund_sent", "email", "hanako@guest.example", "en", *rest)
    ]


def test_what_line_refused_is_written_by_mail_in_its_own_language(cast: Cast, owner: Owner) -> None:
    stay = booked(cast, line_user_id="Uhanako")
    with cast.transaction(stay.facility_id) as tx:
        outbox.enqueue(tx, stay.id, "stay_created", "again", {}, by_mail_in="en")
    assert owner.rows("select channel, locale from outbox order by created_at") == [
        ("line", "ja"),
        ("email", "en"),
    ]


def test_nobody_is_rung_for_a_guest_without_an_address(cast: Cast, owner: Owner) -> None:
    stay = booked(cast, email=None)
    with cast.transaction(stay.facility_id) as tx:
        assert outbox.enqueue(tx, stay.id, "stay_changed", "1", {}) is False
    assert len(doorbell.queue("outbox").jobs) == 0
    with pytest.raises(LookupError, match="not in scope"), cast.transaction(cast.osaka.id) as tx:
        outbox.enqueue(tx, stay.id, "stay_changed", "1", {})


@pytest.mark.parametrize("end", ["unknown_at", "dead_at"])
def test_a_message_sent_once_more_begins_anew(cast: Cast, owner: Owner, end: str) -> None:
    message, token = one_of_two(cast)
    owner.run(
        f"update outbox set {end} = now(), sending_at = now(), attempts = 8, last_error = 'why',"
        " next_attempt_at = now() + interval '1 hour' where id = %s",
        message,
    )
    doorbell.connection().flushall()
    assert do(cast, verbs.resend, message) == Applied(
        Code.MESSAGE_REQUEUED, to="waiting", subject=message
    )
    assert len(doorbell.queue("outbox").jobs) == 1
    assert row_of(owner, message) == {
        **FREE,
        "end": "",
        "sending": False,
        "error": "why",
        "minutes": 0,
        "attempts": 0,
    }
    assert owner.one("select claim_token from outbox where id <> %s", message) == token


def one_of_two(cast: Cast) -> tuple[UUID, UUID]:
    """(one of two messages, token): a sender holds both."""
    for number in range(2):
        booked(cast, number)
    token = uuid4()
    with cast.transaction(None) as tx:
        (message, _), _ = outbox.claim(tx, token)
    return message, token


@pytest.mark.parametrize("end", ["unknown_at", "dead_at"])
def test_a_message_that_is_let_be_is_let_be_alone(cast: Cast, owner: Owner, end: str) -> None:
    booked(cast, 1)
    booked(cast, 2)
    owner.run(f"update outbox set {end} = now()")
    doorbell.connection().flushall()
    message = owner.one("select id from outbox limit 1")
    assert do(cast, verbs.drop, message) == Applied(
        Code.MESSAGE_DROPPED, to="dropped", subject=message
    )
    assert row_of(owner, message)["end"] == "dropped_at"
    other = owner.one("select id from outbox where id <> %s", message)
    assert row_of(owner, other)["end"] == end
    assert len(doorbell.queue("outbox").jobs) == 0
