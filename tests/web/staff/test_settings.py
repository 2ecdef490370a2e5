"""What managers decide about their house."""

import pytest
from flask.testing import FlaskClient

from tests.cast import Cast
from tests.web.audit import by_id, form_data
from tests.web.staff.desk import HTMX, code, look, press, read, text

PAGE = "/staff/settings"
BENEFITS = f"{PAGE}/benefits"


@pytest.fixture
def client(cast: Cast) -> FlaskClient:
    return cast.signed_in(cast.suzuki, cast.tokyo)


def kept(cast: Cast) -> bool:
    with cast.transaction(cast.tokyo.id) as tx:
        return bool(tx.scalar("select benefits_while_past_due from facilities"))


def test_a_manager_decides_and_decides_again(cast: Cast, lang: str) -> None:
    client = cast.signed_in(cast.suzuki, cast.tokyo, locale=lang)
    page = look(client, PAGE, lang)
    assert "while_past_due" not in form_data(page, BENEFITS)
    done = press(client, page, BENEFITS, while_past_due="y")
    assert (done.status_code, done.location) == (303, PAGE)
    page = look(client, PAGE, lang)
    assert code(page) == "SETTINGS_SAVED"
    assert kept(cast)
    box = by_id(page, "while_past_due")
    assert box is not None
    assert box.get("checked") is not None
    again = client.post(BENEFITS, data={**form_data(page, BENEFITS), "while_past_due": "y"})
    assert code(look(client, again.location, lang)) == "SETTINGS_UNCHANGED"
    data = {name: value for name, value in form_data(page, BENEFITS).items() if "past" not in name}
    page = read(client, client.post(BENEFITS, data=data, headers=HTMX), 200)
    assert code(page) == "SETTINGS_SAVED"
    assert not kept(cast)


def test_it_is_the_managers(cast: Cast, client: FlaskClient) -> None:
    """Neither shown nor taken from the front desk, of whichever house."""
    desk = cast.signed_in(cast.sato)
    data = form_data(look(desk, "/staff/facility"), "/staff/facility")
    assert PAGE not in [one.get("href") for one in look(desk, "/staff/").iter("a")]
    assert desk.get(PAGE).status_code == 403
    sent = desk.post(BENEFITS, data={**data, "while_past_due": "y"})
    assert sent.status_code == 403
    assert cast.signed_in(cast.suzuki, cast.osaka).get(PAGE).status_code == 403
    assert PAGE in [one.get("href") for one in look(client, "/staff/").iter("a")]
    assert not kept(cast)


def test_h4_a_page_that_was_open_too_long_decides_nothing(
    cast: Cast, client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = {**form_data(look(client, PAGE), BENEFITS), "while_past_due": "y"}
    monkeypatch.setitem(cast.app.config, "WTF_CSRF_TIME_LIMIT", -1)
    page = read(client, client.post(BENEFITS, data=data), 422)
    box = by_id(page, "while_past_due")
    assert box is not None
    assert box.get("checked") is not None, "what was chosen is kept"
    assert not kept(cast)
    assert "保存する" in text(page)
