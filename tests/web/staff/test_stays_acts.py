"""What staff do to a stay, with script and without, from a fresh page and from a stale one."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from portal import clock
from portal.verbs import stays
from tests.cast import Booked, Cast
from tests.web.audit import form_data
from tests.web.staff.desk import (
    HTMX,
    NOON,
    admitted,
    at,
    code,
    count,
    look,
    pay,
    press,
    read,
    row,
    text,
)

MODES = pytest.mark.parametrize("script", [False, True])
PLAIN = ("check-in", "check-out", "no-show", "reinstate", "key")
WITH_PAGE = ("cancel", "move", "times")


def url(stay: Booked) -> str:
    return f"/staff/stays/{stay.id}"


def said(client: Any, stay: Booked, answered: Any, status: int, script: bool) -> str | None:
    """The code, wherever it is shown: in the answer, or on the page it leads to."""
    if script:
        return code(read(client, answered, status))
    assert (answered.status_code, answered.location) == (303, url(stay))
    return code(look(client, url(stay)))


def act(client: Any, stay: Booked, name: str, script: bool = False, **changes: Any) -> Any:
    page = look(client, url(stay) if name in PLAIN else f"{url(stay)}/{name}")
    headers = HTMX if script else None
    return press(client, page, f"{url(stay)}/{name}", headers=headers, **changes)


# The acts ------------------------------------------------------------------------------------


@MODES
def test_a_stay_is_checked_in_and_out(cast: Cast, script: bool) -> None:
    stay = cast.book()
    pay(cast, stay, 6000)
    client = cast.signed_in(cast.sato)
    assert said(client, stay, act(client, stay, "check-in", script), 200, script) == "STAY_ADMITTED"
    assert row(cast, stay).state == "admitted"
    assert (
        said(client, stay, act(client, stay, "check-out", script), 200, script) == "STAY_DEPARTED"
    )
    assert row(cast, stay).state == "departed"


@MODES
def test_a_refusal_says_why_and_changes_nothing(cast: Cast, script: bool, lang: str) -> None:
    stay = cast.book()
    client = cast.signed_in(cast.sato, locale=lang)
    answered = act(client, stay, "check-in", script)
    assert said(client, stay, answered, 422, script) == "BALANCE_DUE"
    assert row(cast, stay).state == "reserved"


@MODES
def test_a_missed_stay_is_marked_and_brought_back(cast: Cast, script: bool) -> None:
    stay = cast.book()
    client = cast.signed_in(cast.sato)
    assert said(client, stay, act(client, stay, "no-show", script), 200, script) == "STAY_NO_SHOW"
    again = act(client, stay, "reinstate", script)
    assert said(client, stay, again, 200, script) == "STAY_REINSTATED"


@MODES
def test_a_new_code_is_ordered(cast: Cast, script: bool) -> None:
    stay = admitted(cast)
    client = cast.signed_in(cast.sato)
    assert said(client, stay, act(client, stay, "key", script), 200, script) == "KEY_ORDERED"
    assert count(cast, "entry_keys") == 2


@MODES
def test_a_stay_is_cancelled_for_a_fee_after_its_page_told_what_follows(
    cast: Cast, script: bool, lang: str
) -> None:
    stay = cast.book(deposit_due=2000)
    pay(cast, stay, 6000)
    client = cast.signed_in(cast.sato, locale=lang)
    page = look(client, f"{url(stay)}/cancel", lang)
    assert "6,000" in text(page)
    headers = HTMX if script else None
    answered = press(client, page, f"{url(stay)}/cancel", headers=headers, fee="１，０００")
    assert said(client, stay, answered, 200, script) == "STAY_CANCELLED"
    assert "5,000" in text(look(client, url(stay), lang))


@MODES
def test_a_fee_that_cannot_be_is_told_at_its_form(cast: Cast, script: bool) -> None:
    stay = cast.book()
    client = cast.signed_in(cast.sato)
    for fee in ("-1", "x", "6001", "99999999999", "\x00", "1.5"):
        page = read(client, act(client, stay, "cancel", script, fee=fee), 422)
        assert form_data(page, f"{url(stay)}/cancel")["fee"] == fee.strip("\x00")
    assert row(cast, stay).state == "reserved"


def test_an_empty_fee_is_none(cast: Cast) -> None:
    stay = cast.book()
    client = cast.signed_in(cast.sato)
    act(client, stay, "cancel", fee="")
    assert row(cast, stay).state == "cancelled"


@MODES
def test_a_guest_moves_to_a_free_space(cast: Cast, script: bool, lang: str) -> None:
    stay = cast.book(space="A01")
    cast.book(space="A02")
    client = cast.signed_in(cast.sato, locale=lang)
    page = look(client, f"{url(stay)}/move", lang)
    offered = {b.get("value") for b in page.iter("button") if b.get("name") == "space_id"}
    assert offered == {str(cast.tokyo.spaces[space]) for space in ("A03", "B01")}
    target = str(cast.tokyo.spaces["A03"])
    answered = act(client, stay, "move", script, space_id=target)
    assert said(client, stay, answered, 200, script) == "STAY_MOVED"
    assert row(cast, stay).space_id == cast.tokyo.spaces["A03"]


@MODES
def test_a_space_taken_meanwhile_is_told_with_what_is_still_free(cast: Cast, script: bool) -> None:
    stay = cast.book(space="A01")
    client = cast.signed_in(cast.sato)
    page = look(client, f"{url(stay)}/move")
    cast.book(space="A02")
    headers = HTMX if script else None
    target = str(cast.tokyo.spaces["A02"])
    answered = press(client, page, f"{url(stay)}/move", headers=headers, space_id=target)
    again = read(client, answered, 422)
    assert code(again) == "SPACE_TAKEN"
    assert target not in {b.get("value") for b in again.iter("button")}


@pytest.mark.parametrize(
    "space", ["", "x", "\x00", "00000000-0000-4000-8000-000000000000", "osaka"]
)
def test_no_space_of_ours_is_not_found(cast: Cast, space: str) -> None:
    stay = cast.book(space="A01")
    client = cast.signed_in(cast.sato)
    if space == "osaka":
        space = str(cast.osaka.spaces["S01"])
    assert act(client, stay, "move", space_id=space).status_code == 404
    assert row(cast, stay).version == 1


@MODES
def test_a_stay_is_extended_at_the_plans_price(cast: Cast, script: bool, lang: str) -> None:
    with at(NOON):
        stay = cast.book(plan="night", ends_at=NOON + timedelta(days=1))
        client = cast.signed_in(cast.sato, locale=lang)
        shown = look(client, f"{url(stay)}/times?leave_day=2026-10-13", lang)
        assert "12,000" in text(shown)
        answered = act(client, stay, "times", script, leave_day="2026-10-13")
        assert said(client, stay, answered, 200, script) == "STAY_TIMES_CHANGED"
        now = row(cast, stay)
        assert now.ends_at == NOON + timedelta(days=3)
        assert now.starts_at == NOON - timedelta(minutes=5), "an untouched time stays the instant"
        assert "18,000" in text(look(client, url(stay), lang))


def test_a_written_change_of_price_goes_before_the_plans(cast: Cast) -> None:
    with at(NOON):
        stay = cast.book(plan="night", ends_at=NOON + timedelta(days=2), price=12000)
        client = cast.signed_in(cast.sato)
        act(client, stay, "times", leave_day="2026-10-11", price_change="−2000")
        assert "10,000" in text(look(client, url(stay)))


def test_the_start_of_a_guest_in_house_is_no_longer_asked(cast: Cast) -> None:
    stay = admitted(cast)
    began = row(cast, stay).starts_at
    client = cast.signed_in(cast.sato)
    page = look(client, f"{url(stay)}/times")
    data = form_data(page, f"{url(stay)}/times")
    later = clock.local_day(row(cast, stay).ends_at + timedelta(days=1), cast.tokyo.zone)
    forged = {"leave_day": later.isoformat(), "arrive_day": "2030-01-01", "arrive_time": "01:00"}
    assert client.post(f"{url(stay)}/times", data={**data, **forged}).status_code == 303
    assert code(look(client, url(stay))) == "STAY_TIMES_CHANGED"
    assert row(cast, stay).starts_at == began


IMPOSSIBLE: list[tuple[dict[str, str], str | None]] = [
    ({"leave_day": "2026-10-01"}, "STAY_TIMES_IMPOSSIBLE"),
    ({"leave_day": "2029-01-01"}, "STAY_TIMES_IMPOSSIBLE"),
    ({"leave_day": "2026-10-12", "price_change": "-99999"}, "PRICE_BELOW_ZERO"),
    ({"leave_day": "2026-10-14"}, "SPACE_TAKEN"),
    ({"leave_day": ""}, None),
    ({"leave_day": "x"}, None),
    ({"leave_time": "24:61"}, None),
    ({"arrive_day": "\x00"}, None),
    ({"price_change": "abc"}, None),
    ({"price_change": "9999999999999"}, None),
]


@MODES
def test_times_that_cannot_be_keep_what_was_typed(cast: Cast, script: bool) -> None:
    with at(NOON):
        stay = cast.book(space="A01", ends_at=NOON + timedelta(days=1))
        cast.book(space="A01", starts_at=NOON + timedelta(days=3))
        client = cast.signed_in(cast.sato)
        for changes, refusal in IMPOSSIBLE:
            page = read(client, act(client, stay, "times", script, **changes), 422)
            assert code(page) == refusal
            shown = form_data(page, f"{url(stay)}/times")
            for name, value in changes.items():
                assert shown[name] == value.strip("\x00")
    assert row(cast, stay).version == 1


# Cash ----------------------------------------------------------------------------------------


@MODES
def test_cash_is_taken_once_however_often_the_form_is_sent(cast: Cast, script: bool) -> None:
    stay = cast.book()
    client = cast.signed_in(cast.sato)
    data = form_data(look(client, url(stay)), f"{url(stay)}/cash")
    assert data["amount"] == "6000", "what is due stands there already"
    headers = HTMX if script else None
    answers = [
        said(
            client, stay, client.post(f"{url(stay)}/cash", data=data, headers=headers), 200, script
        )
        for _ in range(2)
    ]
    assert answers == ["CASH_TAKEN", "CASH_ALREADY_BOOKED"]
    assert count(cast, "ledger_lines") == 2


@MODES
def test_cash_is_handed_back_up_to_what_is_owed(cast: Cast, script: bool) -> None:
    stay = cast.book()
    pay(cast, stay, 6000)
    client = cast.signed_in(cast.sato)
    act(client, stay, "cancel", fee="1000")
    action = f"{url(stay)}/cash-back"
    headers = HTMX if script else None
    too_much = press(client, look(client, url(stay)), action, headers=headers, amount="5001")
    page = read(client, too_much, 422)
    assert code(page) == "CASH_EXCEEDS_OWED"
    assert form_data(page, action)["amount"] == "5001"
    done = press(client, look(client, url(stay)), action, headers=headers)
    assert said(client, stay, done, 200, script) == "CASH_RETURNED"


@pytest.mark.parametrize("which", ["cash", "cash-back"])
def test_a_bad_amount_of_cash_books_nothing(cast: Cast, which: str) -> None:
    stay = cast.book()
    client = cast.signed_in(cast.sato)
    data = form_data(look(client, url(stay)), f"{url(stay)}/cash")
    for amount in ("", "0", "-1", "x", "6001", "9" * 20, "\x00", "一"):
        read(client, client.post(f"{url(stay)}/{which}", data={**data, "amount": amount}), 422)
    assert count(cast, "ledger_lines") == 1


# Stale, replayed, forged ---------------------------------------------------------------------


@MODES
@pytest.mark.parametrize("name", ["check-in", "no-show", "cancel", "move", "times"])
def test_h7_an_act_from_a_stale_page_changes_nothing_and_says_what_is_now(
    cast: Cast, name: str, script: bool
) -> None:
    stay = cast.book()
    pay(cast, stay, 6000)
    client = cast.signed_in(cast.sato)
    page = look(client, url(stay) if name in PLAIN else f"{url(stay)}/{name}")
    with cast.transaction(cast.tokyo.id) as tx:
        stays.cancel(tx, cast.suzuki.actor, stay.id, 1)
    changes = {"space_id": str(cast.tokyo.spaces["A03"])} if name == "move" else {}
    headers = HTMX if script else None
    answered = press(client, page, f"{url(stay)}/{name}", headers=headers, **changes)
    if name == "cancel":
        assert said(client, stay, answered, 200, script) == "STAY_ALREADY_CANCELLED"
    else:
        assert said(client, stay, answered, 409, script) in ("STAY_STATE_CHANGED", "STALE_PAGE")
    assert row(cast, stay).state == "cancelled"
    assert count(cast, "entry_keys") == 0


def test_h7_the_conflict_names_the_state_and_who_made_it(cast: Cast, lang: str) -> None:
    stay = cast.book()
    client = cast.signed_in(cast.sato, locale=lang)
    page = look(client, url(stay))
    with cast.transaction(cast.tokyo.id) as tx:
        stays.cancel(tx, cast.suzuki.actor, stay.id, 1)
    answered = press(client, page, f"{url(stay)}/check-in", headers=HTMX)
    told = text(read(client, answered, 409))
    assert "鈴木 愛" in told
    assert ("キャンセル" if lang == "ja" else "Cancelled") in told


def test_h7_of_two_desks_one_checks_in(cast: Cast) -> None:
    stay = cast.book()
    pay(cast, stay, 6000)
    desks = [cast.signed_in(cast.sato), cast.signed_in(cast.suzuki, cast.tokyo)]
    pages = [look(desk, url(stay)) for desk in desks]
    for desk, page in zip(desks, pages, strict=True):
        press(desk, page, f"{url(stay)}/check-in")
    assert [code(look(desk, url(stay))) for desk in desks] == [
        "STAY_ADMITTED",
        "STAY_ALREADY_ADMITTED",
    ]
    assert count(cast, "entry_keys") == 1


@pytest.mark.parametrize("name", [*PLAIN, *WITH_PAGE])
def test_a_form_without_the_version_that_was_seen_is_no_form_of_ours(cast: Cast, name: str) -> None:
    stay = cast.book()
    client = cast.signed_in(cast.sato)
    data = form_data(look(client, f"{url(stay)}/times"), f"{url(stay)}/times")
    data = {**data, "fee": "0", "space_id": str(cast.tokyo.spaces["A03"])}
    del data["version"]
    assert client.post(f"{url(stay)}/{name}", data=data).status_code == 400
    for version in ("", "x", "-1", "1.0", "99999999999", "\x00", "１"):
        answered = client.post(f"{url(stay)}/{name}", data={**data, "version": version})
        assert answered.status_code == 400, version
    assert row(cast, stay).version == 1


@pytest.mark.parametrize("name", [*PLAIN, *WITH_PAGE, "cash", "cash-back"])
def test_another_houses_stay_cannot_be_touched(cast: Cast, name: str) -> None:
    theirs = cast.book(cast.osaka)
    ours = cast.book()
    client = cast.signed_in(cast.sato)
    data = {
        **form_data(look(client, f"{url(ours)}/times"), f"{url(ours)}/times"),
        "fee": "0",
        "space_id": str(cast.osaka.spaces["S02"]),
        "form_key": str(uuid4()),
        "amount": "1",
    }
    statuses = {
        client.post(f"/staff/stays/{stay_id}/{name}", data=data, headers=headers).status_code
        for stay_id in (theirs.id, uuid4())
        for headers in (None, HTMX)
    }
    assert statuses == {404}
    assert row(cast, theirs).version == 1
    assert count(cast, "ledger_lines", cast.osaka) == 1


@pytest.mark.parametrize("name", [*PLAIN, *WITH_PAGE, "cash", "cash-back"])
def test_an_expired_form_does_nothing_and_a_forged_one_less(
    cast: Cast, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stay = cast.book()
    client = cast.signed_in(cast.sato)
    data = {
        **form_data(look(client, f"{url(stay)}/times"), f"{url(stay)}/times"),
        "fee": "0",
        "space_id": str(cast.tokyo.spaces["A03"]),
        "form_key": str(uuid4()),
        "amount": "1",
        "leave_day": "2027-01-01",
    }
    forged = client.post(f"{url(stay)}/{name}", data={**data, "csrf_token": "x"})
    assert forged.status_code == 400
    monkeypatch.setitem(cast.app.config, "WTF_CSRF_TIME_LIMIT", -1)
    assert client.post(f"{url(stay)}/{name}", data=data).status_code in (303, 422)
    assert client.post(f"{url(stay)}/{name}", data=data, headers=HTMX).status_code == 422
    assert row(cast, stay).version == 1
    assert count(cast, "ledger_lines") == 1


@pytest.mark.parametrize("name", [*PLAIN, *WITH_PAGE])
def test_what_cannot_be_done_any_more_is_said(cast: Cast, name: str, lang: str) -> None:
    """Whatever the page hides, the server refuses; and the page before an act says so too."""
    stay = admitted(cast)
    with cast.transaction(cast.tokyo.id) as tx:
        stays.depart(tx, cast.sato.actor, stay.id, 2)
    client = cast.signed_in(cast.sato, locale=lang)
    if name in WITH_PAGE:
        page = look(client, f"{url(stay)}/{name}", lang)
        assert not any(f.get("action") == f"{url(stay)}/{name}" for f in page.iter("form"))
    other = cast.book(space="B01")
    data = form_data(look(client, f"{url(other)}/times"), f"{url(other)}/times")
    more = {"version": "3", "fee": "0", "space_id": str(cast.tokyo.spaces["A03"])}
    done = client.post(f"{url(stay)}/{name}", data={**data, **more}, headers=HTMX)
    assert done.status_code in (200, 409, 422)
    assert row(cast, stay).state == "departed"


def test_an_act_never_leads_elsewhere(cast: Cast) -> None:
    stay = cast.book()
    client = cast.signed_in(cast.sato)
    for to in ("https://evil.example/", "//evil.example", "/\\evil", "\x00", "", "/staff/sign-in"):
        for name in ("no-show", "reinstate"):
            answered = act(client, stay, name, next=to)
            assert (answered.status_code, answered.location) == (303, url(stay))
