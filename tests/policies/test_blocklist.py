"""Whom an entry of the blocklist means."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as some

from portal.policies.blocklist import Listed, Mark, document_number, hits, marks, name_keys

NOON = datetime(2026, 11, 3, 3, tzinfo=UTC)


def listed(*found: Mark, expires: datetime | None = None, statute: str | None = None) -> Listed:
    return Listed(UUID(int=1), tuple(found), "暴れた", statute, expires)


@pytest.mark.parametrize(
    ("entry", "person"),
    [
        ("山田 花子", "山田花子"),
        ("山田　花子", "花子 山田"),
        ("髙橋 邊", "高橋辺"),
        ("ﾔﾏﾀﾞ ﾊﾅｺ", "やまだ・はなこ"),
        ("Yamada Hanako", "HANAKO, YAMADA"),
        ("ヤマダ ハナコ", "ヤマタ\u3099 ハナコ"),
        ("Ｊｏｈｎ　Ｓｍｉｔｈ", "Smith John"),
    ],
)
def test_h13_a_name_is_one_however_it_is_written(entry: str, person: str) -> None:
    assert set(marks([entry])) & set(marks([person]))


@pytest.mark.parametrize("other", ["山田 花", "山田", "", "・", "山花 田子"])
def test_h13_another_name_is_another(other: str) -> None:
    assert not set(marks(["山田 花子"])) & set(marks([other]))


def test_the_address_and_the_number_are_compared_as_people_write_them() -> None:
    assert marks([], email=" Hanako@Guest.Example ") == marks([], email="hanako@guest.example")
    assert document_number("ｔｋ-123 4567") == document_number("TK1234567") == "tk1234567"
    assert marks([], phone="+819012345678") != marks([], phone="+819012345679")


def test_one_mark_is_enough_and_kinds_are_apart() -> None:
    entry = listed(*marks(["山田 花子"], "+819012345678"))
    assert hits(marks(["Somebody Else"], "+819012345678"), [entry], NOON) == (entry,)
    assert hits((Mark("email", "+819012345678"),), [entry], NOON) == ()


def test_an_entry_ends_at_the_instant_it_says() -> None:
    entry = listed(*marks(["x y"]), expires=NOON)
    known = marks(["x y"])
    assert hits(known, [entry], NOON - timedelta(microseconds=1)) == (entry,)
    assert hits(known, [entry], NOON) == ()


def test_the_law_s_ground_comes_first() -> None:
    plain, lawful = listed(*marks(["a b"])), listed(*marks(["b a"]), statute="第1号")
    assert hits(marks(["a b"]), [plain, lawful], NOON) == (lawful, plain)


@given(some.lists(some.text(), max_size=4), some.none() | some.text(), some.none() | some.text())
def test_every_text_has_marks_in_one_order(
    names: list[str], phone: str | None, email: str | None
) -> None:
    found = marks(names, phone, email)
    assert list(found) == sorted(set(found))
    assert found == marks(list(reversed(names)), phone, email)
    assert all(mark.value for mark in found)
    assert all(key for name in names for key in name_keys(name))
