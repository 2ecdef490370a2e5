"""Paying: the attempt, the provider's form, and a return page that believes our books alone."""

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from portal import clock
from portal.db import SYSTEM
from portal.verbs import cash, stays
from tests.cast import Booked
from tests.web.audit import audit, by_id, form_data, main_of, words
from tests.web.shop import Shop


def press(client: FlaskClient, booked: Booked, part: str = "balance") -> TestResponse:
    page = audit(client.get(f"/g/{booked.token}"), client)
    data = form_data(page, f"/g/{booked.token}/pay") | {"part": part}
    return client.post(f"/g/{booked.token}/pay", data=data)


def back(client: FlaskClient, booked: Booked, lang: str = "en", **args: Any) -> str:
    """The words of the return page."""
    answer = client.get(f"/g/{booked.token}/return", query_string={"lang": lang, **args})
    assert answer.status_code == 200
    assert answer.headers["Cache-Control"] == "no-store"
    return words(main_of(audit(answer, client, lang)))


def ago(seconds: int) -> int:
    return int((datetime.now(UTC) - timedelta(seconds=seconds)).timestamp())


def notices(client: FlaskClient, at: str) -> list[str]:
    page = audit(client.get(at), client)
    shown = by_id(page, "notices")
    assert shown is not None
    return [div.get("data-code", "") for div in shown.iter("div") if div.get("data-code")]


def ledger(shop: Shop, booked: Booked) -> list[tuple[str, int]]:
    with shop.cast.transaction(booked.facility_id) as tx:
        found = tx.rows("select kind, amount from ledger_lines order by id")
    return [(row.kind, row.amount) for row in found]


# Opening --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("part", "amount"), [("deposit", 2000), ("balance", 6000)])
def test_a_press_opens_one_attempt_and_shows_its_page(
    shop: Shop, client: FlaskClient, lang: str, part: str, amount: int
) -> None:
    booked = shop.cast.book(deposit_due=2000)
    opened = press(client, booked, part)
    assert opened.status_code == 303
    assert re.fullmatch(rf"/g/{booked.token}/pay/[0-9a-f-]{{36}}", opened.location)
    answer = client.get(f"{opened.location}?lang={lang}")
    page = audit(answer, client, lang)
    assert f"{amount:,}" in words(main_of(page))
    (link,) = [a for a in main_of(page).iter("a") if a.get("role") == "button"]
    href = link.get("href", "")
    assert href.startswith(f"{shop.rail.base}/pay/pi_")
    assert f"return_url={shop.url.replace(':', '%3A').replace('/', '%2F')}%2Fg%2F" in href
    assert "stripe.com" not in answer.headers["Content-Security-Policy"]
    assert shop.rail.creates("payment_intent") == 1


def test_pressed_again_it_is_the_same_attempt(shop: Shop, client: FlaskClient) -> None:
    booked = shop.cast.book()
    first, second = press(client, booked), press(client, booked)
    assert first.location == second.location
    assert shop.rail.creates("payment_intent") == 1


def test_h1_eight_presses_at_once_are_one_intent(shop: Shop, client: FlaskClient) -> None:
    booked = shop.cast.book()
    page = audit(client.get(f"/g/{booked.token}"), client)
    data = form_data(page, f"/g/{booked.token}/pay") | {"part": "balance"}
    cookie = client.get_cookie("monban")
    assert cookie is not None

    def click(_: int) -> int:
        browser = shop.app.test_client()
        browser.set_cookie("monban", cookie.value)
        return browser.post(f"/g/{booked.token}/pay", data=data).status_code

    with ThreadPoolExecutor(8) as fingers:
        answers = list(fingers.map(click, range(8)))
    assert set(answers) == {303}
    assert shop.rail.creates("payment_intent") == 1
    assert shop.scalar(booked, "select count(*) from payments") == 1


@pytest.mark.parametrize("part", ["", "nonsense", "deposit\x00", "預り金", "balance " * 2000])
def test_a_part_that_is_none(shop: Shop, client: FlaskClient, part: str) -> None:
    booked = shop.cast.book()
    assert press(client, booked, part).status_code == 400
    assert shop.scalar(booked, "select count(*) from payments") == 0


def test_a_forged_form_opens_nothing(shop: Shop, client: FlaskClient) -> None:
    booked = shop.cast.book()
    for token in ("", "x", "\x00"):
        answer = client.post(
            f"/g/{booked.token}/pay", data={"part": "balance", "csrf_token": token}
        )
        assert answer.status_code == 400
    assert client.post(f"/g/{uuid4()}/pay", data={"part": "balance"}).status_code == 404
    assert shop.scalar(booked, "select count(*) from payments") == 0


def test_h4_a_page_that_was_open_for_too_long(shop: Shop, client: FlaskClient, lang: str) -> None:
    booked = shop.cast.book()
    page = audit(client.get(f"/g/{booked.token}?lang={lang}"), client, lang)
    data = form_data(page, f"/g/{booked.token}/pay") | {"part": "balance"}
    shop.app.config["WTF_CSRF_TIME_LIMIT"] = -1
    try:
        answer = client.post(f"/g/{booked.token}/pay", data=data)
    finally:
        shop.app.config["WTF_CSRF_TIME_LIMIT"] = 3600
    assert (answer.status_code, answer.location) == (303, f"/g/{booked.token}")
    assert notices(client, answer.location) == ["FORM_EXPIRED"]
    assert shop.scalar(booked, "select count(*) from payments") == 0


def test_nothing_due_and_too_little(shop: Shop, client: FlaskClient) -> None:
    other = shop.cast.book(space="A03")
    form = form_data(audit(client.get(f"/g/{other.token}"), client), f"/g/{other.token}/pay")
    for price, space, code in ((0, "A01", "NOTHING_DUE"), (49, "A02", "AMOUNT_BELOW_MINIMUM")):
        booked = shop.cast.book(price=price, space=space)
        answer = client.post(f"/g/{booked.token}/pay", data=form | {"part": "balance"})
        assert (answer.status_code, answer.location) == (303, f"/g/{booked.token}")
        assert notices(client, answer.location) == [code]


def test_the_provider_out_of_reach(shop: Shop, client: FlaskClient, lang: str) -> None:
    booked = shop.cast.book()
    client.get(f"/g/{booked.token}?lang={lang}")
    shop.rail.post("listening", open=False)
    try:
        answer = press(client, booked)
    finally:
        shop.rail.post("listening", open=True)
    assert (answer.status_code, answer.location) == (303, f"/g/{booked.token}")
    assert notices(client, answer.location) == ["BILLING_UNAVAILABLE"]
    assert press(client, booked).location != f"/g/{booked.token}"


def test_an_answer_that_was_lost(shop: Shop, client: FlaskClient, lang: str) -> None:
    booked = shop.cast.book()
    client.get(f"/g/{booked.token}?lang={lang}")
    shop.rail.fault("do_then_drop", "/v1/payment_intents")
    answer = press(client, booked)
    assert (answer.status_code, answer.location) == (303, f"/g/{booked.token}/return")
    assert notices(client, answer.location) == ["PAYMENT_UNKNOWN"]
    page = audit(client.get(f"/g/{booked.token}"), client, lang)
    assert not any(form.get("action", "").endswith("/pay") for form in page.iter("form"))
    shop.work("payments")
    assert shop.scalar(booked, "select state from payments") == "open"
    assert press(client, booked).status_code == 303
    assert shop.rail.creates("payment_intent") == 1


# The card's page ------------------------------------------------------------------------------


def test_another_stays_payment_is_not_there(shop: Shop, client: FlaskClient) -> None:
    mine = shop.cast.book()
    neighbour = shop.cast.book(space="A02")
    far = shop.cast.book(shop.cast.osaka)
    for other in (neighbour, far):
        payment_id = shop.open_payment(other)
        assert client.get(f"/g/{mine.token}/pay/{payment_id}").status_code == 404
        assert client.get(f"/g/{other.token}/pay/{payment_id}").status_code == 200
    for odd in (uuid4(), "x", "1", f"{uuid4()}x"):
        assert client.get(f"/g/{mine.token}/pay/{odd}").status_code == 404


def test_a_payment_that_is_no_longer_open_leads_to_the_return_page(
    shop: Shop, client: FlaskClient
) -> None:
    booked = shop.cast.book()
    payment_id = shop.open_payment(booked)
    for status in ("processing", "succeeded"):
        assert shop.tell(booked, payment_id, status).status == "applied"
        answer = client.get(f"/g/{booked.token}/pay/{payment_id}")
        assert (answer.status_code, answer.location) == (303, f"/g/{booked.token}/return")


def test_b4_more_than_is_owed_is_not_offered(shop: Shop, client: FlaskClient) -> None:
    booked = shop.cast.book()
    payment_id = shop.open_payment(booked)
    with shop.cast.transaction(booked.facility_id) as tx:
        cash.take(tx, SYSTEM, booked.id, 1000, uuid4())
    answer = client.get(f"/g/{booked.token}/pay/{payment_id}")
    assert (answer.status_code, answer.location) == (303, f"/g/{booked.token}")
    again = press(client, booked)
    assert again.location != f"/g/{booked.token}/pay/{payment_id}"
    assert "5,000" in words(main_of(audit(client.get(again.location), client)))
    assert shop.scalar(booked, "select state from payments where id = :id", id=payment_id) == (
        "canceled"
    )


def test_with_stripe_itself_the_card_is_entered_in_its_element(
    shop: Shop, app: Flask, lang: str
) -> None:
    booked = shop.cast.book()
    payment_id = shop.open_payment(booked)
    client = app.test_client()
    answer = client.get(f"/g/{booked.token}/pay/{payment_id}?lang={lang}")
    page = audit(answer, client, lang)
    scripts = [script.get("src", "") for script in page.iter("script")]
    assert "https://js.stripe.com/endive/stripe.js" in scripts
    form = by_id(page, "card-form")
    assert form is not None
    assert form.get("data-publishable-key") == "pk_test_monban"
    assert "_secret_" in form.get("data-client-secret", "")
    assert form.get("data-return-url") == f"http://127.0.0.1:8000/g/{booked.token}/return"
    assert list(main_of(page).iter("form")) == []
    assert "JavaScript" in words(next(main_of(page).iter("noscript")))
    policy = answer.headers["Content-Security-Policy"]
    assert "script-src 'self' https://js.stripe.com" in policy
    secret = shop.scalar(booked, "select client_secret_sealed from payments")
    assert form.get("data-client-secret") not in secret


# Coming back ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        {"redirect_status": "succeeded"},
        {"redirect_status": "succeeded", "payment_intent": "pi_1", "status": "paid"},
        {"seen": "paid", "face": "paid", "since": "0"},
        {"since": "99999999999999999999"},
        {"since": "-1", "payment": str(uuid4())},
        {"since": "٣"},
    ],
)
def test_a_forged_return_changes_nothing(
    shop: Shop, client: FlaskClient, lang: str, arguments: dict[str, str]
) -> None:
    booked = shop.cast.book()
    for opened in (False, True):
        if opened:
            shop.open_payment(booked)
        text = back(client, booked, lang, **arguments)
        assert "Payment received" not in text
        assert "お支払いを受け取りました" not in text
    assert ledger(shop, booked) == [("charge", 6000)]


def test_before_any_payment(shop: Shop, client: FlaskClient, lang: str) -> None:
    booked = shop.cast.book()
    unpaid, settled = {
        "en": ("Not paid yet", "Nothing is owed"),
        "ja": ("まだお支払いがありません", "残りはありません"),
    }[lang]
    assert unpaid in back(client, booked, lang)
    with shop.cast.transaction(booked.facility_id) as tx:
        cash.take(tx, SYSTEM, booked.id, 6000, uuid4())
    assert settled in back(client, booked, lang)


def test_holding_is_watched_with_and_without_script(
    shop: Shop, client: FlaskClient, lang: str
) -> None:
    booked = shop.cast.book()
    payment_id = shop.open_payment(booked)
    for status in (None, "processing"):
        if status:
            shop.tell(booked, payment_id, status)
        answer = client.get(f"/g/{booked.token}/return?lang={lang}")
        page = audit(answer, client, lang)
        standing = by_id(page, "standing")
        assert standing is not None
        assert standing.get("hx-trigger") == "every 2s"
        refresh = [m.get("content", "") for m in page.iter("meta") if m.get("http-equiv")]
        assert len(refresh) == 1
        assert refresh[0].startswith(f"3;url=/g/{booked.token}/return?since=")
        asked = client.get(standing.get("hx-get", ""), headers={"HX-Request": "true"})
        assert asked.status_code == 204
        assert asked.get_data() == b""
    shop.tell(booked, payment_id, "succeeded")
    asked = client.get(standing.get("hx-get", ""), headers={"HX-Request": "true"})
    assert asked.status_code == 200
    page = audit(asked, client, lang)
    settled = by_id(page, "standing")
    assert settled is not None
    assert settled.get("hx-trigger") is None
    assert not [m for m in page.iter("meta") if m.get("http-equiv")]


def test_after_a_minute_it_says_what_is_known(shop: Shop, client: FlaskClient, lang: str) -> None:
    booked = shop.cast.book()
    payment_id = shop.open_payment(booked)
    assert ("Confirming" if lang == "en" else "確認しています") in back(
        client, booked, lang, since=ago(58)
    )
    text = back(client, booked, lang, since=ago(61))
    assert ("No word of a payment yet" if lang == "en" else "まだ届いていません") in text
    assert ("We write to you" if lang == "en" else "お知らせをお送りします") in text
    shop.tell(booked, payment_id, "processing")
    text = back(client, booked, lang, since=ago(61))
    assert ("still being processed" if lang == "en" else "まだ処理中です") in text
    assert ("by card" if lang == "en" else "カードで支払う") not in text


def test_who_left_no_address_is_promised_no_message(shop: Shop, client: FlaskClient) -> None:
    booked = shop.cast.book(guest=shop.cast.hanako | {"email": None})
    shop.open_payment(booked)
    assert "We write to you" not in back(client, booked, since=ago(61))


def test_paid_in_part_and_in_full(shop: Shop, client: FlaskClient, lang: str) -> None:
    tomorrow = clock.now() + timedelta(days=1)
    booked = shop.cast.book(
        deposit_due=2000, starts_at=tomorrow, ends_at=tomorrow + timedelta(hours=12)
    )
    shop.tell(booked, shop.open_payment(booked, "deposit"), "succeeded")
    text = back(client, booked, lang)
    assert ("Payment received" if lang == "en" else "お支払いを受け取りました") in text
    assert ("Still to pay: ¥4,000" if lang == "en" else "お支払い残額：￥4,000") in text
    shop.tell(booked, shop.open_payment(booked, "balance"), "succeeded")
    text = back(client, booked, lang)
    assert ("Everything is paid" if lang == "en" else "お支払いは完了しています") in text
    assert ledger(shop, booked) == [("charge", 6000), ("deposit", -2000), ("payment", -4000)]


@pytest.mark.parametrize(
    ("code", "en", "ja"),
    [
        ("insufficient_funds", "not enough money", "利用可能額が足りません"),
        ("expired_card", "has expired", "有効期限が切れています"),
        ("stolen_card", "Your bank declined this card", "承認しませんでした"),
        ("a_new_code", "Your bank declined this card", "承認しませんでした"),
    ],
)
def test_declined_in_plain_words(
    shop: Shop, client: FlaskClient, lang: str, code: str, en: str, ja: str
) -> None:
    booked = shop.cast.book()
    payment_id = shop.open_payment(booked)
    shop.tell(booked, payment_id, "requires_payment_method", decline_code=code)
    # The last card's word may still be on its way.
    assert ("Confirming" if lang == "en" else "確認しています") in back(client, booked, lang)
    text = back(client, booked, lang, since=ago(5))
    assert (en if lang == "en" else ja) in text
    assert ("Nothing has been charged" if lang == "en" else "請求は行われていません") in text
    assert "stolen" not in text


def test_b2_the_old_decline_is_not_shown_for_the_new_card(shop: Shop, client: FlaskClient) -> None:
    booked = shop.cast.book()
    payment_id = shop.open_payment(booked)
    shop.tell(booked, payment_id, "requires_payment_method", decline_code="insufficient_funds")
    assert "not accepted" in back(client, booked, since=ago(5))
    assert press(client, booked).location == f"/g/{booked.token}/pay/{payment_id}"
    assert "Confirming" in back(client, booked, since=ago(5))
    shop.tell(booked, payment_id, "succeeded")
    assert "Payment received" in back(client, booked)
    assert shop.rail.creates("payment_intent") == 1


def test_an_amount_that_the_bank_has_only_set_aside(
    shop: Shop, client: FlaskClient, lang: str
) -> None:
    booked = shop.cast.book()
    payment = shop.open_payment(booked)
    shop.tell(booked, payment, "requires_capture")
    shown = back(client, booked, lang, since=ago(600))
    if lang == "en":
        assert "Not paid yet" in shown
        assert "it has not been taken, so nothing is paid" in shown
    else:
        assert "お支払いは済んでいません" in shown
    assert "Payment received" not in shown
    assert ledger(shop, booked) == [("charge", 6000)]


def test_given_up(shop: Shop, client: FlaskClient, lang: str) -> None:
    booked = shop.cast.book()
    shop.tell(booked, shop.open_payment(booked), "canceled")
    text = back(client, booked, lang)
    assert ("was not made" if lang == "en" else "行われませんでした") in text


def test_money_for_a_cancelled_stay_goes_back_and_its_clock_is_shown(
    shop: Shop, client: FlaskClient, lang: str
) -> None:
    booked = shop.cast.book()
    payment_id = shop.open_payment(booked)
    with shop.cast.transaction(booked.facility_id) as tx:
        said = stays.cancel(tx, SYSTEM, booked.id, 1, 0)
    assert said.status == "applied", said
    shop.tell(booked, payment_id, "succeeded")
    text = back(client, booked, lang)
    assert ("is being returned" if lang == "en" else "返金します") in text
    page = words(main_of(audit(client.get(f"/g/{booked.token}?lang={lang}"), client, lang)))
    assert (
        "is being returned to your card since" if lang == "en" else "手続きをしています"
    ) in page
    assert ("Please ask at the desk for" if lang == "en" else "フロントでお受け取り") not in page
