"""Receipts: issued, issued again, and who issues them; the tables of lodging tax;
and the register of guests."""

from dataclasses import replace
from datetime import date, timedelta
from typing import Any
from uuid import uuid4

from portal.jobs import sweeps
from portal.verbs import documents, facilities, lodging_taxes, registers
from tests.matrix import scenes
from tests.matrix.act import Act, Doing, form, job

FIRST_DAY = date(2026, 10, 1)


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
        scenes.a_house_of_managers, issuer="株式会社門番", number="T7123456789012"),
        facilities.name_issuer, "issuer", "number"),
    form("lodging_taxes.write_table", scenes.with_a_form(
        scenes.a_house_of_managers, day=scenes.LONG_AGO, bands=scenes.BANDS),
        lodging_taxes.write_table, "day", "bands", "form"),
    form("facilities.require_register", scenes.a_house_of_managers, facilities.require_register,
         "wish"),
    form("registers.fill", scenes.with_a_form(scenes.a_lodging_stay, entry=scenes.ABROAD),
         registers.fill, "stay", "entry"),
    form("registers.fill, a correction", scenes.with_a_form(
        scenes.a_register, entry=replace(scenes.ENTRY, contact="hanako@guest.example")),
        registers.fill, "stay", "entry"),
    # Each reading is one of its own.
    Act("registers.open_sealed", scenes.a_register,
        lambda do: do.form(registers.open_sealed, do["stay"], "本人確認")),
    Act("registers.export", scenes.a_register,
        lambda do: do.form(registers.export, FIRST_DAY, FIRST_DAY + timedelta(days=300), "保健所")),
    job("sweeps.purge", scenes.an_old_register, sweeps.purge),
)  # fmt: skip
