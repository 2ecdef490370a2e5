"""The guest's own verbs."""

from uuid import UUID

from portal.db import Actor, Tx
from portal.models import Guest
from portal.outcome import Applied, Code, Noop, Outcome, Refused

LOCALES = ("ja", "en")


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
