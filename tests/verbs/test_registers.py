"""The register of guests: what the law asks for, sealed, read for a reason, gone in time."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from flask import Flask
from sqlalchemy.exc import DBAPIError

from portal import clock
from portal.db import SYSTEM, transaction
from portal.outcome import Applied, Code, Outcome
from portal.policies.register import Entry, missing
from portal.verbs import facilities, registers, stays
from tests.cast import Booked, Cast
from tests.outside import Owner

HERE = Entry("山田 花子", "東京都大田区1-1", "+819012345678", lives_abroad=False)
ABROAD = Entry("Emma Smith", "1 High St, Leeds", "emma@x.example", True, "UK", "AB1234567")


def fill(stay: Booked, entry: Entry = HERE) -> Outcome:
    with transaction(stay.facility_id) as tx:
        return registers.fill(tx, SYSTEM, stay.id, entry)


def kept(stay: Booked) -> Any:
    with transaction(stay.facility_id) as tx:
        return tx.row("select * from guest_registers where stay_id = :id", id=stay.id)


@pytest.fixture
def stay(cast: Cast, inside: Flask) -> Booked:
    return cast.book(plan="night", price=0)


@pytest.mark.parametrize("entry", [HERE, ABROAD], ids=["here", "abroad"])
def test_it_is_sealed_at_rest(stay: Booked, owner: Owner, entry: Entry) -> None:
    assert fill(stay, entry).code == Code.REGISTER_FILLED
    raw = str(owner.rows("select * from guest_registers"))
    for secret in (entry.name, entry.address, "AB1234567", "UK"):
        assert secret not in raw
    told = registers.unsealed(kept(stay))
    assert (told["name"], told["address"], told["contact"]) == (
        entry.name, entry.address, entry.contact,
    )  # fmt: skip
    assert (told["nationality"], told["passport"]) == (entry.nationality, entry.passport)


@pytest.mark.parametrize(
    ("entry", "field"),
    [
        *((replace(HERE, **{name: " "}), name) for name in ("name", "address", "contact")),
        *((replace(ABROAD, **{name: ""}), name) for name in ("nationality", "passport")),
    ],
)  # type: ignore[arg-type]
def test_what_the_law_asks_for_must_be_there(stay: Booked, entry: Entry, field: str) -> None:
    assert missing(entry) == [field]
    assert fill(stay, entry).code == Code.REGISTER_INCOMPLETE
    assert kept(stay) is None


def test_nothing_is_kept_of_a_passport_that_nobody_has_to_show(stay: Booked) -> None:
    fill(stay, replace(ABROAD, lives_abroad=False))
    row = kept(stay)
    assert (row.nationality_sealed, row.passport_sealed) == (None, None)


def test_h1_the_same_again_is_calm_and_a_correction_counts(stay: Booked) -> None:
    codes = [fill(stay).code, fill(stay).code, fill(stay, replace(HERE, address="大阪")).code]
    assert codes == [Code.REGISTER_FILLED, Code.REGISTER_UNCHANGED, Code.REGISTER_FILLED]
    assert kept(stay).version == 2


def test_only_lodging_and_only_while_it_lasts(cast: Cast, inside: Flask) -> None:
    assert fill(cast.book()).code == Code.REGISTER_NOT_NEEDED
    over = cast.book(plan="night", space="A02")
    with transaction(over.facility_id) as tx:
        stays.cancel(tx, SYSTEM, over.id, 1)
    assert fill(over).code == Code.STAY_OVER
    with transaction(cast.osaka.id) as tx:
        assert registers.fill(tx, SYSTEM, over.id, HERE).code == Code.NOT_FOUND


@pytest.mark.parametrize("required", [False, True])
def test_the_gate_asks_for_it_where_the_house_says_so(
    cast: Cast, inside: Flask, required: bool
) -> None:
    lodging = cast.book(plan="night", price=0)
    nap = cast.book(plan="nap", space="A02", price=0)
    with transaction(cast.tokyo.id) as tx:
        said = facilities.require_register(tx, SYSTEM, required)
        assert said.code == (Code.SETTINGS_SAVED if required else Code.SETTINGS_UNCHANGED)

    def admit(stay: Booked) -> Code:
        with transaction(stay.facility_id) as tx:
            return stays.admit(tx, SYSTEM, stay.id, 1).code

    assert admit(nap) == Code.STAY_ADMITTED
    assert admit(lodging) == (Code.REGISTER_MISSING if required else Code.STAY_ADMITTED)
    if required:
        with transaction(cast.tokyo.id) as tx:
            assert tx.scalar("select rule from gate_audits") == "register"
        fill(lodging)
        assert admit(lodging) == Code.STAY_ADMITTED


def test_each_reading_is_recorded_with_its_reason(cast: Cast, stay: Booked) -> None:
    fill(stay)
    day = clock.local_day(clock.now(), "Asia/Tokyo")
    who = cast.suzuki.actor
    with transaction(stay.facility_id) as tx:
        assert registers.open_sealed(tx, who, stay.id, "  ").code == Code.REASON_MISSING
        assert registers.export(tx, who, day, day, "").code == Code.REASON_MISSING
        assert isinstance(registers.open_sealed(tx, who, stay.id, "本人確認"), Applied)
        assert isinstance(registers.export(tx, who, day, day, "保健所 第1号"), Applied)
        found = tx.rows(
            "select kind, reason, actor_name, rows_read from register_readings order by id"
        )
        assert [tuple(row) for row in found] == [
            ("opened", "本人確認", "鈴木 愛", 1),
            ("exported", "保健所 第1号", "鈴木 愛", 1),
        ]
    with pytest.raises(DBAPIError, match="permission denied"), transaction(stay.facility_id) as tx:
        tx.run("delete from register_readings")


def test_what_is_not_there_is_not_opened(cast: Cast, stay: Booked) -> None:
    with transaction(stay.facility_id) as tx:
        assert registers.open_sealed(tx, SYSTEM, stay.id, "x").code == Code.NOT_FOUND
        day = clock.local_day(clock.now(), "Asia/Tokyo")
        for first, last in ((day, day - timedelta(days=1)), (day, day + timedelta(days=400))):
            said = registers.export(tx, SYSTEM, first, last, "x")
            assert said.code == Code.REGISTER_DAYS_IMPOSSIBLE


def test_e7_an_export_goes_by_the_houses_days(cast: Cast, inside: Flask) -> None:
    """Half past midnight in Tokyo is still the day before in UTC."""
    day = clock.local_day(clock.now(), "Asia/Tokyo") + timedelta(days=3)
    early = clock.day_bounds(day, "Asia/Tokyo")[0] + timedelta(minutes=30)
    stay = cast.book(plan="night", starts_at=early)
    fill(stay)
    with transaction(stay.facility_id) as tx:
        assert len(registers.entries(tx, day, day)) == 1
        before = day - timedelta(days=1)
        assert registers.entries(tx, before, before) == []


@pytest.mark.parametrize(
    ("filled", "left", "gone"),
    [("3 years 2 days", "3 years 1 day", True), ("3 years 2 days", "2 years 364 days", False),
     ("1 day", "1 hour", False)],
)  # fmt: skip
def test_it_is_kept_for_three_years_after_the_departure(
    stay: Booked, owner: Owner, filled: str, left: str, gone: bool
) -> None:
    fill(stay)
    owner.run(f"update guest_registers set filled_at = now() - interval '{filled}'")
    owner.run(
        f"update stays set starts_at = now() - interval '{left}' - interval '1 day',"
        f" ends_at = now() - interval '{left}'"
    )
    with transaction(None) as tx:
        assert tx.scalar("select purge_registers(10)") == int(gone)
    assert (kept(stay) is None) == gone


def test_a_purge_takes_no_more_than_it_is_told(cast: Cast, inside: Flask, owner: Owner) -> None:
    for number in range(4):
        fill(cast.book(plan="night", starts_at=clock.now() + timedelta(days=1 + number)))
    owner.run("update guest_registers set filled_at = now() - interval '4 years'")
    owner.run(
        "update stays set starts_at = starts_at - interval '4 years',"
        " ends_at = ends_at - interval '4 years'"
    )
    taken = []
    for _ in range(3):
        with transaction(None) as tx:
            taken.append(tx.scalar("select purge_registers(3)"))
    assert taken == [3, 1, 0]


def test_the_portal_itself_deletes_none(stay: Booked) -> None:
    fill(stay)
    with pytest.raises(DBAPIError, match="permission denied"), transaction(stay.facility_id) as tx:
        tx.run("delete from guest_registers")
