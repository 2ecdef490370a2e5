"""Every message has its words in both languages, with the same placeholders, and nothing more."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from babel.messages.catalog import Catalog, Message

from sandbox import translations

PLACEHOLDER = re.compile(r"%\((\w+)\)[#0\- +]*[\d.]*[a-zA-Z]|%[sdif]|(?<!\{)\{(\w*)\}(?!\})")
PLURALS = {"ja": "1", "en": "2"}
SHOWN = 60  # characters of a message in a complaint


def problems(root: Path) -> list[str]:
    said = translations.said(root)
    found = []
    for language in translations.LANGUAGES:
        file = translations.path(root, language)
        if not file.exists():
            found.append(f"{file.relative_to(root)} is missing")
            continue
        catalog = translations.read(file, language)
        found += [
            f"{file.relative_to(root)}: {fault}"
            for fault in [*header(catalog, language), *entries(catalog, said), *leftovers(catalog)]
        ]
    return found


def header(catalog: Catalog, language: str) -> list[str]:
    forms = dict(catalog.mime_headers).get("Plural-Forms", "")
    faults = []
    if not re.match(rf"nplurals\s*=\s*{PLURALS[language]};", forms):
        faults.append(f"Plural-Forms must begin with nplurals={PLURALS[language]}; it is {forms!r}")
    if catalog.fuzzy:
        faults.append("the header is marked fuzzy, so the catalogue would not be compiled")
    return faults


def entries(catalog: Catalog, said: Catalog) -> list[str]:
    wanted = {key(message): message for message in said if message.id}
    written = {key(message): message for message in catalog if message.id}
    faults = [f"missing: {short(m)}" for k, m in wanted.items() if k not in written]
    faults += [f"nobody says any more: {short(m)}" for k, m in written.items() if k not in wanted]
    for message in written.values():
        faults += [f"{fault}: {short(message)}" for fault in faults_of(message, catalog)]
    return faults


def faults_of(message: Message, catalog: Catalog) -> list[str]:
    words, ids = in_all_forms(message.string), in_all_forms(message.id)
    expected = catalog.num_plurals if len(ids) > 1 else 1
    if message.fuzzy:
        return ["fuzzy"]
    if len(words) != expected or not all(word.strip() for word in words):
        return ["empty"]
    if not same_placeholders(words, ids):
        return ["other placeholders than the original"]
    return []


def same_placeholders(words: tuple[str, ...], ids: tuple[str, ...]) -> bool:
    """The last form needs them all; one before it ("one night") may do without the number."""
    *fewer, last = (placeholders(word) for word in words)
    needed = placeholders(ids[-1])
    return last == needed and all(used <= needed for used in fewer)


def placeholders(text: str) -> Counter[str]:
    return Counter(match.group() for match in PLACEHOLDER.finditer(text.replace("%%", "")))


def leftovers(catalog: Catalog) -> list[str]:
    return [f"obsolete entry: {short(message)}" for message in catalog.obsolete.values()]


def in_all_forms(text: object) -> tuple[str, ...]:
    return (text,) if isinstance(text, str) else tuple(text or ())  # type: ignore[arg-type]


def key(message: Message) -> tuple[str | None, str]:
    return message.context, in_all_forms(message.id)[0]


def short(message: Message) -> str:
    text = in_all_forms(message.id)[0]
    return repr(text if len(text) <= SHOWN else f"{text[:SHOWN]}…")
