"""Receipts of a membership, for the desk."""

from uuid import UUID

from flask import abort, url_for

from portal.queries import members
from portal.verbs.documents import Folio
from portal.web import access, answer, receipts
from portal.web.receipts import Place


def _place(membership_id: UUID) -> Place:
    with answer.reading() as tx:
        membership = members.head(tx, membership_id)
    if membership is None:
        abort(404)
    return Place(
        folio=Folio(membership_id=membership_id),
        name="member_receipts",
        at={"membership_id": membership_id},
        layout="staff/base.html",
        back=url_for("members.show", membership_id=membership_id),
        guest=membership.guest,
        currency=membership.currency,
    )


blueprint = receipts.pages(
    "member_receipts", "/staff/members/<uuid:membership_id>/receipts", access.staff(), _place
)
