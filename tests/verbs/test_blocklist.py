"""The blocklist: added to, lifted, and read by its keys."""

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from flask import Flask
from psycopg.errors import InsufficientPrivilege
from sqlalchemy.exc import ProgrammingError

from portal import clock
from portal.outcome import Applied, Code, Conflict, Noop, Outcome, Refused
from portal.policies.blocklist import marks
from portal.verbs import blocklist, guests
from portal.verbs.blocklist import NewEntry
from sandbox.watch import statements
from tests.cast import Cast, HouseOf
from tests.outside import Owner, at_once


def do(cast: Cast, verb: Any, *args: Any, house: HouseOf | None = None) -> Outcome:
    with cast.transaction((house or cast.tokyo).id) as tx:
        said: Outcome = verb(tx, cast.suzuki.actor, *args)
    return said


def entry(**changes: Any) -> NewEntry:
    plain: dict[str, Any] = {"form_key": uuid4(), "ground": "暴れた", "name": "山田 花子"}
    return NewEntry(**{**plain, **changes})


def added(cast: Cast, house: HouseOf | None = None, **changes: Any) -> UUID:
    said = do(cast, blocklist.add, entry(**changes), house=house)
    assert isinstance(said, Applied), said
    assert said.subject is not None
    return said.subject


def ground(cast: Cast, code: str = "ryokan-5-1-2") -> UUID:
    said = do(cast, blocklist.add_ground, code, "賭博その他の違法行為", "Unlawful acts")
    assert isinstance(said, Applied)
    assert said.subject is not None
    return said.subject


def naming(cast: Cast, *names: str, house: HouseOf | None = None, **more: Any) -> list[UUID]:
    with cast.transaction((house or cast.tokyo).id) as tx:
        return [one.id for one in blocklist.naming(tx, marks(names, **more))]


def test_an_entry_is_found_by_each_of_its_keys(cast: Cast, owner: Owner) -> None:
    made = added(
        cast,
        kana="ヤマダ ハナコ",
        variants="Yamada Hanako\nHana Y.",
        phone="+819012345678",
        email="Hanako@Guest.Example",
        document="TK 123-4567",
    )
    assert naming(cast, "花子　山田") == naming(cast, "やまだはなこ") == [made]
    assert naming(cast, "y. hana") == naming(cast, phone="+819012345678") == [made]
    assert naming(cast, email="hanako@guest.example") == [made]
    with cast.app.app_context():
        seen = guests.document_mark("ｔｋ1234567")
    assert naming(cast, document=seen) == [made]
    assert naming(cast, "山田 太郎") == naming(cast) == []
    kept = owner.rows("select * from blocklist_entries") + owner.rows(
        "select * from blocklist_keys"
    )
    assert "1234567" not in str(kept).replace("+819012345678", "").replace("9012345678", "")


def test_one_form_is_one_entry(cast: Cast, app: Flask, owner: Owner) -> None:
    wanted = entry()
    _ = cast.suzuki
    said = at_once(app, *[lambda: do(cast, blocklist.add, wanted)] * 4)
    assert sorted(one.status for one in said) == ["applied", "noop", "noop", "noop"]
    assert owner.one("select count(*) from blocklist_entries") == 1


def test_what_names_nobody_or_is_over_is_refused(cast: Cast) -> None:
    assert do(cast, blocklist.add, entry(name=" ・ ")) == Refused(Code.BLOCKLIST_NAMES_NOBODY)
    past = clock.now() - timedelta(seconds=1)
    assert do(cast, blocklist.add, entry(expires_at=past)) == Refused(Code.BLOCKLIST_OVER_ALREADY)


def test_an_entry_is_lifted_once_and_stays(cast: Cast, owner: Owner) -> None:
    made = added(cast)
    assert isinstance(do(cast, blocklist.lift, made, 2, "x"), Conflict)
    assert do(cast, blocklist.lift, made, 1, "人違い") == Applied(
        Code.BLOCKLIST_LIFTED, to="lifted", subject=made
    )
    assert do(cast, blocklist.lift, made, 1, "x") == Noop(
        Code.BLOCKLIST_ALREADY_LIFTED, subject=made
    )
    assert naming(cast, "山田花子") == []
    assert owner.rows(
        "select event, reason, actor_name from transitions where subject_id = %s order by id", made
    ) == [("created", None, cast.suzuki.name), ("lifted", "人違い", cast.suzuki.name)]
    assert owner.one("select count(*) from blocklist_entries") == 1


@pytest.mark.parametrize(
    "statement",
    [
        "delete from blocklist_entries",
        "delete from blocklist_keys",
        "update blocklist_keys set value = ''",
        "update blocklist_entries set ground = ''",
        "update blocklist_entries set expires_at = null",
    ],
)
def test_nothing_of_it_is_changed_or_deleted(cast: Cast, inside: Flask, statement: str) -> None:
    added(cast)
    with pytest.raises(ProgrammingError) as caught, cast.transaction(cast.tokyo.id) as tx:
        tx.run(statement)
    assert isinstance(caught.value.orig, InsufficientPrivilege)


def test_a_ground_is_the_houses_own(cast: Cast) -> None:
    mine = ground(cast)
    wanted = entry(refusal_ground_id=mine)
    assert do(cast, blocklist.add, wanted, house=cast.osaka) == Refused(Code.NOT_FOUND)
    assert do(cast, blocklist.retire_ground, mine, house=cast.osaka) == Refused(Code.NOT_FOUND)
    assert do(cast, blocklist.add_ground, "ryokan-5-1-2", "x", "y") == Noop(
        Code.GROUND_ALREADY_THERE
    )
    assert do(cast, blocklist.add, wanted).code == Code.BLOCKLIST_ADDED
    assert do(cast, blocklist.retire_ground, mine).code == Code.GROUND_RETIRED
    assert do(cast, blocklist.retire_ground, mine).code == Code.GROUND_ALREADY_RETIRED
    again = replace(wanted, form_key=uuid4())
    assert do(cast, blocklist.add, again) == Refused(Code.NOT_FOUND)
    with cast.transaction(cast.tokyo.id) as tx:
        (found,) = blocklist.naming(tx, marks(["山田花子"]))
    assert found.statute == "賭博その他の違法行為", "retired, and still what it was refused on"


def test_another_house_knows_nothing_of_it(cast: Cast) -> None:
    made = added(cast)
    assert naming(cast, "山田花子", house=cast.osaka) == []
    assert do(cast, blocklist.lift, made, 1, "x", house=cast.osaka) == Refused(Code.NOT_FOUND)


def test_any_number_of_people_is_one_statement_by_the_index(
    cast: Cast, inside: Flask, owner: Owner
) -> None:
    house = cast.tokyo.id
    added(cast)
    owner.run(
        "with made as (insert into blocklist_entries (facility_id, name, ground, author_name,"
        " form_key) select %s, 'n' || n, 'x', 'x', gen_random_uuid()"
        " from generate_series(1, 3000) n returning id, name)"
        " insert into blocklist_keys (facility_id, entry_id, kind, value)"
        " select %s, id, 'name', name from made",
        house,
        house,
    )
    owner.run("analyze blocklist_keys")
    owner.run("analyze blocklist_entries")
    with cast.transaction(house) as tx:
        tx.scalar("select 1")
        with statements() as said:
            assert (
                len(blocklist.naming(tx, marks(["山田花子", *(f"z{n}" for n in range(200))]))) == 1
            )
        assert len(said) == 1
        told = " ".join(
            row[0]
            for row in tx.rows(
                "explain select entry_id from blocklist_keys where facility_id = :f"
                " and kind = 'name' and value = 'n7'",
                f=house,
            )
        )
    assert "ix_blocklist_keys_value" in told
