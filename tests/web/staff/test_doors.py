"""Doors: wanted against observed, the locks' work, spaces that must wait."""

from uuid import UUID, uuid4

import pytest

from portal.verbs import keys, stays
from sandbox.watch import statements
from tests.cast import Booked
from tests.outside import Owner
from tests.web.audit import form_data
from tests.web.staff.houses import FrontDesk, notice, page, send, shown

DOORS = "/staff/doors"
BUDGET = 8


@pytest.fixture
def stay(front: FrontDesk) -> Booked:
    return front.cast.book(price=0, guest=front.cast.hanako)


@pytest.fixture
def key(front: FrontDesk, stay: Booked) -> UUID:
    """Of a guest in house, ordered and not yet set."""
    return front.admitted(stay)


def departed(front: FrontDesk, stay: Booked) -> None:
    with front.cast.transaction(stay.facility_id) as tx:
        seen = tx.scalar("select version from stays where id = :id", id=stay.id)
        assert stays.depart(tx, front.cast.sato.actor, stay.id, seen).status == "applied"


def test_the_doors_in_both_languages(front: FrontDesk, key: UUID, lang: str) -> None:
    client = front.cast.signed_in(front.cast.sato, locale=lang)
    page(client, DOORS, lang)
    said = shown(client, DOORS)
    assert "山田 花子" in said
    assert {"ja": "A01の扉", "en": "Door A01"}[lang] in said
    assert {"ja": "鍵を設定", "en": "Set the key"}[lang] in said


def test_a_house_without_doors(front: FrontDesk, lang: str) -> None:
    empty = front.cast.open_house("empty", "空", "Empty", spaces=())
    person = front.cast.hire("nobody@monban.example", "無", [(empty, "front_desk")])
    page(front.cast.signed_in(person, locale=lang), DOORS, lang)


def test_wanted_against_observed(front: FrontDesk, stay: Booked, key: UUID) -> None:
    """Set by the worker, seen as the controller says; then being removed, and the space waits."""
    client = front.cast.signed_in(front.cast.sato, locale="en")
    assert "Being set" in shown(client, DOORS)
    front.work("locks", "keys")
    departed(front, stay)
    said = shown(client, DOORS)
    assert "Being removed" in said
    assert "Spaces that must wait" in said
    assert "the guest checked out" in said
    assert "Remove the key" in said
    page(client, DOORS)


def test_asking_a_lock_keeps_its_answer(front: FrontDesk, lang: str) -> None:
    client = front.cast.signed_in(front.cast.sato, locale=lang)
    door = front.cast.tokyo.doors["A01"]
    assert {"ja": "未確認", "en": "Not asked yet"}[lang] in shown(client, DOORS)
    done = send(client, DOORS, f"{DOORS}/{door}/ask")
    assert notice(client, done) == "LOCK_ANSWERED"
    said = shown(client, DOORS)
    assert {"ja": "オンライン", "en": "Online"}[lang] in said
    assert "90%" in said


def test_an_offline_lock_and_one_that_nobody_knows(front: FrontDesk) -> None:
    client = front.cast.signed_in(front.cast.sato, locale="en")
    door = front.cast.tokyo.doors["A01"]
    front.seam.control("devices/haneda-capsule-a01", {"online": False})
    send(client, DOORS, f"{DOORS}/{door}/ask")
    assert "Offline" in shown(client, DOORS)
    with front.cast.transaction(front.cast.tokyo.id) as tx:
        tx.run("update doors set device_id = 'nowhere' where id = :id", id=door)
    done = send(client, DOORS, f"{DOORS}/{door}/ask", htmx=True)
    assert done.status_code == 422
    assert notice(client, done) == "LOCK_NOT_THERE"


def test_the_page_needs_no_controller(front: FrontDesk, key: UUID) -> None:
    client = front.cast.signed_in(front.cast.sato)
    front.seam.control("down", {"down": True})
    page(client, DOORS)
    door = front.cast.tokyo.doors["A01"]
    done = send(client, DOORS, f"{DOORS}/{door}/ask")
    front.seam.control("down", {"down": False})
    assert notice(client, done) == "LOCK_UNAVAILABLE"


def test_a_command_that_was_given_up_is_asked_again(
    front: FrontDesk, stay: Booked, key: UUID, owner: Owner
) -> None:
    owner.run("update lock_commands set dead_at = now(), attempts = 20, last_error = 'Unreachable'")
    client = front.cast.signed_in(front.cast.sato, locale="en")
    said = shown(client, DOORS)
    assert "Given up" in said
    assert "20 attempts" in said
    command = owner.one("select id from lock_commands")
    action = f"{DOORS}/commands/{command}/again"
    form = form_data(page(client, DOORS), action)
    assert notice(client, client.post(action, data=form)) == "LOCK_ASKED_AGAIN"
    assert notice(client, client.post(action, data=form)) == "LOCK_NOT_STUCK"
    front.work("locks")
    assert owner.one("select done_at is not null from lock_commands")


def test_a_refused_key_stays_in_sight_until_a_new_one_is_ordered(
    front: FrontDesk, stay: Booked, key: UUID
) -> None:
    client = front.cast.signed_in(front.cast.sato, locale="en")
    with front.cast.transaction(stay.facility_id) as tx:
        keys.refuse(tx, key, "code_invalid")
    assert "Refused by the lock" in shown(client, DOORS)
    with front.cast.transaction(stay.facility_id) as tx:
        seen = tx.scalar("select version from stays where id = :id", id=stay.id)
        keys.reissue(tx, front.cast.sato.actor, stay.id, seen)
    assert "Refused by the lock" not in shown(client, DOORS)


def test_what_is_anothers_is_not_found(front: FrontDesk, key: UUID, owner: Owner) -> None:
    osaka = front.cast.signed_in(front.cast.tanaka, front.cast.osaka)
    assert "山田" not in shown(osaka, DOORS)
    token = {"csrf_token": form_data(page(osaka, "/staff/facility"))["csrf_token"]}
    command = owner.one("select id from lock_commands")
    for action in (
        f"{DOORS}/{front.cast.tokyo.doors['A01']}/ask",
        f"{DOORS}/commands/{command}/again",
        f"{DOORS}/{uuid4()}/ask",
        f"{DOORS}/commands/{uuid4()}/again",
        f"{DOORS}/none/ask",
    ):
        assert osaka.post(action, data=token).status_code == 404


def test_statements(front: FrontDesk, key: UUID) -> None:
    front.admitted(front.cast.book(price=0, space="A02"))
    client = front.cast.signed_in(front.cast.sato)
    with statements() as said:
        client.get(DOORS)
    assert len(said) <= BUDGET, said
