"""Lodging tax on the accounts of stays, and the house's table of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import groupby
from uuid import UUID

from portal import ledger
from portal.db import Actor, Row, Tx
from portal.log import request_id
from portal.models import LodgingTaxTable
from portal.money import Money
from portal.outcome import Applied, Code, Noop, Outcome, Refused
from portal.policies import lodging_tax
from portal.policies.lodging_tax import Band, Fault, Table

FAULTS: dict[Fault, Code] = {
    "empty": Code.LODGING_TAX_EMPTY,
    "order": Code.LODGING_TAX_ORDER,
    "overlap": Code.LODGING_TAX_OVERLAP,
    "gap": Code.LODGING_TAX_GAP,
    "end": Code.LODGING_TAX_GAP,
}


@dataclass(frozen=True, slots=True)
class Lodging:
    """A stay as the tax sees it: `price` in the smallest unit, with consumption tax, for all of its
    persons and nights."""

    stay_id: UUID
    starts_at: datetime
    ends_at: datetime
    price: int
    currency: str
    time_zone: str
    persons: int


def write_table(
    tx: Tx, actor: Actor, valid_from: date, bands: Sequence[Band], form_key: UUID
) -> Outcome:
    """→ what a night costs from `valid_from` on, for stays that are booked or changed from now on.
    The table of that day before it is kept and holds no more."""
    if again := tx.made_by(LodgingTaxTable, form_key):
        return Noop(Code.SETTINGS_UNCHANGED, subject=again)
    if wrong := lodging_tax.fault(bands):
        what, price = wrong
        currency = tx.scalar("select currency from facilities where id = :id", id=tx.facility_id)
        return Refused(FAULTS[what], {"amount": Money(price, currency)})
    table_id = tx.add(
        LodgingTaxTable,
        facility_id=tx.facility_id,
        valid_from=valid_from,
        form_key=form_key,
        **actor.columns,
        request_id=request_id(),
    )
    tx.run(
        """
        insert into lodging_tax_bands (facility_id, table_id, min_price, max_price, amount)
        select :facility, :table, least, most, amount
        from unnest(cast(:least as int[]), cast(:most as int[]), cast(:amount as int[]))
            band(least, most, amount)
        """,
        facility=tx.facility_id,
        table=table_id,
        least=[band.least for band in bands],
        most=[band.most for band in bands],
        amount=[band.amount for band in bands],
    )
    return Applied(Code.SETTINGS_SAVED, to="saved", subject=table_id)


def settle(tx: Tx, actor: Actor, lodging: Lodging) -> int:
    """Book what the tax of a stay is now beside what is booked of it already, as a line of its own.
    Returns by how much more the guest owes, in the smallest unit, signed."""
    found = tx.rows(_TABLES, stay=lodging.stay_id)
    if not found:
        return 0
    nights = lodging_tax.nights(lodging.starts_at, lodging.ends_at, lodging.time_zone)
    rate = int(found[0].rate)
    owed = lodging_tax.due(_tables(found), nights, lodging.price, rate, lodging.persons)
    more = owed - int(found[0].booked)
    if more:
        ledger.book(
            tx,
            actor,
            "charge" if more > 0 else "charge_reversed",
            stay_id=lodging.stay_id,
            amount=abs(more),
            currency=lodging.currency,
            item="lodging_tax",
        )
    return more


# The rate is the one that the price was booked at.
_TABLES = """
    select distinct on (t.valid_from, b.min_price)
        t.valid_from, b.min_price, b.max_price, b.amount, t.no,
        coalesce((select l.tax_rate from ledger_lines l where l.stay_id = :stay
                  and l.kind = 'charge' and l.item = '' order by l.id desc limit 1), 0) as rate,
        coalesce((select sum(l.amount) from ledger_lines l where l.stay_id = :stay
                  and l.item = 'lodging_tax'), 0) as booked
    from lodging_tax_tables t join lodging_tax_bands b on b.table_id = t.id
    where not exists (select 1 from lodging_tax_tables later
                      where later.valid_from = t.valid_from and later.no > t.no)
    order by t.valid_from, b.min_price
"""


def _tables(rows: Sequence[Row]) -> list[Table]:
    return [
        Table(day, tuple(Band(row.min_price, row.max_price, row.amount) for row in bands))
        for day, bands in groupby(rows, key=lambda row: row.valid_from)
    ]
