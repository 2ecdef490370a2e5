"""What the register of guests must say: name, address and a contact; of a guest without an address
in Japan, nationality and passport number as well. The occupation left the law in December 2023
(Hotel Business Act, article 6; its ordinance, article 4-2)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace


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


def sharing(entry: Entry, first: Mapping[str, str]) -> Entry:
    """Somebody who comes along: what they leave empty of address and contact is the first guest's,
    whose entry says `first`."""
    return replace(
        entry,
        address=entry.address.strip() or first["address"],
        contact=entry.contact.strip() or first["contact"],
    )
