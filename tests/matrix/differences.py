"""The far side has something otherwise than our books: planted there, and found by a comparison."""

import smtplib
from datetime import UTC, datetime
from email.utils import format_datetime
from uuid import UUID, uuid4

from portal import clock
from portal.jobs.reconcile import reconcile
from sandbox.stripe.testing import client
from tests.cast import Booked
from tests.matrix import outside
from tests.matrix.scenes import (
    HOUR,
    PRICE,
    Scene,
    a_guest_in_house,
    a_mail_to_send,
    a_reserved_stay,
    an_open_payment,
    code_of,
    refunded,
)
from tests.matrix.stage import Given, Stage
from tests.outside import STRIPE_KEY, work


def found(scene: Scene) -> Scene:
    """A comparison has written down what the scene's far side has otherwise."""

    def with_difference(stage: Stage) -> Given:
        given = scene(stage)
        told = reconcile(stage.house.providers, settle=0)
        assert told.open == 1, told
        return given | {"divergence": stage.owner.one("select id from divergences")}

    return with_difference


# Money ------------------------------------------------------------------------------------------


def a_payment_in_nobodys_books(stage: Stage) -> Given:
    given = a_reserved_stay(stage)
    strange = {"payment_id": str(uuid4()), "facility": str(stage.cast.tokyo.id)}
    client(stage.stripe.base, STRIPE_KEY).payment_intents.create(
        {"amount": 700, "currency": "jpy", "metadata": strange}
    )
    return given


def an_attempt_that_the_provider_lost(stage: Stage) -> Given:
    """An open payment whose intent is nowhere, and nobody has paid it."""
    given = an_open_payment(stage)
    stage.stripe.post("reset")
    outside.pass_time(stage.owner)
    return given


def a_refund_that_the_provider_lost(stage: Stage) -> Given:
    """The provider holds the guest's money, and knows of no refund of it."""
    stay, payment = refunded(stage)
    stage.stripe.post("reset")
    _charge_anew(stage, payment)
    return _of_a_lost_refund(stage, stay, payment)


def a_refund_under_another_id(stage: Stage) -> Given:
    """It bears our refund's name, and our row was told a wrong id."""
    stay, payment = refunded(stage)
    stage.owner.run("update refunds set provider_refund_id = 're_never_was'")
    return _of_a_lost_refund(stage, stay, payment)


def _charge_anew(stage: Stage, payment: UUID) -> None:
    names = ("payment_id", "purpose", "subject", "facility")
    row = stage.owner.row("select id, purpose, subject_id, facility_id from payments")
    intent = client(stage.stripe.base, STRIPE_KEY).payment_intents.create(
        {
            "amount": PRICE,
            "currency": "jpy",
            "payment_method": "pm_card_visa",
            "confirm": True,
            "return_url": "https://example.com/back",
            "metadata": dict(zip(names, map(str, row), strict=True)),
        }
    )
    stage.owner.run("update payments set intent_id = %s where id = %s", intent.id, payment)


def _of_a_lost_refund(stage: Stage, stay: Booked, payment: UUID) -> Given:
    outside.pass_time(stage.owner)
    return stage.given(stay, payment=payment)


# Doors ------------------------------------------------------------------------------------------


def a_stray_code(stage: Stage) -> Given:
    given = a_guest_in_house(stage)
    stage.house.providers.locks.create_code(
        device_id="haneda-capsule-a01",
        name=f"monban {uuid4()}",
        pin="907531",
        starts_at=clock.now(),
        ends_at=clock.now() + 24 * HOUR,
    )
    stage.locks_rest()
    return given


def a_code_with_another_end(stage: Stage) -> Given:
    later = (clock.now() + 720 * HOUR).isoformat(timespec="seconds")
    return _modified(stage, ends_at=later)


def a_code_with_other_digits(stage: Stage) -> Given:
    """Somebody changed them in the lock's own app."""
    return _modified(stage, code="907531")


def _modified(stage: Stage, **what: str) -> Given:
    given = a_guest_in_house(stage)
    stage.seam.control(f"codes/{code_of(stage)}/modify", what)
    return given


# Mail -------------------------------------------------------------------------------------------


def a_mail_in_doubt_that_arrived(stage: Stage) -> Given:
    """The mail server has it, and its answer was lost."""
    stage.mail.drop("keep_then_drop")
    given = a_mail_to_send(stage)
    work(stage.house, "outbox")
    doubtful = stage.owner.one("select count(*) from outbox where unknown_at is not null")
    assert (doubtful, len(stage.mail.kept)) == (1, 1)
    return given


def a_mail_given_up_that_arrived(stage: Stage) -> Given:
    """The mail server has it, and we believe that it could not be sent."""
    given = a_reserved_stay(stage)
    stage.owner.run("update outbox set sent_at = null, dead_at = now()")
    stage.owner.run("delete from consumed_effects")
    return given


def a_mail_that_the_server_lost(stage: Stage) -> Given:
    """It had taken it over, a minute ago. An older mail shows how far back it remembers."""
    an_old_mail(stage)
    given = a_reserved_stay(stage)
    stage.mail.lose(f"<{stage.owner.one('select id from outbox')}@monban>")
    stage.owner.run("update outbox set sent_at = sent_at - interval '1 minute'")
    return given


def an_old_mail(stage: Stage) -> None:
    date = format_datetime(datetime.now(UTC) - HOUR)
    text = f"Date: {date}\r\nMessage-ID: <1@shop.example>\r\n\r\nA mail of somebody else."
    with smtplib.SMTP("127.0.0.1", stage.mail.port) as session:
        session.sendmail("a@shop.example", ["b@shop.example"], text)
