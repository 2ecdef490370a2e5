"""Card payments: listed, shown, refunded, asked after."""

from datetime import datetime
from uuid import UUID

from flask import Blueprint, abort, render_template, request, url_for
from werkzeug.wrappers import Response as AnyResponse
from wtforms import RadioField, ValidationError
from wtforms.fields.choices import SelectChoice  # type: ignore[attr-defined]

from portal import clock
from portal.lazy import _l
from portal.machines.payment import MACHINE
from portal.outcome import Code, Outcome, Refused
from portal.queries import payments as listed
from portal.verbs import disputes, payment_answers, refunds
from portal.web import access, answer, forms, lists, words

blueprint = Blueprint("payments", __name__, url_prefix="/staff/payments")

ASKABLE = ("open", "processing", "unknown")

FAILURES = {
    "unreachable": _l("The provider could not be reached; nothing was sent."),
    "rejected": _l("The provider refused it."),
    "expired_or_canceled_card": _l("The card is expired or cancelled."),
    "lost_or_stolen_card": _l("The card was reported lost or stolen."),
    "insufficient_funds": _l("The house's balance at the provider was too small."),
    "declined": _l("The guest's bank declined it."),
}


class RefundForm(forms.MakeForm):
    """`price`: a gesture lowers it, so that the guest does not owe the amount again."""

    amount = forms.Amount(_l("Amount to return"), [forms.required()], least=1)
    price = RadioField(
        _l("What becomes of the price"),
        choices=[
            SelectChoice("keep", _l("The price stays: what was paid too much goes back")),
            SelectChoice("lower", _l("The price falls by this amount: a gesture to the guest")),
        ],
        validate_choice=False,
    )

    def validate_price(self, field: RadioField) -> None:
        if field.data not in ("keep", "lower"):
            raise ValidationError(str(_l("Choose one of the list.")))


@blueprint.app_template_global()
def refund_failure(reason: str) -> str:
    """Why a refund failed; the provider's own word where we have none."""
    return words.said(FAILURES, reason)


@blueprint.get("")
@access.staff()
def index() -> str:
    asked = _asked()
    day = lists.day("day")
    bounds = clock.day_bounds(day, access.facility().time_zone) if day else None
    with answer.reading() as tx:
        page = listed.page(tx, _wanted(asked, bounds))
        money = listed.of_day(tx, *bounds) if bounds else []
    return render_template(
        "staff/payments/index.html",
        asked=asked,
        day=day,
        today=clock.local_day(clock.now(), access.facility().time_zone),
        page=page,
        money=money,
        states=list(MACHINE.table),
        **lists.neighbours("payments.index", asked, page),
    )


@blueprint.get("/<uuid:payment_id>")
@access.staff()
def show(payment_id: UUID) -> str:
    return _page(payment_id)


@blueprint.get("/<uuid:payment_id>/refund")
@access.staff()
def refund(payment_id: UUID) -> str:
    return _refund_page(payment_id, None)


@blueprint.post("/<uuid:payment_id>/refund", endpoint="send_back")
@access.staff()
def send_back(payment_id: UUID) -> AnyResponse | str:
    form = RefundForm()
    if not form.validate():
        return answer.form_again(_refund_page(payment_id, form))
    said = answer.act_at_desk(
        refunds.ask,
        payment_id,
        form.amount.data,
        form.form_key.data,
        lowers_price=form.price.data == "lower",
    )
    return answer.respond(
        said,
        to=url_for("payments.show", payment_id=payment_id),
        render=lambda: _page(payment_id),
        again=None if _is_over(said) else lambda: _refund_page(payment_id, form),
    )


@blueprint.post("/<uuid:payment_id>/resolve")
@access.staff()
def resolve(payment_id: UUID) -> AnyResponse:
    return answer.respond(
        answer.act_at_desk(payment_answers.resolve, payment_id),
        to=url_for("payments.show", payment_id=payment_id),
        render=lambda: _page(payment_id),
    )


@blueprint.post("/<uuid:payment_id>/disputes")
@access.staff()
def ask_disputes(payment_id: UUID) -> AnyResponse:
    return answer.respond(
        answer.act_at_desk(disputes.ask, payment_id),
        to=url_for("payments.show", payment_id=payment_id),
        render=lambda: _page(payment_id),
    )


def _is_over(said: Outcome) -> bool:
    """The form has been used: its refund stands on the payment's page, sent, lost or failed. Sent
    once more it would say that it was asked for already."""
    used = (Code.REFUND_UNKNOWN, Code.REFUND_UNAVAILABLE, Code.NOTHING_TO_REFUND)
    return not isinstance(said, Refused) or said.code in used


def _page(payment_id: UUID) -> str:
    seen = _load(payment_id)
    return render_template(
        "staff/payments/show.html",
        seen=seen,
        payment=seen.payment,
        askable=seen.payment.state in ASKABLE,
    )


def _refund_page(payment_id: UUID, form: RefundForm | None) -> str:
    seen = _load(payment_id)
    form = form or RefundForm(
        formdata=None,
        data={
            "amount": seen.owed or seen.refundable or None,
            "price": "keep" if seen.owed else "lower",
        },
    )
    return render_template("staff/payments/refund.html", seen=seen, payment=seen.payment, form=form)


def _load(payment_id: UUID) -> listed.PaymentPage:
    with answer.reading() as tx:
        seen = listed.load(tx, payment_id)
    return seen if seen is not None else abort(404)


# What the list is asked for ----------------------------------------------------------------------


def _asked() -> dict[str, str]:
    """The query's own words, in one order, so that the same list has one address."""
    state, day = request.args.get("state", ""), lists.day("day")
    return {
        "state": state if state in MACHINE.table else "",
        "day": day.isoformat() if day else "",
    }


def _wanted(asked: dict[str, str], during: tuple[datetime, datetime] | None) -> listed.Wanted:
    return listed.Wanted(asked["state"], during, lists.cursor())
