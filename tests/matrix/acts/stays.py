"""Stays, their folio's cash, and their guest."""

from dataclasses import replace
from typing import Any
from uuid import uuid4

from portal.verbs import bookings, cash, day_close, guests, links, stay_changes, stays
from tests.matrix import scenes
from tests.matrix.act import Act, Doing, button, form
from tests.matrix.scenes import HOUR, PRICE


def times(do: Doing, seen: int, change: int) -> Any:
    return do.form(stay_changes.change_times, do["stay"], seen, do["starts"], do["ends"], change)


def other_times(name: str, scene: scenes.Scene) -> Act:
    """A colleague's fresh page shows the new times already, and asks for no other price."""
    return Act(
        f"stay_changes.change_times {name}",
        scene,
        lambda do: times(do, do["seen"], do["change"]),
        lambda do: times(do, do.version(), 0),
    )


def counter(name: str, scene: scenes.Scene, verb: Any) -> Act:
    """Cash, with the key of its form; a colleague's form has another."""
    return Act(
        name,
        scenes.with_a_form(scene),
        lambda do: do.form(verb, do["stay"], PRICE, do["form"]),
        lambda do: do.form(verb, do["stay"], PRICE, uuid4()),
    )


IN_HOUSE = scenes.a_guest_in_house
RESERVED = scenes.a_reserved_stay
PAID = scenes.a_reserved_stay_paid_by_card

ACTS = (
    Act(
        "bookings.create",
        scenes.a_new_stay,
        lambda do: do.form(bookings.create, do["wanted"]),
        lambda do: do.form(bookings.create, replace(do["wanted"], form_key=uuid4())),
    ),
    Act(
        "bookings.create with lodging tax",
        scenes.a_new_stay_with_lodging_tax,
        lambda do: do.form(bookings.create, do["wanted"]),
        lambda do: do.form(bookings.create, replace(do["wanted"], form_key=uuid4())),
    ),
    Act(
        "bookings.create of a member",
        scenes.a_new_stay_of_a_member,
        lambda do: do.form(bookings.create, do["wanted"]),
        lambda do: do.form(bookings.create, replace(do["wanted"], form_key=uuid4())),
    ),
    Act(
        "bookings.create of the last visit",
        scenes.a_new_visit,
        lambda do: do.form(bookings.create, do["wanted"]),
        lambda do: do.form(bookings.create, replace(do["wanted"], form_key=uuid4(),
                                                 space_id=do["other"])),
    ),
    button("stays.cancel a visit", scenes.a_visit, stays.cancel),
    other_times("of a visit, to another month", scenes.a_visit),
    button("stays.admit a member", scenes.a_member_at_the_door, stays.admit),
    button("stays.admit though listed", scenes.a_listed_guest_of_lodging, stays.admit),
    button("stays.admit", scenes.a_stay_ready_to_admit, stays.admit),
    button("stays.depart", IN_HOUSE, stays.depart),
    button("stays.cancel", PAID, stays.cancel, fee=1000),
    button("stays.cancel_as_agreed", scenes.a_guest_who_cannot_come, stays.cancel_as_agreed, "fee",
           returns=False),
    button("stays.mark_no_show", RESERVED, stays.mark_no_show),
    button("stays.reinstate", scenes.a_no_show, stays.reinstate),
    button("stay_changes.move_to reserved", scenes.another_space(RESERVED), stay_changes.move_to,
           "space"),
    button("stay_changes.move_to in house", scenes.another_space(IN_HOUSE), stay_changes.move_to,
           "space"),
    other_times("longer, in house",
                scenes.other_times(IN_HOUSE, longer=2 * HOUR, price_change=2000)),
    other_times("shorter, paid by card",
                scenes.other_times(PAID, longer=-2 * HOUR, price_change=-2000)),
    button("stay_changes.change_persons, more", scenes.more_persons, stay_changes.change_persons,
           "persons"),
    button("stay_changes.change_persons, fewer", scenes.fewer_persons, stay_changes.change_persons,
           "persons"),
    counter("cash.take", RESERVED, cash.take),
    counter("cash.hand_back", scenes.a_guest_paid_and_cancelled, cash.hand_back),
    Act(
        "day_close.close",
        scenes.a_drawer_to_count,
        lambda do: do.form(day_close.close, do["count"]),
        lambda do: do.form(day_close.close, replace(do["count"], form_key=uuid4())),
    ),
    # A colleague's press is another link, and another message.
    Act("links.renew_of_stay", RESERVED,
        lambda do: do.form(links.renew_of_stay, do["stay"], do["seen"])),
    form("guests.choose_language", scenes.a_guest, guests.choose_language, "guest", "locale"),
)  # fmt: skip
