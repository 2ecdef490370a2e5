"""Receipts: issued, issued again, and who issues them; and the tables of lodging tax."""

from typing import Any
from uuid import uuid4

from portal.verbs import documents, facilities, lodging_taxes
from tests.matrix import scenes
from tests.matrix.act import Act, Doing, form


def issue(do: Doing, key: Any) -> Any:
    folio = documents.Folio(stay_id=do["stay"])
    return do.form(documents.issue, folio, "株式会社 山田", key)


ACTS = (
    # A colleague's form finds that the money stands on a receipt.
    Act(
        "documents.issue",
        scenes.with_a_form(scenes.a_stay_ready_to_admit),
        lambda do: issue(do, do["form"]),
        lambda do: issue(do, uuid4()),
    ),
    # A colleague's would be another copy.
    Act(
        "documents.issue_again",
        scenes.with_a_form(scenes.a_receipt),
        lambda do: do.form(documents.issue_again, do["document"], do["form"]),
    ),
    form("facilities.name_issuer", scenes.with_a_form(
        scenes.a_house_of_managers, issuer="株式会社門番", number="T4011001098993"),
        facilities.name_issuer, "issuer", "number"),
    form("lodging_taxes.write_table", scenes.with_a_form(
        scenes.a_house_of_managers, day=scenes.LONG_AGO, bands=scenes.BANDS),
        lodging_taxes.write_table, "day", "bands", "form"),
)  # fmt: skip
