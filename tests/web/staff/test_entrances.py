"""The pages on which managers open and change an entrance."""

from typing import Any
from uuid import uuid4

import pytest
from flask.testing import FlaskClient
from werkzeug.datastructures import MultiDict

from sandbox.watch import statements
from tests.cast import Cast
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
    assert "06:00–02:00" in text(page)
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
