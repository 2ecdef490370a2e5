"""The hosted payment page, as a browser without scripts uses it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

import html5lib
import pytest
import requests

from sandbox.stripe.testing import StandIn, client, running

BACK = "http://shop.example/return?lang=ja"


@pytest.fixture(scope="module")
def started() -> Iterator[StandIn]:
    with running("--processing-seconds", "3600") as stand_in:
        yield stand_in


@pytest.fixture
def stand_in(started: StandIn) -> StandIn:
    started.post("reset")
    return started


@pytest.fixture
def api(stand_in: StandIn) -> Any:
    return client(stand_in.base)


@pytest.fixture
def intent(api: Any) -> Any:
    return api.payment_intents.create(
        {"amount": 12_000, "currency": "jpy", "description": "<b>素泊まり</b>"}
    )


def ask(stand_in: StandIn, intent: Any, **changes: str) -> requests.Response:
    fields = {"client_secret": intent.client_secret, "return_url": BACK, **changes}
    url = f"{stand_in.base}/pay/{intent.id}"
    return requests.get(url, params=fields, timeout=5, allow_redirects=False)


def enter(stand_in: StandIn, intent: Any, number: str, **changes: str) -> requests.Response:
    fields = {"client_secret": intent.client_secret, "return_url": BACK, **changes}
    url = f"{stand_in.base}/pay/{intent.id}"
    return requests.post(url, data={**fields, "number": number}, timeout=5, allow_redirects=False)


def arrived(response: requests.Response, intent: Any) -> str:
    """Came back to the shop with all that Stripe sends along; returns redirect_status."""
    assert response.status_code == 303
    location = response.headers["Location"]
    assert location.startswith("http://shop.example/return?lang=ja&")
    query = parse_qs(urlsplit(location).query)
    assert query["payment_intent"] == [intent.id]
    assert query["payment_intent_client_secret"] == [intent.client_secret]
    return query["redirect_status"][0]


def test_the_page_is_whole_and_accessible(stand_in: StandIn, intent: Any) -> None:
    response = ask(stand_in, intent)
    assert response.status_code == 200
    page = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(response.text)
    assert [h1.tag for h1 in page.iter("h1")] == ["h1"]
    assert page.get("lang") == "ja"
    labels = {label.get("for") for label in page.iter("label")}
    visible = [field for field in page.iter("input") if field.get("type") != "hidden"]
    assert [field.get("id") for field in visible] == ["number"]
    assert labels == {"number"}
    assert not list(page.iter("script"))
    assert "¥12,000" in response.text
    assert "No real money moves" in response.text
    assert "<b>素泊まり" not in response.text
    assert response.headers["Cache-Control"] == "no-store"


def test_paid(stand_in: StandIn, api: Any, intent: Any) -> None:
    response = enter(stand_in, intent, "4242 4242 4242 4242")
    assert arrived(response, intent) == "succeeded"
    assert api.payment_intents.retrieve(intent.id).status == "succeeded"


@pytest.mark.parametrize(
    ("number", "says"),
    [
        ("4000000000000002", "Your card was declined."),
        ("4000000000009995", "Your card has insufficient funds."),
        ("1234", "Your card number is incorrect."),
        ("", "Your card number is incorrect."),
    ],
)
def test_declined_stays_on_the_page_and_another_card_pays(
    stand_in: StandIn, api: Any, intent: Any, number: str, says: str
) -> None:
    response = enter(stand_in, intent, number)
    assert response.status_code == 402
    assert says in response.text
    html5lib.HTMLParser(strict=True).parse(response.text)
    assert api.payment_intents.retrieve(intent.id).status == "requires_payment_method"
    assert arrived(enter(stand_in, intent, "4242424242424242"), intent) == "succeeded"


@pytest.mark.parametrize("number", ["4000002500003155", "4000002760003184"])
@pytest.mark.parametrize(
    ("outcome", "told", "status"),
    [("approve", "succeeded", "succeeded"), ("fail", "failed", "requires_payment_method")],
)
def test_three_d_secure(
    stand_in: StandIn, api: Any, intent: Any, number: str, outcome: str, told: str, status: str
) -> None:
    asked = enter(stand_in, intent, number)
    assert asked.status_code == 303
    url = stand_in.base + asked.headers["Location"]
    page = requests.get(url, timeout=5)
    html5lib.HTMLParser(strict=True).parse(page.text)
    fields = dict(parse_qsl(urlsplit(url).query))
    answer = requests.post(
        url.partition("?")[0], data={**fields, "outcome": outcome}, timeout=5, allow_redirects=False
    )
    assert arrived(answer, intent) == told
    assert api.payment_intents.retrieve(intent.id).status == status


def test_processing_is_decided_by_time(stand_in: StandIn, api: Any, intent: Any) -> None:
    response = enter(stand_in, intent, "4000000000000077")
    assert arrived(response, intent) == "pending"
    assert api.payment_intents.retrieve(intent.id).status == "processing"
    stand_in.post("clock", advance=3_601)
    assert api.payment_intents.retrieve(intent.id).status == "succeeded"


def test_paying_twice_charges_once(stand_in: StandIn, intent: Any) -> None:
    enter(stand_in, intent, "4242424242424242")
    assert arrived(enter(stand_in, intent, "4242424242424242"), intent) == "succeeded"
    assert stand_in.creates("charge") == 1
    assert "完了しています" in ask(stand_in, intent).text


def test_a_get_changes_nothing(stand_in: StandIn, api: Any, intent: Any) -> None:
    ask(stand_in, intent, number="4242424242424242", outcome="approve")
    assert api.payment_intents.retrieve(intent.id).status == "requires_payment_method"


@pytest.mark.parametrize("secret", ["", "wrong", "pi_x_secret_y"])
def test_without_the_secret_there_is_no_page(stand_in: StandIn, intent: Any, secret: str) -> None:
    assert ask(stand_in, intent, client_secret=secret).status_code == 404
    assert enter(stand_in, intent, "4242424242424242", client_secret=secret).status_code == 404


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "data:text/html,x",
        "//evil.example/x",
        "/relative",
        "http://",
        "http://shop.example/\r\nSet-Cookie: a=b",
        "file:///etc/passwd",
    ],
)
def test_only_back_to_the_web(stand_in: StandIn, api: Any, intent: Any, url: str) -> None:
    assert ask(stand_in, intent, return_url=url).status_code == 400
    response = enter(stand_in, intent, "4242424242424242", return_url=url)
    assert response.status_code == 400
    assert "Location" not in response.headers
    assert api.payment_intents.retrieve(intent.id).status == "requires_payment_method"


def test_without_a_return_url_it_ends_on_a_page(stand_in: StandIn, intent: Any) -> None:
    response = enter(stand_in, intent, "4242424242424242", return_url="")
    assert response.status_code == 200
    assert "完了しています" in response.text
