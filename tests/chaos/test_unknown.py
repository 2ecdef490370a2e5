"""What nobody can know yet: money, a message, a lock. Each is seen by a person, in words and in
both languages, ends by one verb, and (where the far side can be asked) by itself, asked first."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from uuid import UUID, uuid4

import pytest

from portal.jobs.house import House
from portal.outcome import Code
from portal.verbs import payments, refunds
from sandbox.mail import MailSink
from tests.cast import Booked
from tests.outside import Owner
from tests.web.staff.houses import FrontDesk, desk_app, front, notice, page, send, shown

pytestmark = pytest.mark.proof

__all__ = ["desk_app", "front"]

PAGE = "/staff/attention"


@dataclass
class Lost:
    """Something whose answer was lost after the work was done: the stay, and the row."""

    stay: Booked
    row: UUID


@dataclass(frozen=True)
class Unknown:
    """`once`: how often the far side has done it. `verb`: where its button leads, what is said."""

    lose: Callable[[FrontDesk, Owner], Lost]
    words: dict[str, tuple[str, str]]
    """On the page of what waits, and on the stay's own."""
    verb: tuple[str, Code]
    kinds: tuple[str, ...]
    once: Callable[[FrontDesk], int]


def lost_payment(front: FrontDesk, owner: Owner) -> Lost:
    stay = front.cast.book(price=6000)
    front.stripe.fault("do_then_drop", "^/v1/payment_intents$")
    with front.app.app_context():
        said = payments.open_payment(front.desk(), front.cast.sato.actor, stay.id, "balance")
    assert said.code == Code.PAYMENT_UNKNOWN
    return Lost(stay, owner.one("select id from payments"))


def lost_refund(front: FrontDesk, owner: Owner) -> Lost:
    stay = front.cast.book(price=6000)
    payment = front.paid(stay)
    front.stripe.fault("do_then_drop", "^/v1/refunds$")
    with front.app.app_context():
        said = refunds.ask(
            front.desk(), front.cast.sato.actor, payment, 3000, uuid4(), lowers_price=True
        )
    assert said.code == Code.REFUND_UNKNOWN
    return Lost(stay, owner.one("select id from refunds"))


def lost_set(front: FrontDesk, owner: Owner) -> Lost:
    stay = front.cast.book(price=0)
    front.admitted(stay)
    front.seam.fault("do_then_drop", "/access_codes/create")
    front.work("locks")
    return Lost(stay, owner.one("select id from lock_commands"))


UNKNOWN = {
    "payment": Unknown(
        lost_payment,
        {"ja": ("結果が不明な支払い", "不明"), "en": ("Payments whose fate is unknown", "Unknown")},
        ("payments/{}/ask", Code.PAYMENT_RECORDED),
        ("payments",),
        lambda front: front.stripe.creates("payment_intent"),
    ),
    "refund": Unknown(
        lost_refund,
        {"ja": ("完了していない返金", "不明"), "en": ("Refunds that are not through", "Unknown")},
        ("refunds/{}/ask", Code.REFUND_SENT),
        ("refunds",),
        lambda front: front.stripe.creates("refund"),
    ),
    "lock command": Unknown(
        lost_set,
        {
            "ja": ("応答が失われた錠", "錠の応答が失われました"),
            "en": ("Locks whose answer was lost", "The lock's answer was lost"),
        },
        ("commands/{}/again", Code.LOCK_ASKED_AGAIN),
        ("locks",),
        lambda front: front.seam.counts()["POST /access_codes/create"],
    ),
}


@pytest.fixture(params=list(UNKNOWN))
def unknown(request: pytest.FixtureRequest) -> Unknown:
    return UNKNOWN[request.param]


@pytest.mark.parametrize("lang", ["ja", "en"])
def test_a_person_sees_it_and_one_verb_ends_it(
    front: FrontDesk, owner: Owner, unknown: Unknown, lang: str
) -> None:
    lost = unknown.lose(front, owner)
    client = front.cast.signed_in(front.cast.sato, locale=lang)
    page(client, PAGE, lang)
    waits, stands = unknown.words[lang]
    assert waits in shown(client, PAGE)
    assert stands in shown(client, f"/staff/stays/{lost.stay.id}")
    where, said = unknown.verb
    assert notice(client, send(client, PAGE, f"{PAGE}/{where.format(lost.row)}")) == said
    front.work(*unknown.kinds)
    assert waits not in shown(client, PAGE)
    assert stands not in shown(client, f"/staff/stays/{lost.stay.id}")
    assert unknown.once(front) == 1


def test_it_ends_by_itself_and_the_far_side_is_asked_first(
    front: FrontDesk, owner: Owner, unknown: Unknown
) -> None:
    unknown.lose(front, owner)
    owner.make_due()
    front.work(*unknown.kinds)
    client = front.cast.signed_in(front.cast.sato, locale="en")
    assert unknown.words["en"][0] not in shown(client, PAGE)
    assert unknown.once(front) == 1


def test_a_far_side_that_cannot_be_asked_leaves_it_unknown(
    front: FrontDesk, owner: Owner, unknown: Unknown
) -> None:
    """Neither the worker nor the person's verb guesses; nothing is sent a second time."""
    lost = unknown.lose(front, owner)
    front.stripe.post("faults", mode="refuse", method="GET", times=None)
    front.seam.fault("refuse", "/access_codes/list", times=100)
    owner.make_due()
    front.work(*unknown.kinds)
    client = front.cast.signed_in(front.cast.sato, locale="en")
    assert unknown.words["en"][0] in shown(client, PAGE)
    send(client, PAGE, f"{PAGE}/{unknown.verb[0].format(lost.row)}")
    front.work(*unknown.kinds)
    assert unknown.words["en"][0] in shown(client, PAGE)
    assert unknown.once(front) == 1


def test_a_lock_that_was_given_up_in_doubt_says_that_it_may_have_done_it(
    front: FrontDesk, owner: Owner
) -> None:
    lost = lost_set(front, owner)
    owner.run("update lock_commands set dead_at = now(), attempts = 20")
    client = front.cast.signed_in(front.cast.sato, locale="en")
    assert "It may have been done; its answer was lost" in shown(client, PAGE)
    done = send(client, PAGE, f"{PAGE}/commands/{lost.row}/again")
    assert notice(client, done) == Code.LOCK_ASKED_AGAIN
    front.work("locks")
    assert len(front.seam.control("codes")) == 1
    assert front.seam.counts()["POST /access_codes/create"] == 1


def test_whoever_has_a_lost_command_in_hand_keeps_it(front: FrontDesk, owner: Owner) -> None:
    """The person's verb must not let a second worker at a command that one is just carrying out."""
    lost = lost_set(front, owner)
    owner.run("update lock_commands set claimed_at = now(), claim_token = %s", uuid4())
    client = front.cast.signed_in(front.cast.sato)
    done = send(client, PAGE, f"{PAGE}/commands/{lost.row}/again")
    assert notice(client, done) == Code.LOCK_ASKED_AGAIN
    front.work("locks")
    assert owner.row("select done_at, attempts from lock_commands") == (None, 1)


# Words: a mail server cannot be asked ------------------------------------------------------------


@pytest.mark.parametrize("how", ["its answer was lost", "its sender was killed"])
@pytest.mark.parametrize("lang", ["ja", "en"])
def test_a_mail_that_may_have_arrived_waits_for_a_person(
    front: FrontDesk, worker: House, mail: MailSink, owner: Owner, how: str, lang: str
) -> None:
    """After a kill the row says that it was being sent; the next worker calls it unknown."""
    front.house = replace(front.house, channels=worker.channels)
    stay = front.cast.book()
    if how == "its answer was lost":
        mail.drop("keep_then_drop")
    else:
        owner.run(
            "update outbox set attempts = 1, claim_token = gen_random_uuid(),"
            " claimed_at = now() - interval '6 minutes', sending_at = now() - interval '6 minutes'"
        )
    front.work("outbox")
    client = front.cast.signed_in(front.cast.sato, locale=lang)
    words = {"ja": "届いたか不明", "en": "Delivery unknown"}[lang]
    page(client, PAGE, lang)
    assert words in shown(client, PAGE)
    assert words in shown(client, f"/staff/stays/{stay.id}")
    owner.make_due()
    front.work("outbox")
    assert words in shown(client, PAGE)
    message = owner.one("select id from outbox")
    if how == "its answer was lost":  # the guest has it
        done = send(client, PAGE, f"{PAGE}/messages/{message}/drop")
        assert notice(client, done) == Code.MESSAGE_DROPPED
    else:
        done = send(client, PAGE, f"{PAGE}/messages/{message}/resend")
        assert notice(client, done) == Code.MESSAGE_REQUEUED
    front.work("outbox")
    assert words not in shown(client, PAGE)
    assert len(mail.kept) == 1
