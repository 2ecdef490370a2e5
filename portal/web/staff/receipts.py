"""Receipts of a stay, for the desk."""

from uuid import UUID

from flask import url_for

from portal.verbs.documents import Folio
from portal.web import access, answer, receipts
from portal.web.receipts import Place
from portal.web.staff import stay_view


def _place(stay_id: UUID) -> Place:
    with answer.reading() as tx:
        stay = stay_view.head_of(tx, stay_id)
    return Place(
        folio=Folio(stay_id=stay_id),
        name="receipts",
        at={"stay_id": stay_id},
        layout="staff/base.html",
        back=url_for("stays.show", stay_id=stay_id),
        guest=stay.guest,
        currency=stay.currency,
    )


blueprint = receipts.pages(
    "receipts", "/staff/stays/<uuid:stay_id>/receipts", access.staff(), _place
)
