"""One stay's page, as GET shows it and as every act on the stay comes back to it."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from flask import abort, render_template, request, url_for
from flask_babel import gettext
from werkzeug.wrappers import Response as AnyResponse

from portal import clock, wording
from portal.db import Row, Tx
from portal.outcome import Code, Outcome
from portal.queries import stay_page
from portal.verbs.deposits import WITHOUT_END
from portal.verbs.stays import DEPOSIT_MISSED
from portal.web import access, answer, links, words
from portal.web.locale import when
from portal.web.staff import gate, stay_forms, today

Settlement = Literal["pending", "due", "owed", "settled"]
RUNNING = ("requested", "revoking")


@dataclass(frozen=True, slots=True)
class Moment:
    """One line of the history, in the page's language."""

    at: datetime
    words: str
    by: str
    detail: str
    tone: str
    amount: int | None


def page(stay_id: UUID, **bound: stay_forms.CashForm) -> str:
    """`cash`, `cash_back`: a form that was not right, with what was typed."""
    with answer.reading() as tx:
        seen = stay_page.load(tx, stay_id)
        if seen is None:
            abort(404)
        now = clock.now()
        said = gate.look(tx, [seen.stay], now)[stay_id]
    reserved = seen.stay.state == "reserved"
    return render_template(
        "staff/stays/show.html",
        stay=seen.stay,
        seen=seen,
        now=now,
        nights=clock.nights(seen.stay.starts_at, seen.stay.ends_at, access.facility().time_zone),
        settlement=settlement(seen.stay),
        reason=said.refusal if reserved else None,
        listed=said.ground if seen.stay.state in ("reserved", "admitted") else None,
        moments=[moment(row) for row in seen.history],
        link=links.guest_link(seen.stay),
        qr=links.qr,
        running=any(key.state in RUNNING for key in seen.keys),
        **_cash_forms(seen, bound),
    )


def head_of(tx: Tx, stay_id: UUID) -> Row:
    """The stay for a page of its own before an act; a stranger's stay does not exist."""
    found = stay_page.head(tx, stay_id)
    if found is None:
        abort(404)
    return found


def answered(
    outcome: Outcome, stay_id: UUID, again: Callable[[], str] | None = None
) -> AnyResponse:
    """After an act: back to where its button stood, today's page or the stay's own."""
    if request.form.get("next") == url_for("today.index"):
        return answer.respond(outcome, to=url_for("today.index"), render=today.page)
    return answer.respond(
        outcome,
        to=url_for("stays.show", stay_id=stay_id),
        render=lambda: page(stay_id),
        again=again,
    )


def settlement(row: Row) -> Settlement:
    """Read from the ledger, never stored: `owed` is what the house owes the guest."""
    if row.balance > 0 and (row.payment_processing or row.payment_unknown):
        return "pending"
    if row.balance == 0:
        return "settled"
    return "due" if row.balance > 0 else "owed"


def _cash_forms(seen: stay_page.StayPage, bound: dict[str, stay_forms.CashForm]) -> dict[str, Any]:
    """The cash drawer's two forms, each only where it can do something."""
    if bound:
        return {"cash": None, "cash_back": None, **bound}
    folio = seen.folio
    back = min(-folio.balance - seen.in_flight, folio.cash_held)
    offered = {"cash": max(0, folio.balance), "cash_back": max(0, back)}
    return {
        name: stay_forms.CashForm(formdata=None, data={"amount": most}) if most else None
        for name, most in offered.items()
    }


# History -----------------------------------------------------------------------------------------

_BAD = {
    "lock_refused", "vanished_from_lock", "provider_declined", "answer_lost", "provider_refused",
    "provider_failed", "no_show", "refund_owed", "given_up", "dead", "unknown",
}  # fmt: skip
_GOOD = {"admitted", "set_on_lock", "provider_succeeded", "removed_from_lock", "sent"}


def moment(row: Row) -> Moment:
    text, detail = _said(row)
    bad = row.event in _BAD or row.kind == "gate"
    tone = "bad" if bad else "good" if row.event in _GOOD else "plain"
    by = "" if row.kind in ("message", "lock") else words.who(row.actor_kind, row.actor_name)
    return Moment(row.at, text, by, detail, tone, row.amount)


def _said(row: Row) -> tuple[str, str]:
    """What happened, and what more there is to say of it."""
    if row.kind == "ledger":
        return words.of_line(row.event, row.verb), ""
    if row.kind == "message":
        named = gettext("Message: %(message)s", message=words.said(words.MESSAGES, row.detail))
        return named, words.said(words.MESSAGE_STATES, row.event)
    if row.kind == "lock":
        return words.said(words.COMMANDS, row.event), words.said(words.RESULTS, row.detail or "")
    if row.kind == "gate":
        return _gate(row)
    if row.event == "changed":
        return _changed(row)
    return wording.event_name(row.kind, row.event), _reason(row)


def _changed(row: Row) -> tuple[str, str]:
    """A change within a state; its record names the places or the instants."""
    if row.verb == "move_to":
        return gettext("Moved to another space"), row.detail or ""
    if row.verb == "change_times":
        return gettext("Times changed"), _times(row.detail or "")
    if row.verb == "set_deadline":
        return gettext("Another time for the deposit"), _deadlines(row.detail or "")
    if row.verb == "change_persons":
        return gettext("Persons changed"), row.detail or ""
    if row.verb == "take_out_of_register":
        return gettext("Entries taken out of the register"), row.detail or ""
    if row.verb == "switch_plan":
        return gettext("On another plan"), row.detail or ""
    if row.verb == "renew_link":
        return gettext("A new link; the old one no longer works"), ""
    return gettext("Changed"), row.detail or ""


def _times(record: str) -> str:
    """`iso/iso → iso/iso` as people read it."""
    try:
        periods = [
            gettext(
                "%(begins)s to %(ends)s",
                begins=when(datetime.fromisoformat(begins)),
                ends=when(datetime.fromisoformat(ends)),
            )
            for begins, ends in (part.split("/") for part in record.split(" → "))
        ]
    except ValueError:
        return record
    return " → ".join(periods)


def _deadlines(record: str) -> str:
    """`iso → iso` as people read it; `-` is a booking that is held without end."""
    return " → ".join(
        gettext("without end") if part == WITHOUT_END else _instant(part)
        for part in record.split(" → ")
    )


def _instant(written: str) -> str:
    try:
        return when(datetime.fromisoformat(written))
    except ValueError:
        return written


def _reason(row: Row) -> str:
    if row.kind == "stay" and (row.detail or "").startswith(DEPOSIT_MISSED):
        by = _instant((row.detail or "").partition(": ")[2])
        return gettext("the deposit did not come by %(when)s", when=by)
    if row.kind == "entry_key" and row.event == "revoke_asked":
        return words.said(words.REVOKED, row.detail or "")
    if row.kind == "membership":
        return words.ending(row.detail or "")
    if row.kind == "entry_key" and row.detail:
        return gettext("The lock's word: %(word)s", word=words.observed(row.detail))
    return row.detail or ""


def _gate(row: Row) -> tuple[str, str]:
    if row.verb == "let_in":
        return gettext("Let in although the blocklist names the guest"), row.detail or ""
    refused = (
        gettext("A move was refused") if row.verb == "move" else gettext("Check-in was refused")
    )
    return refused, gate_words(row.event, row.detail)


def gate_words(code: str, ground: str | None) -> str:
    """Why the gate refused then. Its amounts and times were of that moment and are not kept; the
    ground of the blocklist is."""
    known = code in Code.__members__
    why = words.said(words.GATE, code) if known else code
    return " · ".join(filter(None, (why, ground)))
