"""The language of a page, and how money, days and names look in it."""

from datetime import UTC, date, datetime, time

import pytest
from flask import g
from flask_babel import force_locale

from portal.money import EXPONENTS, Money
from portal.web import locale
from tests.cast import Cast
from tests.web.audit import audit, main_of, words

INSTANT = datetime(2026, 3, 31, 15, 30, tzinfo=UTC)  # 00:30 on 1 April in Tokyo


@pytest.mark.parametrize(
    ("header", "wanted"),
    [
        ("ja-JP,en-US;q=0.7,en;q=0.3", "ja"),
        ("en-GB,ja;q=0.9", "en"),
        ("ja-JP;q=0.9,en;q=0.8", "ja"),
        ("en;q=0.2,ja;q=0.1", "en"),
        ("EN-us", "en"),
        ("zh-CN,zh;q=0.9", None),
        ("zh-CN,zh;q=0.9,en;q=0.5", "en"),
        ("", None),
        ("*", None),
        ("ja;q=0,*", "en"),
        ("en;q=0,*", "ja"),
        ("ja;q=0,en;q=0", None),
        ("*;q=0.5,en;q=0.1", "ja"),
        ("fr,*;q=0.5", None),
        ("en-US;q=", None),
        ("en;q=1.5", None),
        ("en;q=-1", None),
        ("en;q=nan", None),
        ("en;q=１", None),
        ("en;level=1;q=0.5,ja;q=0.4", "en"),
        (";;;,,,=", None),
        ("x" * 10_000, None),
        ("en," * 5000, "en"),
    ],
)
def test_h8_accept_language_is_read_by_the_standard(header, wanted):
    assert locale.from_header(header) == wanted


@pytest.mark.parametrize(
    ("header", "wanted"),
    [("en-GB,ja;q=0.9", "en"), ("zh-CN", "ja"), ("", "ja"), ("*", "ja"), ("ja;q=0,*", "en"),
     ("en;q=1.5" * 1200, "ja")],
)  # fmt: skip
def test_h8_the_page_says_what_language_it_is_in(client, header, wanted):
    answered = client.get("/staff/sign-in", headers={"Accept-Language": header})
    audit(answered, client, wanted)
    never = client.get("/never", headers={"Accept-Language": header})
    audit(never, client, wanted)


def test_a_choice_on_the_page_wins_over_the_browser_and_lasts(client):
    english = {"Accept-Language": "en"}
    audit(client.get("/staff/sign-in?lang=ja", headers=english), client, "ja")
    audit(client.get("/staff/sign-in", headers=english), client, "ja")
    audit(client.get("/staff/sign-in?lang=xx", headers=english), client, "ja")
    audit(client.get("/staff/sign-in?lang=en"), client, "en")


def test_a_guests_page_is_in_the_guests_language(trial_cast: Cast):
    booked = trial_cast.book(guest=trial_cast.emma)
    client = trial_cast.app.test_client()
    url = f"/g/{booked.token}/trial"
    audit(client.get(url, headers={"Accept-Language": "ja"}), client, "en")
    audit(client.get(f"{url}?lang=ja"), client, "ja")
    unsaid = trial_cast.book(guest=trial_cast.emma | {"locale": None}, space="A02")
    for header, wanted in (("en", "en"), ("ja", "ja"), ("fr", "ja")):
        fresh = trial_cast.app.test_client()
        page = fresh.get(f"/g/{unsaid.token}/trial", headers={"Accept-Language": header})
        audit(page, fresh, wanted)


def test_an_unspoken_language_gets_the_facilitys(trial_cast: Cast):
    house = trial_cast.open_house("english", "英語の家", "English House", locale="en")
    booked = trial_cast.book(house, trial_cast.emma | {"locale": None})
    client = trial_cast.app.test_client()
    page = client.get(f"/g/{booked.token}/trial", headers={"Accept-Language": "fr"})
    audit(page, client, "en")


def test_staff_keep_their_language_whatever_the_browser_says(cast):
    client = cast.signed_in(cast.sato, locale="ja")
    page = client.get("/staff/facility?lang=en", headers={"Accept-Language": "en"})
    audit(page, client, "ja")
    audit(client.get("/never", headers={"Accept-Language": "en"}), client, "ja")


@pytest.fixture
def speaking(app):
    """speaking("en"): inside, filters write that language on Tokyo's clocks."""

    def speak(lang):
        context = app.test_request_context()
        context.push()
        g.bare = True
        forced = force_locale(lang)
        forced.__enter__()
        opened.append((context, forced))

    opened: list = []
    yield speak
    for context, forced in reversed(opened):
        forced.__exit__(None, None, None)
        context.pop()


@pytest.mark.parametrize(
    ("lang", "amount", "currency", "written"),
    [
        ("ja", 12000, "JPY", "￥12,000"),
        ("en", 12000, "JPY", "¥12,000"),
        ("en", 0, "JPY", "¥0"),
        ("en", -500, "JPY", "-¥500"),
        ("en", 1234567, "USD", "$12,345.67"),
        ("en", 5, "EUR", "€0.05"),
        ("ja", 99_999_999, "JPY", "￥99,999,999"),
    ],
)
def test_money_is_written_from_whole_units(speaking, lang, amount, currency, written):
    speaking(lang)
    assert locale.money(amount, currency) == written
    assert locale.money(Money(amount, currency)) == written


def test_every_supported_currency_can_be_written(speaking):
    speaking("ja")
    for currency in EXPONENTS:
        assert locale.money(100, currency)


def test_days_and_times_are_the_facilitys(speaking, monkeypatch):
    monkeypatch.setattr(locale, "zone", lambda: "Asia/Tokyo")
    speaking("ja")
    assert locale.when(INSTANT) == "2026年4月1日(水) 00:30"
    assert locale.clock_time(time(9, 5)) == "09:05"
    assert locale.iso(INSTANT) == "2026-04-01T00:30:00+09:00"
    speaking("en")
    assert locale.when(INSTANT) == "Wed 1 Apr 2026 00:30"
    assert locale.day(date(2026, 4, 1)) == "Wed 1 Apr 2026"
    assert locale.day(INSTANT) == "Wed 1 Apr 2026"
    assert (locale.when(None), locale.day(None), locale.money(None)) == ("", "", "")


@pytest.mark.parametrize("name", ["abc\u202e", "\u202egro.live", "محمد علي", "\u2067x", "<b>x</b>"])
def test_h17_a_name_cannot_turn_the_line_around_it(trial_cast: Cast, name):
    client = trial_cast.signed_in(trial_cast.sato)
    page = audit(client.get("/staff/trial", query_string={"name": name}), client)
    held = [bdi for bdi in page.iter("bdi") if words(bdi) == " ".join(name.split())]
    assert len(held) == 1
    assert (held[0].tail or "").strip() == "2026"
    assert "<b>x" not in client.get("/staff/trial", query_string={"name": name}).text


def test_h17_a_plain_name_goes_without_turning_marks():
    assert locale.plain_name("a\u202eb\u2066c\u200fd") == "abcd"


def test_h17_a_guests_name_in_heading_and_title(trial_cast: Cast):
    booked = trial_cast.book(guest=trial_cast.emma | {"name": "Eve\u202e"})
    client = trial_cast.app.test_client()
    page = audit(client.get(f"/g/{booked.token}/trial"), client, "en")
    title = next(page.iter("title"))
    assert "\u202e" not in words(title)
    assert "bdi" in [element.tag for element in main_of(page).iter()]
