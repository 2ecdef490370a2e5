"""Receipts of a stay, for the guest who holds its link; and what is the same for a member's."""

from flask import url_for

from portal.verbs.documents import Folio
from portal.web import access, receipts
from portal.web.extensions import limiter
from portal.web.guest.limits import guesses
from portal.web.receipts import Place

SLOWLY = limiter.limit("30 per minute")


def place_of(folio: Folio, name: str, token: str, back: str) -> Place:
    """Of whoever holds the link."""
    return Place(
        folio=folio,
        name=name,
        at={"token": token},
        layout="guest/base.html",
        back=back,
        guest=access.visit().actor.name,
        currency=access.facility().currency,
    )


def _place(token: str) -> Place:
    folio = Folio(stay_id=access.visit().subject_id)
    return place_of(folio, "guest_receipts", token, url_for("guest.stay", token=token))


blueprint = receipts.pages(
    "guest_receipts", "/g/<token>/receipt", access.guest, _place, as_often=SLOWLY
)
guesses(blueprint)
