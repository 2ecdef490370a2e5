"""What the portal says to its database, seen from outside: every statement passes `Tx._send`."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

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
) -> Callable[[], None]:
    """From now on, until what is returned is called."""
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

    def end() -> None:
        setattr(Tx, "_send", send)  # noqa: B010 (a method of a class, to the type checker)

    setattr(Tx, "_send", watched)  # noqa: B010
    return end


@contextmanager
def statements() -> Iterator[list[str]]:
    """Every statement that the portal sends meanwhile, in this process."""
    said: list[str] = []
    end = watch(before=lambda _, sql: said.append(sql))
    try:
        yield said
    finally:
        end()
