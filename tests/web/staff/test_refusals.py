"""The page of what the gate refused."""

from typing import get_args
from uuid import UUID, uuid4

import pytest
from flask.testing import FlaskClient

from portal.db import Actor
from portal.gates.checkin import RuleName
from portal.outcome import Code, Refused
from portal.verbs import bookings, kiosk, stay_changes, stays
from portal.verbs.guests import NewGuest
from portal.web import words
from portal.web.staff import refusals
from sandbox.watch import statements
from tests.cast import Cast
from tests.outside import Owner
from tests.verbs.test_blocklist import added, ground
from tests.verbs.test_entrances import opened
from tests.verbs.test_gate import do, entrance, walk_in
from tests.web.staff.desk import look, text

PAGE = "/staff/refusals"


@pytest.fixture
def client(cast: Cast) -> FlaskClient:
    return cast.signed_in(cast.sato, cast.tokyo, locale="en")


def rows_of(client: FlaskClient, query: str = "", lang: str | None = None) -> list[str]:
    page = look(client, PAGE + query, lang)
    bodies = list(page.iter("tbody"))
    return [" ".join("".join(row.itertext()).split()) for body in bodies for row in body.iter("tr")]


def links(client: FlaskClient, start: str) -> list[str]:
    found = [str(a.get("href")) for a in look(client, PAGE).iter("a")]
    return [href for href in found if href.startswith(start)]


def of_every_kind(cast: Cast) -> tuple[UUID, UUID, UUID]:
    """A booking at a tablet, a check-in and a move, each refused; then a listed guest let in, the
    latest. The entrances, and the stay that was asked to come in."""
    doors = cast.tokyo.doors
    front = entrance(cast, doors=frozenset({doors["A01"], doors["A02"], doors["A03"]}))
    back = opened(
        cast, "back", week=None, doors=frozenset({doors["B01"]}), name_en="Back door",
        name_ja="裏口", mode="reservation_only", plans=frozenset(),
    )  # fmt: skip
    with cast.transaction(cast.tokyo.id) as tx:
        tablet = Actor("guest", None, "正面玄関")
        wanted = kiosk.WalkIn(uuid4(), NewGuest(**cast.hanako), cast.tokyo.plans["nap"], 2)
        added(cast, name="山田 花子", ground="備品を壊した")
        said = kiosk.walk_in(tx, tablet, front, uuid4().hex, wanted)
        assert said == Refused(Code.GUEST_BLOCKED), said
    unpaid = cast.book(plan="night", guest=cast.emma)
    assert do(cast, stays.admit, unpaid.id, 1).code == Code.BALANCE_DUE
    moved = do(cast, stay_changes.move_to, unpaid.id, 1, cast.tokyo.spaces["B01"])
    assert moved.code == Code.PLAN_NOT_IN_CONFIG
    listed = cast.book(plan="night", price=0, space="A02")
    assert do(cast, stays.admit, listed.id, 1).code == Code.STAY_ADMITTED_THOUGH_LISTED
    return front, back, unpaid.id


def test_every_refusal_is_listed_the_latest_first(cast: Cast, lang: str) -> None:
    _, _, unpaid = of_every_kind(cast)
    client = cast.signed_in(cast.sato, cast.tokyo, locale=lang)
    found = rows_of(client, lang=lang)
    says = {
        "en": [
            ("Front", "Check-in", "Let in all the same", "Blocklist, without a ground", "Staff"),
            ("Back door", "Another space", "not sold", "Plans that are sold here", "Staff"),
            ("Front", "Check-in", "not paid", "Payment", "Emma Smith"),
            ("Front", "A booking", "The blocklist named the guest.", "Tablet", "–"),
        ],
        "ja": [("正面玄関", "チェックイン"), ("裏口",), ("Emma Smith",), ("正面玄関", "端末")],
    }[lang]
    assert len(found) == len(says)
    for row, parts in zip(found, says, strict=True):
        assert [part for part in parts if part not in row] == [], row
    assert f"/staff/stays/{unpaid}" in links(client, "/staff/stays/")


def test_the_ground_is_for_whom_the_blocklist_is(cast: Cast) -> None:
    """The desk learns that the list named somebody and not what stands on it, nor its address."""
    lawful = ground(cast)
    entry = added(cast, name="山田 花子", ground="備品を壊した", refusal_ground_id=lawful)
    assert do(cast, bookings.create, walk_in(cast)).code == Code.GUEST_BLOCKED
    desk = cast.signed_in(cast.sato, cast.tokyo, locale="ja")
    manager = cast.signed_in(cast.suzuki, cast.tokyo, locale="ja")
    secret = ("備品を壊した", "賭博その他の違法行為", str(entry))
    body = desk.get(PAGE).get_data(as_text=True)
    assert "GUEST" not in body
    assert [one for one in secret if one in body] == []
    assert len(rows_of(desk)) == 1
    body = manager.get(PAGE).get_data(as_text=True)
    assert [one for one in secret if one not in body] == []
    assert links(manager, "/staff/settings/blocklist/") == [f"/staff/settings/blocklist/{entry}"]


def test_it_is_found_by_entrance_and_by_rule(cast: Cast, client: FlaskClient) -> None:
    front, back, _ = of_every_kind(cast)
    assert len(rows_of(client, f"?entrance={front}")) == 3
    assert len(rows_of(client, f"?entrance={back}")) == 1
    assert len(rows_of(client, "?rule=settled")) == 1
    assert rows_of(client, f"?entrance={back}&rule=settled") == []
    assert "like this" in text(look(client, f"{PAGE}?entrance={back}&rule=settled"))
    for nonsense in (
        "rule=x",
        "entrance=x",
        "after=x",
        "before=999",
        "after=-1",
        "after=" + "9" * 40,
    ):
        assert len(rows_of(client, f"?{nonsense}")) in (0, 4), nonsense


def test_pages_follow_one_another(cast: Cast, client: FlaskClient, owner: Owner) -> None:
    """Each row once, forwards and back, also where many were refused at one instant; a filter goes
    with them; nothing is counted and no row asks a question of its own."""
    way = entrance(cast)
    owner.run(
        """
        insert into gate_audits (facility_id, entrance_id, asks, code, rule, digest, actor_kind,
            actor_name, request_id, at)
        select %s, case when n %% 2 = 0 then %s::uuid end, 'booking', 'ENTRANCE_FULL', 'capacity',
               '', 'staff', 'n' || n, '', now() - interval '1 hour' * (n / 10)
        from generate_series(1, 60) n
        """,
        cast.tokyo.id,
        way,
    )

    def walk(query: str) -> list[list[str]]:
        pages, url = [], f"{PAGE}?{query}"
        while url:
            page = look(client, url)
            pages.append([str(e.text) for e in page.iter("bdi") if str(e.text).startswith("n")])
            nexts = [str(a.get("href")) for a in page.iter("a") if a.get("rel") == "next"]
            backs.append([str(a.get("href")) for a in page.iter("a") if a.get("rel") == "prev"])
            url = nexts[0] if nexts else ""
        return pages

    backs: list[list[str]] = []
    pages = walk("rule=capacity")
    assert [len(found) for found in pages] == [25, 25, 10]
    assert len({one for found in pages for one in found}) == 60
    (back,) = backs[-1]
    again = [str(e.text) for e in look(client, back).iter("bdi") if str(e.text).startswith("n")]
    assert again == pages[1]
    assert [len(found) for found in walk(f"entrance={way}")] == [25, 5]
    with statements() as full:
        look(client, PAGE)
    with statements() as empty:
        look(client, f"{PAGE}?rule=space")
    assert len(full) == len(empty) <= 6, full
    assert not [one for one in full if "count(" in one]


def test_another_houses_refusals_are_its_own(cast: Cast, owner: Owner) -> None:
    of_every_kind(cast)
    osaka = cast.signed_in(cast.tanaka, cast.osaka)
    newest = owner.one("select max(id) from gate_audits")
    for query in ("", f"?after={newest + 1}", f"?before={newest - 1}", f"?after={newest}"):
        assert rows_of(osaka, query) == []


def test_everything_the_gate_says_has_words() -> None:
    """A rule that is added is named here, as is the reason that it gives."""
    assert set(refusals.RULES) == {*get_args(RuleName), "blocklist_without_ground"}
    said_at_the_gate = {
        Code.WALK_IN_NOT_ALLOWED, Code.PLAN_NOT_IN_CONFIG, Code.MEMBERS_ONLY_PLAN,
        Code.MEMBERSHIP_PAUSED, Code.GUEST_BLOCKED, Code.ENTRANCE_CLOSED, Code.ENTRANCE_FULL,
        Code.STAY_NOT_YET_OPEN, Code.STAY_WINDOW_OVER, Code.SPACE_NOT_USABLE, Code.SPACE_TAKEN,
        Code.SPACE_QUARANTINED, Code.REGISTER_MISSING, Code.PAYMENT_UNKNOWN, Code.PAYMENT_PENDING,
        Code.BALANCE_DUE,
    }  # fmt: skip
    assert said_at_the_gate <= set(words.GATE)


def test_it_is_found_where_it_is_looked_for(cast: Cast) -> None:
    manager = cast.signed_in(cast.suzuki, cast.tokyo)
    for url in ("/staff/doors", "/staff/settings/entrances", "/staff/settings/blocklist"):
        hrefs = [str(a.get("href")) for a in look(manager, url).iter("a")]
        assert [one for one in hrefs if one.startswith(PAGE)], url
