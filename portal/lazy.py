"""Words that become text when a page is written, in that page's language.

Typed as the `str` that they become: forms, tables and templates take them as such. What leaves as
data, JSON above all, needs `str(…)` around it.
"""

from typing import Any, cast

from flask_babel import lazy_gettext, lazy_ngettext, lazy_pgettext


def _l(text: str, **details: Any) -> str:
    return cast("str", lazy_gettext(text, **details))


def _lp(context: str, text: str, **details: Any) -> str:
    """For a word that is another in another place."""
    return cast("str", lazy_pgettext(context, text, **details))


def _ln(one: str, many: str, num: int, **details: Any) -> str:
    return cast("str", lazy_ngettext(one, many, num, **details))
