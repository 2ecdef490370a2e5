"""What the portal says to its database, seen from outside: every statement passes `Tx._send`."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from sqlalchemy import Connection

from portal.db import Answer, Tx

Seen = Callable[[Connection, str], None]
"""Given the connection and the statement, its white space folded."""


def nobody(_: Connection, __: str) -> None:
    pass


def watch(
    before: Seen = nobody,
    after: Seen = nobody,
    fault: Callable[[Exception], None] = lambda _: None,
) -> Any:
    """`with watch(before=…):`, or `watch(…).start()` for as long as the process lives."""
    send = Tx._send

    def watched(tx: Tx, sql: str, params: dict[str, Any]) -> Answer:
        said = " ".join(sql.split())
        before(tx._wire, said)
        try:
            answer = send(tx, sql, params)
        except Exception as reason:
            fault(reason)
            raise
        after(tx._wire, said)
        return answer

    return patch.object(Tx, "_send", watched)


def sqlstate(fault: Exception) -> str | None:
    """PostgreSQL's own word for what went wrong; None where it is not its."""
    return getattr(getattr(fault, "orig", None), "sqlstate", None)


@contextmanager
def statements() -> Iterator[list[str]]:
    """Every statement that the portal sends meanwhile, in this process."""
    said: list[str] = []
    with watch(before=lambda _, sql: said.append(sql)):
        yield said
