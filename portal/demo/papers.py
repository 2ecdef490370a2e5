"""The papers of the demo's houses: who issues receipts, the lodging tax, some receipts and entries
in the register. Each is written once, however often the demo is loaded."""

from datetime import date
from uuid import UUID

from portal.db import Actor, transaction
from portal.demo.houses import HANEDA, made
from portal.policies.lodging_tax import Band
from portal.policies.register import Entry
from portal.verbs import documents, facilities, lodging_taxes, registers
from portal.verbs.documents import Folio

ISSUER, NUMBER = "株式会社門番サンプル", "T7123456789012"
TOKYO_SINCE_2002 = (Band(10_000, 14_999, 100), Band(15_000, None, 200))
ADDRESS = "東京都大田区蒲田0-5-6"
RECEIPTS = 3


def furnish(house_id: UUID, slug: str, clerk: Actor) -> None:
    """Before the story: stays are taxed as they are booked."""
    with transaction(house_id) as tx:
        facilities.name_issuer(tx, clerk, ISSUER, NUMBER)
        if slug == HANEDA.slug:
            key = made(slug, "lodging-tax")
            lodging_taxes.write_table(tx, clerk, date(2002, 10, 1), TOKYO_SINCE_2002, key)


def write(house_id: UUID, slug: str, clerk: Actor) -> None:
    """After the story: receipts for the first who have paid and left, the register of a guest."""
    with transaction(house_id) as tx:
        paid = tx.rows(
            """
            select s.id, s.form_key, g.name from stays s join guests g on g.id = s.guest_id
            where s.state = 'departed' and exists (
                select 1 from ledger_lines l where l.stay_id = s.id and l.kind = 'cash')
            order by s.starts_at, s.id limit :most
            """,
            most=RECEIPTS,
        )
        for stay in paid:
            key = made(slug, "receipt", str(stay.form_key))
            documents.issue(tx, clerk, Folio(stay_id=stay.id), stay.name, key)
        arriving = tx.row(
            """
            select s.id, g.name, g.phone from stays s
            join guests g on g.id = s.guest_id join plans p on p.id = s.plan_id
            where s.state = 'reserved' and p.kind = 'lodging' and g.preferred_locale = 'ja'
              and g.phone is not null
            order by s.starts_at, s.id limit 1
            """
        )
        if arriving is not None:
            entry = Entry(
                arriving.name, "東京都大田区蒲田0-5-6", arriving.phone, lives_abroad=False
            )
            registers.fill(tx, clerk, arriving.id, entry)
