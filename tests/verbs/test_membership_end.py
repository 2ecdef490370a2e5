"""The end of a membership: every reason in every state through the verb, and what follows."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from flask import Flask

from portal import clock
from portal.db import SYSTEM
from portal.jobs import drain
from portal.jobs.house import House
from portal.machines import IllegalTransitionError
from portal.outcome import Applied, Code, Conflict, Noop, Outcome, Refused
from portal.policies.membership_end import Reason
from portal.verbs import stays
from portal.verbs.membership_end import Ending, end_membership
from sandbox.mail import MailSink
from sandbox.watch import statements
from tests.cast import Booked, Cast, Joined
from tests.machines.test_tables import put
from tests.outside import Owner, at_once, recorded, work
from tests.policies.test_membership_end import EVERY
from tests.verbs.test_memberships import news, stands

HOUR = timedelta(hours=1)
NOW = datetime(2026, 11, 10, 3, tzinfo=UTC)
MONTH_ENDS = datetime(2026, 11, 30, 15, tzinfo=UTC)

COME = "update memberships set ends_at = now()"
"""An end comes by the database's clock, as every deadline."""


@pytest.fixture(autouse=True)
def now(inside: Flask) -> Iterator[None]:
    clock.set_source(lambda: NOW)
    yield
    clock.set_source(None)


def end(worker: House, joined: Joined, reason: Reason, **more: Any) -> Outcome:
    return end_membership(
        worker.desk(joined.facility_id), SYSTEM, joined.id, Ending(reason, **more)
    )


def told(said: Outcome) -> str:
    match said:
        case Applied():
            return {"ended": "ended", "scheduled_to_end": "end_scheduled"}[said.to]
        case Conflict():
            return "conflict"
        case _:
            return f"{said.status} {said.code}"


def of_member(owner: Owner, joined: Joined, stay: Booked) -> Booked:
    owner.run("update stays set membership_id = %s where id = %s", joined.id, stay.id)
    return stay


@pytest.mark.parametrize(("reason", "state", "cell"), EVERY)
def test_every_cell_of_the_table_through_the_verb(
    cast: Cast, worker: House, owner: Owner, reason: Reason, state: str, cell: str
) -> None:
    """Of a membership that is paid at the desk: no provider stands before its end."""
    joined = cast.apply()
    put(owner, "membership", joined.id, state)
    before, messages = recorded(owner, joined.id), len(news(owner))
    if cell == "never":
        with pytest.raises(IllegalTransitionError):
            end(worker, joined, reason)
    else:
        assert told(end(worker, joined, reason)) == cell.partition(" after ")[0]
    event = cell.partition(" ")[0]
    to = {"ended": "ended", "end_scheduled": "scheduled_to_end"}.get(event, state)
    assert owner.one("select state from memberships") == to
    moved = [(event, state, to)] if to != state else []
    assert recorded(owner, joined.id) == before + moved
    assert len(news(owner)) == messages + len(moved)


# --- when


def test_e1_the_end_of_the_month_is_the_facilitys(cast: Cast, worker: House, owner: Owner) -> None:
    joined = cast.join()
    clock.set_source(lambda: MONTH_ENDS - timedelta(seconds=1))
    said = end(worker, joined, "self_cancel", when="month_boundary")
    assert said == Applied(Code.MEMBERSHIP_END_SCHEDULED, to="scheduled_to_end", subject=joined.id)
    assert owner.row("select ends_at, end_reason, ended_at from memberships") == (
        MONTH_ENDS,
        "self_cancel",
        None,
    )


def test_the_end_of_what_is_paid_for(cast: Cast, worker: House, owner: Owner) -> None:
    """Joined on the 10th in Tokyo: the period ends with the 9th of the next month."""
    joined = cast.join()
    clock.set_source(lambda: NOW + timedelta(days=25))
    end(worker, joined, "self_cancel", when="period_end")
    assert owner.one("select ends_at from memberships") == datetime(2026, 12, 9, 15, tzinfo=UTC)


def test_an_end_that_was_set_keeps_its_time(cast: Cast, worker: House, owner: Owner) -> None:
    joined = cast.join()
    end(worker, joined, "self_cancel")
    owner.run(COME)
    ends_at = owner.one("select ends_at from memberships")
    said = end(worker, joined, "end_reached")
    assert said == Applied(Code.MEMBERSHIP_ENDED, to="ended", subject=joined.id)
    assert owner.row("select ends_at, ended_at from memberships") == (ends_at, NOW)


def test_forced_before_that_it_ends_now(cast: Cast, worker: House, owner: Owner) -> None:
    joined = cast.join()
    end(worker, joined, "self_cancel")
    owner.run("update memberships set ends_at = now() + interval '1 second'")
    said = end(worker, joined, "force_cancel", note="規約違反")
    assert isinstance(said, Applied)
    assert owner.row("select ends_at, end_reason from memberships") == (NOW, "force_cancel")
    why = owner.one("select reason from transitions order by id desc limit 1")
    assert why == "force_cancel: 規約違反"


def test_a_stay_that_cannot_be_cancelled_leaves_the_membership_as_it_is(
    cast: Cast, worker: House, owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both or neither: what is given after the end is never left behind in silence."""
    joined = cast.join()
    stay = cast.book(starts_at=MONTH_ENDS + HOUR, price=0)
    of_member(owner, joined, stay)
    monkeypatch.setattr(stays, "cancel", lambda *_: Refused(Code.FEE_EXCEEDS_PRICE))
    with pytest.raises(LookupError, match="FEE_EXCEEDS_PRICE"):
        end(worker, joined, "self_cancel")
    assert stands(owner, joined.id) == ("active", 2)
    assert owner.one("select state from stays") == "reserved"
    assert "membership_end_scheduled" not in news(owner)


# --- who


def test_a_page_that_is_out_of_date_ends_nothing(cast: Cast, worker: House, owner: Owner) -> None:
    joined = cast.join()
    said = end(worker, joined, "force_cancel", seen=1)
    assert isinstance(said, Conflict)
    assert (said.code, said.current.state) == (Code.STALE_PAGE, "active")
    assert stands(owner, joined.id) == ("active", 2)
    assert isinstance(end(worker, joined, "force_cancel", seen=2), Applied)
    # A second press is calm, whatever it saw.
    assert end(worker, joined, "force_cancel", seen=2) == Noop(
        Code.MEMBERSHIP_ALREADY_ENDED, subject=joined.id
    )


def test_another_houses_membership_is_not_there(cast: Cast, worker: House, owner: Owner) -> None:
    joined = cast.join()
    for house, membership in ((cast.osaka.id, joined.id), (cast.tokyo.id, uuid4())):
        said = end_membership(worker.desk(house), SYSTEM, membership, Ending("force_cancel"))
        assert said == Refused(Code.NOT_FOUND)
    assert stands(owner, joined.id) == ("active", 2)


def test_eight_who_end_it_at_once_end_it_once(
    cast: Cast, app: Flask, worker: House, owner: Owner
) -> None:
    joined = cast.join()
    said = at_once(app, *[lambda: end(worker, joined, "force_cancel")] * 8)
    assert [type(one) for one in said].count(Applied) == 1
    assert [type(one) for one in said].count(Noop) == 7
    assert recorded(owner, joined.id)[-1] == ("ended", "active", "ended")
    assert news(owner).count("membership_ended") == 1
    assert owner.one("select count(*) from end_obligations") == 2


# --- what follows


def test_stays_from_the_end_on_are_cancelled_and_no_others(
    cast: Cast, worker: House, owner: Owner
) -> None:
    joined = cast.join()

    def booked(space: str, starts_at: datetime, *, member: bool = True) -> UUID:
        stay = cast.book(space=space, starts_at=starts_at, price=0)
        return of_member(owner, joined, stay).id if member else stay.id

    across = booked("A01", MONTH_ENDS - HOUR)
    at_the_end = booked("A02", MONTH_ENDS)
    later = booked("A03", MONTH_ENDS + timedelta(days=9))
    somebodys = booked("B01", MONTH_ENDS + HOUR, member=False)
    end(worker, joined, "self_cancel")
    states = dict(owner.rows("select id, state from stays"))
    assert states == {
        across: "reserved",
        at_the_end: "cancelled",
        later: "cancelled",
        somebodys: "reserved",
    }
    assert news(owner).count("stay_cancelled") == 2


def in_house(cast: Cast, owner: Owner, joined: Joined, space: str, price: int) -> Booked:
    stay = of_member(owner, joined, cast.book(space=space, price=price))
    if price:
        owner.run("update stays set deposit_due = 0 where id = %s", stay.id)
    with cast.transaction(cast.tokyo.id) as tx:
        if price:
            from portal.verbs import cash

            assert isinstance(cash.take(tx, cast.sato.actor, stay.id, price, uuid4()), Applied)
        version = tx.scalar("select version from stays where id = :id", id=stay.id)
        assert isinstance(stays.admit(tx, cast.sato.actor, stay.id, version), Applied)
    return stay


def test_keys_that_only_the_membership_gave_are_to_be_removed(
    cast: Cast, worker: House, owner: Owner
) -> None:
    joined = cast.join()
    given = in_house(cast, owner, joined, "A01", 0)
    bought = in_house(cast, owner, joined, "A02", 3000)
    end(worker, joined, "force_cancel")
    keys = dict(owner.rows("select stay_id, state from entry_keys"))
    assert keys == {given.id: "revoking", bought.id: "requested"}
    assert dict(owner.rows("select id, state from stays")) == {
        given.id: "admitted",
        bought.id: "admitted",
    }


def test_who_is_in_house_as_it_runs_out_is_not_shut_out(
    cast: Cast, worker: House, owner: Owner
) -> None:
    joined = cast.join()
    in_house(cast, owner, joined, "A01", 0)
    end(worker, joined, "self_cancel")
    owner.run(COME)
    end(worker, joined, "end_reached")
    assert owner.one("select state from entry_keys") == "requested"


def test_what_never_began_is_told_otherwise_and_owes_no_proof(
    cast: Cast, worker: House, owner: Owner
) -> None:
    rejected, taken_back = cast.apply(), cast.apply(guest=cast.emma)
    end(worker, rejected, "application_rejected")
    end(worker, taken_back, "self_cancel")
    assert sorted(news(owner))[-2:] == ["membership_not_begun", "membership_rejected"]
    assert owner.one("select count(*) from end_obligations") == 0


def test_nobody_is_ended_where_a_provider_bills(cast: Cast, worker: House, owner: Owner) -> None:
    """Until it can be stopped there, nothing of ours says that it is over."""
    joined = cast.apply(cast.offer("card", "カード会員", "By card", billing="card"))
    put(owner, "membership", joined.id, "active")
    asked: tuple[Reason, ...] = ("self_cancel", "force_cancel", "plan_retired")
    for reason in asked:
        assert end(worker, joined, reason) == Refused(Code.BILLING_UNAVAILABLE)
    assert owner.one("select state from memberships") == "active"
    assert isinstance(end(worker, joined, "provider_ended"), Applied)


# --- the sweep and the proofs


def proofs(owner: Owner) -> dict[str, str | None]:
    return dict(owner.rows("select kind, proof from end_obligations"))


def test_the_sweep_ends_what_has_come_to_its_end(
    cast: Cast, worker: House, owner: Owner, mail: MailSink
) -> None:
    due, ahead = cast.join(), cast.join(guest=cast.emma)
    end(worker, due, "self_cancel")
    end(worker, ahead, "self_cancel")
    clock.set_source(None)
    owner.run("update memberships set ends_at = now() - interval '1 second' where id = %s", due.id)
    owner.run("update memberships set ends_at = now() + interval '1 day' where id = %s", ahead.id)
    assert drain.drain("memberships") == 2  # the end, and its first proof
    assert stands(owner, due.id) == ("ended", 4)
    assert stands(owner, ahead.id) == ("scheduled_to_end", 3)
    assert proofs(owner) == {"keys_gone": "no key is left", "member_told": None}
    assert recorded(owner, due.id)[-1] == ("ended", "scheduled_to_end", "ended")
    work(worker, "outbox")
    owner.run("update end_obligations set next_look_at = now()")
    assert drain.drain("memberships") == 1
    assert str(proofs(owner)["member_told"]).startswith("sent 2")
    assert drain.drain("memberships") == 0
    assert len([got for got in mail.kept if "終了しました" in str(got.message["Subject"])]) == 1


def test_a_key_that_is_not_gone_leaves_its_proof_owed(
    cast: Cast, worker: House, owner: Owner
) -> None:
    joined = cast.join()
    in_house(cast, owner, joined, "A01", 0)
    end(worker, joined, "force_cancel")
    drain.drain("memberships")
    assert proofs(owner) == {"keys_gone": None, "member_told": None}
    key = owner.one("select id from entry_keys")
    put(owner, "entry_key", key, "revoked")
    owner.run("update end_obligations set next_look_at = now()")
    assert drain.drain("memberships") == 1
    assert proofs(owner) == {"keys_gone": "no key is left", "member_told": None}


def test_who_left_no_address_is_owed_no_word(cast: Cast, worker: House, owner: Owner) -> None:
    joined = cast.join()
    owner.run("update guests set email = null")
    end(worker, joined, "force_cancel")
    drain.drain("memberships")
    assert proofs(owner)["member_told"] == "no address"


def test_one_that_cannot_be_ended_holds_up_no_other(
    cast: Cast, worker: House, owner: Owner
) -> None:
    stuck = cast.apply(cast.offer("card", "カード会員", "By card", billing="card"))
    put(owner, "membership", stuck.id, "scheduled_to_end")
    fine = cast.join(guest=cast.emma)
    end(worker, fine, "self_cancel")
    clock.set_source(None)
    owner.run("update memberships set ends_at = now() - interval '1 day'")
    drain.drain("memberships")
    states = dict(owner.rows("select id, state from memberships"))
    assert states == {stuck.id: "scheduled_to_end", fine.id: "ended"}
    later = "select next_look_at > now() from memberships where id = %s"
    assert owner.one(later, stuck.id) is True


@pytest.mark.parametrize(("reason", "most"), [("self_cancel", 6), ("force_cancel", 7)])
def test_an_end_needs_few_statements(cast: Cast, worker: House, reason: Reason, most: int) -> None:
    joined = cast.join()
    with statements() as said:
        end(worker, joined, reason)
    assert len(said) <= most, said
