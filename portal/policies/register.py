"""What the register of guests must say: name, address and a contact; of a guest without an address
in Japan, nationality and passport number as well. The occupation left the law in December 2023
(Hotel Business Act, article 6; its ordinance, article 4-2)."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Entry:
    name: str
    address: str
    contact: str
    lives_abroad: bool
    nationality: str = ""
    passport: str = ""
    occupation: str = ""


def missing(entry: Entry) -> list[str]:
    """The fields that the law asks for and that say nothing."""
    asked = ["name", "address", "contact"]
    if entry.lives_abroad:
        asked += ["nationality", "passport"]
    return [name for name in asked if not getattr(entry, name).strip()]
