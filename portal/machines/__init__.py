"""The state tables: one literal table a noun, and nothing that acts.

`MACHINES` is what the database's copy, the documents and the tests are generated from.
"""

from portal.machines import (
    entry_key,
    membership,
    order,
    payment,
    refund,
    settlement,
    stay,
    supply,
    webhook_event,
)
from portal.machines.machine import IllegalTransitionError, Machine

MACHINES: tuple[Machine, ...] = (
    membership.MACHINE,
    stay.MACHINE,
    entry_key.MACHINE,
    payment.MACHINE,
    refund.MACHINE,
    order.MACHINE,
    supply.MACHINE,
    settlement.MACHINE,
    webhook_event.MACHINE,
)

__all__ = ["MACHINES", "IllegalTransitionError", "Machine"]
