"""What waits for a person: each thing is seen, and its one verb ends the wait."""

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest

from portal import inbox
from portal.db import SYSTEM
from portal.edges.payments.port import Refund as ProviderRefund
from portal.queries import attention as waiting
from portal.verbs import cash, disputes, keys, refund_answers, refunds, stay_changes
from portal.verbs.membership_end import Ending, end_membership
from sandbox.seam.running import eventually
from sandbox.watch import statements
from tests.cast import Booked
from tests.outside import Owner
from tests.verbs.test_differences import KINDS
from tests.web.audit import form_data
from tests.web.staff.houses import FrontDesk, notice, page, send, shown

PAGE = "/staff/attention"
BUDGET = 18


@pytest.fixture
def stay(front: FrontDesk) -> Booked:
    return front.cast.book(price=0, guest=front.cast.hanako)


@pytest.fixture
def key(front: FrontDesk, stay: Booked) -> UUID:
    return front.admitted(stay)


@pytest.fixture
def paid(front: FrontDesk) -> UUID:
    """10,000 yen, paid by card."""
    return front.paid(front.cast.book(price=10_000, guest=front.cast.hanako, space="B01"))


def counted(front: FrontDesk) -> int:
    """As the page counts, and as its one-statement sister does; the two must agree."""
    now = datetime.now(UTC)
    with front.cast.transaction(front.cast.tokyo.id) as tx:
        seen, alone = waiting.look(tx, now).count, waiting.count(tx, now)
    assert seen == alone
    return seen


def test_nothing_waits(front: FrontDesk, lang: str) -> None:
    client = front.cast.signed_in(front.cast.sato, locale=lang)
    page(client, PAGE, lang)
    words = {"ja": "対応が必要なものはありません。", "en": "Nothing waits for a person."}
    assert words[lang] in shown(client, PAGE)
    assert counted(front) == 0


def test_everything_at_once(
    front: FrontDesk, stay: Booked, key: UUID, paid: UUID, owner: Owner, lang: str
) -> None:
    """One thing of each kind: the page is whole in both languages, and within its budget."""
    fail_key(front, stay, key)
    unclear_command(owner, key)
    late = front.admitted(front.cast.book(price=0, space="A02"))
    asked_before(owner, late, 60)
    dead_command(owner, late)
    lose(owner, "payments", front.opened(front.cast.book(price=5000, space="A03")))
    stuck_refund(front, owner, paid)
    fail_refund(front, owner, front.paid(later(front, price=900)))
    owe_in_cash(front)
    dead_message(owner)
    dead_letter(front)
    differ(owner)
    unproven_end(front, owner)
    disputed(front, owner, paid)
    client = front.cast.signed_in(front.cast.sato, locale=lang)
    page(client, PAGE, lang)
    assert counted(front) == 12 + len(KINDS)
    with statements() as said:
        client.get(PAGE)
    assert len(said) <= BUDGET, said


def disputed(front: FrontDesk, owner: Owner, payment: UUID) -> None:
    """A bank has taken a payment back, and nobody has answered it."""
    front.stripe.post(
        "disputes",
        payment_intent=owner.one("select intent_id from payments where id = %s", payment),
    )
    with front.app.app_context():
        disputes.ask(front.desk(), SYSTEM, payment)


def unproven_end(front: FrontDesk, owner: Owner) -> None:
    """A membership that has ended, and nobody knows whether the member has heard of it."""
    joined = front.cast.join()
    with front.app.app_context():
        end_membership(front.desk(), SYSTEM, joined.id, Ending("force_cancel"))
    front.work("memberships")
    owner.run("update outbox set sent_at = now() where membership_id is not null")


# Doors ------------------------------------------------------------------------------------------


def test_a_guest_without_a_code_gets_a_new_one(front: FrontDesk, stay: Booked, key: UUID) -> None:
    client = front.cast.signed_in(front.cast.sato)
    fail_key(front, stay, key)
    action = f"{PAGE}/stays/{stay.id}/new-code"
    form = form_data(page(client, PAGE), action)
    assert notice(client, client.post(action, data=form)) == "KEY_ORDERED"
    assert counted(front) == 0
    assert notice(client, client.post(action, data=form)) == "STALE_PAGE"
    wrong = client.post(action, data=form | {"version": "x"})
    assert wrong.status_code == 422
    front.work("locks", "keys")
    assert len(front.seam.control("codes")) == 1


def test_a_key_is_late_only_past_the_houses_limit(
    front: FrontDesk, stay: Booked, key: UUID, owner: Owner
) -> None:
    client = front.cast.signed_in(front.cast.sato, locale="en")
    asked_before(owner, key, 14)
    assert counted(front) == 0
    asked_before(owner, key, 16)
    assert counted(front) == 1
    assert "Keys that the lock has not confirmed" in shown(client, PAGE)
    done = send(client, PAGE, f"{PAGE}/doors/{front.cast.tokyo.doors['A01']}/ask")
    assert notice(client, done) == "LOCK_ANSWERED"
    assert eventually(lambda: confirmed(front, owner) and counted(front) == 0)


def confirmed(front: FrontDesk, owner: Owner) -> bool:
    """The worker looks once more; every key is as the lock says."""
    owner.run("update entry_keys set next_poll_at = now()")
    front.work("locks", "keys")
    return not owner.one("select count(*) from entry_keys where state = 'requested'")


def test_a_command_that_was_given_up(front: FrontDesk, key: UUID, owner: Owner) -> None:
    client = front.cast.signed_in(front.cast.sato)
    command = dead_command(owner, key)
    assert counted(front) == 1
    action = f"{PAGE}/commands/{command}/again"
    assert notice(client, send(client, PAGE, action, htmx=True)) == "LOCK_ASKED_AGAIN"
    assert counted(front) == 0


# Money ------------------------------------------------------------------------------------------


def test_unknown_money_is_asked_after(front: FrontDesk, owner: Owner) -> None:
    payment = front.opened(front.cast.book(price=5000))
    lose(owner, "payments", payment)
    client = front.cast.signed_in(front.cast.sato)
    assert counted(front) == 1
    front.stripe.fault("refuse", "^/v1/payment_intents/", method="GET")
    action = f"{PAGE}/payments/{payment}/ask"
    assert notice(client, send(client, PAGE, action)) == "BILLING_UNAVAILABLE"
    assert counted(front) == 1
    assert notice(client, send(client, PAGE, action)) == "PAYMENT_RECORDED"
    assert counted(front) == 0


def test_a_lost_refund_is_asked_after_and_is_one_refund(
    front: FrontDesk, paid: UUID, owner: Owner
) -> None:
    client = front.cast.signed_in(front.cast.sato)
    refund = stuck_refund(front, owner, paid)
    assert counted(front) == 1
    assert notice(client, send(client, PAGE, f"{PAGE}/refunds/{refund}/ask")) == "REFUND_SENT"
    assert [row["amount"] for row in front.at_provider("refund")] == [3000]
    assert counted(front) == 0


def test_a_failed_refund_waits_until_somebody_refunds_or_closes_it(
    front: FrontDesk, paid: UUID, owner: Owner
) -> None:
    client = front.cast.signed_in(front.cast.sato, locale="en")
    refund = fail_refund(front, owner, paid)
    assert counted(front) == 1
    assert f"/staff/payments/{paid}/refund" in client.get(PAGE).text
    action = f"{PAGE}/refunds/{refund}/let-be"
    form = form_data(page(client, PAGE), action)
    assert notice(client, client.post(action, data=form)) == "EVENT_DISMISSED"
    assert notice(client, client.post(action, data=form)) == "EVENT_ALREADY_HANDLED"
    assert counted(front) == 0
    by = owner.row("select actor_name, verb from transitions where verb = 'let_be'")
    assert by == (front.cast.sato.name, "let_be")


def test_another_refund_ends_the_wait_for_the_failed_one(
    front: FrontDesk, paid: UUID, owner: Owner
) -> None:
    client = front.cast.signed_in(front.cast.sato)
    fail_refund(front, owner, paid)
    there = f"/staff/payments/{paid}/refund"
    send(client, there, there, amount="3000")
    assert counted(front) == 0


def test_a_refund_that_a_person_was_told_of_at_once_does_not_wait(
    front: FrontDesk, paid: UUID
) -> None:
    client = front.cast.signed_in(front.cast.sato)
    there = f"/staff/payments/{paid}/refund"
    front.stripe.post("listening", open=False)
    said = send(client, there, there, amount="3000")
    front.stripe.post("listening", open=True)
    assert notice(client, said) == "REFUND_UNAVAILABLE"
    assert counted(front) == 0


def test_money_that_we_owe_in_cash(front: FrontDesk) -> None:
    client = front.cast.signed_in(front.cast.sato, locale="en")
    stay = owe_in_cash(front)
    said = shown(client, PAGE)
    assert "Money that we owe" in said
    assert "¥2,000" in said
    with front.cast.transaction(front.cast.tokyo.id) as tx:
        cash.hand_back(tx, front.cast.sato.actor, stay.id, 2000, uuid4())
    assert counted(front) == 0


def test_money_on_its_way_to_a_card_is_not_owed_twice(
    front: FrontDesk, paid: UUID, owner: Owner
) -> None:
    stay = owner.one("select stay_id from payments")
    shorten(front, Booked(stay, front.cast.tokyo.id, ""), -4000)
    assert owner.one("select count(*) from refunds where state = 'asked'") == 1
    assert counted(front) == 0


# Words and machinery ----------------------------------------------------------------------------


@pytest.mark.parametrize("ended", ["dead_at", "unknown_at"])
def test_a_message_is_sent_again_or_dropped(
    front: FrontDesk, stay: Booked, owner: Owner, ended: str
) -> None:
    client = front.cast.signed_in(front.cast.sato)
    message = dead_message(owner, ended)
    assert counted(front) == 1
    resend, drop = (f"{PAGE}/messages/{message}/{act}" for act in ("resend", "drop"))
    form = form_data(page(client, PAGE), resend)
    assert notice(client, client.post(resend, data=form)) == "MESSAGE_REQUEUED"
    assert counted(front) == 0
    assert notice(client, client.post(drop, data=form)) == "MESSAGE_NOT_WAITING"
    dead_message(owner, ended)
    assert notice(client, send(client, PAGE, drop)) == "MESSAGE_DROPPED"
    assert counted(front) == 0


def test_an_event_is_replayed_or_closed(front: FrontDesk, owner: Owner) -> None:
    client = front.cast.signed_in(front.cast.sato)
    first, second = dead_letter(front), dead_letter(front)
    assert counted(front) == 2
    replay, dismiss = f"{PAGE}/letters/{first}/replay", f"{PAGE}/letters/{second}/dismiss"
    assert notice(client, send(client, PAGE, replay)) == "EVENT_REPLAYED"
    form = form_data(page(client, PAGE), dismiss)
    assert notice(client, client.post(dismiss, data=form)) == "EVENT_DISMISSED"
    assert notice(client, client.post(dismiss, data=form)) == "EVENT_ALREADY_HANDLED"
    assert counted(front) == 0
    assert owner.one("select count(*) from webhook_events where state = 'processing'") == 1


def test_a_difference_is_asked_after_or_left_by_a_person(
    front: FrontDesk, paid: UUID, owner: Owner
) -> None:
    client = front.cast.signed_in(front.cast.sato)
    front.stripe.post(
        "refunds", payment_intent=owner.one("select intent_id from payments"), amount=500
    )
    differ(owner, "refund_not_here")
    row = owner.one("select id from divergences")
    resolve, leave = (f"{PAGE}/divergences/{row}/{act}" for act in ("resolve", "let-be"))
    form = form_data(page(client, PAGE), resolve)
    assert notice(client, client.post(resolve, data=form)) == "REFUND_RECORDED"
    assert counted(front) == 0
    assert notice(client, client.post(resolve, data=form)) == "EVENT_ALREADY_HANDLED"
    differ(owner, "payment_differs")
    row = owner.one("select id from divergences where healed_at is null")
    leave = f"{PAGE}/divergences/{row}/let-be"
    assert notice(client, send(client, PAGE, leave, htmx=True)) == "EVENT_DISMISSED"
    assert owner.row("select healed_by, let_be from divergences where id = %s", row) == (
        front.cast.sato.name,
        True,
    )
    differ(owner, "code_stray")
    row = owner.one("select id from divergences where healed_at is null")
    assert f"{row}/let-be" not in client.get(PAGE).text
    assert client.post(f"{PAGE}/divergences/{row}/let-be", data=form).status_code == 403
    assert counted(front) == 1


def test_what_is_anothers_is_not_found(
    front: FrontDesk, stay: Booked, key: UUID, paid: UUID, owner: Owner
) -> None:
    """And nothing of it changes."""
    fail_key(front, stay, key)
    command = dead_command(owner, key)
    refund = fail_refund(front, owner, paid)
    message = dead_message(owner)
    differ(owner, "payment_differs")
    difference = owner.one("select id from divergences")
    osaka = front.cast.signed_in(front.cast.tanaka, front.cast.osaka)
    assert "山田" not in shown(osaka, PAGE)
    token = {"csrf_token": form_data(page(osaka, "/staff/facility"))["csrf_token"], "version": "2"}
    for action in (
        f"commands/{command}/again",
        f"refunds/{refund}/ask",
        f"refunds/{refund}/let-be",
        f"payments/{paid}/ask",
        f"messages/{message}/resend",
        f"messages/{message}/drop",
        f"stays/{stay.id}/new-code",
        f"doors/{front.cast.tokyo.doors['A01']}/ask",
        *(f"letters/{uuid4()}/{act}" for act in ("replay", "dismiss")),
        *(f"divergences/{difference}/{act}" for act in ("resolve", "let-be")),
        f"messages/{uuid4()}/drop",
        "messages/none/drop",
    ):
        assert osaka.post(f"{PAGE}/{action}", data=token).status_code == 404, action
    assert counted(front) == 5


# How things come to wait ------------------------------------------------------------------------


def fail_key(front: FrontDesk, stay: Booked, key: UUID) -> None:
    with front.cast.transaction(stay.facility_id) as tx:
        assert keys.refuse(tx, key, "code_invalid").status == "applied"
        tx.run("update lock_commands set done_at = now() where key_id = :key", key=key)


def asked_before(owner: Owner, key: UUID, minutes: int) -> None:
    owner.run(
        "update lock_commands set created_at = now() - make_interval(mins => %s) where key_id = %s",
        minutes,
        key,
    )


def dead_command(owner: Owner, key: UUID) -> UUID:
    owner.run(
        "update lock_commands set done_at = null, dead_at = now(), attempts = 20 where key_id = %s",
        key,
    )
    found: UUID = owner.one("select id from lock_commands where key_id = %s", key)
    return found


def unclear_command(owner: Owner, key: UUID) -> None:
    owner.run("update lock_commands set done_at = null, unknown_at = now() where key_id = %s", key)


def lose(owner: Owner, table: str, row: UUID) -> None:
    """The answer is lost: as the verb leaves it."""
    owner.run(
        "set session_replication_role = replica;"
        f" update {table} set state = 'unknown' where id = '{row}';"
        " set session_replication_role = origin"
    )


def asked_refund(front: FrontDesk, payment: UUID, fault: str) -> UUID:
    front.stripe.fault(fault, "^/v1/refunds$")
    with front.app.app_context():
        refunds.ask(front.desk(), front.cast.sato.actor, payment, 3000, uuid4())
    with front.cast.transaction(front.cast.tokyo.id) as tx:
        found: UUID = tx.scalar("select id from refunds where payment_id = :id", id=payment)
    return found


def stuck_refund(front: FrontDesk, owner: Owner, payment: UUID) -> UUID:
    return asked_refund(front, payment, "do_then_drop")


def fail_refund(front: FrontDesk, owner: Owner, payment: UUID) -> UUID:
    """The provider took it, and the guest's bank sent it back later."""
    front.stripe.post("refunds/next", statuses=["pending"])
    amount = min(3000, owner.one("select amount from payments where id = %s", payment))
    with front.app.app_context():
        refunds.ask(front.desk(), front.cast.sato.actor, payment, amount, uuid4())
    refund, code = owner.row(
        "select id, provider_refund_id from refunds where payment_id = %s", payment
    )
    failed = ProviderRefund(
        id=code,
        status="failed",
        amount=amount,
        currency="JPY",
        intent_id=None,
        charge_id=None,
        metadata={},
        failure_reason="expired_or_canceled_card",
        created=datetime.now(UTC),
    )
    with front.cast.transaction(front.cast.tokyo.id) as tx:
        assert refund_answers.record(tx, SYSTEM, refund, failed).status == "applied"
    found: UUID = refund
    return found


def differ(owner: Owner, *kinds: str) -> None:
    """As the comparison leaves it; every kind of it when none is named."""
    for kind in kinds or KINDS:
        money = kind.startswith(("payment", "refund"))
        owner.run(
            "insert into divergences"
            " (facility_id, kind, subject, payment_id, door_id, ours, theirs)"
            " select f.id, %s, %s, case when %s then p.id end,"
            "  case when not %s then d.id end, 'open 500 JPY', ''"
            " from facilities f join doors d on d.facility_id = f.id"
            " left join payments p on p.facility_id = f.id order by f.slug, d.id limit 1",
            kind,
            str(uuid4()),
            money,
            money,
        )


def owe_in_cash(front: FrontDesk) -> Booked:
    """Paid in cash, then shortened."""
    stay = later(front, price=6000, days=6)
    with front.cast.transaction(stay.facility_id) as tx:
        cash.take(tx, front.cast.sato.actor, stay.id, 6000, uuid4())
    shorten(front, stay, -2000)
    return stay


def later(front: FrontDesk, *, price: int, days: int = 3) -> Booked:
    starts = datetime.now(UTC) + timedelta(days=days)
    return front.cast.book(price=price, starts_at=starts, ends_at=starts + timedelta(days=2))


def shorten(front: FrontDesk, stay: Booked, price_change: int) -> None:
    with front.cast.transaction(stay.facility_id) as tx:
        seen, starts, ends = tx.row(
            "select version, starts_at, ends_at from stays where id = :id", id=stay.id
        )
        said = stay_changes.change_times(
            tx,
            front.cast.sato.actor,
            stay.id,
            seen,
            starts,
            ends - timedelta(hours=1),
            price_change,
        )
    assert said.status == "applied", said


def dead_message(owner: Owner, ended: str = "dead_at") -> UUID:
    """One of the messages that there are, given up."""
    message: UUID = owner.one("select id from outbox order by created_at, id limit 1")
    owner.run(f"update outbox set {ended} = now(), last_error = 'no' where id = %s", message)
    return message


def dead_letter(front: FrontDesk) -> UUID:
    with front.cast.transaction(None) as tx:
        inbox.receive(
            tx,
            "stripe",
            event_id=f"evt_{uuid4().hex}",
            kind="payment_intent.succeeded",
            created=datetime.now(UTC),
            payload=b"{}",
            headers={},
        )
        event: UUID = tx.scalar("select id from webhook_events order by received_at desc limit 1")
        token = uuid4()
        tx.run("update webhook_events set claim_token = :t where id = :id", t=token, id=event)
        assert inbox.complete(tx, event, token, SYSTEM, "dead_letter", "unreadable")
        inbox.dead_letter(tx, "webhook_event", event, "stripe payment_intent.succeeded", "unread")
        found: UUID = tx.scalar("select id from dead_letters where source_id = :event", event=event)
    return found
