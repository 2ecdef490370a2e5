"""The guest's page of a stay: what it says of money and of the door, in both languages."""

import re
from datetime import timedelta
from uuid import uuid4
from xml.etree.ElementTree import Element

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from portal import clock, seal
from portal.db import SYSTEM
from portal.edges.payments.port import Dispute
from portal.verbs import cash, disputes, keys, stay_changes, stays
from sandbox.watch import statements
from tests.cast import Booked
from tests.web.audit import audit, by_id, form_data, main_of, words
from tests.web.shop import Shop


def read(client: FlaskClient, token: str, lang: str = "en") -> Element:
    answer = client.get(f"/g/{token}?lang={lang}")
    assert answer.status_code == 200
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    page = audit(answer, client, lang)
    robots = [meta.get("content") for meta in page.iter("meta") if meta.get("name") == "robots"]
    assert robots == ["noindex, nofollow"]
    return page


def text_of(page: Element, part: str | None = None) -> str:
    found = main_of(page) if part is None else by_id(page, part)
    assert found is not None
    return words(found)


def shows(answer: TestResponse, pin: str) -> bool:
    """In one piece, or in groups, or spelled, or anywhere in the source."""
    source = answer.get_data(as_text=True)
    seen = re.sub(r"<[^>]*>", "", source)
    return pin in source or pin in seen or " ".join(pin) in seen


def buttons(page: Element) -> list[str]:
    return [words(button) for button in main_of(page).iter("button")]


def paid_in_cash(shop: Shop, booked: Booked, amount: int = 6000) -> None:
    with shop.cast.transaction(booked.facility_id) as tx:
        said = cash.take(tx, SYSTEM, booked.id, amount, uuid4())
    assert said.status == "applied", said


def in_house(shop: Shop, booked: Booked) -> None:
    paid_in_cash(shop, booked)
    shop.take_in(booked)


def test_what_is_booked_and_what_is_owed(shop: Shop, client: FlaskClient, lang: str) -> None:
    tomorrow = clock.now() + timedelta(days=1)
    booked = shop.cast.book(
        starts_at=tomorrow, ends_at=tomorrow + timedelta(days=2), deposit_due=2000, plan="night"
    )
    page = read(client, booked.token, lang)
    text = text_of(page)
    if lang == "en":
        assert words(next(page.iter("header"))).startswith("Haneda Capsule Hotel")
        assert "2 nights" in text
        assert "Still to pay¥6,000" in text
        assert "Please check in at the desk." in text
        assert buttons(page)[:2] == ["Pay the ¥2,000 deposit by card", "Pay ¥6,000 by card"]
    else:
        assert words(next(page.iter("header"))).startswith("羽田カプセルホテル")
        assert "2泊" in text
        assert "フロントでチェックインしてください" in text
        assert buttons(page) == ["前金￥2,000をカードで支払う", "￥6,000をカードで支払う"]
    assert by_id(page, "door-code") is None


@pytest.mark.parametrize(("nights", "en", "ja"), [(1, "1 night", "1泊"), (2, "2 nights", "2泊")])
def test_h11_nights(
    shop: Shop, client: FlaskClient, lang: str, nights: int, en: str, ja: str
) -> None:
    begins = clock.day_bounds(clock.local_day(clock.now(), "Asia/Tokyo"), "Asia/Tokyo")[1]
    booked = shop.cast.book(
        starts_at=begins + timedelta(hours=15), ends_at=begins + timedelta(days=nights, hours=10)
    )
    text = text_of(read(client, booked.token, lang))
    assert (en if lang == "en" else ja) in text
    assert lang == "ja" or "1 nights" not in text


def test_a_stay_within_a_day_counts_no_nights(shop: Shop, client: FlaskClient) -> None:
    begins = clock.day_bounds(clock.local_day(clock.now(), "Asia/Tokyo"), "Asia/Tokyo")[1]
    booked = shop.cast.book(starts_at=begins, ends_at=begins + timedelta(hours=3))
    assert "night" not in text_of(read(client, booked.token, "en"))


def test_the_deposit_alone_when_it_is_all(shop: Shop, client: FlaskClient) -> None:
    booked = shop.cast.book(price=2000, deposit_due=2000)
    assert buttons(read(client, booked.token))[:1] == ["Pay ¥2,000 by card"]


def test_c4_too_little_for_a_card_is_said_before_paying(
    shop: Shop, client: FlaskClient, lang: str
) -> None:
    booked = shop.cast.book(price=49)
    page = read(client, booked.token, lang)
    assert ("cash at the desk" if lang == "en" else "フロントで現金") in text_of(page)
    assert not any("49" in words for words in buttons(page))
    free = shop.cast.book(price=0, space="A02")
    assert "To pay" not in text_of(read(client, free.token, "en"))


def test_every_entry_can_be_opened(shop: Shop, client: FlaskClient, lang: str) -> None:
    booked = shop.cast.book()
    paid_in_cash(shop, booked, 1000)
    page = read(client, booked.token, lang)
    details = next(main_of(page).iter("details"))
    assert ("Paid in cash" if lang == "en" else "現金払い") in words(details)
    assert "-" in words(details)


@pytest.mark.parametrize("status", ["needs_response", "won"])
def test_what_the_bank_took_is_told_and_adds_up(
    shop: Shop, client: FlaskClient, lang: str, status: str
) -> None:
    """And once it is given back, the stay is paid again."""
    booked = shop.cast.book()
    payment = shop.open_payment(booked)
    shop.tell(booked, payment, "succeeded")
    for word in ("needs_response", status):
        told = Dispute(
            "du_1", word, 6000, "JPY", "pi_1", word == "won", "fraudulent", None, False, clock.now()
        )  # fmt: skip
        with shop.cast.transaction(booked.facility_id) as tx:
            disputes.hear(tx, payment, told)
    page = read(client, booked.token, lang)
    details = words(next(main_of(page).iter("details")))
    assert {"ja": "カード会社による回収", "en": "Taken back by your card's bank"}[lang] in details
    back = {"ja": "カード会社からの返還", "en": "Given back by your card's bank"}[lang]
    assert (back in details) == (status == "won")
    due = {"ja": "￥6,000をカードで支払う", "en": "Pay ¥6,000 by card"}[lang]
    assert (due in buttons(page)) == (status != "won")
    returned = {"ja": "返金済み", "en": "Given back"}[lang]
    facts = [words(one) for one in main_of(page).iter("dt")]
    assert (returned in facts) == (status != "won"), "price, paid and given back add up"


def test_cash_over_is_handed_out_at_the_desk(shop: Shop, client: FlaskClient, lang: str) -> None:
    booked = shop.cast.book()
    paid_in_cash(shop, booked)
    with shop.cast.transaction(booked.facility_id) as tx:
        stays.cancel(tx, SYSTEM, booked.id, 1, 0)
    text = text_of(read(client, booked.token, lang))
    assert (
        "Please ask at the desk for the ¥6,000" if lang == "en" else "￥6,000は、フロント"
    ) in text


# The door -------------------------------------------------------------------------------------


def test_the_code_is_shown_once_the_lock_confirmed_it(
    shop: Shop, client: FlaskClient, lang: str
) -> None:
    booked = shop.cast.book()
    in_house(shop, booked)
    pin = shop.pin(booked)
    before = client.get(f"/g/{booked.token}?lang={lang}")
    assert not shows(before, pin)
    assert ("is being prepared" if lang == "en" else "準備しています") in words(
        main_of(audit(before, client, lang))
    )
    shop.lock_says(booked, "set")
    page = read(client, booked.token, lang)
    code = by_id(page, "door-code")
    assert code is not None
    assert code.get("aria-hidden") == "true"
    assert words(code) == pin
    assert " ".join(pin) in text_of(page, "door")
    assert [words(group) for group in code] == [pin[:3], pin[3:]]


@pytest.mark.parametrize(
    ("state", "en", "ja"),
    [
        ("missing", "not on the lock any more", "錠から消えています"),
        ("failed", "There is no door code yet", "暗証番号がまだありません"),
        ("revoking", "The lock is removing your door code", "削除しています"),
        ("revoked", "no longer works", "使えなくなりました"),
    ],
)
def test_no_code_in_any_other_state(
    shop: Shop, client: FlaskClient, lang: str, state: str, en: str, ja: str
) -> None:
    booked = shop.cast.book()
    in_house(shop, booked)
    pin = shop.pin(booked)
    if state == "failed":
        shop.lock_says(booked, "unset", "code_invalid")
    else:
        shop.lock_says(booked, "set")
    if state == "missing":
        shop.lock_says(booked, None)
    if state in ("revoking", "revoked"):
        shop.depart(booked)
    if state == "revoked":
        shop.lock_says(booked, None)
    assert shop.key(booked).state == state
    answer = client.get(f"/g/{booked.token}?lang={lang}")
    text = words(main_of(audit(answer, client, lang)))
    assert (en if lang == "en" else ja) in text
    assert not shows(answer, pin)


def test_no_code_outside_its_window(shop: Shop, client: FlaskClient, lang: str) -> None:
    booked = shop.cast.book()
    in_house(shop, booked)
    shop.lock_says(booked, "set")
    pin, key = shop.pin(booked), shop.key(booked)
    for moment in (key.starts_at - timedelta(seconds=1), key.ends_at):
        clock.set_source(lambda at=moment: at)
        answer = client.get(f"/g/{booked.token}?lang={lang}")
        audit(answer, client, lang)
        assert not shows(answer, pin)
    clock.set_source(lambda: key.ends_at - timedelta(seconds=1))
    assert shows(client.get(f"/g/{booked.token}"), pin)


def test_while_the_lock_is_told_of_new_times_no_end_is_promised(
    shop: Shop, client: FlaskClient, lang: str
) -> None:
    booked = shop.cast.book()
    in_house(shop, booked)
    shop.lock_says(booked, "set")
    with shop.cast.transaction(booked.facility_id) as tx:
        stay = tx.row("select * from stays where id = :id", id=booked.id)
        said = stay_changes.change_times(
            tx,
            SYSTEM,
            booked.id,
            stay.version,
            stay.starts_at,
            stay.ends_at + timedelta(hours=2),
            0,
        )
    assert said.status == "applied", said
    door = text_of(read(client, booked.token, lang), "door")
    assert ("your time has changed" if lang == "en" else "変更後の時間") in door
    assert ("Works until" if lang == "en" else "まで使えます") not in door
    assert by_id(read(client, booked.token, lang), "door-code") is not None


def test_a_reissued_code_hides_the_old_one(shop: Shop, client: FlaskClient) -> None:
    booked = shop.cast.book()
    in_house(shop, booked)
    shop.lock_says(booked, "set")
    old = shop.pin(booked)
    with shop.cast.transaction(booked.facility_id) as tx:
        seen = tx.scalar("select version from stays where id = :id", id=booked.id)
        assert keys.reissue(tx, SYSTEM, booked.id, seen).status == "applied"
    answer = client.get(f"/g/{booked.token}?lang=en")
    assert not shows(answer, old)
    assert "is being prepared" in answer.get_data(as_text=True)


@pytest.mark.parametrize("end", ["cancelled", "no_show"])
def test_a_stay_that_will_not_be(shop: Shop, client: FlaskClient, lang: str, end: str) -> None:
    booked = shop.cast.book()
    with shop.cast.transaction(booked.facility_id) as tx:
        if end == "cancelled":
            said = stays.cancel(tx, SYSTEM, booked.id, 1, 0)
        else:
            said = stays.mark_no_show(tx, SYSTEM, booked.id, 1)
    assert said.status == "applied", said
    text = text_of(read(client, booked.token, lang), "door")
    expected = {
        ("cancelled", "en"): "This stay is cancelled",
        ("cancelled", "ja"): "キャンセルされています",
        ("no_show", "en"): "You were not here",
        ("no_show", "ja"): "ご到着が確認できませんでした",
    }
    assert expected[end, lang] in text


# Links that open nothing ------------------------------------------------------------------------


def plain(body: str) -> str:
    """Without what differs between any two pages."""
    return re.sub(r'value="[^"]+"', "", body)


@pytest.mark.parametrize("path", ["", "/return", "/pay/3f0c0000-0000-4000-8000-000000000001"])
def test_an_unknown_token_is_any_unknown_address(
    shop: Shop, client: FlaskClient, lang: str, path: str
) -> None:
    client.get(f"/?lang={lang}")
    unknown = client.get("/no/such/page")
    for token in (seal.new_token(), "x", "a" * 5000, "%E3%81%82", "..", "' or 1=1 --"):
        answer = client.get(f"/g/{token}{path}")
        assert answer.status_code == unknown.status_code == 404
        assert plain(answer.get_data(as_text=True)) == plain(unknown.get_data(as_text=True))


@pytest.mark.parametrize("odd", ["%00", "a%00b", "%FF%FE", "%ED%A0%80", "%C0%AF"])
def test_no_address_breaks_the_page(shop: Shop, client: FlaskClient, odd: str) -> None:
    booked = shop.cast.book()
    assert client.get(f"/g/{odd}").status_code == 404
    assert client.get(f"/g/{booked.token}{odd}").status_code == 404
    assert client.get(f"/g/{booked.token}/pay/{odd}").status_code == 404
    assert client.get(f"/g/{booked.token}?lang={odd}").status_code in (200, 400)
    assert client.get(f"/g/{booked.token}/return?since={odd}").status_code in (200, 400)


def test_guessing_links_is_slowed_and_good_links_are_never_counted(
    shop: Shop, client: FlaskClient
) -> None:
    booked = shop.cast.book()
    for _ in range(65):
        assert client.get(f"/g/{booked.token}").status_code == 200
    answers = [client.get(f"/g/{seal.new_token()}").status_code for _ in range(61)]
    assert answers == [404] * 60 + [429]
    audit(client.get(f"/g/{seal.new_token()}"), client)


def test_a_get_changes_nothing(shop: Shop, client: FlaskClient) -> None:
    booked = shop.cast.book(deposit_due=2000)
    payment_id = shop.open_payment(booked, "deposit")
    with statements() as said:
        for path in ("", "/return", "/return?redirect_status=succeeded", f"/pay/{payment_id}"):
            assert client.get(f"/g/{booked.token}{path}").status_code == 200
    writes = [
        s
        for s in said
        if re.search(r"^\s*(insert|update|delete)\b|\b(insert into|delete from)\b", s, re.I)
    ]
    assert writes == []


def test_statements_of_the_page(shop: Shop, client: FlaskClient) -> None:
    booked = shop.cast.book(deposit_due=2000)
    payment_id = shop.open_payment(booked, "deposit")
    client.get(f"/g/{booked.token}")
    for path, most in (("", 8), ("/return", 6), (f"/pay/{payment_id}", 4)):
        with statements() as said:
            client.get(f"/g/{booked.token}{path}")
        assert len(said) <= most, said


# Language -------------------------------------------------------------------------------------


def test_the_language_is_the_guests_until_they_choose(shop: Shop, client: FlaskClient) -> None:
    booked = shop.cast.book(guest=shop.cast.emma)
    audit(client.get(f"/g/{booked.token}", headers={"Accept-Language": "ja"}), client, "en")
    audit(client.get(f"/g/{booked.token}?lang=ja"), client, "ja")
    audit(client.get(f"/g/{booked.token}"), client, "ja")


def test_messages_follow_only_when_asked(shop: Shop, client: FlaskClient, lang: str) -> None:
    other = shop.cast.emma if lang == "ja" else shop.cast.hanako
    booked = shop.cast.book(guest=other)
    page = read(client, booked.token, lang)
    preferred = "select preferred_locale from guests"
    assert shop.scalar(booked, preferred) == other["locale"]
    action = f"/g/{booked.token}/language"
    data = form_data(page, action) | {"lang": lang}
    done = client.post(action, data=data)
    assert (done.status_code, done.location) == (303, f"/g/{booked.token}")
    assert shop.scalar(booked, preferred) == lang
    after = read(client, booked.token, lang)
    assert not any(form.get("action") == action for form in after.iter("form"))
    assert by_id(after, "notices") is not None
    again = client.post(action, data=data)
    assert again.status_code == 303
    assert client.post(action, data=data | {"lang": "xx"}).status_code == 400
    assert client.post(action, data={"lang": "ja"}).status_code == 400
    assert shop.scalar(booked, "select version from guests") == 2


# Ticket books -----------------------------------------------------------------------------------


def test_a_guest_sees_what_is_left_of_a_book_and_until_when(
    shop: Shop, client: FlaskClient, lang: str
) -> None:
    cast = shop.cast
    cast.for_visits(cast.tokyo)
    stay = cast.book(plan="visit", price=1800)
    cast.policy((24, 50, False), plan="visit")
    _, said = cast.sell_tickets(stay, cast.tickets(cast.tokyo))
    page = words(main_of(audit(client.get(f"/g/{stay.token}?lang={lang}"), client, lang)))
    assert said in page
    assert "6,800" in page, "the visit and the book are paid together"
    with cast.transaction(cast.tokyo.id) as tx:
        cash.take(tx, cast.sato.actor, stay.id, 6800, uuid4())
    later = clock.now() + timedelta(days=3)
    used = cast.book(
        plan="visit", price=0, space="A02", ticket=said, starts_at=later, guest=cast.emma
    )
    page = words(main_of(audit(client.get(f"/g/{used.token}?lang={lang}"), client, lang)))
    assert said in page
    assert {"ja": "3枚中2枚", "en": "2 of 3"}[lang] in page
