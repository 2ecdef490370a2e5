"""What waits for a person: each thing with the verb that ends its wait."""

from uuid import UUID

from flask import Blueprint, render_template, url_for
from werkzeug.wrappers import Response as AnyResponse

from portal import clock
from portal.outcome import Outcome
from portal.queries import attention as waiting
from portal.verbs import (
    attention,
    disputes,
    divergences,
    doors,
    events,
    keys,
    messages,
    payment_answers,
    refunds,
)
from portal.web import access, answer, forms

blueprint = Blueprint("attention", __name__, url_prefix="/staff/attention")


@blueprint.get("")
@access.staff()
def index() -> str:
    return page()


@blueprint.post("/letters/<uuid:letter_id>/replay")
@access.staff()
def replay(letter_id: UUID) -> AnyResponse:
    return _answered(answer.act(events.replay, letter_id))


@blueprint.post("/letters/<uuid:letter_id>/dismiss")
@access.staff()
def dismiss(letter_id: UUID) -> AnyResponse:
    return _answered(answer.act(events.dismiss, letter_id))


@blueprint.post("/messages/<uuid:message_id>/resend")
@access.staff()
def resend(message_id: UUID) -> AnyResponse:
    return _answered(answer.act(messages.resend, message_id))


@blueprint.post("/messages/<uuid:message_id>/drop")
@access.staff()
def drop(message_id: UUID) -> AnyResponse:
    return _answered(answer.act(messages.drop, message_id))


@blueprint.post("/payments/<uuid:payment_id>/ask")
@access.staff()
def ask_payment(payment_id: UUID) -> AnyResponse:
    return _answered(answer.act_at_desk(payment_answers.resolve, payment_id))


@blueprint.post("/payments/<uuid:payment_id>/disputes")
@access.staff()
def ask_disputes(payment_id: UUID) -> AnyResponse:
    return _answered(answer.act_at_desk(disputes.ask, payment_id))


@blueprint.post("/refunds/<uuid:refund_id>/ask")
@access.staff()
def ask_refund(refund_id: UUID) -> AnyResponse:
    return _answered(answer.act_at_desk(refunds.send, refund_id))


@blueprint.post("/refunds/<uuid:refund_id>/let-be")
@access.staff()
def let_be(refund_id: UUID) -> AnyResponse:
    return _answered(answer.act(attention.let_be, refund_id))


@blueprint.post("/divergences/<uuid:divergence_id>/resolve")
@access.staff()
def resolve(divergence_id: UUID) -> AnyResponse:
    return _answered(answer.act_at_desk(divergences.resolve, divergence_id))


@blueprint.post("/divergences/<uuid:divergence_id>/let-be")
@access.staff()
def let_differ(divergence_id: UUID) -> AnyResponse:
    return _answered(answer.act(divergences.let_be, divergence_id))


@blueprint.post("/commands/<uuid:command_id>/again")
@access.staff()
def again(command_id: UUID) -> AnyResponse:
    return _answered(answer.act(keys.ask_again, command_id))


@blueprint.post("/doors/<uuid:door_id>/ask")
@access.staff()
def ask_door(door_id: UUID) -> AnyResponse:
    return _answered(answer.act_at_desk(doors.ask, door_id))


@blueprint.post("/stays/<uuid:stay_id>/new-code")
@access.staff()
def new_code(stay_id: UUID) -> AnyResponse | str:
    form = forms.ActForm()
    if not form.validate():
        return answer.form_again(page(form.problems))
    return _answered(answer.act(keys.reissue, stay_id, form.version.data))


def page(problems: list[str] | None = None) -> str:
    with answer.reading() as tx:
        seen = waiting.look(tx, clock.now())
    return render_template(
        "staff/attention/index.html",
        seen=seen,
        problems=problems or [],
        may_be=divergences.MAY_BE,
    )


def _answered(said: Outcome) -> AnyResponse:
    return answer.respond(said, to=url_for("attention.index"), render=page)
