"""A house's tables of lodging tax, as its managers see them."""

from collections.abc import Sequence

from portal.db import Row, Tx

MOST = 40


def tables(tx: Tx) -> Sequence[Row]:
    """A row a line, the latest day first; of a day, only the table that holds. `later`: another
    table takes its place from then on."""
    return tx.rows(
        """
        select t.id, t.valid_from, t.made_at, t.actor_name, b.min_price, b.max_price, b.amount,
               (select min(o.valid_from) from lodging_tax_tables o
                where o.valid_from > t.valid_from) as later
        from (
            select distinct on (valid_from) * from lodging_tax_tables
            order by valid_from desc, no desc limit :most
        ) t
        join lodging_tax_bands b on b.table_id = t.id
        order by t.valid_from desc, b.min_price
        """,
        most=MOST,
    )
