"""A guest pays over HTTP alone: our pages, the provider's page, its webhooks, our pages again."""

from typing import Any
from urllib.parse import urljoin
from xml.etree.ElementTree import Element

import pytest
import requests

from tests.cast import Booked, Joined
from tests.web.audit import by_id, form_data, main_of, parse, words
from tests.web.shop import Shop

GOOD, DECLINED, CHALLENGED, SLOW = (
    "4242424242424242",
    "4000000000009995",
    "4000002500003155",
    "4000000000000077",
)


class Phone:
    """A browser without script: follows redirects, fills in forms."""

    def __init__(self, shop: Shop, booked: Booked | Joined) -> None:
        self.shop, self.booked = shop, booked
        self.session = requests.Session()
        self.session.trust_env = False
        self.session.headers["Accept-Language"] = "en"
        self.url, self.page = "", Element("html")

    def go(self, url: str) -> str:
        return self._took(self.session.get(urljoin(self.url, url), timeout=10))

    def send(self, action_ends: str, **fields: str) -> str:
        form = next(f for f in self.page.iter("form") if f.get("action", "").endswith(action_ends))
        action = form.get("action", "")
        data = form_data(self.page, action) | fields
        return self._took(self.session.post(urljoin(self.url, action), data=data, timeout=10))

    def _took(self, answer: requests.Response) -> str:
        assert answer.status_code < 500, answer.text
        self.url, (self.page, _) = answer.url, parse(answer.text)
        return words(self.page)

    def to_card(self, part: str = "balance") -> str:
        """From a page of ours with a pay button to the provider's form."""
        self.send("/pay", part=part)
        link = next(a for a in main_of(self.page).iter("a") if a.get("role") == "button")
        return self.go(link.get("href", ""))

    def enter(self, number: str) -> str:
        return self.send("", number=number)

    def stay(self) -> str:
        return self.go(f"{self.shop.url}/g/{self.booked.token}")

    def again(self, since: int | None = None) -> str:
        args = "" if since is None else f"?since={since}"
        return self.go(f"{self.shop.url}/g/{self.booked.token}/return{args}")

    @property
    def standing(self) -> str:
        found = by_id(self.page, "standing")
        assert found is not None, words(self.page)
        return words(found)


@pytest.fixture
def phone(open_shop: Shop) -> Phone:
    return Phone(open_shop, open_shop.cast.book(guest=open_shop.cast.emma, deposit_due=2000))


def folio(phone: Phone) -> list[tuple[str, int]]:
    with phone.shop.cast.transaction(phone.booked.facility_id) as tx:
        found = tx.rows("select kind, amount from ledger_lines order by id")
    return [(row.kind, row.amount) for row in found]


def charges(phone: Phone) -> int:
    return sum(1 for _ in succeeded(phone))


def succeeded(phone: Phone) -> list[dict[str, Any]]:
    with phone.shop.cast.transaction(phone.booked.facility_id) as tx:
        ids = [
            row.intent_id
            for row in tx.rows("select intent_id from payments order by created_at, id")
        ]
    found = [phone.shop.rail.get(f"objects/{intent_id}") for intent_id in ids if intent_id]
    return [intent for intent in found if intent["status"] == "succeeded"]


def test_the_deposit_then_the_rest(phone: Phone) -> None:
    assert "To pay" in phone.stay()
    assert "¥2,000" in phone.to_card("deposit")
    phone.enter(GOOD)
    assert phone.url.startswith(f"{phone.shop.url}/g/{phone.booked.token}/return?")
    assert "redirect_status=succeeded" in phone.url
    assert phone.standing.startswith("Confirming your payment")
    assert folio(phone) == [("charge", 6000)]
    phone.shop.hear()
    phone.again()
    assert phone.standing.startswith("Payment received ¥2,000")
    assert "Still to pay: ¥4,000" in phone.standing
    phone.to_card()
    phone.enter(GOOD)
    phone.shop.hear()
    phone.again()
    assert "Everything is paid" in phone.standing
    assert folio(phone) == [("charge", 6000), ("deposit", -2000), ("payment", -4000)]
    assert [intent["amount"] for intent in succeeded(phone)] == [2000, 4000]
    assert "Still to pay¥0" in phone.stay()


def test_c1_yen_are_whole_at_the_provider(phone: Phone) -> None:
    phone.stay()
    phone.to_card()
    phone.enter(GOOD)
    (intent,) = succeeded(phone)
    assert (intent["amount"], intent["currency"]) == (6000, "jpy")


def test_b2_declined_then_another_card(phone: Phone) -> None:
    phone.stay()
    phone.to_card()
    assert "insufficient funds" in phone.enter(DECLINED)
    phone.shop.hear()
    phone.again(since=0)
    assert phone.standing.startswith("The card was not accepted There is not enough money")
    phone.to_card()
    phone.enter(GOOD)
    assert phone.standing.startswith("Confirming your payment")
    phone.again(since=0)
    assert "not accepted" not in phone.standing
    phone.shop.hear()
    phone.again()
    assert phone.standing.startswith("Payment received ¥6,000")
    assert charges(phone) == 1
    assert phone.shop.rail.creates("payment_intent") == 1


def test_b2_another_card_at_once_on_the_providers_page(phone: Phone) -> None:
    phone.stay()
    phone.to_card()
    phone.enter(DECLINED)
    phone.shop.hear()
    phone.enter(GOOD)
    assert phone.standing.startswith("Confirming your payment"), "the decline is known, but old"
    phone.shop.hear()
    phone.again()
    assert phone.standing.startswith("Payment received")
    assert charges(phone) == 1


@pytest.mark.parametrize("approved", [True, False])
def test_3d_secure(phone: Phone, approved: bool) -> None:
    phone.stay()
    phone.to_card()
    assert "3-D Secure" in phone.enter(CHALLENGED)
    phone.send("/authenticate", outcome="approve" if approved else "fail")
    assert phone.standing.startswith("Confirming your payment")
    phone.shop.hear()
    phone.again(since=0)
    if approved:
        assert phone.standing.startswith("Payment received")
    else:
        assert "could not confirm that it was you" in phone.standing
    assert charges(phone) == int(approved)


def test_processing_and_success_later(phone: Phone) -> None:
    phone.stay()
    phone.to_card()
    phone.enter(SLOW)
    phone.shop.hear()
    phone.again()
    assert phone.standing.startswith("Confirming your payment")
    phone.again(since=0)
    assert phone.standing.startswith("Your payment is still being processed")
    assert "A payment is being confirmed" in phone.stay()
    assert not any(form.get("action", "").endswith("/pay") for form in phone.page.iter("form"))
    intent_id = phone.shop.scalar(phone.booked, "select intent_id from payments")
    phone.shop.rail.post(f"payment_intents/{intent_id}/finish", outcome="succeeded")
    phone.shop.hear()
    phone.again()
    assert phone.standing.startswith("Payment received ¥6,000")


def test_processing_and_declined_later(phone: Phone) -> None:
    phone.stay()
    phone.to_card()
    phone.enter(SLOW)
    phone.shop.hear()
    intent_id = phone.shop.scalar(phone.booked, "select intent_id from payments")
    phone.shop.rail.post(f"payment_intents/{intent_id}/finish", outcome="declined")
    phone.shop.hear()
    phone.shop.work("payments")
    phone.again(since=0)
    assert phone.standing.startswith("The card was not accepted")
    phone.to_card()
    phone.enter(GOOD)
    phone.shop.hear()
    phone.again()
    assert phone.standing.startswith("Payment received")
    assert charges(phone) == 1


def test_b8_two_tabs_are_one_charge(phone: Phone) -> None:
    other = Phone(phone.shop, phone.booked)
    for tab in (phone, other):
        tab.stay()
        tab.to_card()
    phone.enter(GOOD)
    other.enter(GOOD)
    phone.shop.hear()
    phone.again()
    assert phone.standing.startswith("Payment received")
    assert charges(phone) == 1
    assert folio(phone) == [("charge", 6000), ("payment", -6000)]


def test_three_deliveries_out_of_order_are_one_payment(phone: Phone) -> None:
    phone.shop.rail.post("webhooks", paused=True)
    phone.stay()
    phone.to_card()
    phone.enter(DECLINED)
    phone.enter(GOOD)
    phone.shop.rail.post("webhooks", duplicate=3)
    phone.shop.rail.post("webhooks/reverse")
    phone.shop.rail.post("webhooks", paused=False)
    phone.shop.hear()
    phone.again()
    assert phone.standing.startswith("Payment received")
    assert folio(phone) == [("charge", 6000), ("payment", -6000)]
