"""The words of a message, wholly in the language its row was written in.

No page's language and no cached locale is asked: the row names one, and without one nothing is
rendered. A template is one file an event; its `subject` block is the subject.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from babel.support import Translations
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from portal import formats
from portal.money import Money

ROOT = Path(__file__).parent.parent
LOCALES = ("ja", "en")


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything a message may say, of a stay or of a membership. Amounts in the smallest unit;
    instants aware."""

    event_type: str
    locale: str
    house: str
    guest: str
    stay_code: str | None
    space: str | None
    plan: str | None
    starts_at: datetime | None
    ends_at: datetime | None
    zone: str
    currency: str
    amount: int | None
    fee: int | None
    link: str
    deposit: int | None = None
    """What of the deposit is still open."""
    deposit_by: datetime | None = None
    deposit_awaited: bool = False
    """The booking ends where the deposit does not come by then."""
    plan_retired: bool = False
    """Of a membership: its plan is no longer offered, so it cannot go on."""


@dataclass(frozen=True, slots=True)
class Letter:
    subject: str
    text: str
    house: str


def write(facts: Facts) -> Letter:
    """Raises ValueError for a language we do not have, and UndefinedError for a missing fact."""
    if facts.locale not in LOCALES:
        raise ValueError(f"no message is written in {facts.locale!r}")
    template = _environment(facts.locale).get_template(f"{facts.event_type}.txt")
    context = template.new_context(_words(facts))
    subject = "".join(template.blocks["subject"](context)).strip()
    text = "".join(template.blocks["text"](context)).strip() + "\n"
    return Letter(subject, text, facts.house)


def _words(facts: Facts) -> dict[str, Any]:
    return {
        "house": facts.house,
        "guest": facts.guest,
        "code": facts.stay_code,
        "space": facts.space,
        "plan": facts.plan,
        "begins": _instant(formats.when, facts.starts_at, facts),
        "ends": _instant(formats.when, facts.ends_at, facts),
        "until": _instant(formats.until, facts.ends_at, facts),
        "amount": _money(facts.amount, facts),
        "fee": _money(facts.fee, facts),
        "link": facts.link,
        "deposit": _money(facts.deposit, facts),
        "deposit_by": _instant(formats.when, facts.deposit_by, facts),
        "deposit_awaited": facts.deposit_awaited,
        "plan_retired": facts.plan_retired,
    }


def _instant(
    say: Callable[[datetime, str, str], str], instant: datetime | None, facts: Facts
) -> str:
    return "" if instant is None else say(instant, facts.zone, facts.locale)


def _money(amount: int | None, facts: Facts) -> str:
    return "" if amount is None else formats.money(Money(amount, facts.currency), facts.locale)


@cache
def _environment(locale: str) -> Environment:
    environment = Environment(
        loader=FileSystemLoader(ROOT / "templates" / "messages"),
        extensions=["jinja2.ext.i18n"],
        undefined=StrictUndefined,
        autoescape=False,  # noqa: S701 (plain text: nothing is interpreted at the other end)
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    catalogue = Translations.load(str(ROOT / "translations"), [locale])
    environment.install_gettext_translations(catalogue, newstyle=True)  # type: ignore[attr-defined]
    return environment
