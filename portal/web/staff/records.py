"""What the record of a change tells, in words."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from flask_babel import gettext

from portal.db import Row
from portal.web import words


def changes(record: Row, labels: Mapping[str, Any], worth: Callable[[str, Any], str]) -> list[str]:
    """A line for each thing that was changed: what it was and is, as `worth` writes it. Of a text
    only that it is another."""
    changed = json.loads(record.reason) if record.event == "changed" else {}
    return [
        _in_words(words.said(labels, name), *(worth(name, one) for one in was_is))
        for name, was_is in changed.items()
    ]


def _in_words(what: str, was: str = "", now: str = "") -> str:
    if not was:
        return what
    return gettext("%(what)s: %(was)s → %(now)s", what=what, was=was, now=now)
