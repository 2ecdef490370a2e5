"""A member pays by card: our pages, the provider's page, its webhooks, our pages again. Without
script, over HTTP alone."""

from typing import Any
from uuid import UUID, uuid4

import pytest
from flask.testing import FlaskClient

from portal.outcome import Applied, Code
from portal.verbs import documents, memberships, payment_answers, refunds, subscription_answers
from portal.verbs.membership_end import Ending, end_membership
from sandbox.watch import statements
from tests.cast import GUEST, Joined
from tests.outside import pay
from tests.web.audit import audit, form_data, main_of, words
from tests.web.guest.test_guest_end_to_end import DECLINED, GOOD, Phone
from tests.web.shop import Shop


@pytest.fixture
def joined(shop: Shop) -> Joined:
    plan = shop.cast.offer("card", "カード会員", "Card member", billing="card")
    return shop.cast.apply(plan)


@pytest.fixture
def phone(open_shop: Shop, joined: Joined) -> Phone:
    approve(open_shop, joined)
    return Phone(open_shop, joined)


def to_card(phone: Phone) -> None:
    """From the member's page to the provider's form."""
    phone.go(f"{phone.shop.url}/m/{phone.booked.token}?lang=en")
    phone.send("/pay")
    link = next(a for a in main_of(phone.page).iter("a") if a.get("role") == "button")
    phone.go(link.get("href", ""))


def approve(shop: Shop, joined: Joined) -> None:
    with shop.app.app_context():
        said = memberships.approve(shop.desk(joined.facility_id), GUEST, joined.id, 1)
    assert isinstance(said, Applied), said


def said(client: FlaskClient, joined: Joined, lang: str, path: str = "") -> str:
    answer = client.get(f"/m/{joined.token}{path}?lang={lang}")
    assert answer.status_code == 200
    assert answer.headers["Cache-Control"] == "no-store"
    return words(main_of(audit(answer, client, lang)))


def test_what_is_agreed_names_the_card(shop: Shop, client: FlaskClient, lang: str) -> None:
    shop.cast.offer("card", "カード会員", "Card member", billing="card")
    told = words(main_of(audit(client.get(f"/join/haneda-capsule/card?lang={lang}"), client, lang)))
    assert {"ja": "同じカードに自動で請求", "en": "from the same card, until you cancel"}[
        lang
    ] in told


def test_approved_it_waits_for_its_first_payment(
    shop: Shop, client: FlaskClient, joined: Joined, lang: str
) -> None:
    approve(shop, joined)
    told = said(client, joined, lang)
    assert {"ja": "初回のお支払い", "en": "begins with the first payment"}[lang] in told
    assert {"ja": "￥9,800をカードで支払う", "en": "Pay ¥9,800 by card"}[lang] in told
    said(client, joined, lang, "/cancel")


def test_the_card_form_says_what_is_paid_and_that_the_card_is_kept(
    shop: Shop, client: FlaskClient, joined: Joined, lang: str
) -> None:
    approve(shop, joined)
    page = audit(client.get(f"/m/{joined.token}"), client)
    opened = client.post(f"/m/{joined.token}/pay", data=form_data(page, f"/m/{joined.token}/pay"))
    assert opened.status_code == 303
    answer = client.get(f"{opened.location}?lang={lang}")
    told = words(main_of(audit(answer, client, lang)))
    assert {"ja": "カード会員", "en": "Card member"}[lang] in told
    assert {"ja": "解約されるまで期間ごとに請求", "en": "charged for each further period"}[
        lang
    ] in told
    assert answer.headers["Cache-Control"] == "no-store"


def test_paid_it_runs(phone: Phone, joined: Joined) -> None:
    to_card(phone)
    phone.enter(GOOD)
    shop = phone.shop
    assert phone.url.startswith(f"{shop.url}/m/{joined.token}/return?")
    assert phone.standing.startswith("Confirming your payment")
    shop.hear()
    shop.work("memberships")  # it was paid in the second in which it was approved
    told = phone.go(f"{shop.url}/m/{joined.token}/return")
    assert "Payment received" in told
    assert "Your membership runs" in told
    told = phone.go(f"{shop.url}/m/{joined.token}")
    assert "Next charge: ¥9,800" in told
    assert "What is paid" in told
    told = phone.go(receipts_on(phone))
    assert "¥9,800 has arrived that no receipt states yet" in told


def receipts_on(phone: Phone) -> str:
    links = [str(one.get("href")) for one in phone.page.iter("a")]
    return next(one for one in links if one.endswith("/receipt"))


def test_a_receipt_is_its_members_and_a_return_tells_what_went_back(
    shop: Shop, client: FlaskClient, joined: Joined, lang: str
) -> None:
    approve(shop, joined)
    with shop.cast.transaction(joined.facility_id) as tx:
        payment: UUID = tx.scalar("select id from payments")
        intent: str = tx.scalar("select intent_id from payments")
    assert issued(shop, joined).code == Code.RECEIPT_NOTHING_RECEIVED
    pay(shop.rail, intent)
    with shop.app.app_context():
        subscription_answers.read(shop.desk(joined.facility_id), joined.id)
        payment_answers.resolve(shop.desk(joined.facility_id), GUEST, payment)
    receipt = issued(shop, joined).subject
    told = said(client, joined, lang, f"/receipt/{receipt}")
    assert {"ja": "領収書", "en": "Receipt"}[lang] in told
    assert "9,800" in told
    assert "890" in told, "the tax in it"
    with shop.app.app_context():
        refunds.ask(shop.desk(joined.facility_id), GUEST, payment, 1800, uuid4(), lowers_price=True)
    told = said(client, joined, lang, f"/receipt/{issued(shop, joined).subject}")
    assert {"ja": "返金明細書", "en": "Statement of a return"}[lang] in told
    assert "1,800" in told
    other = shop.cast.join(guest=shop.cast.emma)
    assert client.get(f"/m/{other.token}/receipt/{receipt}").status_code == 404


def issued(shop: Shop, joined: Joined) -> Any:
    with shop.cast.transaction(joined.facility_id) as tx:
        return documents.issue(tx, GUEST, documents.Folio(membership_id=joined.id), "", uuid4())


def test_declined_it_can_be_tried_again(phone: Phone, joined: Joined) -> None:
    to_card(phone)
    phone.enter(DECLINED)
    phone.shop.hear()
    told = phone.go(f"{phone.shop.url}/m/{joined.token}/return?since=1")
    assert "The card was not accepted" in told
    phone.send("/pay")
    assert "/pay/" in phone.url


@pytest.mark.parametrize("path", ["/pay/00000000-0000-4000-8000-000000000000", "/pay/x"])
def test_a_payment_that_is_not_this_members(
    shop: Shop, client: FlaskClient, joined: Joined, path: str
) -> None:
    approve(shop, joined)
    assert client.get(f"/m/{joined.token}{path}").status_code == 404


def test_another_members_payment_is_not_found(
    shop: Shop, client: FlaskClient, joined: Joined
) -> None:
    approve(shop, joined)
    with shop.cast.transaction(joined.facility_id) as tx:
        payment: UUID = tx.scalar("select id from payments")
    other = shop.cast.join(guest=shop.cast.emma)
    assert client.get(f"/m/{joined.token}/pay/{payment}").status_code == 200
    assert client.get(f"/m/{other.token}/pay/{payment}").status_code == 404


def test_an_application_taken_back_after_its_approval_is_closed_there(
    shop: Shop, client: FlaskClient, joined: Joined
) -> None:
    approve(shop, joined)
    page = audit(client.get(f"/m/{joined.token}/cancel"), client)
    place = f"/m/{joined.token}/cancel"
    assert client.post(place, data=form_data(page, place)).status_code == 303
    (there,) = shop.rail.get("objects")["subscription"]
    assert there["status"] in ("canceled", "incomplete_expired")


def test_the_provider_away_is_said_and_the_button_stays(
    shop: Shop, client: FlaskClient, joined: Joined
) -> None:
    approve(shop, joined)
    shop.rail.fault("refuse", path="/v1/invoices/.*", method="POST", times=None)
    page = audit(client.get(f"/m/{joined.token}/cancel"), client)
    place = f"/m/{joined.token}/cancel"
    client.post(place, data=form_data(page, place))
    told = said(client, joined, "en")
    assert "Take the application back" in told


def test_its_pages_in_few_statements(shop: Shop, client: FlaskClient, joined: Joined) -> None:
    approve(shop, joined)
    client.get(f"/m/{joined.token}")
    with statements() as made:
        client.get(f"/m/{joined.token}")
    assert len(made) <= 7, made
    with statements() as made:
        client.get(f"/m/{joined.token}/return")
    assert len(made) <= 5, made


def test_ended_while_its_page_was_open_nothing_is_paid(
    shop: Shop, client: FlaskClient, joined: Joined
) -> None:
    approve(shop, joined)
    page = audit(client.get(f"/m/{joined.token}"), client)
    place = f"/m/{joined.token}/pay"
    data = form_data(page, place)
    with shop.app.app_context():
        end_membership(shop.desk(joined.facility_id), GUEST, joined.id, Ending("self_cancel"))
    answer = client.post(place, data=data)
    assert answer.status_code == 303
    assert answer.location == f"/m/{joined.token}"
