"""The bare address: whoever types it works here. Guests come by their own links."""

from flask import Blueprint, redirect, url_for
from werkzeug.wrappers import Response as AnyResponse

from portal.web import access

blueprint = Blueprint("front", __name__)


@blueprint.get("/")
@access.anyone
def index() -> AnyResponse:
    return redirect(url_for("today.index"), 303)
