"""The register of guests, filled in by the guest who holds the stay's link."""

from flask import Blueprint, abort, render_template, request, url_for
from werkzeug.wrappers import Response as AnyResponse

from portal.outcome import Code
from portal.queries import registers as known
from portal.verbs import registers
from portal.web import access, answer, people, register_form
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
    said = answer.act(registers.fill, access.visit().subject_id, form.entry(), form.person)
    page = ".show" if said.code == Code.REGISTER_ENTRY_FILLED else "guest.stay"
    return answer.respond(said, to=url_for(page, token=token), again=lambda: _page(token, form))


def _page(token: str, form: RegisterForm | None = None) -> str:
    """A stay that is no lodging has no register."""
    stay_id = access.visit().subject_id
    with answer.reading() as tx:
        stay, filled = known.of_stay(tx, stay_id), known.filled(tx, stay_id)
    if stay is None or not stay.lodging:
        abort(404)
    progress = register_form.progress(stay, filled, people.actor())
    return render_template(
        "guest/register.html",
        token=token,
        stay=stay,
        progress=progress,
        open=stay.state in registers.OPEN,
        form=form or register_form.fresh(stay, progress.asked(request.args.get("person"))),
    )
