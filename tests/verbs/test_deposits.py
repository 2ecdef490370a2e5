"""A deposit's deadline: written with the booking, moved by the desk, and its end, which no money
that may be on its way is lost by."""

from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from portal import clock, formats, ledger
from portal.jobs import deposits as job
from portal.jobs.catch_up import fetch_missed
from portal.jobs.house import House
from portal.outcome import Applied, Code, Noop, Outcome, Refused
from portal.policies import deposit_hold, pricing
from portal.verbs import cash, deposits, facilities, facts, payments, refunds, stay_changes, stays
from sandbox.mail import MailSink
from sandbox.stripe.testing import StandIn
from tests.cast import Booked, Cast, HouseOf
from tests.outside import Owner, deliver, pay, work
from tests.verbs.books import another_writes
from tests.verbs.test_payments import attempts, opened
from tests.verbs.test_stays import balance, do, stands

HOURS = 48
PRICE, DEPOSIT = 9000, 2000
DAY, HOUR, MINUTE = timedelta(days=1), timedelta(hours=1), timedelta(minutes=1)


def holds_for(cast: Cast, hours: int | None = HOURS, house: HouseOf | None = None) -> Outcome:
    with cast.transaction((house or cast.tokyo).id) as tx:
        said: Outcome = facilities.hold_for_deposit(tx, cast.sato.actor, hours)
        return said


def waiting(cast: Cast, **more: Any) -> Booked:
    """A stay that comes in ten days, and is held for two."""
    holds_for(cast, house=more.get("house"))
    asked = {"price": PRICE, "deposit_due": DEPOSIT, "starts_at": clock.now() + 10 * DAY}
    return cast.book(**asked | more)


def deadline(owner: Owner, stay: Booked) -> Any:
    return owner.one("select deposit_by from stays where id = %s", stay.id)


def overdue(owner: Owner, stay: Booked) -> Booked:
    """Its time has passed, by the database's clock."""
    owner.run("update stays set deposit_by = now() - interval '1 minute' where id = %s", stay.id)
    return stay


def end(cast: Cast, worker: House, stay: Booked) -> Outcome:
    return deposits.end_hold(worker.desk(stay.facility_id), cast.sato.actor, stay.id)


def state(owner: Owner, stay: Booked) -> str:
    return stands(owner, stay.id)[0]


def news(owner: Owner, stay: Booked, *kinds: str) -> list[str]:
    told = owner.rows(
        "select event_type from outbox where stay_id = %s and event_type = any(%s) order by 1",
        stay.id,
        list(kinds),
    )
    return [kind for (kind,) in told]


# The deadline of a booking ------------------------------------------------------------------------


def test_a_booking_waits_as_long_as_the_house_says(cast: Cast, owner: Owner) -> None:
    stay = waiting(cast)
    left = owner.one("select deposit_by - created_at from stays where id = %s", stay.id)
    assert left == HOURS * HOUR, "both by the database's clock"


def test_the_deadline_is_never_after_arrival(cast: Cast, owner: Owner) -> None:
    arrival = clock.now() + HOUR
    assert deadline(owner, waiting(cast, starts_at=arrival)) == arrival


@pytest.mark.parametrize(
    ("hours", "asked"),
    [(None, {}), (HOURS, {"deposit_due": 0}), (HOURS, {"starts_at": None})],
    ids=["the house has no limit", "no deposit is asked for", "the guest is there"],
)
def test_a_booking_may_have_no_deadline(
    cast: Cast, owner: Owner, hours: int | None, asked: dict[str, Any]
) -> None:
    holds_for(cast, hours)
    booking = {"price": PRICE, "deposit_due": DEPOSIT, "starts_at": clock.now() + 10 * DAY}
    stay = cast.book(**booking | asked)
    assert deadline(owner, stay) is None


def test_what_is_booked_keeps_its_deadline_when_the_house_changes_its_mind(
    cast: Cast, owner: Owner
) -> None:
    stay = waiting(cast)
    was = deadline(owner, stay)
    assert holds_for(cast, 3).code == Code.SETTINGS_SAVED
    assert holds_for(cast, 3).code == Code.SETTINGS_UNCHANGED
    assert holds_for(cast, None).code == Code.SETTINGS_SAVED
    assert deadline(owner, stay) == was


@pytest.mark.parametrize("hours", [0, -1, facilities.LONGEST_HOLD + 1])
def test_a_house_cannot_wait_so_long(cast: Cast, hours: int) -> None:
    assert holds_for(cast, hours) == Refused(Code.DEPOSIT_HOURS_IMPOSSIBLE)
    assert holds_for(cast, facilities.LONGEST_HOLD).code == Code.SETTINGS_SAVED


def test_another_time_of_the_stay_keeps_the_deadline_before_arrival(
    cast: Cast, owner: Owner
) -> None:
    stay = waiting(cast)
    was = deadline(owner, stay)
    starts, ends = owner.row("select starts_at, ends_at from stays where id = %s", stay.id)
    do(cast, stay_changes.change_times, stay.id, 1, starts + DAY, ends + DAY, 0)
    assert deadline(owner, stay) == was
    sooner = clock.now() + DAY
    do(cast, stay_changes.change_times, stay.id, 2, sooner, ends, 0)
    assert deadline(owner, stay) == sooner
    do(cast, stay_changes.change_times, stay.id, 3, clock.now() - HOUR, ends, 0)
    assert deadline(owner, stay) is None, "the guest is there"


def test_a_stay_that_is_reserved_again_has_no_deadline(
    cast: Cast, worker: House, owner: Owner
) -> None:
    """The one that it had is over, and would end it at once."""
    stay = overdue(owner, waiting(cast))
    owner.run("update stays set starts_at = now() - interval '1 second' where id = %s", stay.id)
    do(cast, stays.mark_no_show, stay.id, 1)
    assert job.end_missed(worker) == 0
    do(cast, stays.reinstate, stay.id, 2)
    assert deadline(owner, stay) is None
    assert job.end_missed(worker) == 0


# By the desk ------------------------------------------------------------------------------------


def test_the_desk_gives_another_deadline_or_lifts_it(cast: Cast, owner: Owner) -> None:
    stay = waiting(cast)
    was, later = deadline(owner, stay), clock.now() + 5 * DAY
    said = do(cast, deposits.set_deadline, stay.id, 1, later)
    assert said == Applied(Code.DEPOSIT_DEADLINE_SET, to="reserved", subject=stay.id)
    assert deadline(owner, stay) == later
    assert do(cast, deposits.set_deadline, stay.id, 1, later) == Noop(
        Code.DEPOSIT_DEADLINE_UNCHANGED, subject=stay.id
    )
    assert do(cast, deposits.set_deadline, stay.id, 1, None).code == Code.STALE_PAGE
    assert isinstance(do(cast, deposits.set_deadline, stay.id, 2, None), Applied)
    assert deadline(owner, stay) is None
    told = owner.rows(
        "select reason, verb, actor_name from transitions where event = 'changed' order by id"
    )
    assert [verb for _, verb, _ in told] == ["set_deadline"] * 2
    assert told[0][2] == cast.sato.name
    named = [reason.split(" → ") for reason, _, _ in told]
    assert [datetime.fromisoformat(one) for one in named[0]] == [was, later]
    assert named[1][1] == deposits.WITHOUT_END
    assert len(news(owner, stay, "deposit_deadline")) == 2


@pytest.mark.parametrize("beyond", ["past", "after arrival"])
def test_a_deadline_is_to_come_and_before_arrival(cast: Cast, owner: Owner, beyond: str) -> None:
    stay = waiting(cast)
    starts = owner.one("select starts_at from stays where id = %s", stay.id)
    asked = clock.now() - MINUTE if beyond == "past" else starts + timedelta(seconds=1)
    said = do(cast, deposits.set_deadline, stay.id, 1, asked)
    assert said == Refused(Code.DEPOSIT_DEADLINE_IMPOSSIBLE, {"starts_at": starts})
    assert isinstance(do(cast, deposits.set_deadline, stay.id, 1, starts), Applied)


def test_only_a_deposit_that_is_awaited_has_a_deadline(cast: Cast, owner: Owner) -> None:
    bare = cast.book(starts_at=clock.now() + DAY)
    paid, gone = waiting(cast, space="A02"), waiting(cast, space="A03")
    do(cast, cash.take, paid.id, DEPOSIT, uuid4())
    do(cast, stays.cancel, gone.id, 1)
    for stay in (bare, paid):
        said = do(cast, deposits.set_deadline, stay.id, 1, clock.now() + HOUR)
        assert said == Refused(Code.DEPOSIT_NOT_AWAITED)
    said = do(cast, deposits.set_deadline, gone.id, 2, None)
    assert said == Refused(Code.DEPOSIT_NOT_AWAITED)
    theirs = waiting(cast, house=cast.osaka)
    assert do(cast, deposits.set_deadline, theirs.id, 1, None) == Refused(Code.NOT_FOUND)


# The end ----------------------------------------------------------------------------------------


def test_a_deposit_that_never_came_ends_the_booking(
    cast: Cast, worker: House, owner: Owner
) -> None:
    stay = overdue(owner, waiting(cast))
    assert job.end_missed(worker) == 1
    assert state(owner, stay) == "cancelled"
    assert balance(owner, stay.id) == 0
    assert job.end_missed(worker) == 0
    event, reason, by = owner.row(
        "select event, reason, actor_kind from transitions where to_state = 'cancelled'"
    )
    assert (event, by) == ("cancelled", "system")
    assert reason == f"deposit_missed: {deadline(owner, stay).isoformat()}"
    assert news(owner, stay, "deposit_missed", "stay_cancelled") == ["deposit_missed"]
    assert isinstance(cast.book(starts_at=clock.now() + 10 * DAY), Booked), "the space is free"


def test_no_booking_ends_before_its_time(cast: Cast, worker: House, owner: Owner) -> None:
    stay = waiting(cast)
    assert end(cast, worker, stay) == Refused(Code.DEPOSIT_NOT_MISSED)
    lifted = waiting(cast, space="A02")
    do(cast, deposits.set_deadline, lifted.id, 1, None)
    assert end(cast, worker, lifted) == Refused(Code.DEPOSIT_NOT_MISSED)
    assert job.end_missed(worker) == 0
    assert {state(owner, stay), state(owner, lifted)} == {"reserved"}


def test_a_process_whose_clock_is_ahead_ends_nothing(
    cast: Cast, worker: House, owner: Owner
) -> None:
    stay = waiting(cast)
    clock.set_source(lambda: owner.one("select now()") + 5 * DAY)
    try:
        assert job.end_missed(worker) == 0
        assert end(cast, worker, stay) == Refused(Code.DEPOSIT_NOT_MISSED)
    finally:
        clock.set_source(None)


def test_the_deadline_is_over_at_its_very_instant() -> None:
    now = clock.now()
    assert deposit_hold.is_missed("reserved", 1, now, now)
    assert not deposit_hold.is_missed("reserved", 1, now + timedelta(microseconds=1), now)
    assert not deposit_hold.is_missed("reserved", 0, now - DAY, now)
    assert not deposit_hold.is_missed("admitted", 1, now - DAY, now)
    assert not deposit_hold.is_missed("reserved", 1, None, now)


def test_a_deposit_that_came_keeps_the_booking(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner
) -> None:
    stay = overdue(owner, waiting(cast))
    pay(stripe, opened(worker, cast, owner, stay, "deposit"))
    deliver(worker)
    assert job.end_missed(worker) == 0
    assert end(cast, worker, stay) == Refused(Code.DEPOSIT_NOT_MISSED)
    assert (state(owner, stay), balance(owner, stay.id)) == ("reserved", PRICE - DEPOSIT)


@pytest.mark.parametrize("came", [1, DEPOSIT - 1])
def test_what_came_in_part_goes_back_in_full(
    cast: Cast, worker: House, owner: Owner, came: int
) -> None:
    stay = overdue(owner, waiting(cast))
    do(cast, cash.take, stay.id, came, uuid4())
    assert job.end_missed(worker) == 1
    assert balance(owner, stay.id) == -came
    assert isinstance(do(cast, cash.hand_back, stay.id, came, uuid4()), Applied)
    assert balance(owner, stay.id) == 0


def test_a_part_by_card_goes_back_to_the_card(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner
) -> None:
    """The deposit came, and the desk then gave a part of it back and asks for it again."""
    stay = waiting(cast)
    pay(stripe, opened(worker, cast, owner, stay, "deposit"))
    deliver(worker)
    owner.run("update stays set deposit_due = %s where id = %s", 2 * DEPOSIT, stay.id)
    overdue(owner, stay)
    assert job.end_missed(worker) == 1
    work(worker, "refunds")
    assert (balance(owner, stay.id), stripe.creates("refund")) == (0, 1)
    assert attempts(owner) == [("refunded", DEPOSIT, True)]


@pytest.mark.parametrize("by", ["the desk", "the bank"])
def test_a_deposit_that_came_and_was_given_back_is_a_persons_matter(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner, by: str
) -> None:
    """It came in time; no clock ends the booking of a guest whose money somebody took back."""
    stay = waiting(cast)
    intent = opened(worker, cast, owner, stay, "deposit")
    pay(stripe, intent)
    deliver(worker)
    overdue(owner, stay)
    if by == "the bank":
        stripe.post("disputes", payment_intent=intent)
    else:
        payment = owner.one("select id from payments")
        desk = worker.desk(stay.facility_id)
        refunds.ask(desk, cast.sato.actor, payment, DEPOSIT, uuid4())
    deliver(worker)
    assert balance(owner, stay.id) == PRICE
    assert job.end_missed(worker) == 0
    assert end(cast, worker, stay) == Refused(Code.DEPOSIT_NOT_MISSED)
    said = do(cast, deposits.set_deadline, stay.id, 1, None)
    assert said == Refused(Code.DEPOSIT_NOT_AWAITED)


# Money that may be on its way ---------------------------------------------------------------------


@pytest.mark.parametrize("part", ["deposit", "balance"])
def test_the_open_attempt_is_cancelled_at_the_provider_first(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner, part: str
) -> None:
    stay = overdue(owner, waiting(cast))
    intent = opened(worker, cast, owner, stay, part)
    assert job.end_missed(worker) == 1
    assert stripe.get(f"objects/{intent}")["status"] == "canceled"
    assert [one for one, _, _ in attempts(owner)] == ["canceled"]
    assert state(owner, stay) == "cancelled"


def test_a_provider_that_cannot_be_reached_ends_nothing(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner
) -> None:
    stay, other = overdue(owner, waiting(cast)), overdue(owner, waiting(cast, space="A02"))
    opened(worker, cast, owner, stay)
    stripe.post("listening", open=False)
    assert job.end_missed(worker) == 1, "one that cannot be ended holds up no other"
    assert (state(owner, stay), state(owner, other)) == ("reserved", "cancelled")
    stripe.post("listening", open=True)
    assert job.end_missed(worker) == 1
    assert state(owner, stay) == "cancelled"


def test_a_cancellation_whose_answer_is_lost_is_asked_after_first(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner
) -> None:
    stay = overdue(owner, waiting(cast))
    opened(worker, cast, owner, stay)
    stripe.fault("do_then_drop", path="/cancel$")
    assert end(cast, worker, stay) == Refused(Code.PAYMENT_UNKNOWN)
    assert state(owner, stay) == "reserved"
    work(worker, "payments")
    assert job.end_missed(worker) == 1


def test_money_that_is_being_processed_is_never_raced(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner
) -> None:
    stay = overdue(owner, waiting(cast))
    intent = opened(worker, cast, owner, stay, "deposit")
    pay(stripe, intent, "pm_card_processing")
    assert end(cast, worker, stay) == Refused(Code.PAYMENT_PENDING)
    assert job.end_missed(worker) == 0
    assert (state(owner, stay), attempts(owner)[0][0]) == ("reserved", "processing")
    stripe.post(f"payment_intents/{intent}/finish", outcome="declined")
    deliver(worker)
    work(worker, "payments")
    assert job.end_missed(worker) == 1
    assert state(owner, stay) == "cancelled"


def test_money_whose_fate_is_unknown_is_waited_for(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner
) -> None:
    stay = overdue(owner, waiting(cast))
    stripe.fault("do_then_drop", path="^/v1/payment_intents$")
    desk = worker.desk(stay.facility_id)
    said = payments.open_payment(desk, cast.sato.actor, stay.id, "deposit")
    assert said == Refused(Code.PAYMENT_UNKNOWN)
    assert end(cast, worker, stay) == Refused(Code.PAYMENT_PENDING)
    assert job.end_missed(worker) == 0
    work(worker, "payments")
    assert job.end_missed(worker) == 1


def test_an_attempt_that_is_being_opened_is_waited_for(
    cast: Cast, worker: House, owner: Owner
) -> None:
    """Its row is committed, and the provider has not answered: there may be an intent."""
    stay = overdue(owner, waiting(cast))
    owner.run(
        "insert into payments (facility_id, purpose, subject_id, stay_id, attempt, amount,"
        " currency, state, idempotency_key) values"
        " (%s, 'reservation_deposit', %s, %s, 1, 2000, 'JPY', 'open', 'in flight')",
        *(stay.facility_id, stay.id, stay.id),
    )
    assert end(cast, worker, stay) == Refused(Code.PAYMENT_PENDING)
    assert state(owner, stay) == "reserved"


def test_an_attempt_that_began_meanwhile_is_waited_for(
    cast: Cast, worker: House, owner: Owner
) -> None:
    """Between the look at the attempts and the stay's lock the guest presses once more."""
    stay = overdue(owner, waiting(cast))
    began = (
        "insert into payments (facility_id, purpose, subject_id, stay_id, attempt, amount,"
        " currency, state, idempotency_key) select facility_id, 'reservation_deposit', id, id, 1,"
        " 2000, 'JPY', 'open', 'meanwhile' from held"
    )
    hold = f"with held as (update stays set note = note where id = %s returning *) {began}"
    with another_writes(owner, hold, stay.id):
        assert end(cast, worker, stay) == Refused(Code.PAYMENT_PENDING)
    assert state(owner, stay) == "reserved"


@pytest.mark.parametrize("change", ["deposit_by = now() + interval '1 hour'", "deposit_by = null"])
def test_a_deadline_that_the_desk_moves_meanwhile_holds(
    cast: Cast, worker: House, owner: Owner, change: str
) -> None:
    stay = overdue(owner, waiting(cast))
    with another_writes(owner, f"update stays set {change} where id = %s", stay.id):
        assert end(cast, worker, stay) == Refused(Code.DEPOSIT_NOT_MISSED)
    assert state(owner, stay) == "reserved"


def test_cash_that_the_desk_takes_meanwhile_keeps_the_booking(
    cast: Cast, worker: House, owner: Owner
) -> None:
    stay = overdue(owner, waiting(cast))
    taken = (
        "with folio as (update stays set currency = currency where id = %s returning *)"
        " insert into ledger_lines (facility_id, stay_id, kind, amount, currency, form_key,"
        " actor_kind, actor_name, at) select facility_id, id, 'cash', -2000, 'JPY',"
        " gen_random_uuid(), 'staff', 'Sato', now() from folio"
    )
    with another_writes(owner, taken, stay.id):
        assert end(cast, worker, stay) == Refused(Code.DEPOSIT_NOT_MISSED)
    assert (state(owner, stay), balance(owner, stay.id)) == ("reserved", PRICE - DEPOSIT)


@pytest.mark.parametrize("heard", ["before", "after", "lost"])
def test_a_guest_who_paid_in_time_keeps_the_booking_whenever_we_hear_of_it(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner, heard: str
) -> None:
    """The provider will not cancel what is paid, and tells so: it is booked, and nothing ends."""
    stay = overdue(owner, waiting(cast))
    pay(stripe, opened(worker, cast, owner, stay, "deposit"))
    if heard == "before":
        deliver(worker)
    assert job.end_missed(worker) == 0
    if heard == "after":
        deliver(worker)
    if heard == "lost":
        fetch_missed(worker)
        work(worker, "inbox")
    assert (state(owner, stay), balance(owner, stay.id)) == ("reserved", PRICE - DEPOSIT)
    assert attempts(owner) == [("succeeded", DEPOSIT, True)]
    assert stripe.creates("refund") == 0
    assert owner.one("select count(*) from ledger_lines where kind = 'deposit'") == 1


@pytest.mark.parametrize("heard", ["at once", "twice", "lost"])
def test_money_that_lands_after_the_end_is_returned_in_full_once(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner, heard: str
) -> None:
    """No attempt outlives the end, as the tests above show; were there one, this would hold."""
    stay = overdue(owner, waiting(cast))
    intent = opened(worker, cast, owner, stay, "deposit")
    with cast.transaction(stay.facility_id) as tx:
        held = facts.stay(tx, stay.id)
        assert held is not None
        stays.miss_deposit(tx, cast.sato.actor, held)
    pay(stripe, intent)
    if heard == "lost":
        fetch_missed(worker)
        work(worker, "inbox")
    else:
        for _ in range(1 if heard == "at once" else 2):
            deliver(worker)
    owner.make_due()
    work(worker, "payments", "refunds", "inbox")
    deliver(worker)
    assert (state(owner, stay), balance(owner, stay.id)) == ("cancelled", 0)
    assert stripe.creates("refund") == 1
    assert attempts(owner) == [("refunded", DEPOSIT, True)]


# What the guest is told ---------------------------------------------------------------------------


def letters(worker: House, owner: Owner, mail: MailSink) -> list[str]:
    """What is sent now, whatever it waits for."""
    before = len(mail.kept)
    owner.make_due()
    work(worker, "outbox")
    return [got.message.get_content() for got in mail.kept[before:]]


def test_the_mail_of_the_booking_says_until_when(
    cast: Cast, worker: House, mail: MailSink, owner: Owner
) -> None:
    stay = waiting(cast)
    work(worker, "outbox")
    (told,) = [got.message.get_content() for got in mail.kept]
    said = formats.when(deadline(owner, stay), cast.tokyo.zone, "ja")
    assert f"前金 ￥2,000を {said} までにお支払いください" in told.replace(
        "￥2,000 を", "￥2,000を"
    )


def test_a_reminder_is_sent_once_and_only_while_it_is_true(
    cast: Cast, worker: House, mail: MailSink, owner: Owner
) -> None:
    stay, paid, ended, moved = (waiting(cast, space=one) for one in ("A01", "A02", "A03", "B01"))
    at = "select not_before = s.deposit_by - interval '12 hours' from outbox o"
    mine = f"{at} join stays s on s.id = o.stay_id where event_type = 'deposit_reminder'"
    assert owner.rows(mine) == [(True,)] * 4, "a quarter of 48 hours is left"
    work(worker, "outbox")
    assert len(mail.kept) == 4, "the bookings'"
    do(cast, cash.take, paid.id, DEPOSIT, uuid4())
    overdue(owner, ended)
    job.end_missed(worker)
    do(cast, deposits.set_deadline, moved.id, 1, clock.now() + HOUR)
    told = letters(worker, owner, mail)
    reminded = [one for one in told if "まだ確認できておりません" in one]
    assert len(reminded) == 1
    ends = "select count(*) from outbox where event_type = 'deposit_reminder' and {} is not null"
    assert owner.one(ends.format("sent_at")) == 1
    assert owner.one(ends.format("withdrawn_at")) == 3
    assert news(owner, stay, "deposit_reminder") == ["deposit_reminder"]


def test_a_short_wait_needs_no_reminder() -> None:
    now = clock.now()
    assert deposit_hold.reminder(now, now + 4 * HOUR) == now + 3 * HOUR
    assert deposit_hold.reminder(now, now + 4 * HOUR - MINUTE) is None


def test_the_guest_is_told_of_another_deadline_and_of_the_last_one_only(
    cast: Cast, worker: House, mail: MailSink, owner: Owner
) -> None:
    stay = waiting(cast)
    letters(worker, owner, mail)
    do(cast, deposits.set_deadline, stay.id, 1, clock.now() + HOUR)
    do(cast, deposits.set_deadline, stay.id, 2, None)
    (told,) = letters(worker, owner, mail)
    assert "自動的に取り消されることはなくなりました" in told


def test_the_guest_is_told_why_the_booking_ended(
    cast: Cast, worker: House, mail: MailSink, owner: Owner
) -> None:
    stay = overdue(owner, waiting(cast, guest=cast.emma))
    job.end_missed(worker)
    (told,) = letters(worker, owner, mail)
    said = formats.when(deadline(owner, stay), cast.tokyo.zone, "en")
    assert f"did not come by {said}, so the reservation has ended. You owe nothing." in told


# The list that the sweep reads --------------------------------------------------------------------


class UndoneError(Exception):
    """The next example begins with an empty folio again."""


@pytest.fixture
def empty(cast: Cast) -> Booked:
    return cast.book(price=0)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    deposit=some.integers(1, 400),
    lines=some.lists(
        some.tuples(
            some.sampled_from(("charge", "charge_reversed", "fee", "cash", "cash_returned")),
            some.integers(1, 300),
        ),
        max_size=6,
    ),
)
def test_the_database_reckons_the_open_deposit_as_the_policy_does(
    cast: Cast, empty: Booked, deposit: int, lines: list[tuple[Any, int]]
) -> None:
    with suppress(UndoneError), cast.transaction(cast.tokyo.id) as tx:
        stay = empty.id
        tx.run("update stays set deposit_due = :due where id = :id", due=deposit, id=stay)
        for kind, amount in lines:
            ledger.book(tx, cast.sato.actor, kind, stay_id=stay, amount=amount, currency="JPY")
        row = facts.stay(tx, stay)
        reckoned = tx.scalar("select deposit_open(s) from stays s where id = :id", id=stay)
        assert row is not None
        balance = int(row.balance)
        assert reckoned == pricing.deposit_open(deposit, int(row.charged), balance)
        came = sum(amount for kind, amount in lines if kind in ledger.RECEIVED)
        assert row.deposit_to_come == max(0, min(balance, deposit - came))
        raise UndoneError


def test_the_sweep_passes_by_what_is_waited_for_however_many_they_are(
    cast: Cast, worker: House, owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "BATCH", 2)
    made = [waiting(cast, space=one) for one in ("A01", "A02", "A03", "B01")]
    for stay in made:
        overdue(owner, stay)
    for stay in made[:2]:
        owner.run(
            "insert into payments (facility_id, purpose, subject_id, stay_id, attempt, amount,"
            " currency, state, idempotency_key) values"
            " (%s, 'reservation_deposit', %s, %s, 1, 2000, 'JPY', 'open', %s)",
            *(stay.facility_id, stay.id, stay.id, str(stay.id)),
        )
    assert job.end_missed(worker) == 2
    assert [state(owner, stay) for stay in made] == ["reserved"] * 2 + ["cancelled"] * 2
