"""The pages on which managers open and change an entrance."""

from datetime import time
from typing import Any
from uuid import uuid4

import pytest
from flask import Flask
from flask.testing import FlaskClient
from flask_babel import Babel
from hypothesis import given, settings
from werkzeug.datastructures import MultiDict

from portal.policies import opening
from portal.policies.opening import ALL_DAY, Stretch, Week
from portal.web.staff import hours
from sandbox.watch import statements
from tests.cast import Cast
from tests.policies.test_opening import weeks
from tests.web.audit import by_id, form_data
from tests.web.staff.desk import code, look, read, text

PAGE = "/staff/settings/entrances"


@pytest.fixture
def client(cast: Cast) -> FlaskClient:
    return cast.signed_in(cast.suzuki, cast.tokyo)


def typed(cast: Cast, client: FlaskClient, **changes: Any) -> MultiDict[str, Any]:
    data = MultiDict(form_data(look(client, f"{PAGE}/new"), PAGE))
    data.setlist("plans", [str(cast.tokyo.plans["night"])])
    data.setlist("doors", [str(cast.tokyo.doors["A01"]), str(cast.tokyo.doors["A02"])])
    named = {"slug": "front", "name_ja": "正面玄関", "name_en": "Front", "mode": "walk_in"}
    for name, value in {**named, **changes}.items():
        data[name] = value
    return data


def test_a_manager_opens_an_entrance_and_changes_it(cast: Cast, lang: str) -> None:
    client = cast.signed_in(cast.suzuki, cast.tokyo, locale=lang)
    look(client, PAGE, lang)
    done = client.post(PAGE, data=typed(cast, client, opens="06:00", closes="02:00"))
    assert (done.status_code, done.location) == (303, PAGE)
    page = look(client, PAGE, lang)
    assert code(page) == "ENTRANCE_CREATED"
    assert {"en": "06:00–02:00 the next day", "ja": "06:00〜翌02:00"}[lang] in text(page)
    (link,) = {
        e.get("href") for e in page.iter("a") if str(e.get("href")).startswith(f"{PAGE}/")
    } - {f"{PAGE}/new"}
    assert link is not None
    page = look(client, link, lang)
    assert [e for e in page.iter("a") if str(e.get("href")).startswith("/e/")], "its tablet's page"
    data = MultiDict(form_data(page, link))
    data.setlist("doors", [])
    data["capacity"] = "12"
    assert client.post(link, data=data).location == PAGE
    with cast.transaction(cast.tokyo.id) as tx:
        assert tx.row("select capacity, version from entrances") == (12, 2)
        assert tx.scalar("select count(*) from doors where entrance_id is not null") == 0
    data["capacity"] = "13"
    page = read(client, client.post(link, data=data), 409)
    assert code(page) == "STALE_PAGE"
    assert "13" in [e.get("value") for e in page.iter("input")]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("closes", "06:00"),
        ("capacity", "0"),
        ("capacity", "999999"),
        ("mode", "anyone"),
        ("slug", "Front Door"),
        ("plans", "00000000-0000-4000-8000-000000000000"),
        ("doors", "x"),
        ("name_ja", " "),
    ],
)
def test_what_is_not_right_is_told_at_its_field(
    cast: Cast, client: FlaskClient, field: str, value: str
) -> None:
    page = read(client, client.post(PAGE, data=typed(cast, client, **{field: value})), 422)
    assert by_id(page, f"{field}-error") is not None
    with cast.transaction(cast.tokyo.id) as tx:
        assert tx.scalar("select count(*) from entrances") == 0


BUSY = {"day_6": "own", "opens_6": "09:00", "closes_6": "02:00", "day_7": "closed"}
"""Every day alike, but longer on a Saturday and closed on Sundays."""


def test_a_week_is_written_read_and_written_again(cast: Cast, lang: str) -> None:
    client = cast.signed_in(cast.suzuki, cast.tokyo, locale=lang)
    data = typed(cast, client, opens="10:00", closes="23:00", **BUSY)
    assert client.post(PAGE, data=data).location == PAGE
    shown = {
        "en": "Mon–Fri 10:00–23:00 Sat 09:00–02:00 the next day Sun Closed all day",
        "ja": "月〜金 10:00〜23:00 土 09:00〜翌02:00 日 休み",
    }
    page = look(client, PAGE, lang)
    assert shown[lang].replace(" ", "") in text(page).replace(" ", "")
    with cast.transaction(cast.tokyo.id) as tx:
        way = tx.row("select id, opens, closes from entrances")
    assert way is not None
    assert opening.week(way.opens, way.closes) == (*(EVENING,) * 5, LATE, None)
    page = look(client, f"{PAGE}/{way.id}", lang)
    assert {name: form_data(page, f"{PAGE}/{way.id}")[name] for name in BUSY} == BUSY
    data = MultiDict(form_data(page, f"{PAGE}/{way.id}"))
    data.setlist("doors", [str(cast.tokyo.doors["A01"]), str(cast.tokyo.doors["A02"])])
    client.post(f"{PAGE}/{way.id}", data=data)
    assert code(look(client, PAGE)) == "ENTRANCE_UNCHANGED"


@pytest.mark.parametrize(
    ("row", "wrong"),
    [
        ({"day_3": "own"}, "opens_3"),
        ({"day_3": "own", "opens_3": "10:00"}, "closes_3"),
        ({"day_3": "own", "opens_3": "10:00", "closes_3": "10:00"}, "closes_3"),
        ({"day_3": "own", "opens_3": "ten", "closes_3": "11:00"}, "opens_3"),
        ({"day_3": "sometimes"}, "day_3"),
    ],
)
def test_a_weekday_that_is_none_is_told_at_its_field(
    cast: Cast, client: FlaskClient, row: dict[str, str], wrong: str
) -> None:
    page = read(client, client.post(PAGE, data=typed(cast, client, **row)), 422)
    assert by_id(page, f"{wrong}-error") is not None
    (details,) = page.iter("details")
    assert details.get("open") is not None


def test_times_of_a_weekday_that_has_none_of_its_own_say_nothing(
    cast: Cast, client: FlaskClient
) -> None:
    """They stay in the browser's fields when another choice is made."""
    rows = {"day_3": "closed", "opens_3": "10:00", "closes_3": "10:00", "opens_4": "ten"}
    assert client.post(PAGE, data=typed(cast, client, **rows)).status_code == 422, "no time at all"
    rows.pop("opens_4")
    assert client.post(PAGE, data=typed(cast, client, **rows)).location == PAGE
    with cast.transaction(cast.tokyo.id) as tx:
        assert tx.scalar("select opens[3] from entrances") is None


def test_an_entrance_that_never_opens_is_not_saved(cast: Cast, lang: str) -> None:
    client = cast.signed_in(cast.suzuki, cast.tokyo, locale=lang)
    closed = {f"day_{n}": "closed" for n in range(1, 8)}
    page = read(client, client.post(PAGE, data=typed(cast, client, **closed)), 422)
    assert code(page) == "ENTRANCE_NEVER_OPENS"
    assert form_data(page, PAGE)["day_7"] == "closed", "what was typed stands there"


EVENING, LATE = Stretch(time(10), time(23)), Stretch(time(9), time(2))


@settings(max_examples=60, deadline=None)
@given(weeks)
def test_the_form_writes_what_it_reads(week: Week) -> None:
    """Whatever week: as the form shows it, it is saved again."""
    app = Flask(__name__)
    app.config["SECRET_KEY"] = "x" * 40
    Babel(app)
    with app.test_request_context():
        form = hours.HoursForm(formdata=MultiDict(hours.of_week(week)))
        always = all(day == ALL_DAY for day in week)
        assert form.week() == (None if always else week)
        assert form.differs == (len(set(week)) > 1)


def test_it_is_the_managers(cast: Cast, client: FlaskClient) -> None:
    data = typed(cast, client)
    desk = cast.signed_in(cast.sato)
    token = form_data(look(desk, "/staff/facility"), "/staff/facility")["csrf_token"]
    for url in (PAGE, f"{PAGE}/new", f"{PAGE}/{uuid4()}"):
        assert desk.get(url).status_code == 403
    forged = data.copy()
    forged["csrf_token"] = token
    assert desk.post(PAGE, data=forged).status_code == 403
    osaka = cast.signed_in(cast.tanaka, cast.osaka)
    client.post(PAGE, data=data)
    with cast.transaction(cast.tokyo.id) as tx:
        mine = tx.scalar("select id from entrances")
    assert osaka.get(f"{PAGE}/{mine}").status_code == 404


def test_the_list_reads_as_much_for_many_as_for_one(cast: Cast, client: FlaskClient) -> None:
    def reads() -> int:
        with statements() as said:
            look(client, PAGE)
        return len(said)

    client.post(PAGE, data=typed(cast, client))
    one = reads()
    for number in range(4):
        more = typed(cast, client, slug=f"way-{number}")
        more.setlist("doors", [])
        assert client.post(PAGE, data=more).status_code == 303
    assert reads() == one
