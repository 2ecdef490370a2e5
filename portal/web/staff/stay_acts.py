"""What staff do to a stay. Each POST reaches one verb; what is hard to undo is asked first on a
page of its own."""

from datetime import datetime
from typing import Any
from uuid import UUID

from flask import Blueprint, abort, render_template, request
from werkzeug.datastructures import MultiDict
from werkzeug.wrappers import Response as AnyResponse

from portal import clock
from portal.db import Row
from portal.money import LARGEST
from portal.policies import cancellation, pricing
from portal.queries import offers
from portal.verbs import cash, deposits, keys, links, stay_changes, stays
from portal.web import access, answer, forms, people
from portal.web.staff import stay_forms, stay_view

blueprint = Blueprint("acts", __name__, url_prefix="/<uuid:stay_id>")


# One button, one verb ----------------------------------------------------------------------------


@blueprint.post("/check-in")
@access.staff()
def check_in(stay_id: UUID) -> AnyResponse:
    return stay_view.answered(answer.act(stays.admit, stay_id, forms.seen()), stay_id)


@blueprint.post("/check-out")
@access.staff()
def check_out(stay_id: UUID) -> AnyResponse:
    return stay_view.answered(answer.act(stays.depart, stay_id, forms.seen()), stay_id)


@blueprint.post("/no-show")
@access.staff()
def no_show(stay_id: UUID) -> AnyResponse:
    return stay_view.answered(answer.act(stays.mark_no_show, stay_id, forms.seen()), stay_id)


@blueprint.post("/reinstate")
@access.staff()
def reinstate(stay_id: UUID) -> AnyResponse:
    return stay_view.answered(answer.act(stays.reinstate, stay_id, forms.seen()), stay_id)


@blueprint.post("/key", endpoint="key")
@access.staff()
def new_key(stay_id: UUID) -> AnyResponse:
    return stay_view.answered(answer.act(keys.reissue, stay_id, forms.seen()), stay_id)


@blueprint.post("/link")
@access.staff()
def link(stay_id: UUID) -> AnyResponse:
    return stay_view.answered(answer.act(links.renew_of_stay, stay_id, forms.seen()), stay_id)


# Cancelling --------------------------------------------------------------------------------------


@blueprint.get("/cancel")
@access.staff()
def cancel(stay_id: UUID) -> str:
    return _cancel_page(stay_id, None)


@blueprint.post("/cancel", endpoint="cancelled")
@access.staff()
def do_cancel(stay_id: UUID) -> AnyResponse | str:
    form = stay_forms.CancelForm()
    version = forms.seen()
    if not form.validate():
        return answer.form_again(_cancel_page(stay_id, form))
    outcome = answer.act(stays.cancel, stay_id, version, fee=form.fee.data or 0)
    again = (lambda: _cancel_page(stay_id, form)) if outcome.status == "refused" else None
    return stay_view.answered(outcome, stay_id, again)


def _cancel_page(stay_id: UUID, form: stay_forms.CancelForm | None) -> str:
    """A fresh form suggests what the terms ask, where some were agreed to."""
    with answer.reading() as tx:
        stay = stay_view.head_of(tx, stay_id)
    now, steps = clock.now(), cancellation.steps_of(stay.cancellation_steps)
    due = cancellation.consequence(steps, stay.price, stay.starts_at, now)
    if form is None:
        form = stay_forms.CancelForm(formdata=None, data={"fee": due.fee, "version": stay.version})
    paid = stay.charged - stay.balance
    fee = min(form.fee.data or 0, stay.price)
    over = stay.price + stay.lodging_tax - stay.balance - fee
    return render_template(
        "staff/stays/cancel.html",
        stay=stay,
        form=form,
        version=form.version.data or stay.version,
        price=stay.price,
        paid=paid,
        back=max(0, over),
        due=due if steps else None,
        visit_returns=cancellation.visit_returns(steps, stay.starts_at, now),
    )


# Another space -----------------------------------------------------------------------------------


@blueprint.get("/move")
@access.staff()
def move(stay_id: UUID) -> str:
    return _move_page(stay_id)


@blueprint.post("/move", endpoint="moved")
@access.staff()
def do_move(stay_id: UUID) -> AnyResponse:
    space = people.uuid_of(request.form.get("space_id"))
    version = forms.seen()
    if space is None:
        abort(404)
    outcome = answer.act(stay_changes.move_to, stay_id, version, space)
    again = (lambda: _move_page(stay_id)) if outcome.status == "refused" else None
    return stay_view.answered(outcome, stay_id, again)


def _move_page(stay_id: UUID) -> str:
    """The spaces for the rest of the stay: what is over is nobody's matter."""
    with answer.reading() as tx:
        stay = stay_view.head_of(tx, stay_id)
        spaces = offers.spaces(tx, stay.starts_at, stay.ends_at, except_stay=stay_id)
    others = [space for space in spaces if space.id != stay.space_id]
    return render_template(
        "staff/stays/move.html",
        stay=stay,
        free=[space for space in others if not space.taken],
        taken=[space for space in others if space.taken],
        space_name=stay_forms.space_name,
    )


# Other times -------------------------------------------------------------------------------------


@blueprint.get("/times")
@access.staff()
def times(stay_id: UUID) -> str:
    with answer.reading() as tx:
        stay = stay_view.head_of(tx, stay_id)
    shown = stay_forms.of_period(stay.starts_at, stay.ends_at, access.facility().time_zone)
    asked = {name: request.args[name] for name in shown if request.args.get(name)}
    values = MultiDict({**shown, "version": str(stay.version), **asked})
    return _times_page(stay, stay_forms.TimesForm(formdata=values))


@blueprint.post("/times", endpoint="timed")
@access.staff()
def do_times(stay_id: UUID) -> AnyResponse | str:
    form = stay_forms.TimesForm()
    version = forms.seen()
    with answer.reading() as tx:
        stay = stay_view.head_of(tx, stay_id)
    period = _period(stay, form)
    if not form.validate() or period is None:
        return answer.form_again(_times_page(stay, form))
    change = form.price_change.data
    if change is None:
        change = _suggested(stay, period)
    outcome = answer.act(stay_changes.change_times, stay_id, version, *period, change)
    again = (lambda: _times_page(stay, form)) if outcome.status == "refused" else None
    return stay_view.answered(outcome, stay_id, again)


def _times_page(stay: Row, form: stay_forms.TimesForm) -> str:
    period = _period(stay, form)
    return render_template(
        "staff/stays/times.html",
        stay=stay,
        form=form,
        suggested=_suggested(stay, period) if period and stay.plan_id else None,
    )


def _period(stay: Row, form: stay_forms.TimesForm) -> tuple[datetime, datetime] | None:
    """What the form asks for. A time that was not touched stays the very instant it was, and the
    start of a guest in house is no longer asked."""
    typed = form.period(access.facility().time_zone)
    if typed is None:
        return None
    begins = stay.starts_at if stay.state == "admitted" else _same(typed[0], stay.starts_at)
    return begins, _same(typed[1], stay.ends_at)


def _same(typed: datetime, was: datetime) -> datetime:
    return was if typed == was.replace(second=0, microsecond=0) else typed


def _suggested(stay: Row, period: tuple[datetime, datetime]) -> int:
    """What the plan asks for the new times beyond the old ones; 0 without a plan."""
    if stay.plan_id is None:
        return 0
    zone = access.facility().time_zone
    new, old = (
        stay_forms.quote(stay, times, zone) for times in (period, (stay.starts_at, stay.ends_at))
    )
    return max(-LARGEST, min(new - old, LARGEST))


# The deposit's deadline ---------------------------------------------------------------------------


@blueprint.get("/deposit")
@access.staff()
def deposit(stay_id: UUID) -> str:
    return _deposit_page(stay_id, None)


@blueprint.post("/deposit", endpoint="deposit_by")
@access.staff()
def set_deadline(stay_id: UUID) -> AnyResponse | str:
    form = stay_forms.DeadlineForm()
    version = forms.seen()
    if not form.validate():
        return answer.form_again(_deposit_page(stay_id, form))
    outcome = answer.act(deposits.set_deadline, stay_id, version, _deadline(stay_id, form))
    again = (lambda: _deposit_page(stay_id, form)) if outcome.status == "refused" else None
    return stay_view.answered(outcome, stay_id, again)


@blueprint.post("/deposit/lift")
@access.staff()
def lift_deadline(stay_id: UUID) -> AnyResponse:
    outcome = answer.act(deposits.set_deadline, stay_id, forms.seen(), None)
    return stay_view.answered(outcome, stay_id)


def _deadline(stay_id: UUID, form: stay_forms.DeadlineForm) -> datetime | None:
    """A time that was not touched stays the very instant that it was, as a stay's times do."""
    with answer.reading() as tx:
        was = stay_view.head_of(tx, stay_id).deposit_by
    typed: datetime | None = form.deposit_by.data
    return _same(typed, was) if typed and was else typed


def _deposit_page(stay_id: UUID, form: stay_forms.DeadlineForm | None) -> str:
    """A fresh form shows the deadline as it is; where there is none, arrival."""
    with answer.reading() as tx:
        stay = stay_view.head_of(tx, stay_id)
    if form is None:
        shown = {"deposit_by": stay.awaited_by or stay.starts_at, "version": stay.version}
        form = stay_forms.DeadlineForm(formdata=None, data=shown)
    return render_template(
        "staff/stays/deposit.html",
        stay=stay,
        form=form,
        now=clock.now(),
        still_open=pricing.deposit_open(stay.deposit_due, stay.charged, stay.balance),
    )


# More or fewer persons ----------------------------------------------------------------------------


@blueprint.get("/persons")
@access.staff()
def persons(stay_id: UUID) -> str:
    return _persons_page(stay_id, None)


@blueprint.post("/persons", endpoint="counted")
@access.staff()
def do_persons(stay_id: UUID) -> AnyResponse | str:
    form, version = stay_forms.PersonsForm(), forms.seen()
    if not form.validate():
        return answer.form_again(_persons_page(stay_id, form))
    outcome = answer.act(stay_changes.change_persons, stay_id, version, form.persons.data)
    again = (lambda: _persons_page(stay_id, form)) if outcome.status == "refused" else None
    return stay_view.answered(outcome, stay_id, again)


def _persons_page(stay_id: UUID, form: stay_forms.PersonsForm | None) -> str:
    with answer.reading() as tx:
        stay = stay_view.head_of(tx, stay_id)
    now = {"persons": stay.persons, "version": stay.version}
    return render_template(
        "staff/stays/persons.html",
        stay=stay,
        form=form or stay_forms.PersonsForm(formdata=None, data=now),
    )


# Cash --------------------------------------------------------------------------------------------


@blueprint.post("/cash")
@access.staff()
def take_cash(stay_id: UUID) -> AnyResponse | str:
    return _cash(stay_id, cash.take, "cash")


@blueprint.post("/cash-back")
@access.staff()
def hand_back_cash(stay_id: UUID) -> AnyResponse | str:
    return _cash(stay_id, cash.hand_back, "cash_back")


def _cash(stay_id: UUID, verb: Any, name: str) -> AnyResponse | str:
    form = stay_forms.CashForm()

    def again() -> str:
        return stay_view.page(stay_id, **{name: form})

    if not form.validate():
        return answer.form_again(again())
    outcome = answer.act(verb, stay_id, form.amount.data, form.form_key.data)
    return stay_view.answered(outcome, stay_id, again if outcome.status == "refused" else None)
