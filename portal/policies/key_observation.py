"""From the lock controller's word on a code to the event of our key machine."""

from collections.abc import Collection

# Error codes after which this code will never be set as it is.
DUPLICATE = frozenset(
    {"duplicate_code_on_device", "duplicate_code", "duplicate_code_attempt_prevented"}
)
HOPELESS = DUPLICATE | {"code_invalid", "no_space_for_access_code_on_device"}


def event_for(state: str, status: str | None, errors: Collection[str]) -> str | None:
    """The event to move by, or None when the word changes nothing.

    `status` None means that the controller no longer knows the code. A code that is still
    `setting` is not set; one that is `unset` without errors waits for its time to be loaded.
    """
    if state == "revoking":
        return "removed_from_lock" if status is None else None
    if state in ("requested", "missing") and status == "set":
        return "set_on_lock"
    if state == "requested" and (status is None or hopeless(errors)):
        return "lock_refused"
    if state == "issued" and (status is None or (status == "unset" and errors)):
        return "vanished_from_lock"
    return None


def hopeless(errors: Collection[str]) -> bool:
    return not HOPELESS.isdisjoint(errors)


def is_duplicate(errors: Collection[str]) -> bool:
    return not DUPLICATE.isdisjoint(errors)
