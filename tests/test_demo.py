"""The demo data: told through the verbs, told once, and never where the world could log in."""

import dataclasses
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from flask import Flask

from portal import clock, seal
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
    told_of_today()
    told_of_the_past()
    told_of_people(first)
    told_of_doors()
    told_of_the_ways_in()
    told_of_the_link(local, first["guest_in_English"])
    told_of_papers()
    counts = {table: rows_of(table) for table in ("stays", "ledger_lines", "entry_keys", *PAPERS)}
    assert counts["stays"] <= 80
    assert load(local) == first
    assert {table: rows_of(table) for table in counts} == counts


PAPERS = ("documents", "guest_registers", "lodging_tax_tables")


def told_of_papers() -> None:
    """Receipts, an entry in the register, and lodging tax on somebody's account."""
    assert rows_of("documents") >= 3
    assert (rows_of("guest_registers"), rows_of("lodging_tax_tables")) == (1, 1)
    with transaction(made("haneda-capsule")) as tx:
        taxed = tx.scalar("select sum(amount) from ledger_lines where item = 'lodging_tax'")
        assert taxed == 2 * 100
        assert tx.scalar("select tax_number from facilities") is not None


def told_of_today() -> None:
    """There is somebody of every kind."""
    haneda = states("haneda-capsule")
    assert haneda["reserved"] >= 5
    assert haneda["admitted"] == 5
    assert (haneda["no_show"], haneda["cancelled"]) == (1, 2)
    assert rows_of("quota_lines") >= 5
    assert rows_of("cancellation_policies") == len(HOUSES)
    assert haneda["departed"] > 20
    begins, ends = clock.day_bounds(clock.local_day(clock.now(), ZONE), ZONE)
    with transaction(made("haneda-capsule")) as tx:
        leaving = tx.scalar(
            "select count(*) from stays"
            " where state = 'admitted' and ends_at >= :begins and ends_at < :ends",
            begins=begins,
            ends=ends,
        )
    assert leaving == 2


def told_of_the_past() -> None:
    """Every key of somebody who left is gone, every command of theirs done, nothing still owed."""
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
        assert not tx.rows(
            """
            select c.id from lock_commands c join entry_keys k on k.id = c.key_id
            join stays s on s.id = k.stay_id where c.done_at is null and s.state <> 'admitted'
            """
        )


def told_of_people(told: dict[str, Any]) -> None:
    """Everybody can log in with the password that is told."""
    assert [login["email"] for login in told["logins"]] == [person.email for person in PEOPLE]
    assert {login["password"] for login in told["logins"]} == {PASSWORD}
    with transaction(None) as tx:
        kept = tx.rows("select password_hash from staff")
    assert all(passwords.matches(row.password_hash, PASSWORD) for row in kept)


def told_of_doors() -> None:
    """They are the locks that `make run` furnishes."""
    found: set[str] = set()
    for house in HOUSES:
        with transaction(made(house.slug)) as tx:
            found |= {row.device_id for row in tx.rows("select device_id from doors")}
    assert found == set(DEVICES)


def told_of_the_ways_in() -> None:
    """Each door of theirs is behind one, and somebody is not let in."""
    assert rows_of("entrances") == 4
    assert rows_of("blocklist_entries") == 1
    for house in HOUSES:
        with transaction(made(house.slug)) as tx:
            assert tx.scalar("select count(*) from doors where entrance_id is null") == 0


def told_of_the_link(local: Config, link: str) -> None:
    """It opens a stay that is still to be paid."""
    assert link.startswith(f"{local.public_url}/g/")
    with transaction(None) as tx:
        stay = tx.enter(
            "stay_by_token(:hash)",
            hash=seal.token_hash(link.removeprefix(f"{local.public_url}/g/")),
        )
        due = tx.scalar("select sum(amount) from ledger_lines where stay_id = :id", id=stay)
    assert due == 9600


@pytest.mark.parametrize("hour", [0, 23])
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
