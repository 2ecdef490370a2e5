"""A page of no noun, to try the frame on: every outcome, a form, a guest's page, a crash."""

from flask import Blueprint, Flask, render_template, request, url_for
from jinja2 import ChoiceLoader, DictLoader

from portal import clock
from portal.db import Actor, Tx
from portal.lazy import _l
from portal.money import Money
from portal.outcome import Applied, Code, Conflict, Noop, Outcome, Refused, Standing
from portal.web import access, answer, forms

PAGE = """
{% extends "staff/base.html" %}
{% block heading %}Trial{% endblock %}
{% block content %}
<p id="runs">{{ runs }}</p>
{% for say in ("applied", "noop", "conflict", "refused") %}
{{ ui.act(url_for("trial.do", say=say), say, version=7, class=say) }}
{% endfor %}
<p>{{ name | person_name }} 2026</p>
{% endblock %}
"""
FORM = """
{% extends "staff/base.html" %}
{% block heading %}Trial form{% endblock %}
{% block content %}
{% call ui.form(url_for("trial.make"), form) %}
{{ ui.field(form.guest, help="As in the passport") }}
{{ ui.field(form.note) }}
{{ ui.field(form.amount) }}
{{ ui.field(form.email) }}
{{ ui.field(form.phone) }}
{{ ui.field(form.day) }}
{{ ui.field(form.at) }}
{{ ui.field(form.kind) }}
{{ ui.submit(_("Save")) }}
{% endcall %}
{% endblock %}
"""
GUEST = """
{% extends "guest/base.html" %}
{% block heading %}{{ visit.actor.name | person_name }}{% endblock %}
{% block content %}{{ ui.act(url_for("trial.guest_do", token=token), "Go") }}{% endblock %}
"""

blueprint = Blueprint("trial", __name__)
runs: list[tuple[Actor, str]] = []
made: list[dict[str, object]] = []


class TrialForm(forms.MakeForm):
    guest = forms.Text(_l("Name"), [forms.required()])
    note = forms.Note(_l("Note"))
    amount = forms.Amount(_l("Amount"), least=1)
    email = forms.Email(_l("E-mail"))
    phone = forms.Phone(_l("Phone"))
    day = forms.Day(_l("Day"))
    at = forms.Moment(_l("Time"))
    kind = forms.Choice(_l("Kind"), choices=[("a", "A"), ("b", "B")])


def verb(tx: Tx, actor: Actor, say: str) -> Outcome:
    runs.append((actor, say))
    assert tx.scalar("select 1") == 1
    match say:
        case "applied":
            return Applied(Code.STAY_ADMITTED, to="admitted")
        case "noop":
            return Noop(Code.STAY_ALREADY_ADMITTED)
        case "conflict":
            return Conflict(
                Code.STAY_STATE_CHANGED,
                Standing("stay", "cancelled", 8, clock.now(), "鈴木 愛"),
            )
        case "refused":
            return Refused(Code.BALANCE_DUE, {"amount": Money(4000, "JPY")})
        case "forbidden":
            return Refused(Code.NOT_PERMITTED)
    return Refused(Code.NOT_FOUND)


@blueprint.get("/staff/trial")
@access.staff()
def index() -> str:
    return page()


def page() -> str:
    return render_template("trial/page.html", runs=len(runs), name=request.args.get("name", ""))


@blueprint.post("/staff/trial/do/<say>")
@access.staff()
def do(say: str) -> object:
    return answer.respond(answer.act(verb, say), to=url_for("trial.index"), render=page)


@blueprint.get("/staff/trial/new")
@access.staff()
def new() -> str:
    return render_template("trial/form.html", form=TrialForm())


@blueprint.post("/staff/trial/new")
@access.staff()
def make() -> object:
    form = TrialForm()
    again = lambda: render_template("trial/form.html", form=form)  # noqa: E731
    if not form.validate():
        return answer.form_again(again())
    made.append(form.data)
    say = "refused" if form.guest.data == "refuse me" else "applied"
    return answer.respond(answer.act(verb, say), to=url_for("trial.index"), again=again)


@blueprint.get("/staff/trial/owner")
@access.staff("owner")
def owner() -> str:
    return page()


@blueprint.get("/staff/trial/crash")
@access.staff()
def crash() -> str:
    raise ZeroDivisionError("the inside of the house")


@blueprint.get("/staff/trial/undeclared")
def undeclared() -> str:
    return page()


@blueprint.get("/g/<token>/trial")
@access.guest
def guest(token: str) -> str:
    return render_template("trial/guest.html", token=token)


@blueprint.post("/g/<token>/trial")
@access.guest
def guest_do(token: str) -> object:
    return answer.respond(answer.act(verb, "applied"), to=url_for("trial.guest", token=token))


def add_to(app: Flask) -> None:
    own = DictLoader({"trial/page.html": PAGE, "trial/form.html": FORM, "trial/guest.html": GUEST})
    app.jinja_loader = ChoiceLoader([own, app.jinja_loader])  # type: ignore[list-item]
    app.register_blueprint(blueprint)
