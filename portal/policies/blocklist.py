"""Who an entry of the blocklist means. Pure: what is compared was folded the same way on both
sides, and documents come as fingerprints."""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from portal.policies.folding import fold

Kind = Literal["name", "phone", "email", "document"]

# What stands between the parts of a name: spaces, and the dots and commas of written names.
_BETWEEN = re.compile(r"[\s,，、・･.]+")


@dataclass(frozen=True, slots=True, order=True)
class Mark:
    """One thing that a person can be known by."""

    kind: Kind
    value: str


@dataclass(frozen=True, slots=True)
class Listed:
    """An entry that has not been lifted. `ground` in the house's words; `statute` in the law's,
    None where none was chosen."""

    id: UUID
    marks: tuple[Mark, ...]
    ground: str
    statute: str | None
    expires_at: datetime | None


def marks(
    names: Iterable[str],
    phone: str | None = None,
    email: str | None = None,
    document: str | None = None,
) -> tuple[Mark, ...]:
    """Everything that a person, or an entry, is known by, in one order. `phone` in E.164,
    `document` as its fingerprint."""
    found = {Mark("name", key) for name in names for key in name_keys(name)}
    if phone:
        found.add(Mark("phone", phone))
    if email and (address := "".join(unicodedata.normalize("NFKC", email).split()).casefold()):
        found.add(Mark("email", address))
    if document:
        found.add(Mark("document", document))
    return tuple(sorted(found))


def name_keys(name: str) -> set[str]:
    """As it is written, and with its parts in one order: family names come first or last."""
    parts = [folded for part in _BETWEEN.split(name) if (folded := fold(part))]
    return {"".join(parts), "".join(sorted(parts))} - {""}


def document_number(typed: str) -> str:
    """Letters and figures alone, in one case and width: as a number is printed it has neither
    spaces nor hyphens for sure."""
    plain = unicodedata.normalize("NFKC", typed).casefold()
    return "".join(sign for sign in plain if sign.isalnum())


def hits(person: Iterable[Mark], listed: Iterable[Listed], now: datetime) -> tuple[Listed, ...]:
    """The entries that mean this person at `now`, those with a ground of the law first."""
    known = set(person)
    found = [
        entry
        for entry in listed
        if known.intersection(entry.marks) and (entry.expires_at is None or now < entry.expires_at)
    ]
    return tuple(sorted(found, key=lambda entry: (entry.statute is None, entry.id)))
