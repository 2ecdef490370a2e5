"""The tablet at an entrance: language, then a reservation's code or a walk-in, paying, the key.

Its addresses name no stay: whose it is stands in a session of the database, whose token the tablet
holds and every way back to the first page drops. So whoever comes next finds nothing there, neither
by the back button nor in what the browser remembers of addresses.
"""

from typing import Any
from uuid import UUID

from flask import Blueprint, abort, redirect, render_template, session, url_for
from flask_babel import gettext
from flask_limiter.util import get_remote_address
from werkzeug.wrappers import Response as AnyResponse

from portal import clock, seal
from portal.db import Row
from portal.lazy import _l
from portal.money import Money, below_card_minimum
from portal.outcome import Applied, Code, Noop, Outcome, Refused
from portal.policies import door_code, opening, stay_codes
from portal.queries import guest_stay
from portal.queries import kiosk as seen
from portal.verbs import kiosk, payments, stays
from portal.verbs.guests import NewGuest
from portal.verbs.kiosk import LONGEST_HOURS, WalkIn
from portal.web import access, answer, forms, links, words
from portal.web.extensions import limiter
from portal.web.guest import cards
from portal.web.guest.limits import guesses
from portal.web.locale import language, money

blueprint = Blueprint("kiosk", __name__, url_prefix="/e/<token>")
guesses(blueprint)

HELD = "kiosk"
LEFT_BEHIND = (HELD, "lang", "_flashes", "csrf_token")
"""What the browser's session may hold of a guest. The last is the secret of every form's token: a
form that the browser would send again for whoever presses its back button is no longer ours."""

# What a guest can do something about, or may know; anything else is the desk's to say.
TOLD = {
    Code.STAY_NOT_YET_OPEN, Code.STAY_WINDOW_OVER, Code.BALANCE_DUE, Code.PAYMENT_PENDING,
    Code.PAYMENT_UNKNOWN, Code.SPACE_TAKEN, Code.SPACE_QUARANTINED, Code.ENTRANCE_CLOSED,
    Code.ENTRANCE_FULL, Code.WALK_IN_NOT_ALLOWED, Code.PLAN_NOT_IN_CONFIG, Code.MEMBERS_ONLY_PLAN,
    Code.KIOSK_NOTHING_FOUND, Code.FORM_EXPIRED, Code.NOT_FOUND, Code.AMOUNT_BELOW_MINIMUM,
    Code.BILLING_UNAVAILABLE, Code.REGISTER_MISSING, Code.STAY_PLAN_NOT_ON_SALE,
    Code.TICKET_BOOK_UNKNOWN, Code.TICKET_BOOK_VOID, Code.TICKET_BOOK_OF_ANOTHER_PLAN,
    Code.TICKET_BOOK_EXPIRED, Code.TICKET_BOOK_EMPTY, Code.TICKET_BOOK_UNPAID,
}  # fmt: skip


class TabletForm(forms.Form):
    """What one guest typed is not offered to the next."""

    def __init__(self, *args: Any, **values: Any) -> None:
        super().__init__(*args, **values)
        for field in self:
            field.render_kw = {**(field.render_kw or {}), "autocomplete": "off"}


class CodeForm(TabletForm):
    code = forms.Text(_l("Reservation code"), [forms.required()], most=20)
    proof = forms.Text(
        _l("Last four figures of your telephone, or your name"), [forms.required()], most=100
    )


class WalkInForm(TabletForm, forms.MakeForm):
    plan_id = forms.Choice(_l("Plan"))
    hours = forms.Choice(_l("Hours, for a plan by the hour"), default="1")
    name = forms.PersonName(_l("Name"), [forms.required()])
    kana = forms.PersonName(_l("Name in kana"))
    phone = forms.Phone(_l("Telephone"), [forms.required()])
    email = forms.Email(_l("E-mail"))
    ticket = forms.Text(_l("Code of a ticket book"), most=20)

    def validate_name(self, field: Any) -> None:
        forms.require_a_name(field)

    def wanted(self) -> WalkIn:
        """Only of a form that is valid."""
        guest = NewGuest(
            name=self.name.data or "",
            kana=self.kana.data or "",
            email=self.email.data,
            phone=self.phone.data,
            locale=language(),
        )
        return WalkIn(
            self.form_key.data,
            guest,
            UUID(self.plan_id.data),
            int(self.hours.data or "1"),
            stay_codes.as_typed(self.data.get("ticket") or "") or None,
        )


def _tablet() -> str:
    """Whoever guesses codes does so from one place, at one entrance."""
    return f"{get_remote_address()}:{access.visit().token}"


def _refused(response: AnyResponse) -> bool:
    return response.status_code == 422


@blueprint.get("")
@access.kiosk
def start(token: str) -> str:
    """In every language, with nothing of whoever was here before."""
    for name in LEFT_BEHIND:
        session.pop(name, None)
    return render_template("kiosk/start.html", token=token, entrance=_entrance())


@blueprint.get("/begin")
@access.kiosk
def begin(token: str) -> str:
    way, zone, now = _entrance(), access.facility().time_zone, clock.now()
    opens_at = opening.closed_until(opening.week(way.opens, way.closes), zone, now)
    today = opens_at and clock.local_day(opens_at, zone) == clock.local_day(now, zone)
    return _page("begin", entrance=way, opens_at=opens_at, today=today)


@blueprint.get("/code")
@access.kiosk
def code(token: str) -> str:
    return _page("code", form=CodeForm(formdata=None))


@blueprint.post("/code", endpoint="find")
@limiter.limit("10 per minute; 60 per hour", key_func=_tablet, deduct_when=_refused)
@access.kiosk
def find(token: str) -> AnyResponse | str:
    form, fresh = CodeForm(), seal.new_token()
    if not form.validate():
        return answer.form_again(_page("code", form=form))
    typed, proof = stay_codes.as_typed(form.code.data or ""), form.proof.data or ""
    said = answer.act(kiosk.open_by_code, _entrance_id(), fresh, typed, proof)
    return _opened(said, fresh, lambda: _page("code", form=CodeForm(formdata=None)))


@blueprint.get("/walk-in")
@access.kiosk
def walk_in(token: str) -> str:
    return _page("walk_in", form=_offered(WalkInForm(formdata=None)))


@blueprint.post("/walk-in", endpoint="book")
@limiter.limit("20 per minute", key_func=_tablet)
@limiter.limit("60 per hour", key_func=_tablet, deduct_when=_refused)
@access.kiosk
def book(token: str) -> AnyResponse | str:
    form, fresh = _offered(WalkInForm()), seal.new_token()
    if not form.validate():
        return answer.form_again(_page("walk_in", form=form))
    said = answer.act(kiosk.walk_in, _entrance_id(), fresh, form.wanted())
    return _opened(said, fresh, lambda: _page("walk_in", form=form))


@blueprint.get("/stay")
@access.kiosk
def stay(token: str) -> AnyResponse | str:
    held = _held()
    return _stay_page(held) if held else redirect(url_for(".start", token=token), 303)


@blueprint.post("/pay")
@access.kiosk
def pay(token: str) -> AnyResponse:
    held = _held()
    if held is None:
        return redirect(url_for(".start", token=token), 303)
    said = answer.act_at_desk(payments.open_payment, held.stay_id, "balance")
    if isinstance(said, Applied | Noop) and said.code in cards.GOES_ON:
        return redirect(url_for(".card", token=token, payment_id=said.subject), 303)
    return _answered(said)


@blueprint.get("/pay/<uuid:payment_id>")
@access.kiosk
def card(token: str, payment_id: UUID) -> AnyResponse | str:
    held, back = _held(), url_for(".stay", token=token)
    if held is None:
        return redirect(url_for(".start", token=token), 303)
    with answer.reading() as tx:
        payment = guest_stay.payment(tx, held.stay_id, payment_id)
    if payment is None:
        abort(404)
    if payment.state != "open" or payment.client_secret_sealed is None:
        return redirect(back, 303)
    return cards.page(payment, back=back, template="kiosk/card.html", token=token, seconds=120)


@blueprint.post("/check-in")
@access.kiosk
def check_in(token: str) -> AnyResponse:
    held = _held()
    if held is None:
        return redirect(url_for(".start", token=token), 303)
    return _answered(answer.act(stays.admit, held.stay_id, forms.seen()))


@blueprint.post("/end")
@access.kiosk
def end(token: str) -> AnyResponse:
    held = _held()
    if held:
        answer.act(kiosk.close, held.id)
    return redirect(url_for(".start", token=token), 303)


def _entrance_id() -> UUID:
    return access.visit().subject_id


def _entrance() -> Row:
    with answer.reading() as tx:
        return seen.entrance(tx, _entrance_id())


def _held() -> Row | None:
    """The session that this tablet holds, while it lasts."""
    held = session.get(HELD)
    if not isinstance(held, str):
        return None
    with answer.reading() as tx:
        return seen.session(tx, _entrance_id(), seal.token_hash(held))


def _offered(form: WalkInForm) -> WalkInForm:
    with answer.reading() as tx:
        found = seen.plans(tx, _entrance_id())
    form.plan_id.choices = [(str(plan.id), _plan_label(plan)) for plan in found]
    form.hours.choices = [(str(number), str(number)) for number in range(1, LONGEST_HOURS + 1)]
    if not any(plan.has_tickets for plan in found):
        del form.ticket
    return form


def _plan_label(plan: Row) -> str:
    return gettext(
        "%(plan)s, %(price)s %(unit)s",
        plan=plan.name_ja if language() == "ja" else plan.name_en,
        price=money(plan.unit_price),
        unit=words.said(words.UNITS, plan.unit),
    )


def _page(name: str, *, after: int = 60, **shown: Any) -> str:
    """`after`: seconds without a touch until the first page comes back."""
    token = access.visit().token
    return render_template(f"kiosk/{name}.html", token=token, seconds=after, **shown)


def _stay_page(held: Row) -> str:
    """Looks again by itself while something is under way outside: a payment, the lock."""
    with answer.reading() as tx:
        stay = guest_stay.stay(tx, held.stay_id)
        folio = guest_stay.folio(tx, stay)
        under_way = any(
            one.state in ("processing", "unknown") for one in guest_stay.payments(tx, stay.id)
        )
    face = door_code.face(
        stay.state, stay.key_state, stay.key_starts_at, stay.key_ends_at, clock.now()
    )
    due = folio.balance > 0 and stay.state == "reserved"
    unregistered = (
        stay.state == "reserved"
        and stay.lodging
        and stay.register_required
        and stay.register_completed_at is None
    )
    link = links.guest_link(held)
    return _page(
        "stay",
        # Whoever pays on their phone does not touch the tablet meanwhile.
        after=240 if due or unregistered else 120 if face == "preparing" else 60,
        stay=stay,
        version=held.version,
        folio=folio,
        due=due,
        unregistered=unregistered,
        too_small=below_card_minimum(Money(max(folio.balance, 0), stay.currency)),
        under_way=under_way,
        face=face,
        pin=seal.unseal(stay.pin_sealed) if face == "shown" else None,
        qr=links.qr(link, scale=6),
        polls=due or unregistered or face == "preparing",
    )


def _told(outcome: Outcome) -> Outcome:
    """What a guest who stands there may read: of the blocklist, nothing."""
    if isinstance(outcome, Refused) and outcome.code not in TOLD:
        return Refused(Code.ASK_AT_DESK)
    if isinstance(outcome, Applied) and outcome.code == Code.STAY_ADMITTED_THOUGH_LISTED:
        return Applied(Code.STAY_ADMITTED, to="admitted", subject=outcome.subject)
    return outcome


def _opened(outcome: Outcome, fresh: str, again: Any) -> AnyResponse:
    """On to the stay, whose token the tablet holds from now on; or the form once more."""
    token = access.visit().token
    if isinstance(outcome, Applied | Noop):
        session[HELD] = fresh
        return redirect(url_for(".stay", token=token), 303)
    return answer.respond(_told(outcome), to=url_for(".begin", token=token), again=again)


def _answered(outcome: Outcome) -> AnyResponse:
    return answer.respond(_told(outcome), to=url_for(".stay", token=access.visit().token))
