"""What happened, in order, to whatever the desk asks about; and whether a door was open."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from portal import clock, log
from portal.verbs import cash, keys, stay_changes, stays
from sandbox.watch import statements
from tests.cast import Booked
from tests.outside import Owner, deliver
from tests.web.audit import by_id, words
from tests.web.staff.houses import FrontDesk, page, shown

URL = "/staff/timeline"
BUDGET = 8
VERSION = "select version from stays where id = :id"


@pytest.fixture
def stay(front: FrontDesk) -> Booked:
    return front.cast.book(price=10_000, guest=front.cast.emma)


@pytest.fixture
def payment(front: FrontDesk, stay: Booked) -> UUID:
    return front.paid(stay)


@pytest.fixture
def key(front: FrontDesk, stay: Booked, payment: UUID) -> UUID:
    """A whole stay: paid, admitted, the code set, departed, the code gone."""
    found = front.admitted(stay)
    front.work("locks", "keys")
    with front.cast.transaction(stay.facility_id) as tx:
        if tx.scalar("select state from entry_keys where id = :id", id=found) != "issued":
            keys.observe(tx, found, status="set")
        seen = tx.scalar("select version from stays where id = :id", id=stay.id)
        assert stays.depart(tx, front.cast.sato.actor, stay.id, seen).status == "applied"
        keys.observe(tx, found, status=None)
    return found


def of(kind: str, row: UUID) -> str:
    return f"{URL}?subject={kind}:{row}"


def in_order(said: str, *wanted: str) -> None:
    places = [said.find(words) for words in wanted]
    assert -1 not in places, (wanted, said)
    assert places == sorted(places), said


def test_a_stay_from_its_booking_to_its_end(
    front: FrontDesk, stay: Booked, key: UUID, lang: str
) -> None:
    client = front.cast.signed_in(front.cast.sato, locale=lang)
    page(client, of("stay", stay.id), lang)
    if lang == "en":
        said = shown(client, of("stay", stay.id))
        in_order(
            said,
            "Booked",
            "Payment opened",
            "Provider confirmed the payment",
            "Checked in",
            "Lock confirmed the key",
            "Checked out",
            "Lock confirmed the removal",
        )
        assert "Act: admit" in said
        assert "Payment by card -¥10,000" in said


def test_a_payment_with_what_the_provider_said(
    front: FrontDesk, stay: Booked, payment: UUID, lang: str
) -> None:
    """Each event of the provider stands beside what it moved, by its request id."""
    from portal.verbs import refunds

    with front.app.app_context():
        refunds.ask(front.desk(), front.cast.sato.actor, payment, 1000, uuid4())
    client = front.cast.signed_in(front.cast.sato, locale=lang)
    page(client, of("payment", payment), lang)
    said = shown(client, of("payment", payment))
    wanted = {
        "ja": ("支払い手続きを開始", "返金を依頼"),
        "en": ("Payment opened", "Refund asked for", "Refund to the card"),
    }
    in_order(said, *wanted[lang])


def test_a_payment_that_an_event_moved(front: FrontDesk, stay: Booked) -> None:
    from portal.jobs import house
    from tests.outside import pay

    payment = front.opened(stay)
    pay(front.stripe, front.scalar(stay, "select intent_id from payments where id = :id", payment))
    with front.app.app_context():
        house.open_house(front.house)
        with log.request("the-provider-s-request"):
            deliver(front.house, "payment_intent.succeeded")
    client = front.cast.signed_in(front.cast.sato, locale="en")
    said = shown(client, of("payment", payment))
    in_order(
        said, "The provider told us payment_intent.succeeded", "Provider confirmed the payment"
    )
    assert "What the provider told us was applied" in said


def test_a_key_and_its_door(front: FrontDesk, key: UUID, lang: str) -> None:
    client = front.cast.signed_in(front.cast.sato, locale=lang)
    page(client, of("key", key), lang)
    said = shown(client, of("key", key))
    wanted = {
        "ja": ("鍵を手配", "錠が鍵を確認", "錠が削除を確認"),
        "en": ("Key ordered", "Lock confirmed the key", "Lock confirmed the removal"),
    }
    in_order(said, *wanted[lang])


def test_a_message(front: FrontDesk, stay: Booked, owner: Owner, lang: str) -> None:
    message = owner.one("select id from outbox")
    client = front.cast.signed_in(front.cast.sato, locale=lang)
    page(client, of("message", message), lang)
    wanted = {"ja": "送信待ち", "en": "Waiting to be sent"}
    assert wanted[lang] in shown(client, of("message", message))


# Was the door open? -----------------------------------------------------------------------------


def answer(front: FrontDesk, key: UUID, at: datetime, lang: str = "en") -> str:
    """The word that the page answers with."""
    local = clock.local(at, front.cast.tokyo.zone).strftime("%Y-%m-%dT%H:%M")
    client = front.cast.signed_in(front.cast.sato, locale=lang)
    found = page(client, f"{of('key', key)}&at={local}", lang)
    answers = [e.get("data-answer") for e in found.iter() if e.get("data-answer")]
    assert len(answers) == 1
    return str(answers[0])


def test_the_door_at_a_moment(front: FrontDesk, stay: Booked, owner: Owner, lang: str) -> None:
    """Ordered at 10:00, set at 10:02, the stay cut short at 12:30, checked out at 14:00, gone at
    14:05: what the page says of each time between."""
    ten = datetime.fromisoformat("2026-06-10T10:00+09:00")
    booked = front.cast.book(price=0, starts_at=ten, ends_at=ten + timedelta(hours=24), space="A03")
    actor = front.cast.sato.actor

    def at(minutes: int) -> datetime:
        return ten + timedelta(minutes=minutes)

    def version() -> int:
        return int(front.scalar(booked, "select version from stays where id = :id", booked.id))

    clock.set_source(lambda: at(0))
    key = front.admitted(booked)
    clock.set_source(lambda: at(2))
    with front.cast.transaction(booked.facility_id) as tx:
        keys.observe(tx, key, status="set")
    clock.set_source(lambda: at(150))
    seen = version()
    with front.cast.transaction(booked.facility_id) as tx:
        said = stay_changes.change_times(tx, actor, booked.id, seen, ten, at(480), 0)
        assert said.status == "applied"
    clock.set_source(lambda: at(240))
    seen = version()
    with front.cast.transaction(booked.facility_id) as tx:
        stays.depart(tx, actor, booked.id, seen)
    clock.set_source(lambda: at(245))
    with front.cast.transaction(booked.facility_id) as tx:
        keys.observe(tx, key, status=None)
    clock.set_source(None)

    wanted = {
        -1: "absent",
        1: "unconfirmed",
        2: "open",
        200: "open",
        241: "removing",
        245: "removed",
        2000: "removed",
    }
    assert {minutes: answer(front, key, at(minutes), lang) for minutes in wanted} == wanted


def test_why_a_door_was_shut_for_a_guest(front: FrontDesk, owner: Owner, lang: str) -> None:
    """Booked at 9:00, refused at 10:00 as it was unpaid, let in at 10:10, the code set at 10:12,
    moved to another door at 11:00."""
    nine = datetime.fromisoformat("2026-06-10T09:00+09:00")
    cast = front.cast

    def at(minutes: int) -> datetime:
        return nine + timedelta(minutes=minutes)

    def do(minutes: int, verb: Any, *args: Any) -> Any:
        clock.set_source(lambda: at(minutes))
        with cast.transaction(cast.tokyo.id) as tx:
            return verb(tx, cast.sato.actor, *args)

    clock.set_source(lambda: nine)
    stay = cast.book(price=500, starts_at=nine, ends_at=at(600), space="A03")
    do(60, stays.admit, stay.id, 1)
    do(65, cash.take, stay.id, 500, uuid4())
    assert do(70, stays.admit, stay.id, front.scalar(stay, VERSION, stay.id)).status == "applied"
    key = owner.one("select id from entry_keys")
    clock.set_source(lambda: at(72))
    with cast.transaction(cast.tokyo.id) as tx:
        keys.observe(tx, key, status="set")
    seen = front.scalar(stay, VERSION, stay.id)
    do(120, stay_changes.move_to, stay.id, seen, cast.tokyo.spaces["B01"])
    clock.set_source(None)

    client = cast.signed_in(cast.sato, locale=lang)

    def why(minutes: int, door: str) -> tuple[str, str]:
        local = clock.local(at(minutes), cast.tokyo.zone).strftime("%Y-%m-%dT%H:%M")
        url = f"{of('stay', stay.id)}&at={local}&door={cast.tokyo.doors[door]}"
        found = page(client, url, lang)
        (said,) = [e for e in found.iter() if e.get("data-answer")]
        return str(said.get("data-answer")), words(said)

    answers = {
        (minutes, door): why(minutes, door)[0]
        for minutes in (-1, 30, 61, 71, 73, 121)
        for door in ("A03", "B01")
    }
    assert answers == {
        (-1, "A03"): "not_booked",
        (-1, "B01"): "not_booked",
        (30, "A03"): "not_checked_in",
        (30, "B01"): "not_checked_in",
        (61, "A03"): "refused_entry",
        (61, "B01"): "refused_entry",
        (71, "A03"): "unconfirmed",
        (71, "B01"): "elsewhere",
        (73, "A03"): "open",
        (73, "B01"): "elsewhere",
        (121, "A03"): "removing",
        (121, "B01"): "unconfirmed",
    }
    ground = {"ja": "未払いの料金がありました。", "en": "The stay was not paid."}
    assert ground[lang] in why(61, "A03")[1]
    page(client, f"{of('stay', stay.id)}&at=&door=x", lang)
    with statements() as said:
        why(61, "A03")
    assert len(said) <= BUDGET + 2, said


@pytest.mark.parametrize(
    "at", ["", "x", "2026-02-30T10:00", "0001-01-01T00:00", "😀", "2026-06-10"]
)
def test_a_moment_that_is_none_is_told_at_its_field(front: FrontDesk, key: UUID, at: str) -> None:
    client = front.cast.signed_in(front.cast.sato)
    found = page(client, f"{of('key', key)}&at={at}")
    assert by_id(found, "at-error") is not None


def test_what_is_no_subject_of_ours_is_not_found(
    front: FrontDesk, stay: Booked, payment: UUID, key: UUID, owner: Owner
) -> None:
    osaka = front.cast.signed_in(front.cast.tanaka, front.cast.osaka)
    message = owner.one("select id from outbox limit 1")
    for kind, row in (("stay", stay.id), ("payment", payment), ("key", key), ("message", message)):
        assert osaka.get(of(kind, row)).status_code == 404
        assert osaka.get(of(kind, uuid4())).status_code == 404
    for subject in ("", "stay", "stay:", "stay:x", f"door:{uuid4()}", f"{stay.id}", "x" * 5000):
        assert osaka.get(f"{URL}?subject={subject}").status_code == 404
    assert osaka.get(URL).status_code == 404


def test_statements(front: FrontDesk, stay: Booked, payment: UUID, key: UUID) -> None:
    client = front.cast.signed_in(front.cast.sato)
    for url in (
        of("stay", stay.id),
        of("payment", payment),
        f"{of('key', key)}&at=2026-06-10T10:00",
    ):
        with statements() as said:
            client.get(url)
        assert len(said) <= BUDGET, said
