"""The deadline of a deposit on the desk's pages: shown where it matters, moved, lifted, missed."""

from datetime import timedelta
from typing import Any

import pytest
from flask.testing import FlaskClient

from portal import clock, formats
from portal.verbs import facts, stays
from sandbox.watch import statements
from tests.cast import Booked, Cast
from tests.outside import Owner
from tests.verbs.test_deposits import DEPOSIT, deadline, overdue, state, waiting
from tests.web.audit import form_data
from tests.web.staff.desk import HTMX, code, has_form, look, pay, press, read, text

SETTINGS = "/staff/settings"
SAVE = f"{SETTINGS}/deposit"
SCRIPT = pytest.mark.parametrize("script", [False, True])


def url(stay: Booked) -> str:
    return f"/staff/stays/{stay.id}"


def said_at(cast: Cast, instant: Any, lang: str) -> str:
    return formats.when(instant, cast.tokyo.zone, lang)


# The house's own word -----------------------------------------------------------------------------


def test_a_manager_says_how_long_bookings_wait(cast: Cast, lang: str) -> None:
    client = cast.signed_in(cast.suzuki, cast.tokyo, locale=lang)
    page = look(client, SETTINGS, lang)
    assert form_data(page, SAVE)["deposit_hours"] == ""
    done = press(client, page, SAVE, deposit_hours="４８")
    assert (done.status_code, done.location) == (303, SETTINGS)
    page = look(client, SETTINGS, lang)
    assert code(page) == "SETTINGS_SAVED"
    assert form_data(page, SAVE)["deposit_hours"] == "48"
    page = read(client, press(client, page, SAVE, headers=HTMX, deposit_hours=""), 200)
    assert (code(page), form_data(page, SAVE)["deposit_hours"]) == ("SETTINGS_SAVED", "")


@pytest.mark.parametrize("typed", ["0", "-1", "8785", "two days"])
def test_what_is_no_number_of_hours_is_shown_again(cast: Cast, typed: str, lang: str) -> None:
    client = cast.signed_in(cast.suzuki, cast.tokyo, locale=lang)
    page = look(client, SETTINGS, lang)
    page = read(client, press(client, page, SAVE, deposit_hours=typed), 422)
    assert form_data(page, SAVE)["deposit_hours"] == typed
    words = "Write a whole number from 1 to 8784" if lang == "en" else "8784"
    assert words in text(page)


# The booking --------------------------------------------------------------------------------------


def test_the_desk_sees_until_when(cast: Cast, owner: Owner, lang: str) -> None:
    stay = waiting(cast)
    client = cast.signed_in(cast.sato, locale=lang)
    when = said_at(cast, deadline(owner, stay), lang)
    shown = text(look(client, url(stay), lang))
    if lang == "en":
        assert f"The booking ends by itself if the deposit does not come by {when}." in shown
    else:
        assert f"{when} までに前金の入金がないと、予約は自動で取り消されます。" in shown
    listed = text(look(client, "/staff/stays", lang))
    assert ("deposit by " if lang == "en" else "前金の期限 ") in listed
    pay(cast, stay, DEPOSIT)
    assert "前金の期限" not in text(look(client, "/staff/stays", lang))
    assert "deposit by" not in text(look(client, "/staff/stays", lang))
    assert f"{url(stay)}/deposit" not in [a.get("href") for a in look(client, url(stay)).iter("a")]


def test_today_shows_who_may_lose_the_booking(cast: Cast, lang: str) -> None:
    waiting(cast, starts_at=clock.now() + timedelta(minutes=1))
    page = look(cast.signed_in(cast.sato, locale=lang), "/staff/", lang)
    assert ("deposit by" if lang == "en" else "前金の期限") in text(page)


@SCRIPT
def test_another_time_is_given(cast: Cast, owner: Owner, script: bool, lang: str) -> None:
    stay, client = waiting(cast), cast.signed_in(cast.sato, locale=lang)
    act = f"{url(stay)}/deposit"
    page = look(client, act, lang)
    later = clock.local(clock.now() + timedelta(days=5), cast.tokyo.zone).replace(
        second=0, microsecond=0
    )
    typed = later.strftime("%Y-%m-%dT%H:%M")
    done = press(client, page, act, headers=HTMX if script else None, deposit_by=typed)
    page = read(client, done, 200) if script else look(client, done.location, lang)
    assert code(page) == "DEPOSIT_DEADLINE_SET"
    assert deadline(owner, stay) == later
    assert ("Another time for the deposit" if lang == "en" else "前金の期限を変更") in text(page)


def test_a_time_that_was_not_touched_is_no_other_time(cast: Cast, owner: Owner) -> None:
    """Its seconds are not on the form."""
    stay, client = waiting(cast), cast.signed_in(cast.sato)
    was = deadline(owner, stay)
    act = f"{url(stay)}/deposit"
    done = press(client, look(client, act), act)
    assert code(look(client, done.location)) == "DEPOSIT_DEADLINE_UNCHANGED"
    assert deadline(owner, stay) == was


@SCRIPT
def test_the_deadline_is_lifted(cast: Cast, owner: Owner, script: bool, lang: str) -> None:
    stay, client = waiting(cast), cast.signed_in(cast.sato, locale=lang)
    page = look(client, f"{url(stay)}/deposit", lang)
    lift = f"{url(stay)}/deposit/lift"
    done = press(client, page, lift, headers=HTMX if script else None)
    page = read(client, done, 200) if script else look(client, done.location, lang)
    assert code(page) == "DEPOSIT_DEADLINE_SET"
    assert deadline(owner, stay) is None
    words = "held without end, also" if lang == "en" else "期限なしでスペースを確保しています"
    assert words in text(page)
    assert not has_form(look(client, f"{url(stay)}/deposit", lang), lift)


@pytest.mark.parametrize("typed", ["", "gestern", "2001-01-01T00:00"])
def test_a_time_that_cannot_be_is_shown_again(cast: Cast, owner: Owner, typed: str) -> None:
    stay, client = waiting(cast), cast.signed_in(cast.sato)
    was, act = deadline(owner, stay), f"{url(stay)}/deposit"
    page = read(client, press(client, look(client, act), act, deposit_by=typed, headers=HTMX), 422)
    assert form_data(page, act)["deposit_by"] == typed
    assert deadline(owner, stay) == was


def test_a_stale_page_moves_no_deadline(cast: Cast, owner: Owner) -> None:
    stay, client = waiting(cast), cast.signed_in(cast.sato)
    was, act = deadline(owner, stay), f"{url(stay)}/deposit"
    page = look(client, act)
    owner.run("update stays set version = version + 1")
    done = read(client, press(client, page, f"{act}/lift", headers=HTMX), 409)
    assert code(done) == "STALE_PAGE"
    assert deadline(owner, stay) == was


def test_the_page_of_a_stay_that_waits_for_nothing_offers_nothing(cast: Cast, lang: str) -> None:
    stay = cast.book()
    act = f"{url(stay)}/deposit"
    page = look(cast.signed_in(cast.sato, locale=lang), act, lang)
    assert not has_form(page, act)


def test_the_end_says_why(cast: Cast, owner: Owner, lang: str) -> None:
    stay = overdue(owner, waiting(cast))
    client: FlaskClient = cast.signed_in(cast.sato, locale=lang)
    late = text(look(client, url(stay), lang))
    assert ("was to come by" if lang == "en" else "を過ぎました") in late
    with cast.transaction(stay.facility_id) as tx:
        held = facts.stay(tx, stay.id)
        assert held is not None
        stays.miss_deposit(tx, cast.sato.actor, held)
    when = said_at(cast, deadline(owner, stay), lang)
    for page in (url(stay), f"/staff/timeline?subject=stay:{stay.id}"):
        shown = text(look(client, page, lang))
        named = f"the deposit did not come by {when}" if lang == "en" else f"{when} までに前金"
        assert named in shown
    assert state(owner, stay) == "cancelled"


def test_the_act_costs_as_much_whatever_the_house_holds(cast: Cast) -> None:
    """Its session, the stay, and nothing for another booking."""
    stay, client = waiting(cast), cast.signed_in(cast.sato)
    look(client, f"{url(stay)}/deposit")
    with statements() as alone:
        look(client, f"{url(stay)}/deposit")
    for space in ("A02", "A03"):
        waiting(cast, space=space)
    with statements() as among:
        look(client, f"{url(stay)}/deposit")
    assert len(among) == len(alone) <= 8, among
