"""Links: a new one ends the old, and each ends by itself some time after what it shows."""

from uuid import uuid4

import pytest
from flask.testing import FlaskClient

from portal import seal
from portal.jobs.house import House
from portal.outcome import Applied, Code, Conflict, Outcome, Refused
from portal.verbs import links
from portal.verbs.membership_end import Ending, end_membership
from sandbox.mail import MailSink
from sandbox.watch import statements
from tests.cast import Booked, Cast, Joined
from tests.outside import Owner, recorded, work
from tests.verbs.test_stays import do


@pytest.fixture
def anyone(cast: Cast) -> FlaskClient:
    return cast.app.test_client()


def renew(cast: Cast, one: Booked | Joined, seen: int) -> Outcome:
    is_stay = isinstance(one, Booked)
    return do(cast, links.renew_of_stay if is_stay else links.renew_of_membership, one.id, seen)


def newest(owner: Owner, table: str) -> str:
    return seal.unseal(owner.one(f"select token_sealed from {table}"))


def test_the_old_link_of_a_stay_is_over_and_the_guest_has_the_new_one(
    cast: Cast, worker: House, mail: MailSink, owner: Owner, anyone: FlaskClient
) -> None:
    stay = cast.book()
    work(worker, "outbox")
    assert anyone.get(f"/g/{stay.token}").status_code == 200
    with statements() as said:
        assert renew(cast, stay, 1) == Applied(Code.LINK_RENEWED, to="reserved", subject=stay.id)
    assert len(said) <= 4, said
    new = newest(owner, "stays")
    assert anyone.get(f"/g/{stay.token}").status_code == 404
    assert anyone.post(f"/g/{stay.token}/language", data={"lang": "en"}).status_code in (400, 404)
    assert anyone.get(f"/g/{new}").status_code == 200
    work(worker, "outbox")
    told = [got.message.get_content() for got in mail.kept][-1]
    assert (new in told, stay.token in told) == (True, False)
    assert recorded(owner, stay.id)[-1] == ("changed", "reserved", "reserved")


def test_the_old_link_of_a_membership_is_over(
    cast: Cast, worker: House, mail: MailSink, owner: Owner, anyone: FlaskClient
) -> None:
    joined = cast.join()
    seen = owner.one("select version from memberships")
    assert isinstance(renew(cast, joined, seen), Applied)
    new = newest(owner, "memberships")
    assert anyone.get(f"/m/{joined.token}").status_code == 404
    assert anyone.get(f"/m/{new}").status_code == 200
    work(worker, "outbox")
    assert any(new in got.message.get_content() for got in mail.kept)


def test_a_message_that_waits_brings_the_new_link(
    cast: Cast, worker: House, mail: MailSink, owner: Owner
) -> None:
    stay = cast.book()
    renew(cast, stay, 1)
    work(worker, "outbox")
    new = newest(owner, "stays")
    assert len(mail.kept) == 2
    assert all(new in got.message.get_content() for got in mail.kept)


def test_a_stale_page_makes_none_and_two_presses_make_one(cast: Cast, owner: Owner) -> None:
    stay = cast.book()
    assert isinstance(renew(cast, stay, 1), Applied)
    first = newest(owner, "stays")
    said = renew(cast, stay, 1)
    assert isinstance(said, Conflict)
    assert (said.code, said.current.by) == (Code.STALE_PAGE, cast.sato.name)
    assert newest(owner, "stays") == first


def test_another_houses_is_not_there(cast: Cast) -> None:
    stay = cast.book(cast.osaka)
    assert renew(cast, stay, 1) == Refused(Code.NOT_FOUND)
    assert do(cast, links.renew_of_membership, uuid4(), 1) == Refused(Code.NOT_FOUND)


@pytest.mark.parametrize(("days", "status"), [(179, 200), (181, 404)])
def test_a_link_ends_half_a_year_after_the_stay(
    cast: Cast, owner: Owner, anyone: FlaskClient, days: int, status: int
) -> None:
    stay = cast.book()
    shift = f"interval '{days} days'"
    owner.run(f"update stays set starts_at = now() - interval '1 year', ends_at = now() - {shift}")
    assert anyone.get(f"/g/{stay.token}").status_code == status


@pytest.mark.parametrize(("days", "status"), [(399, 200), (401, 404)])
def test_a_members_link_ends_when_the_years_books_are_done(
    cast: Cast, worker: House, owner: Owner, anyone: FlaskClient, days: int, status: int
) -> None:
    joined = cast.join()
    desk = worker.desk(joined.facility_id)
    end_membership(desk, cast.suzuki.actor, joined.id, Ending("force_cancel", note="x"))
    owner.run(f"update memberships set ended_at = now() - interval '{days} days'")
    assert anyone.get(f"/m/{joined.token}").status_code == status
