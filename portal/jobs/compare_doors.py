"""The codes on one lock beside the keys of its door: one list of codes each."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from uuid import UUID

from portal import clock, seal
from portal.db import Row, transaction
from portal.edges.locks.port import LockCode, Locks
from portal.policies import divergences as policy
from portal.policies.divergences import TheirCode
from portal.verbs import door_differences
from portal.verbs.divergences import Look

DOORS = 40
"""Doors of one facility in one run, those looked at longest ago first."""

CODES = ("code_stray", "code_missing", "code_differs", "code_pin_differs")

NEVER = datetime.min.replace(tzinfo=UTC)


class Door:
    def __init__(self, locks: Locks, facility_id: UUID, door: Row) -> None:
        self.locks, self.facility_id, self.door = locks, facility_id, door
        self.name = str(door.id)
        self.reached: datetime | None = None

    def __call__(self) -> Sequence[Look]:
        codes = [_their_code(code) for code in self.locks.list_codes(self.door.device_id)]
        named = [code for code in codes if policy.key_of(code.name)]
        with transaction(self.facility_id) as tx:
            ours = door_differences.keys_at(tx, self.door.id, [code.name for code in named])
            strange = {code.id: code.name for code in named if code.name not in ours}
            elsewhere = door_differences.known_elsewhere(tx, strange)
        self.reached = clock.now()
        found = policy.codes(
            ours, codes, door_id=self.door.id, now=self.reached, elsewhere=elsewhere
        )
        return [Look(self.facility_id, CODES, list(found), door_id=self.door.id)]


def due_doors(houses: Sequence[UUID]) -> Iterator[tuple[UUID, Row]]:
    """Of all houses together, so that a house with many doors keeps no other waiting."""
    due = [(facility_id, door) for facility_id in houses for door in _doors(facility_id)]
    yield from sorted(due, key=lambda one: (one[1].reached or NEVER, one[1].id))


def _doors(facility_id: UUID) -> Sequence[Row]:
    with transaction(facility_id) as tx:
        return tx.rows(
            """
            select d.id, d.device_id, c.reached from doors d
            left join checkpoints c on c.name = 'reconcile:' || d.id
            order by c.reached nulls first, d.id limit :most
            """,
            most=DOORS,
        )


def _their_code(code: LockCode) -> TheirCode:
    """Of its digits only the mark that tells equal ones apart: nothing after this has the PIN."""
    mark = seal.mark(code.pin) if code.pin else None
    return TheirCode(code.id, code.name, code.status, code.ends_at, code.errors, mark)
