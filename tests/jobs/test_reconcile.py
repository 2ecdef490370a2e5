"""The books beside the far side: each kind of difference planted there, found, shown, healed."""

import json
import smtplib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID, uuid4

import psycopg
import pytest
from flask import Flask

from portal import clock
from portal.edges.channels import Channels
from portal.edges.mail.adapter import SmtpMail
from portal.edges.mail_archive.adapter import HttpMailArchive
from portal.jobs import house as house_of
from portal.jobs import sweeps
from portal.jobs.house import House
from portal.jobs.reconcile import Told, reconcile
from portal.outcome import Applied, Code, Noop, Outcome, Refused
from portal.queries import attention
from portal.verbs import divergences, stays
from sandbox import parts
from sandbox.mail import MailDevInbox
from sandbox.process import Part
from sandbox.seam.running import Running, eventually
from sandbox.stripe.testing import StandIn, client
from tests.cast import Booked, Cast
from tests.conftest import psycopg_url
from tests.jobs.test_locks import issued, pin_of, states
from tests.outside import STRIPE_KEY, Owner, codes_on_locks, deliver, pay, settle_locks, work
from tests.verbs.test_payments import opened, paid
from tests.verbs.test_refunds import ask as refund
from tests.verbs.test_stays import do

DEVICE = "haneda-capsule-a01"


def look(worker: House) -> Told:
    return reconcile(worker.providers, settle=0)


def found(owner: Owner) -> list[str]:
    """The kinds of the open differences."""
    return [
        row[0]
        for row in owner.rows("select kind from divergences where healed_at is null order by kind")
    ]


def resolve(worker: House, cast: Cast, owner: Owner) -> Outcome:
    house, row = owner.row("select facility_id, id from divergences where healed_at is null")
    return divergences.resolve(worker.desk(house), cast.sato.actor, row)


def shown(cast: Cast) -> list[str]:
    with cast.transaction(cast.tokyo.id) as tx:
        seen = attention.look(tx, clock.now())
        assert seen.count == attention.count(tx, clock.now())
        return [row.kind for row in seen.divergences]


def healed_by(owner: Owner) -> str | None:
    name: str | None = owner.one("select healed_by from divergences order by first_seen limit 1")
    return name


@pytest.fixture
def house(cast: Cast, worker: House, stripe: StandIn, seam: Running, owner: Owner) -> Booked:
    """A guest in house with a key, a stay paid by card and partly refunded; both houses open."""
    assert cast.osaka
    stay = issued(cast, worker, owner)
    paid(worker, cast, owner, stripe, cast.book(price=10_000, space="B01"))
    assert isinstance(refund(worker, cast, owner, 1000), Applied)
    deliver(worker)
    told = look(worker)
    assert (told.open, told.unread, told.healed, dict(told.new)) == (0, 0, 0, {})
    assert told.doors == 6
    return stay


def test_a_clean_house_has_no_differences_whatever_is_under_way(
    cast: Cast, worker: House, stripe: StandIn, seam: Running, owner: Owner, house: Booked
) -> None:
    opened(worker, cast, owner, cast.book(price=5000, space="A02"))
    seam.control("hold", {"stage": "removing"})
    do(cast, stays.depart, house.id, 2)
    assert look(worker).open == 0  # its removal waits
    work(worker, "locks")
    assert look(worker).open == 0  # it is being removed
    seam.control("hold", {"stage": "removing", "held": False})
    assert settle_locks(worker, owner, lambda: states(owner) == ["revoked"], 30)
    assert look(worker).open == 0
    assert owner.one("select count(*) from divergences") == 0


# Money ------------------------------------------------------------------------------------------


def test_a_payment_that_no_event_told_of(
    cast: Cast, worker: House, stripe: StandIn, seam: Running, owner: Owner, house: Booked
) -> None:
    pay(stripe, opened(worker, cast, owner, cast.book(price=5000, space="A02")))
    assert dict(look(worker).new) == {"payment_differs": 1}
    row = owner.row("select ours, theirs, payment_id is not null from divergences")
    assert row == ("open 5000 JPY", "succeeded 5000 JPY", True)
    assert shown(cast) == ["payment_differs"]
    before = owner.row("select first_seen, last_seen from divergences")
    assert dict(look(worker).new) == {}
    after = owner.row("select first_seen, last_seen from divergences")
    assert (after[0], after[1] > before[1]) == (before[0], True)
    said = resolve(worker, cast, owner)
    assert isinstance(said, Applied)
    assert said.code == Code.PAYMENT_RECORDED
    assert (shown(cast), healed_by(owner)) == ([], cast.sato.name)
    assert look(worker).open == 0


def test_what_agrees_again_heals_by_itself(
    cast: Cast, worker: House, stripe: StandIn, seam: Running, owner: Owner, house: Booked
) -> None:
    pay(stripe, opened(worker, cast, owner, cast.book(price=5000, space="A02")))
    assert look(worker).open == 1
    deliver(worker)
    told = look(worker)
    assert (told.open, told.healed) == (0, 1)
    assert healed_by(owner) == "agreement"


def test_a_payment_that_is_in_nobodys_books(
    cast: Cast, worker: House, stripe: StandIn, seam: Running, owner: Owner, house: Booked
) -> None:
    """Ours by its metadata. Other houses' and other products' are none of our business."""
    strange = {"payment_id": str(uuid4()), "facility": str(cast.tokyo.id)}
    for metadata in (strange, strange | {"facility": str(uuid4())}, {"order": "77"}):
        made = client(stripe.base, STRIPE_KEY).payment_intents.create(
            {"amount": 700, "currency": "jpy", "metadata": metadata}
        )
        pay(stripe, made.id)
    assert dict(look(worker).new) == {"payment_not_here": 1}
    assert shown(cast) == ["payment_not_here"]
    assert resolve(worker, cast, owner) == Refused(Code.NOT_PERMITTED)  # nobody here can ask
    with cast.transaction(cast.osaka.id) as tx:
        row = owner.one("select id from divergences")
        assert divergences.let_be(tx, cast.sato.actor, row) == Refused(Code.NOT_FOUND)
    assert isinstance(do(cast, divergences.let_be, row), Applied)
    assert do(cast, divergences.let_be, row) == Noop(Code.EVENT_ALREADY_HANDLED)
    assert look(worker).open == 0  # a person has looked, and it reads as it did then


def test_a_payment_that_the_provider_does_not_have_or_tells_otherwise(
    cast: Cast, worker: House, stripe: StandIn, seam: Running, owner: Owner, house: Booked
) -> None:
    owner.run("update payments set created_at = created_at - interval '10 minutes'")
    owner.run("update payments set intent_id = 'pi_never_was'")
    told = look(worker)
    # The money that the provider has is nobody's then; its refund likewise has no payment here.
    assert set(told.new) == {"payment_not_there", "payment_not_here"}
    owner.run("update divergences set healed_at = now(), healed_by = 'test'")
    owner.run(
        "update payments set amount = amount + 1, intent_id = %s",
        stripe.get("objects")["payment_intent"][0]["id"],
    )
    assert dict(look(worker).new) == {"payment_differs": 1}
    assert "10001" in owner.one("select ours from divergences where healed_at is null")


@pytest.mark.parametrize("money", ["none", "taken"])
def test_an_attempt_whose_intent_is_nowhere_ends_and_money_never_vanishes(
    cast: Cast, worker: House, stripe: StandIn, seam: Running, owner: Owner, house: Booked,
    money: str,
) -> None:  # fmt: skip
    """Nobody can pay an intent that does not exist. What is booked as paid stays booked: the
    provider may be asked with the wrong account's key."""
    opened(worker, cast, owner, cast.book(price=5000, space="A02"))
    lost = "state = 'open'" if money == "none" else "state = 'succeeded'"
    owner.run(
        "update payments set intent_id = 'pi_never_was',"
        f" created_at = created_at - interval '10 minutes' where {lost}"
    )
    assert look(worker).new["payment_not_there"] == 1
    before = owner.one("select sum(amount) from ledger_lines")
    row, of = owner.row("select id, payment_id from divergences where kind = 'payment_not_there'")
    said = divergences.resolve(worker.desk(cast.tokyo.id), cast.sato.actor, row)
    state = owner.one("select state from payments where id = %s", of)
    if money == "none":
        assert (said.code, state) == (Code.PAYMENT_RESOLVED, "canceled")
    else:
        assert (said, state) == (Refused(Code.PAYMENT_NOT_THERE), "succeeded")
        assert isinstance(do(cast, divergences.let_be, row), Applied)
    assert owner.one("select sum(amount) from ledger_lines") == before
    assert look(worker).new.get("payment_not_there", 0) == 0


def test_a_refund_made_in_the_dashboard(
    cast: Cast, worker: House, stripe: StandIn, seam: Running, owner: Owner, house: Booked
) -> None:
    intent = owner.one("select intent_id from payments")
    stripe.post("refunds", payment_intent=intent, amount=2000)
    assert dict(look(worker).new) == {"refund_not_here": 1}
    assert shown(cast) == ["refund_not_here"]
    said = resolve(worker, cast, owner)
    assert isinstance(said, Applied)
    assert said.code == Code.REFUND_RECORDED
    assert owner.one("select count(*) from ledger_lines where kind = 'refund'") == 2
    assert (look(worker).open, shown(cast)) == (0, [])


def test_a_dispute_of_which_no_event_came(
    cast: Cast, worker: House, stripe: StandIn, seam: Running, owner: Owner, house: Booked
) -> None:
    intent = owner.one("select intent_id from payments")
    opened = stripe.post("disputes", payment_intent=intent)
    assert dict(look(worker).new) == {"dispute_differs": 1}
    said = resolve(worker, cast, owner)
    assert isinstance(said, Applied)
    assert said.code == Code.DISPUTE_RECORDED
    assert (look(worker).open, shown(cast)) == (0, [])
    stripe.post(f"disputes/{opened['id']}/close", status="lost")
    assert dict(look(worker).new) == {"dispute_differs": 1}
    assert isinstance(resolve(worker, cast, owner), Applied)
    assert owner.one("select status from disputes") == "lost"
    assert look(worker).open == 0


def test_a_refund_that_failed_later_and_one_that_never_was(
    cast: Cast, worker: House, stripe: StandIn, seam: Running, owner: Owner, house: Booked
) -> None:
    code = owner.one("select provider_refund_id from refunds")
    stripe.post(f"refunds/{code}", status="failed")
    assert dict(look(worker).new) == {"refund_differs": 1}
    assert isinstance(resolve(worker, cast, owner), Applied)
    assert owner.one("select state from refunds") == "failed"
    assert look(worker).open == 0
    owner.run(
        "update refunds set provider_refund_id = 're_never_was',"
        " created_at = created_at - interval '10 minutes'"
    )
    assert look(worker).open == 0  # none is away by either's word


@pytest.mark.parametrize("named", [True, False])
def test_a_refund_that_the_charge_does_not_have(
    cast: Cast, worker: House, stripe: StandIn, seam: Running, owner: Owner, house: Booked,
    named: bool,
) -> None:  # fmt: skip
    """Where one bears its name, ours was told the wrong id. Where none does, the money is here
    still: it is owed again."""
    owner.run(
        "update refunds set provider_refund_id = 're_never_was',"
        " created_at = created_at - interval '10 minutes'"
    )
    if not named:
        stripe.post("reset")
        paid_again = client(stripe.base, STRIPE_KEY).payment_intents.create(
            {"amount": 10_000, "currency": "jpy", "payment_method": "pm_card_visa",
             "confirm": True, "return_url": "https://example.com/back",
             "metadata": metadata_of(owner)}
        )  # fmt: skip
        owner.run("update payments set intent_id = %s", paid_again.id)
    assert dict(look(worker).new) == {"refund_not_there": 1}
    said = resolve(worker, cast, owner)
    assert isinstance(said, Applied)
    state, code = owner.row("select state, provider_refund_id from refunds")
    if named:
        assert (said.code, state) == (Code.REFUND_RECORDED, "succeeded")
        assert code == stripe.get("objects")["refund"][0]["id"]
    else:
        assert (said.code, state) == (Code.REFUND_FAILED, "failed")
        assert owner.one("select sum(amount) from ledger_lines where refund_id is not null") == 0
    assert look(worker).open == 0


def test_a_refund_takes_its_id_in_the_order_of_every_lock(
    cast: Cast, worker: House, inside: Flask, database: dict[str, str], stripe: StandIn,
    seam: Running, owner: Owner, house: Booked,
) -> None:  # fmt: skip
    """The stay before its refund. While somebody works on the stay, the verb waits and holds
    nothing that they may want next."""
    owner.run(
        "update refunds set provider_refund_id = 're_never_was',"
        " created_at = created_at - interval '10 minutes'"
    )
    assert look(worker).open == 1
    row = owner.one("select id from divergences")

    def press() -> Outcome:
        with inside.app_context():
            return divergences.resolve(worker.desk(cast.tokyo.id), cast.sato.actor, row)

    url = psycopg_url(database["DATABASE_OWNER_URL"])
    with ThreadPoolExecutor(1) as pool, psycopg.connect(url) as other:
        folio = "select 1 from stays where id = (select stay_id from refunds) for no key update"
        other.execute(folio)
        said = pool.submit(press)
        behind = "select count(*) from pg_stat_activity where %s = any (pg_blocking_pids(pid))"
        assert eventually(lambda: owner.one(behind, other.info.backend_pid))
        other.execute("select 1 from refunds for no key update nowait")
        other.commit()
        assert said.result(30).code == Code.REFUND_RECORDED


def metadata_of(owner: Owner) -> dict[str, str]:
    row = owner.row("select id, purpose, subject_id, facility_id from payments")
    names = ("payment_id", "purpose", "subject", "facility")
    return dict(zip(names, map(str, row), strict=True))


def test_a_provider_that_is_away_heals_and_raises_nothing(
    cast: Cast, worker: House, stripe: StandIn, seam: Running, owner: Owner, house: Booked
) -> None:
    pay(stripe, opened(worker, cast, owner, cast.book(price=5000, space="A02")))
    assert look(worker).open == 1
    stripe.post("listening", open=False)
    seam.control("down", {"down": True})
    told = look(worker)
    assert (told.open, told.healed, told.unread, told.doors) == (1, 0, 10, 0)
    assert resolve(worker, cast, owner) == Refused(Code.BILLING_UNAVAILABLE)
    stripe.post("listening", open=True)
    seam.control("down", {"down": False})


# Doors ------------------------------------------------------------------------------------------


def stray(worker: House, name: str, pin: str = "907531") -> str:
    """Somebody's code on the lock."""
    made = worker.providers.locks.create_code(
        device_id=DEVICE,
        name=name,
        pin=pin,
        starts_at=datetime.now(UTC),
        ends_at=datetime.now(UTC) + timedelta(days=1),
    )
    return made.id


def on_lock(seam: Running) -> set[str]:
    return {code["access_code_id"] for code in codes_on_locks(seam)}


@pytest.mark.parametrize("whose", ["unknown", "revoked", "second"])
def test_a_stray_code_is_found_and_removed_and_no_other(
    cast: Cast, worker: House, seam: Running, stripe: StandIn, owner: Owner, house: Booked,
    whose: str,
) -> None:  # fmt: skip
    name = owner.one("select code_name from entry_keys")
    if whose == "revoked":
        do(cast, stays.depart, house.id, 2)
        assert settle_locks(worker, owner, lambda: states(owner) == ["revoked"], 30)
    code = stray(worker, f"monban {uuid4()}" if whose == "unknown" else name)
    theirs = stray(worker, "Housekeeping", "246813")
    assert eventually(lambda: len(on_lock(seam)) == (2 if whose == "revoked" else 3), 30)
    assert dict(look(worker).new) == {"code_stray": 1}
    assert owner.one("select subject from divergences") == code
    assert shown(cast) == ["code_stray"]
    row = owner.one("select id from divergences")
    assert do(cast, divergences.let_be, row) == Refused(Code.NOT_PERMITTED)
    said = resolve(worker, cast, owner)
    assert isinstance(said, Applied)
    assert said.code == Code.KEY_REVOKE_ASKED
    assert eventually(lambda: code not in on_lock(seam), 30)
    assert theirs in on_lock(seam)
    assert look(worker).open == 0
    assert states(owner) == (["revoked"] if whose == "revoked" else ["issued"])


def test_the_row_is_an_hour_old_and_the_code_is_a_guests_now(
    cast: Cast, worker: House, seam: Running, stripe: StandIn, owner: Owner, house: Booked
) -> None:
    """Nothing is removed on the word of the row alone."""
    owner.run(
        "insert into divergences (facility_id, kind, subject, door_id)"
        " select facility_id, 'code_stray', provider_code_id, door_id from entry_keys"
    )
    assert resolve(worker, cast, owner) == Noop(Code.KEY_ALREADY_ISSUED)
    assert len(on_lock(seam)) == 1
    assert healed_by(owner) == "agreement"
    mine = stray(worker, "Housekeeping", "246813")
    owner.run("update divergences set healed_at = null, healed_by = null, subject = %s", mine)
    assert resolve(worker, cast, owner) == Refused(Code.NOT_FOUND)
    assert mine in on_lock(seam)


def test_a_code_of_another_house_on_a_shared_lock_is_left_alone(
    cast: Cast, worker: House, seam: Running, stripe: StandIn, owner: Owner, house: Booked
) -> None:
    door = cast.osaka.doors["S01"]
    owner.run("update doors set device_id = %s where id = %s", DEVICE, door)
    assert look(worker).open == 0
    owner.run(
        "insert into divergences (facility_id, kind, subject, door_id)"
        " select %s, 'code_stray', provider_code_id, %s from entry_keys",
        cast.osaka.id,
        door,
    )
    assert resolve(worker, cast, owner) == Refused(Code.NOT_FOUND)
    assert len(on_lock(seam)) == 1


@pytest.mark.parametrize("forgotten", [True, False])
def test_a_code_deleted_behind_our_back(
    cast: Cast, worker: House, seam: Running, stripe: StandIn, owner: Owner, house: Booked,
    forgotten: bool,
) -> None:  # fmt: skip
    (code,) = on_lock(seam)
    seam.control(f"codes/{code}/remove", {"gone": forgotten})
    assert dict(look(worker).new) == {"code_missing": 1}
    assert shown(cast) == ["code_missing"]
    said = resolve(worker, cast, owner)
    assert isinstance(said, Applied)
    assert said.code == Code.KEY_MISSING
    assert states(owner) == ["missing"]
    assert (look(worker).open, shown(cast)) == (0, [])
    with cast.transaction(cast.tokyo.id) as tx:
        (broken,) = attention.look(tx, clock.now()).broken_keys
    assert broken.stay_id == house.id  # the next verb on the page orders a new code


def test_a_code_that_ends_at_another_time(
    cast: Cast, worker: House, seam: Running, stripe: StandIn, owner: Owner, house: Booked
) -> None:
    (code,) = on_lock(seam)
    later = (datetime.now(UTC) + timedelta(days=30)).isoformat(timespec="seconds")
    seam.control(f"codes/{code}/modify", {"ends_at": later})
    assert dict(look(worker).new) == {"code_differs": 1}
    assert shown(cast) == ["code_differs"]
    said = resolve(worker, cast, owner)
    assert isinstance(said, Applied)
    assert said.code == Code.LOCK_ASKED_AGAIN
    assert look(worker).open == 0  # the command is under way
    work(worker, "locks")
    ends = owner.one("select ends_at from entry_keys").replace(microsecond=0)
    assert datetime.fromisoformat(codes_on_locks(seam)[0]["ends_at"]) == ends
    assert look(worker).open == 0


def test_no_digits_are_kept(
    cast: Cast, worker: House, seam: Running, stripe: StandIn, owner: Owner, house: Booked
) -> None:
    stray(worker, f"monban {uuid4()}")
    (code,) = on_lock(seam) - {owner.one("select subject from divergences")} - {
        one["access_code_id"] for one in codes_on_locks(seam) if one["code"] == "907531"
    }  # fmt: skip
    seam.control(f"codes/{code}/remove", {"gone": False})
    assert set(look(worker).new) == {"code_stray", "code_missing"}
    kept = str(owner.rows("select d::text from divergences d"))
    assert "907531" not in kept
    assert pin_of(owner) not in kept


@pytest.mark.parametrize("also", [{}, {"name": "Front"}])
def test_other_digits_on_the_lock(
    cast: Cast, worker: House, seam: Running, stripe: StandIn, owner: Owner, house: Booked,
    also: dict[str, str],
) -> None:  # fmt: skip
    """Somebody changed them in the lock's own app, and may have renamed the code as well. The
    guest stands before a door that her code does not open: she gets a new one."""
    (code,) = on_lock(seam)
    was = pin_of(owner)
    seam.control(f"codes/{code}/modify", {"code": "907531"} | also)
    assert dict(look(worker).new) == {"code_pin_differs": 1}
    assert shown(cast) == ["code_pin_differs"]
    kept = str(owner.rows("select d::text from divergences d"))
    assert "907531" not in kept
    assert was not in kept
    row = owner.one("select id from divergences")
    assert do(cast, divergences.let_be, row) == Refused(Code.NOT_PERMITTED)
    said = resolve(worker, cast, owner)
    assert isinstance(said, Applied)
    assert said.code == Code.KEY_ORDERED
    assert settle_locks(worker, owner, lambda: sorted(states(owner)) == ["issued", "revoked"], 30)
    assert [one["code"] == "907531" for one in codes_on_locks(seam)] == [False]
    assert (look(worker).open, shown(cast)) == (0, [])


# Mail -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def maildev() -> Iterator[Part]:
    """A mail server that tells what it has taken."""
    part = parts.maildev()
    yield part
    part.stop()


@pytest.fixture
def mailed(
    cast: Cast, worker: House, owner: Owner, maildev: Part, stripe: StandIn, seam: Running
) -> House:
    """Three guests have been written to, a while ago; somebody else long before."""
    inbox = MailDevInbox(maildev.url)
    inbox.clear()
    an_old_mail(maildev)
    made = replace(
        worker,
        providers=replace(worker.providers, mail_archive=HttpMailArchive(maildev.url)),
        channels=Channels(SmtpMail(maildev.also["smtp"], sender="monban@localhost.example"), None),
    )
    house_of.open_house(made)
    for space in ("A01", "A02", "A03"):
        cast.book(price=0, space=space)
    assert work(made, "outbox") == 3
    owner.run("update outbox set sent_at = sent_at - interval '40 seconds'")
    assert eventually(lambda: len(inbox.all()) == 4, 30)
    assert (look(made).open, look(made).unread) == (0, 0)
    return made


def an_old_mail(maildev: Part) -> None:
    """The archive tells of everything since then."""
    server = urlsplit(maildev.also["smtp"])
    with smtplib.SMTP(str(server.hostname), int(server.port or 0)) as session:
        date = format_datetime(datetime.now(UTC) - timedelta(hours=1))
        text = f"Date: {date}\r\nSubject: not ours\r\n\r\nA mail of somebody else."
        session.sendmail("a@shop.example", ["b@shop.example"], text)


def forget(maildev: Part, message: Any) -> None:
    """The mail server loses a mail that it had taken over."""
    inbox = MailDevInbox(maildev.url)
    (mail,) = [
        one for one in inbox.all() if one["headers"].get("message-id") == f"<{message}@monban>"
    ]
    inbox.remove(mail["id"])


def newest(owner: Owner) -> Any:
    return owner.one("select id from outbox order by sent_at desc, id desc limit 1")


def test_a_message_that_we_call_sent_and_the_archive_lacks(
    cast: Cast, mailed: House, owner: Owner, maildev: Part
) -> None:
    message = newest(owner)
    forget(maildev, message)
    assert dict(look(mailed).new) == {"message_not_there": 1}
    assert shown(cast) == ["message_not_there"]
    said = resolve(mailed, cast, owner)
    assert isinstance(said, Applied)
    assert said.code == Code.MESSAGE_REQUEUED
    assert work(mailed, "outbox") == 1
    ids = [one["headers"].get("message-id") for one in MailDevInbox(maildev.url).all()]
    assert ids.count(f"<{message}@monban>") == 1
    assert owner.one("select count(*) from outbox where sent_at is null") == 0
    owner.run("update outbox set sent_at = sent_at - interval '40 seconds'")
    assert (look(mailed).open, shown(cast)) == (0, [])


def test_a_message_that_is_no_longer_true_is_not_sent_again(
    cast: Cast, mailed: House, owner: Owner, maildev: Part
) -> None:
    message, stay = owner.row(
        "select id, stay_id from outbox order by sent_at desc, id desc limit 1"
    )
    forget(maildev, message)
    look(mailed)
    do(cast, stays.cancel, stay, 1)
    assert isinstance(resolve(mailed, cast, owner), Applied)
    work(mailed, "outbox")
    withdrawn = "select withdrawn_at is not null from outbox where id = %s"
    assert owner.one(withdrawn, message) is True


@pytest.mark.parametrize("state", ["unknown", "dead"])
def test_a_message_that_the_archive_has_and_we_do_not_call_sent(
    cast: Cast, mailed: House, owner: Owner, maildev: Part, state: str
) -> None:
    """The sender died after the mail server had taken it. One item waits, not two; the verb
    records what is so, and the guest is not written to twice."""
    message = newest(owner)
    owner.run(f"update outbox set sent_at = null, {state}_at = now() where id = %s", message)
    owner.run(
        "delete from consumed_effects where consumer_key ="
        " (select consumer_key from outbox where id = %s)", message,
    )  # fmt: skip
    with cast.transaction(cast.tokyo.id) as tx:
        assert len(attention.look(tx, clock.now()).messages) == 1
    assert dict(look(mailed).new) == {"message_not_here": 1}
    assert shown(cast) == ["message_not_here"]
    with cast.transaction(cast.tokyo.id) as tx:
        assert attention.look(tx, clock.now()).messages == []
    said = resolve(mailed, cast, owner)
    assert isinstance(said, Applied)
    assert said.code == Code.MESSAGE_RECORDED
    assert work(mailed, "outbox") == 0
    assert owner.one("select count(*) from consumed_effects") == 3
    assert len(MailDevInbox(maildev.url).all()) == 1 + 3
    assert look(mailed).open == 0


def test_an_archive_that_was_emptied_denies_nothing(
    cast: Cast, mailed: House, owner: Owner, maildev: Part
) -> None:
    """Whoever clears the mail server has not unsent a mail. What a person was asked to look at
    is asked of it anew."""
    message = newest(owner)
    forget(maildev, message)
    assert look(mailed).new == {"message_not_there": 1}
    MailDevInbox(maildev.url).clear()
    owner.run("update divergences set healed_at = now(), healed_by = 'test'")
    assert look(mailed).open == 0
    assert owner.one("select count(*) from outbox where sent_at is null") == 0


def test_an_archive_that_is_away_says_nothing(
    cast: Cast, mailed: House, owner: Owner, maildev: Part
) -> None:
    forget(maildev, newest(owner))
    assert look(mailed).open == 1
    away = replace(
        mailed,
        providers=replace(mailed.providers, mail_archive=HttpMailArchive("http://127.0.0.1:9")),
    )
    told = look(away)
    assert (told.open, told.healed, told.unread) == (1, 0, 1)
    assert resolve(away, cast, owner) == Refused(Code.CHANNEL_UNAVAILABLE)


def test_the_archive_is_read_a_page_at_a_time(
    cast: Cast, mailed: House, owner: Owner, maildev: Part, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("portal.edges.mail_archive.adapter.PAGE", 1)
    monkeypatch.setattr("portal.jobs.compare_mail.PAGE", 1)
    assert (look(mailed).open, look(mailed).unread) == (0, 0)
    monkeypatch.setattr("portal.edges.mail_archive.adapter.MOST_PAGES", 1)
    assert (look(mailed).open, look(mailed).unread) == (0, 0)


# Bounds -----------------------------------------------------------------------------------------


def test_what_is_on_its_way_is_given_time(
    cast: Cast,
    worker: House,
    stripe: StandIn,
    seam: Running,
    owner: Owner,
    house: Booked,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The event arrives between the two looks."""
    pay(stripe, opened(worker, cast, owner, cast.book(price=5000, space="A02")))
    monkeypatch.setattr("portal.jobs.reconcile.time.sleep", lambda _: deliver(worker))
    told = look(worker)
    assert (told.open, dict(told.new)) == (0, {})
    assert owner.one("select count(*) from divergences") == 0


def test_lists_are_read_a_page_at_a_time_and_doors_in_turn(
    cast: Cast,
    worker: House,
    stripe: StandIn,
    seam: Running,
    owner: Owner,
    house: Booked,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for space in ("A02", "A03"):
        opened(worker, cast, owner, cast.book(price=900, space=space))
    monkeypatch.setattr("portal.edges.payments.calls.PAGE", 1)
    monkeypatch.setattr("portal.jobs.compare_money.PAGE", 1)
    monkeypatch.setattr("portal.jobs.compare_doors.DOORS", 1)
    owner.run("update payments set created_at = created_at - interval '10 minutes'")
    pages = len(stripe.calls("/v1/payment_intents", "GET"))
    doors: set[Any] = set()
    for _ in range(4):
        told = look(worker)
        assert (told.open, told.unread, told.doors) == (0, 0, 2)
        doors |= set(
            owner.rows("select name from checkpoints where reached = (select max(reached) from"
                       " checkpoints where name ~ 'reconcile')")
        )  # fmt: skip
    # Three pages of the last two weeks, and one, empty, of what is older.
    assert len(stripe.calls("/v1/payment_intents", "GET")) - pages == 4 * (3 + 1)
    assert owner.one("select count(*) from checkpoints where name ~ 'reconcile:.{36}'") == 6
    # A list cut at its bound: what it does not reach is not said to be missing there, and that
    # a single moment holds more than can be read is told, not passed over.
    monkeypatch.setattr("portal.edges.payments.calls.MOST_PAGES", 1)
    owner.run("delete from checkpoints where name = 'reconcile:money before'")
    told = look(worker)
    assert (told.open, told.unread) == (0, 1)


DAY = timedelta(days=1)


@pytest.mark.parametrize("days", [20, 40, 200])
def test_what_is_older_is_compared_a_slice_at_a_time(
    cast: Cast, worker: House, stripe: StandIn, seam: Running, owner: Owner, days: int
) -> None:
    """Money of long ago, paid late or gone wrong late, with its event lost: the walk back comes
    to it, and begins anew after the oldest."""
    stripe.post("clock", set=int((clock.now() - days * DAY).timestamp()))
    paid(worker, cast, owner, stripe, cast.book(price=10_000, space="B01"))
    late = opened(worker, cast, owner, cast.book(price=4000, space="A02"))
    for table in ("payments", "refunds"):
        owner.run(f"update {table} set created_at = created_at - {days} * interval '1 day'")
    stripe.post("clock", set=int(clock.now().timestamp()))
    assert look(worker).open == 0
    pay(stripe, late)
    slices = 0
    while not look(worker).open:
        slices += 1
        assert slices < 40, "the walk never came to it"
    assert found(owner) == ["payment_differs"]
    assert isinstance(resolve(worker, cast, owner), Applied)
    assert owner.one("select count(*) from ledger_lines where kind = 'payment'") == 2


def test_an_old_row_whose_intent_is_new_is_in_both_books(
    cast: Cast, worker: House, stripe: StandIn, seam: Running, owner: Owner, house: Booked
) -> None:
    """The slices are cut by each side's own dates. Neither look says of it that it is missing, and
    the older one does not heal what the recent one has found."""
    late = opened(worker, cast, owner, cast.book(price=4000, space="A02"))
    for table in ("payments", "refunds"):
        owner.run(f"update {table} set created_at = created_at - interval '20 days'")
    assert (look(worker).open, look(worker).open) == (0, 0)
    pay(stripe, late)
    owner.run("delete from checkpoints where name = 'reconcile:money before'")
    assert dict(look(worker).new) == {"payment_differs": 1}
    owner.run("delete from checkpoints where name = 'reconcile:money before'")
    told = look(worker)
    assert (told.open, told.healed, told.new) == (1, 0, {})


def test_lists_that_are_cut_leave_no_gap(
    cast: Cast,
    worker: House,
    stripe: StandIn,
    seam: Running,
    owner: Owner,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A busy account: two weeks hold more than one look may read. What the last look did not
    reach, the next ones do, two payments at a time."""
    monkeypatch.setattr("portal.edges.payments.calls.PAGE", 1)
    monkeypatch.setattr("portal.edges.payments.calls.MOST_PAGES", 2)
    monkeypatch.setattr("portal.jobs.compare_money.OVERLAP", timedelta(hours=1))
    spaces = ("A01", "A02", "A03", "B01")
    intents = []
    for days, space in zip((12, 9, 6, 3), spaces, strict=True):
        stripe.post("clock", set=int((clock.now() - days * DAY).timestamp()))
        intents.append(opened(worker, cast, owner, cast.book(price=4000, space=space)))
        owner.run(
            "update payments set created_at = created_at - %s * interval '1 day'"
            " where intent_id = %s", days, intents[-1],
        )  # fmt: skip
    stripe.post("clock", set=int(clock.now().timestamp()))
    assert look(worker).open == 0
    pay(stripe, intents[0])
    for _ in range(8):
        told = look(worker)
        assert told.unread == 0
    assert found(owner) == ["payment_differs"]


def test_the_sweep_and_the_operator_run_it(
    worker: House, house: Booked, inside: Flask, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sweeps.compare() == 0
    monkeypatch.setitem(inside.extensions, "monban.providers", worker.providers)
    command = ["reconcile", "--json", "--settle", "0"]
    clean = inside.test_cli_runner().invoke(args=command)
    assert clean.exit_code == 0
    told = json.loads(clean.stdout.splitlines()[-1])
    assert told == {"new": {}, "healed": 0, "open": 0, "doors": 6, "unread": 0}
    stray(worker, f"monban {uuid4()}")
    differs = inside.test_cli_runner().invoke(args=command)
    assert differs.exit_code == 1
    assert json.loads(differs.stdout.splitlines()[-1])["new"] == {"code_stray": 1}


def test_a_row_of_another_house_is_not_found(
    cast: Cast, worker: House, stripe: StandIn, seam: Running, owner: Owner, house: Booked
) -> None:
    stray(worker, f"monban {uuid4()}")
    look(worker)
    row: UUID = owner.one("select id from divergences")
    said = divergences.resolve(worker.desk(cast.osaka.id), cast.sato.actor, row)
    assert said == Refused(Code.NOT_FOUND)
    assert found(owner) == ["code_stray"]
