"""The guest's own verbs."""

from uuid import uuid4

import pytest

from portal.db import SYSTEM
from portal.outcome import Applied, Code, Noop, Refused
from portal.verbs import guests
from tests.cast import Cast
from tests.outside import Owner


def test_a_language_is_chosen_once_and_only_in_its_own_house(cast: Cast) -> None:
    booked = cast.book()
    with cast.transaction(booked.facility_id) as tx:
        guest_id = tx.scalar("select guest_id from stays where id = :id", id=booked.id)
        chosen = guests.choose_language(tx, SYSTEM, guest_id, "en")
        assert chosen == Applied(Code.GUEST_LANGUAGE_CHOSEN, to="en", subject=guest_id)
        assert guests.choose_language(tx, SYSTEM, guest_id, "en") == Noop(
            Code.GUEST_LANGUAGE_KEPT, subject=guest_id
        )
        assert guests.choose_language(tx, SYSTEM, uuid4(), "en") == Refused(Code.NOT_FOUND)
        with pytest.raises(ValueError, match="no message"):
            guests.choose_language(tx, SYSTEM, guest_id, "fr")
    with cast.transaction(cast.osaka.id) as tx:
        assert guests.choose_language(tx, SYSTEM, guest_id, "ja") == Refused(Code.NOT_FOUND)


def test_a_language_is_one_guests(cast: Cast, owner: Owner) -> None:
    booked = cast.book()
    cast.book(space="A02")
    first, other = owner.rows("select id from guests order by created_at")
    with cast.transaction(booked.facility_id) as tx:
        guests.choose_language(tx, SYSTEM, first[0], "en")
        guests.choose_language(tx, SYSTEM, first[0], "en")
        guests.choose_language(tx, SYSTEM, other[0], "ja")
    assert owner.rows("select preferred_locale, version from guests order by created_at") == [
        ("en", 2),
        ("ja", 1),
    ]
