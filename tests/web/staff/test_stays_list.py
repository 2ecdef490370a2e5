"""The list of stays: found by what a guest says, a page at a time."""

import unicodedata
from datetime import datetime, timedelta
from urllib.parse import quote, urlsplit
from uuid import UUID

import pytest
from flask import Flask
from flask.testing import FlaskClient

from sandbox.watch import statements
from tests.cast import Cast
from tests.web.staff.desk import HTMX, NOON, at, look, row, text

LIST = "/staff/stays"


def found(page) -> list[UUID]:
    """The stays listed, in order."""
    return [
        UUID(link.get("href", "").rsplit("/", 1)[1])
        for link in page.iter("a")
        if link.get("class") == "guest"
    ]


def search(client: FlaskClient, typed: str) -> list[UUID]:
    return found(look(client, f"{LIST}?q={quote(typed)}"))


def link(page, rel: str) -> str | None:
    return next((a.get("href") for a in page.iter("a") if a.get("rel") == rel), None)


def fill(cast: Cast, how_many: int, first: datetime = NOON) -> None:
    """Many stays, an hour apart, by one statement."""
    with cast.transaction(cast.tokyo.id) as tx:
        tx.run(
            """
            with guest as (
                insert into guests (facility_id, name, search_key)
                values (:house, 'Guest', 'guest') returning id
            )
            insert into stays (facility_id, code, guest_id, space_id, space_no, source, state,
                starts_at, ends_at, currency, token_hash, token_sealed, form_key)
            select :house, 'FILL' || n, guest.id, p.id, p.no, 'web', 'reserved',
                   :first + n * interval '1 hour', :first + (n + 1) * interval '1 hour', 'JPY',
                   sha256(n::text::bytea), '', gen_random_uuid()
            from guest, spaces p, generate_series(0, :last) n where p.id = :space
            """,
            house=cast.tokyo.id,
            space=cast.tokyo.spaces["B01"],
            first=first,
            last=how_many - 1,
        )


def test_the_empty_list_says_so(cast: Cast, lang: str) -> None:
    page = look(cast.signed_in(cast.sato, locale=lang), LIST, lang)
    assert found(page) == []
    assert not any(element.tag == "table" for element in page.iter())


def test_what_is_to_come_begins_today_and_the_past_is_before_it(cast: Cast, lang: str) -> None:
    with at(NOON):
        past = cast.book(space="A01", starts_at=NOON - timedelta(days=3))
        today = cast.book(space="A02", starts_at=NOON - timedelta(hours=11))
        coming = cast.book(space="A01", starts_at=NOON + timedelta(days=3))
        client = cast.signed_in(cast.sato, locale=lang)
        page = look(client, LIST, lang)
        before = look(client, link(page, "prev") or "", lang)
        again = look(client, link(before, "next") or "", lang)
    assert found(page) == [today.id, coming.id]
    assert found(before) == [past.id]
    assert found(again) == [today.id, coming.id]


def test_a_stay_is_found_by_everything_a_guest_can_say(cast: Cast) -> None:
    stay = cast.book(space="A02")
    other = cast.book(guest=cast.emma, space="A03")
    client = cast.signed_in(cast.sato)
    code = row(cast, stay).code
    for typed in (
        "山田",
        "山田　花子",
        "やまだ",
        "ヤマダ ハナコ",
        "ﾔﾏﾀﾞ",
        "yamada",
        "090-1234-5678",
        "０９０１２３４５６７８",
        "+81 90 1234 5678",
        "5678",
        code,
        code.lower(),
        code[:4],
        "A02",
        "ａ０２",
    ):
        assert search(client, typed) == [stay.id], typed
    assert search(client, "SMITH") == search(client, "ｓｍｉｔｈ") == [other.id]


def test_h13_kana_width_case_and_variants_find_what_was_stored(cast: Cast, lang: str) -> None:
    guests = {
        "tanaka": {"name": "ﾀﾅｶ ﾊﾅ", "kana": "ﾀﾅｶ ﾊﾅ"},
        "ga": {"name": unicodedata.normalize("NFD", "が")},
        "takahashi": {"name": "髙橋"},
        "smith": {"name": "ＳＭＩＴＨ"},
    }
    made = {
        key: cast.book(guest=guest, space=space)
        for (key, guest), space in zip(guests.items(), cast.tokyo.spaces, strict=True)
    }
    client = cast.signed_in(cast.sato, locale=lang)
    for typed, key in (
        ("タナカ", "tanaka"),
        ("たなか", "tanaka"),
        ("ﾀﾅｶ", "tanaka"),
        ("タナカ　ハナ", "tanaka"),
        ("が", "ga"),
        (unicodedata.normalize("NFD", "が"), "ga"),
        ("ガ", "ga"),
        ("高橋", "takahashi"),
        ("髙橋", "takahashi"),
        ("smith", "smith"),
        ("ＳＭＩＴＨ", "smith"),
    ):
        assert search(client, typed) == [made[key].id], typed
    shown = look(client, f"{LIST}?q={quote('高橋')}", lang)
    assert "髙橋" in text(shown), "the name is shown as it was entered"


def test_h14_wildcards_are_meant_literally(cast: Cast) -> None:
    cast.book(space="A01")
    cast.book(cast.osaka, guest={"name": "100% _ \\"})
    client = cast.signed_in(cast.sato)
    for typed in ("%", "_", "\\", "100%", "%%", "_ _", "\\%", "'", '"; --'):
        assert search(client, typed) == [], typed


def test_h14_a_literal_sign_finds_the_name_that_holds_it(cast: Cast) -> None:
    stay = cast.book(guest={"name": "100% Sauna_Club \\o/"}, space="A01")
    cast.book(space="A02")
    client = cast.signed_in(cast.sato)
    for typed in ("100%", "_club", "\\o"):
        assert search(client, typed) == [stay.id]


def test_another_houses_guests_are_never_found(cast: Cast) -> None:
    theirs = cast.book(cast.osaka)
    client = cast.signed_in(cast.sato)
    for typed in ("山田", "090-1234-5678", row(cast, theirs).code, "S01"):
        assert search(client, typed) == []


def test_states_and_days_filter(cast: Cast, lang: str) -> None:
    with at(NOON):
        one = cast.book(space="A01", starts_at=NOON, ends_at=NOON + timedelta(days=2))
        two = cast.book(space="A02", starts_at=NOON + timedelta(days=1))
        client = cast.signed_in(cast.sato, locale=lang)
        assert found(look(client, f"{LIST}?state=reserved", lang)) == [one.id, two.id]
        assert found(look(client, f"{LIST}?state=cancelled", lang)) == []
        assert found(look(client, f"{LIST}?day=2026-10-10", lang)) == [one.id]
        assert found(look(client, f"{LIST}?day=2026-10-11", lang)) == [one.id, two.id]
        assert found(look(client, f"{LIST}?day=2026-10-13", lang)) == []


def test_e7_a_day_in_the_list_is_the_facilitys(cast: Cast) -> None:
    """23:30 on the 10th in Tokyo is 14:30 UTC; 00:30 on the 11th is still the 10th in UTC."""
    with at(NOON):
        late = cast.book(
            space="A01", starts_at=NOON + timedelta(hours=11), ends_at=NOON + timedelta(hours=11.6)
        )
        early = cast.book(space="A02", starts_at=NOON + timedelta(hours=12.5))
        client = cast.signed_in(cast.sato, locale="en")
        assert found(look(client, f"{LIST}?day=2026-10-10")) == [late.id]
        page = look(client, f"{LIST}?day=2026-10-11")
    assert found(page) == [early.id]
    assert "Sun 11 Oct" in text(page)


MEANINGLESS = [
    "?state=asleep",
    "?day=2026-02-30",
    "?day=9999-01-01",
    "?day=٢٠٢٦-01-01",
    "?after=x",
    "?before=99999999999999999.00000000-0000-0000-0000-000000000000",
    "?after=1.2&before=3.4",
    "?q=" + quote("あ" * 500),
    "?q=" + quote("👨‍👩‍👧‍👦"),
    "?q=" + quote("\u202eabc"),
    "?q=" + quote("a\tb\nc"),
    "?q=%20%20",
    "?unknown=1",
]


def test_a_query_that_means_nothing_is_a_plain_list(cast: Cast) -> None:
    cast.book()
    client = cast.signed_in(cast.sato)
    for query in MEANINGLESS:
        look(client, LIST + query)


def test_what_no_address_of_ours_holds_is_refused_plainly(cast: Cast) -> None:
    client = cast.signed_in(cast.sato)
    for query in ("?q=%00", "?q=%ff%fe", "?state=%00", "?after=%00"):
        assert client.get(LIST + query).status_code == 400


def test_pages_go_both_ways_without_a_gap_or_a_repeat(cast: Cast) -> None:
    with at(NOON):
        fill(cast, 60)
        client = cast.signed_in(cast.sato)
        page = look(client, LIST)
        assert link(page, "prev") is None
        forwards = [found(page)]
        while following := link(page, "next"):
            page = look(client, following)
            forwards.append(found(page))
        backwards = [found(page)]
        while previous := link(page, "prev"):
            page = look(client, previous)
            backwards.insert(0, found(page))
    everyone = [stay for part in forwards for stay in part]
    assert [len(part) for part in forwards] == [25, 25, 10]
    assert len(set(everyone)) == 60
    assert [stay for part in backwards for stay in part] == everyone


def test_a_search_keeps_its_words_from_page_to_page_in_one_order(cast: Cast) -> None:
    with at(NOON):
        fill(cast, 60)
        client = cast.signed_in(cast.sato)
        page = look(client, f"{LIST}?state=reserved&junk=1&q=Guest")
        following = link(page, "next") or ""
        assert urlsplit(following).query.startswith("q=Guest&state=reserved&after=")
        second = look(client, following)
        assert len(found(second)) == 25
        assert (link(second, "prev") or "").startswith(f"{LIST}?q=Guest&state=reserved&before=")
        back = look(client, link(second, "prev") or "")
    assert found(back) == found(page)


@pytest.mark.parametrize("how_many", [1, 500])
def test_the_list_costs_at_most_six_statements(app: Flask, cast: Cast, how_many: int) -> None:
    with at(NOON):
        fill(cast, how_many)
        client = cast.signed_in(cast.sato)
        for query in ("", "?q=Guest", "?q=5678", "?state=reserved", "?day=2026-10-10"):
            with statements() as said:
                page = look(client, LIST + query)
            assert len(said) <= 6, said
            assert not any("count(" in statement for statement in said)
            assert len(found(page)) <= 25


def test_htmx_gets_the_same_page(cast: Cast) -> None:
    cast.book()
    client = cast.signed_in(cast.sato)
    plain = client.get(LIST).get_data(as_text=True)
    part = client.get(LIST, headers=HTMX).get_data(as_text=True)
    assert plain.count("<tr>") == part.count("<tr>")
