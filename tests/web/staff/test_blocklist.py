"""The pages on which managers keep the list of who is not let in."""

from typing import Any
from uuid import uuid4

import pytest
from flask.testing import FlaskClient

from sandbox.watch import statements
from tests.cast import Cast
from tests.web.audit import by_id, form_data
from tests.web.staff.desk import code, look, press, read, text

PAGE = "/staff/settings/blocklist"
GROUNDS = f"{PAGE}/grounds"


@pytest.fixture
def client(cast: Cast) -> FlaskClient:
    return cast.signed_in(cast.suzuki, cast.tokyo)


def add(client: FlaskClient, **typed: Any) -> Any:
    named = {"name": "山田 花子", "ground": "備品を壊した", **typed}
    return press(client, look(client, f"{PAGE}/new"), PAGE, **named)


def test_somebody_is_added_seen_and_lifted(cast: Cast, lang: str) -> None:
    client = cast.signed_in(cast.suzuki, cast.tokyo, locale=lang)
    look(client, PAGE, lang)
    page = look(client, GROUNDS, lang)
    words = {"code": "ryokan-5-1-2", "words_ja": "違法行為のおそれ", "words_en": "Unlawful acts"}
    assert press(client, page, GROUNDS, **words).location == GROUNDS
    assert code(look(client, GROUNDS, lang)) == "GROUND_ADDED"
    with cast.transaction(cast.tokyo.id) as tx:
        lawful = tx.scalar("select id from refusal_grounds")
    done = add(
        client,
        variants="Yamada Hanako",
        phone="090-1234-5678",
        email="hanako@guest.example",
        document="TK1234567",
        refusal_ground_id=str(lawful),
        expires="2099-12-31",
    )
    assert (done.status_code, done.location) == (303, PAGE)
    page = look(client, PAGE, lang)
    assert code(page) == "BLOCKLIST_ADDED"
    (link,) = {
        e.get("href") for e in page.iter("a") if str(e.get("href")).startswith(f"{PAGE}/")
    } - {f"{PAGE}/new", GROUNDS}
    assert link is not None
    page = look(client, link, lang)
    assert "備品を壊した" in text(page)
    assert {"ja": "違法行為のおそれ", "en": "Unlawful acts"}[lang] in text(page)
    assert "TK1234567" not in client.get(link).text
    page = read(client, press(client, page, f"{link}/lift"), 422)
    assert by_id(page, "why-error") is not None
    assert press(client, page, f"{link}/lift", why="人違い").location == link
    page = look(client, link, lang)
    assert code(page) == "BLOCKLIST_LIFTED"
    assert "人違い" in text(page)
    retire = f"{GROUNDS}/{lawful}/retire"
    assert press(client, look(client, GROUNDS, lang), retire).location == GROUNDS
    assert code(look(client, GROUNDS, lang)) == "GROUND_RETIRED"
    assert str(lawful) not in client.get(f"{PAGE}/new").text


@pytest.mark.parametrize(
    ("typed", "field"),
    [
        ({"ground": " "}, "ground"),
        ({"phone": "x"}, "phone"),
        ({"refusal_ground_id": str(uuid4())}, "refusal_ground_id"),
        ({"expires": "31"}, "expires"),
    ],
)
def test_what_is_not_right_is_told_at_its_field(
    cast: Cast, client: FlaskClient, typed: dict[str, str], field: str
) -> None:
    page = read(client, add(client, **typed), 422)
    assert by_id(page, f"{field}-error") is not None


def test_an_entry_of_nobody_is_refused_with_what_was_typed(client: FlaskClient) -> None:
    page = read(client, add(client, name="", ground="誰か"), 422)
    assert code(page) == "BLOCKLIST_NAMES_NOBODY"
    assert "誰か" in text(page)


def test_it_is_the_managers(cast: Cast, client: FlaskClient) -> None:
    """Neither shown nor taken from the front desk, of whichever house."""
    add(client)
    with cast.transaction(cast.tokyo.id) as tx:
        entry = tx.scalar("select id from blocklist_entries")
    desk = cast.signed_in(cast.sato)
    token = form_data(look(desk, "/staff/facility"), "/staff/facility")["csrf_token"]
    for url in (PAGE, f"{PAGE}/new", f"{PAGE}/{entry}", GROUNDS):
        assert desk.get(url).status_code == 403
    for url in (PAGE, f"{PAGE}/{entry}/lift", GROUNDS, f"{GROUNDS}/{uuid4()}/retire"):
        assert desk.post(url, data={"csrf_token": token, "version": "1"}).status_code == 403
    assert cast.signed_in(cast.tanaka, cast.osaka).get(f"{PAGE}/{entry}").status_code == 404


def test_the_list_reads_as_much_for_many_as_for_one(client: FlaskClient) -> None:
    def reads() -> int:
        with statements() as said:
            look(client, PAGE)
        return len(said)

    add(client)
    one = reads()
    for number in range(26):
        add(client, name=f"somebody {number}")
    assert reads() == one
    page = look(client, PAGE)
    assert [e for e in page.iter("a") if e.get("rel") == "next"]
