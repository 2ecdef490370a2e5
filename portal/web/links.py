"""A guest's and a member's own link, and its picture for a phone."""

import segno
from flask import current_app
from flask_babel import gettext
from markupsafe import Markup

from portal import seal
from portal.config import Config
from portal.db import Row


def guest_link(stay: Row) -> str:
    return _link("g", stay)


def member_link(membership: Row) -> str:
    return _link("m", membership)


def _link(place: str, row: Row) -> str:
    config: Config = current_app.extensions["monban.config"]
    return f"{config.public_url}/{place}/{seal.unseal(row.token_sealed)}"


def qr(link: str, scale: int = 4) -> Markup:
    """The link as a picture for a guest's phone: SVG within the page, black on white."""
    return Markup(  # noqa: S704 (segno's own SVG of our own link)
        segno.make(link, error="m").svg_inline(
            scale=scale, dark="#000", light="#fff", border=3, title=gettext("QR code of the link")
        )
    )
