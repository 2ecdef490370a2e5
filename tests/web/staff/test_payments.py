"""The desk's pages about card payments: found, refunded, asked after."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from portal import clock
from portal.db import SYSTEM
from portal.verbs import disputes
from sandbox.watch import statements
from tests.cast import Booked
from tests.web.audit import audit, form_data
from tests.web.staff.houses import (
    FrontDesk,
    notice,
    page,
    send,
    shown,
)

LIST = "/staff/payments"
BUDGET = 6


def of(payment: UUID) -> str:
    return f"{LIST}/{payment}"


def refund_of(payment: UUID) -> str:
    return f"{LIST}/{payment}/refund"


@pytest.fixture
def stay(front: FrontDesk) -> Booked:
    return front.cast.book(price=10_000, guest=front.cast.hanako)


@pytest.fixture
def payment(front: FrontDesk, stay: Booked) -> UUID:
    """10,000 yen, paid by card."""
    return front.paid(stay)


def returned(front: FrontDesk) -> list[int]:
    """What the provider has sent back, in yen."""
    return sorted(refund["amount"] for refund in front.at_provider("refund"))


# The list ---------------------------------------------------------------------------------------


def test_the_list_in_both_languages(front: FrontDesk, payment: UUID, lang: str) -> None:
    client = front.cast.signed_in(front.cast.sato, locale=lang)
    page(client, LIST, lang)
    said = shown(client, LIST)
    assert "山田 花子" in said
    assert {"ja": "￥10,000", "en": "¥10,000"}[lang] in said
    assert {"ja": "支払い済み", "en": "Paid"}[lang] in said


def test_an_empty_list(front: FrontDesk, lang: str) -> None:
    client = front.cast.signed_in(front.cast.sato, locale=lang)
    page(client, LIST, lang)
    page(client, f"{LIST}?day=2026-01-31&state=refunded", lang)


def test_the_list_is_filtered(front: FrontDesk, payment: UUID) -> None:
    client = front.cast.signed_in(front.cast.sato)
    zone = front.cast.tokyo.zone
    today = clock.local_day(clock.now(), zone)
    assert "山田" in shown(client, f"{LIST}?state=succeeded&day={today}")
    assert "山田" not in shown(client, f"{LIST}?state=open")
    assert "山田" not in shown(client, f"{LIST}?day={today - timedelta(days=1)}")


NONSENSE = (
    "state=none&day=never",
    "day=2026-02-30",
    "day=0001-01-01",
    "day=２０２６-01-01",
    "after=x&before=y",
    "after=00000000-0000-0000-0000-000000000000",
    "state=" + "x" * 5000,
    "state=%F0%9F%98%80",
    "state=succeeded&state=open",
)


def test_a_filter_that_makes_no_sense_is_none(front: FrontDesk, payment: UUID) -> None:
    client = front.cast.signed_in(front.cast.sato)
    for query in NONSENSE:
        page(client, f"{LIST}?{query}")


def test_pages_follow_one_another(front: FrontDesk) -> None:
    """Every payment once, forwards and back again, also where many were opened at one instant."""
    stay = front.cast.book(price=10_000)
    with front.cast.transaction(front.cast.tokyo.id) as tx:
        tx.run(
            """
            insert into payments (facility_id, purpose, subject_id, stay_id, attempt, amount,
                currency, state, idempotency_key, created_at)
            select :house, 'reservation_balance', gen_random_uuid(), :stay, 1, 100 + n, 'JPY',
                   'open', 'k' || n, now() - interval '1 hour' * (n / 10)
            from generate_series(1, 60) n
            """,
            house=front.cast.tokyo.id,
            stay=stay.id,
        )
    client = front.cast.signed_in(front.cast.sato)
    forwards, url = [], LIST
    while url:
        at = page(client, url)
        forwards.append(payments_on(at))
        url, back = neighbour(at, "next"), url
    assert [len(found) for found in forwards] == [25, 25, 10]
    assert len({one for found in forwards for one in found}) == 60
    assert payments_on(page(client, neighbour(page(client, back), "prev"))) == forwards[1]


def payments_on(at: object) -> list[str]:
    return [
        link.get("href", "")
        for link in at.iter("a")  # type: ignore[attr-defined]
        if link.get("href", "").startswith(f"{LIST}/")
    ]


def neighbour(at: object, rel: str) -> str:
    found = [a.get("href", "") for a in at.iter("a") if a.get("rel") == rel]  # type: ignore[attr-defined]
    return found[0] if found else ""


def test_the_money_of_a_day(front: FrontDesk, payment: UUID) -> None:
    from portal.verbs import cash

    other = front.cast.book(price=3000, space="A02")
    with front.cast.transaction(front.cast.tokyo.id) as tx:
        cash.take(tx, front.cast.sato.actor, other.id, 3000, uuid4())
    client = front.cast.signed_in(front.cast.sato, locale="en")
    said = shown(client, f"{LIST}?day={clock.local_day(clock.now(), front.cast.tokyo.zone)}")
    for line in (
        "Payment by card1¥10,000",
        "Cash received1¥3,000",
        "In the cash drawer¥3,000",
        "Together¥13,000",
    ):
        assert line in said


def test_statements(front: FrontDesk, payment: UUID) -> None:
    client = front.cast.signed_in(front.cast.sato)
    for url in (LIST, f"{LIST}?day=2026-01-31", of(payment), refund_of(payment)):
        with statements() as said:
            client.get(url)
        assert len(said) <= BUDGET, said
        assert not [one for one in said if "count(*)" in one and "group by" not in one]


# One payment ------------------------------------------------------------------------------------


def test_a_payment_in_both_languages(front: FrontDesk, payment: UUID, lang: str) -> None:
    client = front.cast.signed_in(front.cast.sato, locale=lang)
    page(client, of(payment), lang)
    page(client, refund_of(payment), lang)
    send(client, refund_of(payment), refund_of(payment), amount="1000")
    page(client, of(payment), lang)


def test_what_is_anothers_is_not_found(front: FrontDesk, payment: UUID) -> None:
    """Another house's payment, one that never was, and what is no id: the same page."""
    osaka = front.cast.signed_in(front.cast.tanaka, front.cast.osaka)
    assert "山田" not in shown(osaka, LIST)
    token = form_data(page(osaka, "/staff/facility"))["csrf_token"]
    bodies = set()
    for there in (payment, uuid4()):
        for url in (of(there), refund_of(there)):
            answered = osaka.get(url)
            assert answered.status_code == 404
            bodies.add(answered.text.replace(str(there), ""))
        sent = {"csrf_token": token, "amount": "1", "price": "keep", "form_key": str(uuid4())}
        assert osaka.post(refund_of(there), data=sent).status_code == 404
        assert osaka.post(f"{of(there)}/resolve", data=sent).status_code == 404
    assert osaka.get(f"{LIST}/not-an-id").status_code == 404
    assert not returned(front)


def test_nobody_comes_in_unasked(front: FrontDesk, payment: UUID) -> None:
    stranger = front.app.test_client()
    assert stranger.get(of(payment)).status_code == 303
    assert stranger.post(refund_of(payment), data={"amount": "1"}).status_code == 401
    signed_in = front.cast.signed_in(front.cast.sato)
    assert signed_in.post(refund_of(payment), data={"amount": "1"}).status_code == 400
    assert not returned(front)


# Refunds ----------------------------------------------------------------------------------------


def test_the_form_offers_what_is_left(front: FrontDesk, payment: UUID) -> None:
    client = front.cast.signed_in(front.cast.sato)
    assert form_data(page(client, refund_of(payment)), refund_of(payment))["amount"] == "10000"
    send(client, refund_of(payment), refund_of(payment), amount="4000")
    assert form_data(page(client, refund_of(payment)), refund_of(payment))["amount"] == "6000"


@pytest.mark.parametrize(("price", "balance"), [("lower", 0), ("keep", 3000)])
def test_the_price_stays_or_falls(
    front: FrontDesk,
    stay: Booked,
    payment: UUID,
    price: str,
    balance: int,
) -> None:
    client = front.cast.signed_in(front.cast.sato)
    done = send(client, refund_of(payment), refund_of(payment), amount="3000", price=price)
    assert (done.status_code, done.location) == (303, of(payment))
    assert notice(client, done) == "REFUND_SENT"
    assert (
        front.scalar(stay, "select sum(amount) from ledger_lines where stay_id = :id", stay.id)
        == balance
    )
    assert returned(front) == [3000]


def test_the_same_with_script(front: FrontDesk, payment: UUID) -> None:
    client = front.cast.signed_in(front.cast.sato)
    done = send(client, refund_of(payment), refund_of(payment), htmx=True, amount="3000")
    assert done.status_code == 200
    assert done.headers["HX-Push-Url"] == of(payment)
    assert notice(client, done) == "REFUND_SENT"
    wrong = send(client, refund_of(payment), refund_of(payment), htmx=True, amount="9000")
    assert wrong.status_code == 422
    assert notice(client, wrong) == "REFUND_EXCEEDS_PAID"


def test_b1_a_lost_answer_is_never_paid_twice(
    front: FrontDesk,
    stay: Booked,
    payment: UUID,
) -> None:
    """The provider pays and the reply is lost. The same form again, a fresh form, and the worker:
    one refund of 3,000, 7,000 still refundable."""
    client = front.cast.signed_in(front.cast.sato)
    form = form_data(page(client, refund_of(payment)), refund_of(payment)) | {"amount": "3000"}
    front.stripe.fault("do_then_drop", "^/v1/refunds$")
    lost = client.post(refund_of(payment), data=form)
    assert notice(client, lost) == "REFUND_UNKNOWN"
    assert notice(client, client.post(refund_of(payment), data=form)) == "REFUND_ALREADY_ASKED"
    fresh = form | {"form_key": str(uuid4())}
    assert notice(client, client.post(refund_of(payment), data=fresh)) == "REFUND_UNKNOWN"
    page(client, of(payment))
    assert returned(front) == [3000]

    with front.cast.transaction(stay.facility_id) as tx:
        tx.run("update refunds set next_attempt_at = now()")
    front.work("refunds")
    assert returned(front) == [3000]
    keys = {call["idempotency_key"] for call in front.stripe.calls("/v1/refunds")}
    assert keys == {
        str(front.scalar(stay, "select id from refunds where payment_id = :id", payment))
    }
    seen = form_data(page(client, refund_of(payment)), refund_of(payment))
    assert seen["amount"] == "7000"


def test_b11_two_forms_are_two_refunds_and_one_form_is_one(
    front: FrontDesk,
    payment: UUID,
) -> None:
    client = front.cast.signed_in(front.cast.sato)
    for _ in range(2):
        send(client, refund_of(payment), refund_of(payment), amount="1000")
    assert returned(front) == [1000, 1000]
    form = form_data(page(client, refund_of(payment)), refund_of(payment)) | {"amount": "1000"}
    first, second = (client.post(refund_of(payment), data=form) for _ in range(2))
    assert [first.status_code, second.status_code] == [303, 303]
    assert returned(front) == [1000, 1000, 1000]


def test_c8_two_staff_refund_at_once(front: FrontDesk, payment: UUID) -> None:
    """6,000 and 6,000 of 10,000: one passes, the other hears what is left."""
    people = [
        front.cast.signed_in(who, locale="en") for who in (front.cast.sato, front.cast.suzuki)
    ]
    forms = [
        form_data(page(client, refund_of(payment)), refund_of(payment)) | {"amount": "6000"}
        for client in people
    ]
    with ThreadPoolExecutor(2) as pool:
        done = list(
            pool.map(
                lambda pair: pair[0].post(refund_of(payment), data=pair[1]),
                zip(people, forms, strict=True),
            )
        )
    assert sorted(answered.status_code for answered in done) == [303, 422]
    (refused,) = (answered for answered in done if answered.status_code == 422)
    assert "¥4,000" in refused.text
    assert returned(front) == [6000]


IMPOSSIBLE = (
    *("0", "-1", "10001", "99999999999999999999", "1.5", "1e3", "", " ", "千円", "😀"),
    *("1000\x00", "NaN", "０", "−500"),
)


def test_c8_an_impossible_amount_is_told_and_nothing_moves(
    front: FrontDesk, payment: UUID, lang: str
) -> None:
    client = front.cast.signed_in(front.cast.sato, locale=lang)
    for amount in IMPOSSIBLE:
        wrong = send(client, refund_of(payment), refund_of(payment), amount=amount)
        assert wrong.status_code == 422, amount
        audit(wrong, client, lang)
    assert not returned(front)


def test_c8_an_amount_is_read_as_people_type_it(front: FrontDesk, payment: UUID) -> None:
    client = front.cast.signed_in(front.cast.sato)
    typed = ("１，０００", "1,000", "￥1000", "１０００円", " 1000 ")
    for amount in typed:
        send(client, refund_of(payment), refund_of(payment), amount=amount)
    assert returned(front) == [1000] * len(typed)


def test_a_crafted_form_returns_nothing(front: FrontDesk, payment: UUID) -> None:
    client = front.cast.signed_in(front.cast.sato)
    for crafted in (
        {"form_key": ""},
        {"form_key": "x"},
        {"form_key": "😀" * 100},
        {"price": "free"},
        {"price": ""},
        {"price": "x" * 9000},
    ):
        wrong = send(client, refund_of(payment), refund_of(payment), **crafted)
        assert wrong.status_code == 422, crafted
        audit(wrong, client)
    assert not returned(front)


def test_a_provider_out_of_reach_refuses_and_can_be_asked_again(
    front: FrontDesk,
    payment: UUID,
) -> None:
    client = front.cast.signed_in(front.cast.sato)
    front.stripe.post("listening", open=False)
    said = send(client, refund_of(payment), refund_of(payment), amount="3000")
    front.stripe.post("listening", open=True)
    assert notice(client, said) == "REFUND_UNAVAILABLE"
    assert not returned(front)
    said = send(client, refund_of(payment), refund_of(payment), amount="3000")
    assert notice(client, said) == "REFUND_SENT"
    assert returned(front) == [3000]
    page(client, of(payment))


def test_a_payment_that_is_all_back_offers_nothing(front: FrontDesk, payment: UUID) -> None:
    client = front.cast.signed_in(front.cast.sato)
    form = form_data(page(client, refund_of(payment)), refund_of(payment))
    client.post(refund_of(payment), data=form)
    assert refund_of(payment) not in client.get(of(payment)).text
    page(client, refund_of(payment))
    late = client.post(refund_of(payment), data=form | {"form_key": str(uuid4())})
    assert notice(client, late) == "NOTHING_TO_REFUND"
    assert returned(front) == [10_000]


def test_c1_five_hundred_yen_are_five_hundred_everywhere(front: FrontDesk, lang: str) -> None:
    stay = front.cast.book(price=500)
    payment = front.paid(stay)
    (intent,) = front.at_provider("payment_intent")
    assert (intent["amount"], intent["amount_received"], intent["currency"]) == (500, 500, "jpy")
    client = front.cast.signed_in(front.cast.sato, locale=lang)
    assert {"ja": "￥500", "en": "¥500"}[lang] in shown(client, of(payment))
    send(client, refund_of(payment), refund_of(payment))
    assert returned(front) == [500]


# Asking the provider ----------------------------------------------------------------------------


def test_a_payment_whose_answer_was_lost_is_asked_after(
    front: FrontDesk,
    stay: Booked,
    lang: str,
) -> None:
    from portal.verbs import payments

    front.stripe.fault("do_then_drop", "^/v1/payment_intents$")
    with front.app.app_context():
        payments.open_payment(front.desk(), front.cast.sato.actor, stay.id, "balance")
    payment = front.scalar(stay, "select id from payments where stay_id = :id", stay.id)
    client = front.cast.signed_in(front.cast.sato, locale=lang)
    page(client, of(payment), lang)
    done = send(client, of(payment), f"{of(payment)}/resolve")
    assert notice(client, done) == "PAYMENT_RECORDED"
    assert front.scalar(stay, "select state from payments where id = :id", payment) == "open"


def test_asking_an_unreachable_provider_changes_nothing(front: FrontDesk, stay: Booked) -> None:
    payment = front.opened(stay)
    client = front.cast.signed_in(front.cast.sato)
    front.stripe.fault("refuse", "^/v1/payment_intents/", method="GET")
    done = send(client, of(payment), f"{of(payment)}/resolve", htmx=True)
    assert done.status_code == 422
    assert notice(client, done) == "BILLING_UNAVAILABLE"
    assert front.scalar(stay, "select state from payments where id = :id", payment) == "open"
    done = send(client, of(payment), f"{of(payment)}/resolve")
    assert notice(client, done) == "PAYMENT_ALREADY_RECORDED"


# Disputes ---------------------------------------------------------------------------------------


def test_a_dispute_is_shown_and_asked_after(front: FrontDesk, payment: UUID, lang: str) -> None:
    client = front.cast.signed_in(front.cast.sato, locale=lang)
    intent = front.at_provider("payment_intent")[0]["id"]
    opened = front.stripe.post("disputes", payment_intent=intent)
    with front.app.app_context():
        disputes.ask(front.desk(), SYSTEM, payment)
    page(client, of(payment), lang)
    said = shown(client, of(payment))
    assert {"ja": "証拠を提出できます", "en": "evidence can be sent"}[lang] in said
    assert opened["id"] in said
    assert refund_of(payment) not in client.get(of(payment)).text
    front.stripe.post(f"disputes/{opened['id']}/close", status="won")
    told = send(client, of(payment), f"{of(payment)}/disputes")
    assert notice(client, told) == "DISPUTE_RECORDED"
    assert refund_of(payment) in client.get(of(payment)).text


def test_a_crafted_refund_of_a_disputed_payment_is_refused(front: FrontDesk, payment: UUID) -> None:
    client = front.cast.signed_in(front.cast.sato)
    data = form_data(page(client, refund_of(payment)), refund_of(payment))
    intent = front.at_provider("payment_intent")[0]["id"]
    front.stripe.post("disputes", payment_intent=intent)
    with front.app.app_context():
        disputes.ask(front.desk(), SYSTEM, payment)
    said = client.post(refund_of(payment), data={**data, "amount": "500", "price": "keep"})
    assert said.status_code == 422
    assert notice(client, said) == "PAYMENT_DISPUTED"
    assert returned(front) == []
