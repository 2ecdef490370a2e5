"""Receipts of a membership, for the person who holds its link."""

from flask import url_for

from portal.verbs.documents import Folio
from portal.web import access, receipts
from portal.web.guest.limits import guesses
from portal.web.guest.receipts import SLOWLY, place_of
from portal.web.receipts import Place


def _place(token: str) -> Place:
    folio = Folio(membership_id=access.visit().subject_id)
    return place_of(folio, "membership_receipts", token, url_for("membership.show", token=token))


blueprint = receipts.pages(
    "membership_receipts", "/m/<token>/receipt", access.member, _place, as_often=SLOWLY
)
guesses(blueprint)
