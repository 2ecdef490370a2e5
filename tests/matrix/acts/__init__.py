"""Every act of the matrix. A new area joins with a module of its own."""

from tests.matrix.act import Act
from tests.matrix.acts import (
    deposits,
    differences,
    documents,
    doors,
    house,
    kiosk,
    memberships,
    money,
    stays,
    tickets,
)

ACTS: tuple[Act, ...] = (
    *stays.ACTS,
    *money.ACTS,
    *deposits.ACTS,
    *doors.ACTS,
    *memberships.ACTS,
    *documents.ACTS,
    *house.ACTS,
    *differences.ACTS,
    *kiosk.ACTS,
    *tickets.ACTS,
)
