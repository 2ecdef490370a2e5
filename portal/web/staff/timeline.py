"""What happened to this stay, payment, key or message; and whether a door was open at a moment."""

from dataclasses import dataclass
from uuid import UUID

from flask import Blueprint, abort, render_template, request
from wtforms import Form

from portal.db import Row, Tx
from portal.lazy import _l
from portal.policies import door_at, why_door
from portal.queries import timeline
from portal.web import access, answer, forms, people, words
from portal.web.locale import language
from portal.web.staff import stay_view

blueprint = Blueprint("timeline", __name__, url_prefix="/staff/timeline")

EVENTS = {
    "received": _l("The provider told us"),
    "applied": _l("What the provider told us was applied"),
    "ignored": _l("What the provider told us did not concern us"),
    "superseded": _l("What the provider told us was known already"),
    "orphan": _l("What the provider told us matched nothing of ours"),
    "dead_letter": _l("What the provider told us could not be applied"),
}

ANSWERS = {
    "absent": _l("Shut: this code did not exist yet."),
    "unconfirmed": _l(
        "Not certain: the lock had been asked for the code and had not confirmed it."
    ),
    "refused": _l("Shut: the lock had refused this code."),
    "early": _l("Shut: the code was not valid yet."),
    "open": _l("Open: the lock had confirmed the code, and it was valid."),
    "late": _l("Shut: the code's time was over."),
    "missing": _l("Shut: the code was no longer on the lock."),
    "removing": _l(
        "Not certain: the lock had been asked to remove the code and had not confirmed."
    ),
    "removed": _l("Shut: the lock had confirmed that the code was gone."),
}


WHY = {
    "not_booked": _l("Shut: the stay was not booked yet."),
    "refused_entry": _l("Shut: the guest was not checked in, and the gate had refused them."),
    "not_checked_in": _l("Shut: the guest was not checked in."),
    "no_show": _l("Shut: the stay was marked as a no-show."),
    "cancelled": _l("Shut: the stay was cancelled."),
    "left": _l("Shut: the guest had checked out, and never had a code of this door."),
    "elsewhere": _l("Shut: the guest was in house with a code of another door."),
    "no_key": _l("Shut: the guest was in house and had no code."),
    **ANSWERS,
}


class MomentForm(Form):
    """A question in the address, so that its answer has one too."""

    at = forms.Moment(_l("Day and time"), [forms.required()])


class DoorForm(MomentForm):
    door = forms.Choice(_l("Door"))


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the story, in the page's language."""

    moment: stay_view.Moment
    verb: str
    request_id: str


@dataclass(frozen=True, slots=True)
class Asked:
    """The question about the door, and its answer once it is one."""

    form: MomentForm
    answer: str = ""
    verdict: door_at.Verdict | None = None
    refusal: str = ""
    words: str = ""
    tone: str = "plain"


@blueprint.get("")
@access.staff()
def index() -> str:
    kind, subject_id = _subject(request.args.get("subject", ""))
    with answer.reading() as tx:
        seen = timeline.load(tx, kind, subject_id)
        if seen is None:
            abort(404)
        asked = _asked(tx, kind, subject_id, seen.head)
    return render_template(
        "staff/timeline/index.html",
        kind=kind,
        subject=f"{kind}:{subject_id}",
        subject_id=subject_id,
        seen=seen,
        head=seen.head,
        asked=asked,
        lines=[_line(row) for row in seen.moments],
    )


def _subject(text: str) -> tuple[timeline.Kind, UUID]:
    """`kind:uuid`; anything else is no page of ours."""
    named, _, rest = text.partition(":")
    subject_id = people.uuid_of(rest)
    kind = next((kind for kind in timeline.KINDS if kind == named), None)
    if kind is None or subject_id is None:
        abort(404)
    return kind, subject_id


def _line(row: Row) -> Line:
    if row.kind == "webhook":
        tone = "bad" if row.event in ("orphan", "dead_letter") else "plain"
        said = words.said(EVENTS, row.event)
        moment = stay_view.Moment(row.at, said, "", row.detail, tone, None)
    else:
        moment = stay_view.moment(row)
    return Line(moment, row.verb or "", row.request_id)


def _asked(tx: Tx, kind: timeline.Kind, subject_id: UUID, head: Row) -> Asked | None:
    if kind == "stay":
        return _asked_of_stay(tx, subject_id)
    return _asked_of_key(tx, subject_id, head) if kind == "key" else None


def _asked_of_key(tx: Tx, key_id: UUID, key: Row) -> Asked:
    form = MomentForm(request.args if "at" in request.args else None)
    if "at" not in request.args or not form.validate() or form.at.data is None:
        return Asked(form)
    steps = timeline.steps(tx, key_id)
    retimed = door_at.retimings(steps, key.ends_at, timeline.changes(tx, key.stay_id))
    verdict = door_at.door_at(form.at.data, steps, key.starts_at, key.ends_at, retimed)
    said = verdict.answer
    return Asked(form, said, verdict, "", words.said(ANSWERS, said), _tone(said))


def _asked_of_stay(tx: Tx, stay_id: UUID) -> Asked:
    """Why a door was open or shut for this guest."""
    form = DoorForm(request.args if "at" in request.args else None)
    form.door.choices = [
        (str(door.id), door.name_ja if language() == "ja" else door.name_en)
        for door in timeline.doors_of(tx, stay_id)
    ]
    if "at" not in request.args or not form.validate() or form.at.data is None:
        return Asked(form)
    found = why_door.why(form.at.data, UUID(form.door.data), timeline.story(tx, stay_id))
    why = found.refusal
    refused = stay_view.gate_words(why.code, why.ground) if why else ""
    said = found.answer
    return Asked(form, said, found.verdict, refused, words.said(WHY, said), _tone(said))


def _tone(said: str) -> str:
    if said in door_at.OPEN:
        return "good"
    return "busy" if said in door_at.UNSURE else "plain"
