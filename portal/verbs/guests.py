"""The guest's own verbs."""

from dataclasses import dataclass
from uuid import UUID

from portal import seal
from portal.db import Actor, Tx
from portal.models import Guest
from portal.outcome import Applied, Code, Noop, Outcome, Refused
from portal.policies import blocklist
from portal.policies.folding import digits, fold

LOCALES = ("ja", "en")


@dataclass(frozen=True, slots=True)
class NewGuest:
    """As entered; `phone` in E.164, `locale` 'ja', 'en' or None for the facility's. `document` is
    the number of what was shown; only its fingerprint is kept."""

    name: str
    kana: str = ""
    email: str | None = None
    phone: str | None = None
    phone_typed: str = ""
    locale: str | None = None
    line_user_id: str | None = None
    document: str | None = None


def add(tx: Tx, guest: NewGuest) -> UUID:
    """Note a person, with what they are searched by. Returns the guest's id."""
    return tx.add(
        Guest,
        facility_id=tx.facility_id,
        name=guest.name,
        kana=guest.kana,
        search_key=f"{fold(guest.name)} {fold(guest.kana)}",
        email=guest.email,
        phone=guest.phone,
        phone_digits=digits(guest.phone_typed or guest.phone or ""),
        document_mark=document_mark(guest.document),
        line_user_id=guest.line_user_id,
        preferred_locale=guest.locale,
    )


def marks(guest: NewGuest) -> tuple[blocklist.Mark, ...]:
    """What somebody is known by who is not noted yet."""
    seen = document_mark(guest.document)
    return blocklist.marks([guest.name, guest.kana], guest.phone, guest.email, seen)


def known_by(tx: Tx, guest_id: UUID, document: str) -> None:
    """A document's number, as its fingerprint: the blocklist is asked by it from now on."""
    tx.run(
        "update guests set document_mark = :mark where id = :id",
        mark=document_mark(document),
        id=guest_id,
    )


def document_mark(number: str | None) -> str | None:
    """What is kept of a document's number; None where none was shown."""
    plain = blocklist.document_number(number or "")
    return seal.fingerprint(plain) if plain else None


def choose_language(tx: Tx, actor: Actor, guest_id: UUID, locale: str) -> Outcome:
    """The language in which the house writes to a guest from now on."""
    if locale not in LOCALES:
        raise ValueError(f"no message is written in {locale!r}")
    changed = tx.run(
        """
        update guests set preferred_locale = :locale, version = version + 1
        where id = :id and preferred_locale is distinct from :locale
        """,
        id=guest_id,
        locale=locale,
    )
    if changed.rowcount:
        return Applied(Code.GUEST_LANGUAGE_CHOSEN, to=locale, subject=guest_id)
    if tx.get(Guest, guest_id) is None:
        return Refused(Code.NOT_FOUND)
    return Noop(Code.GUEST_LANGUAGE_KEPT, subject=guest_id)
