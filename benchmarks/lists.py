"""How long the list of stays takes over a large table, and a search in it."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

from benchmarks import ground
from portal import clock
from portal.db import transaction
from portal.queries import stays as listed
from portal.verbs.stays import NewGuest, NewStay

STAYS = 3_000
LOOKS = 50


def main() -> None:
    with ground.opened() as app, app.app_context():
        house, spaces = ground.facility(100)
        now = clock.now()
        with ground.timed("stays booked", STAYS):
            for n in range(STAYS):
                begins = now + timedelta(days=n // 100)
                times = (begins, begins + timedelta(days=1))
                guest = NewGuest(f"計測 {n}", email=f"bench{n}@example.com")
                wanted = NewStay(uuid4(), guest, spaces[n % 100], None, *times, price=5000)
                ground.book(house, wanted)
        for what, search in (("list pages", ""), ("searches", "計測 2999")):
            with ground.timed(what, LOOKS):
                for _ in range(LOOKS):
                    with transaction(house) as tx:
                        listed.page(tx, listed.Wanted(words=search))


if __name__ == "__main__":
    main()
