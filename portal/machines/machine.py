"""A state machine as data: a name, a table of exits, where it starts and where it ends."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import cast

Exits = Mapping[str, str]
"""{event: state it leads to}; empty for a terminal state."""


class IllegalTransitionError(AssertionError):
    """Asked for a transition that the table does not hold: a bug of ours, never an answer."""


@dataclass(frozen=True, slots=True)
class Machine:
    name: str
    initial: str
    table: Mapping[str, Exits]

    @classmethod
    def of(cls, name: str, *, initial: str, table: Mapping[str, object]) -> "Machine":
        """From a noun's TypedDict, whose keys mypy has checked and whose values are all Exits."""
        return cls(name, initial, cast(Mapping[str, Exits], table))

    def __post_init__(self) -> None:
        for from_state, event, to_state in self.pairs():
            if to_state not in self.table or to_state == from_state:
                raise IllegalTransitionError(f"{self.name}: {from_state} --{event}--> {to_state}")

    @property
    def terminal(self) -> frozenset[str]:
        return frozenset(state for state, exits in self.table.items() if not exits)

    def target(self, from_state: str, event: str) -> str:
        """The state that `event` leads to. Raises IllegalTransitionError for anything unlisted."""
        try:
            return self.table[from_state][event]
        except KeyError:
            raise IllegalTransitionError(
                f"{self.name}: {event} is not legal in {from_state}"
            ) from None

    def allows(self, from_state: str, event: str) -> bool:
        return event in self.table.get(from_state, {})

    def pairs(self) -> Iterator[tuple[str, str, str]]:
        """(from, event, to), in the order of the table."""
        for from_state, exits in self.table.items():
            for event, to_state in exits.items():
                yield from_state, event, to_state
