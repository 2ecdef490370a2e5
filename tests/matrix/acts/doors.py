"""Keys and locks."""

from typing import Any

from portal.jobs import drain
from portal.verbs import doors, keys
from tests.matrix import scenes
from tests.matrix.act import Act, Doing, asking, form, job, lock_event


def reissue(do: Doing) -> Any:
    return do.form(keys.reissue, do["stay"], do["seen"])


def the_lock_tells(do: Doing, name: str) -> Any:
    said = do.post_lock_event(lock_event(name, do["code"]))
    return said, drain.drain("inbox"), drain.drain("keys")


ACTS = (
    # On a fresh page a second new code is a second wish.
    Act("keys.reissue", scenes.a_guest_in_house, reissue),
    form("keys.ask_again", scenes.a_lock_command_given_up, keys.ask_again, "command"),
    asking("doors.ask", scenes.a_door, doors.ask, "door"),
    job("drain locks set", scenes.a_key_to_set, drain.drain, "locks"),
    job("drain locks set, digits taken", scenes.a_key_whose_digits_the_lock_has_already,
        drain.drain, "locks"),
    job("drain locks update", scenes.a_key_to_change, drain.drain, "locks"),
    job("drain locks remove", scenes.a_key_to_remove, drain.drain, "locks"),
    job("drain keys set", scenes.a_key_that_the_lock_has, drain.drain, "keys"),
    job("drain keys refused", scenes.a_key_that_the_lock_refused, drain.drain, "keys"),
    job("drain keys vanished", scenes.a_key_that_vanished, drain.drain, "keys"),
    job("drain keys not removed", scenes.a_removal_that_was_not_carried_out, drain.drain, "keys"),
    Act(
        "event of a lock",
        scenes.the_lock_tells(scenes.a_key_that_the_lock_has),
        lambda do: the_lock_tells(do, "lock_event_1"),
        lambda do: the_lock_tells(do, "lock_event_2"),
    ),
)  # fmt: skip
