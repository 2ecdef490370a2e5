"""The register of guests, filled in by the guest who holds the stay's link."""

from flask import Blueprint, abort, render_template, url_for
from werkzeug.wrappers import Response as AnyResponse

from portal.db import Row
from portal.queries import registers as known
from portal.verbs import registers
from portal.web import access, answer, register_form
from portal.web.guest.limits import guesses
from portal.web.register_form import RegisterForm

blueprint = Blueprint("guest_register", __name__, url_prefix="/g/<token>/register")
guesses(blueprint)


@blueprint.get("")
@access.guest
def show(token: str) -> str:
    return _page(token)


@blueprint.post("")
@access.guest
def fill(token: str) -> AnyResponse | str:
    form = RegisterForm()
    if not form.validate():
        return answer.form_again(_page(token, form))
    said = answer.act(registers.fill, access.visit().subject_id, form.entry())
    return answer.respond(
        said, to=url_for("guest.stay", token=token), again=lambda: _page(token, form)
    )


def _page(token: str, form: RegisterForm | None = None) -> str:
    stay = _stay()
    return render_template(
        "guest/register.html",
        token=token,
        stay=stay,
        open=stay.state in registers.OPEN,
        form=form or register_form.fresh(stay),
    )


def _stay() -> Row:
    """A stay that is no lodging has no register."""
    with answer.reading() as tx:
        found = known.of_stay(tx, access.visit().subject_id)
    return found if found is not None and found.lodging else abort(404)
