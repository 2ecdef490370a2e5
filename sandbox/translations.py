"""The catalogues: what the code says, collected; what the portal reads, compiled.

`make translations` brings new messages into translations/*/LC_MESSAGES/messages.po and drops the
ones that nobody says any more; writing the words stays with a person. Set-up compiles them.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from typing import Any

from babel.messages.catalog import Catalog
from babel.messages.extract import DEFAULT_KEYWORDS, extract_from_dir
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

ROOT = Path(__file__).resolve().parent.parent
Found = tuple[str, int, Any, list[str], str | None]
LANGUAGES = ("ja", "en")
KEYWORDS = {
    **DEFAULT_KEYWORDS,
    "lazy_gettext": None,
    "lazy_ngettext": (1, 2),
    "lazy_pgettext": ((1, "c"), 2),
    "lazy_npgettext": ((1, "c"), 2, 3),
    "_l": None,
    "_ln": (1, 2),
    "_lp": ((1, "c"), 2),
}


def said(root: Path = ROOT) -> Catalog:
    """Every message that the code and the templates say."""
    mappings = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["babel"]["mappings"]
    catalog = Catalog(project="Monban", copyright_holder="Monban", charset="utf-8")
    for mapping in mappings:
        folder = mapping["pattern"].partition("/")[0]
        for name, line, message, comments, context in _quietly(_extracted(root, mapping)):
            where = [(f"{folder}/{name}", line)]
            catalog.add(message, None, where, auto_comments=comments, context=context)
    return catalog


def _extracted(root: Path, mapping: dict[str, Any]) -> Iterator[Found]:
    folder, _, pattern = mapping["pattern"].partition("/")
    options = {name: str(value) for name, value in mapping.items()}
    return extract_from_dir(
        root / folder,
        [(pattern, mapping["method"])],
        {pattern: options},
        KEYWORDS,
        ("Translators:",),
    )


def _quietly(found: Iterator[Found]) -> list[Found]:
    """Babel complains about every f-string near a message; a linter's rule knows which matter."""
    with redirect_stderr(StringIO()):
        return list(found)


def path(root: Path, language: str) -> Path:
    return root / "translations" / language / "LC_MESSAGES" / "messages.po"


def read(file: Path, language: str) -> Catalog:
    with file.open("rb") as lines:
        return read_po(lines, locale=language, abort_invalid=True)


def update(root: Path = ROOT) -> None:
    """Bring each catalogue up to what is said, without guessing words for new messages."""
    template = said(root)
    for language in LANGUAGES:
        file = path(root, language)
        catalog = read(file, language) if file.exists() else Catalog(locale=language, fuzzy=False)
        # A date that moves with every run would make every two branches conflict.
        template.creation_date = catalog.creation_date
        catalog.update(template, no_fuzzy_matching=True)
        catalog.obsolete.clear()
        if language == "en":
            _repeat_source(catalog)
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("wb") as lines:
            write_po(lines, catalog, width=0, sort_output=True, include_lineno=False)


def _repeat_source(english: Catalog) -> None:
    """English is what the code says: its catalogue repeats it."""
    for message in english:
        if message.id:
            message.string = message.id


def compile_stale(root: Path = ROOT) -> None:
    """Compile what is newer than its compiled form: at set-up, and before the tests."""
    for file, compiled in catalogues(root):
        if not compiled.exists() or compiled.stat().st_mtime_ns < file.stat().st_mtime_ns:
            with compiled.open("wb") as binary:
                write_mo(binary, read(file, file.parts[-3]))


def catalogues(root: Path) -> Iterator[tuple[Path, Path]]:
    for file in sorted(root.glob("translations/*/LC_MESSAGES/*.po")):
        yield file, file.with_suffix(".mo")


if __name__ == "__main__":
    {"update": update, "compile": compile_stale}[sys.argv[1]]()
