"""The fence between transactions and the outside world.

An edge call made while a transaction is open holds locks for as long as a stranger's network
takes, and can be rolled back after the stranger has acted. So `db` marks every open transaction
of a thread here, and every edge asks before it speaks.
"""

import threading

_open = threading.local()


class TransactionOpenError(RuntimeError):
    """An external call was about to be made while this thread holds a transaction."""


def transaction_began() -> None:
    _open.depth = getattr(_open, "depth", 0) + 1


def transaction_ended() -> None:
    _open.depth = max(0, getattr(_open, "depth", 0) - 1)


def require_no_transaction(call: str) -> None:
    """Raise TransactionOpenError when this thread has a transaction open. `call` names the leg."""
    if getattr(_open, "depth", 0):
        raise TransactionOpenError(f"{call} was called inside an open transaction")
