"""The demo data: told through the verbs, told once, and never where the world could log in."""

import dataclasses
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from flask import Flask

from portal import clock
from portal.config import Config, UnsafeConfigurationError
from portal.db import transaction
from portal.demo.houses import DEVICES, HOUSES, PASSWORD, PEOPLE, made
from portal.demo.stage import load
from portal.demo.story import ZONE
from portal.web import passwords
from sandbox.stripe import testing as stripe


def rows_of(table: str) -> int:
    total = 0
    for house in HOUSES:
        with transaction(made(house.slug)) as tx:
            total += int(tx.scalar(f"select count(*) from {table}"))
    return total


def states(house: str, table: str = "stays") -> dict[str, int]:
    with transaction(made(house)) as tx:
        found = tx.rows(f"select state, count(*) as many from {table} group by state")
    return {row.state: row.many for row in found}


@pytest.fixture
def local(inside: Flask, configured: Config) -> Config:
    """A portal whose card provider is no stand-in: nobody pays by card."""
    return configured


def test_the_story_is_told_once(local: Config) -> None:
    first = load(local)
    counts = {table: rows_of(table) for table in ("stays", "ledger_lines", "entry_keys")}
    second = load(local)
    assert {table: rows_of(table) for table in counts} == counts
    assert first == second
    assert counts["stays"] <= 80


def test_there_is_somebody_of_every_kind_today(local: Config) -> None:
    load(local)
    haneda = states("haneda-capsule")
    assert haneda["reserved"] >= 5
    assert haneda["admitted"] == 5
    assert (haneda["no_show"], haneda["cancelled"]) == (1, 1)
    assert haneda["departed"] > 20
    day = clock.day_bounds(clock.local_day(clock.now(), ZONE), ZONE)
    with transaction(made("haneda-capsule")) as tx:
        leaving = tx.scalar(
            "select count(*) from stays"
            " where state = 'admitted' and ends_at >= :a and ends_at < :b",
            a=day[0],
            b=day[1],
        )
    assert leaving == 2


@pytest.mark.parametrize("hour", [0, 9, 23])
def test_the_story_holds_at_any_hour(local: Config, hour: int) -> None:
    """Whenever somebody runs the demo, everybody of it is where the story says."""
    now = datetime(2026, 6, 10, hour, 47, tzinfo=UTC) - timedelta(hours=9)
    load(local, now)
    assert states("haneda-capsule")["admitted"] == 5
    assert states("umeda-sauna")["admitted"] == 2
    assert states("umeda-sauna")["reserved"] == 3


def test_another_day_brings_its_own_arrivals(local: Config) -> None:
    now = clock.now()
    first = load(local, now - timedelta(days=3))
    before = rows_of("stays")
    later = load(local, now)
    assert rows_of("stays") > before
    assert later["guest_in_English"] != first["guest_in_English"]


def test_the_past_is_as_the_verbs_leave_it(local: Config) -> None:
    """Every key of somebody who left is gone, every command of theirs done, nothing still owed."""
    load(local)
    with transaction(made("haneda-capsule")) as tx:
        assert not tx.rows(
            """
            select s.id from stays s join entry_keys k on k.stay_id = s.id
            where s.state = 'departed' and k.state <> 'revoked'
            """
        )
        assert not tx.rows(
            """
            select s.id from stays s join ledger_lines l on l.stay_id = s.id
            where s.state = 'departed' group by s.id having sum(l.amount) <> 0
            """
        )
        waiting = tx.scalar(
            """
            select count(*) from lock_commands c join entry_keys k on k.id = c.key_id
            join stays s on s.id = k.stay_id where c.done_at is null and s.state <> 'admitted'
            """
        )
    assert waiting == 0


def test_everybody_can_log_in_with_the_password_that_is_told(local: Config) -> None:
    told = load(local)
    assert [login["email"] for login in told["logins"]] == [person.email for person in PEOPLE]
    with transaction(None) as tx:
        kept = tx.rows("select password_hash from staff")
    assert all(passwords.matches(row.password_hash, PASSWORD) for row in kept)
    assert {login["password"] for login in told["logins"]} == {PASSWORD}


def test_the_doors_are_the_locks_that_make_run_furnishes(local: Config) -> None:
    load(local)
    found: set[str] = set()
    for house in HOUSES:
        with transaction(made(house.slug)) as tx:
            found |= {row.device_id for row in tx.rows("select device_id from doors")}
    assert found == set(DEVICES)


def test_cards_are_paid_at_the_stand_in(local: Config) -> None:
    """Real intents, so that the demo's refunds are real as well."""
    with stripe.running() as stand_in:
        load(dataclasses.replace(local, stripe_api_base=stand_in.base))
        paid = states("haneda-capsule", "payments")
        intents = stand_in.get("objects")["payment_intent"]
    assert paid["succeeded"] >= 8
    with transaction(made("haneda-capsule")) as tx:
        amounts = {
            row.intent_id: row.amount
            for row in tx.rows("select intent_id, amount from payments where state = 'succeeded'")
        }
        owed = tx.rows("select state, amount from refunds")
    known = {intent["id"]: intent["amount_received"] for intent in intents}
    assert {intent: known[intent] for intent in amounts} == amounts
    assert [(row.state, row.amount) for row in owed] == [("asked", 1000)]


def test_a_stay_of_the_guest_link_is_there(local: Config) -> None:
    link = load(local)["guest_in_English"]
    assert link.startswith(f"{local.public_url}/g/")
    with transaction(made("haneda-capsule")) as tx:
        due = tx.scalar(
            """
            select sum(l.amount) from ledger_lines l join stays s on s.id = l.stay_id
            join guests g on g.id = s.guest_id where g.name = 'Emma Smith'
            """
        )
    assert due == 9600


@pytest.mark.parametrize(
    "unsafe",
    [
        {"public_url": "https://portal.example"},
        {"stripe_secret_key": "sk_live_real"},
    ],
)
def test_it_is_refused_where_the_world_could_log_in(local: Config, unsafe: dict[str, str]) -> None:
    with pytest.raises(UnsafeConfigurationError):
        load(dataclasses.replace(local, **unsafe))
    with transaction(UUID(int=0)) as tx:
        assert tx.scalar("select count(*) from staff") == 0
