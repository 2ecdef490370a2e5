"""A message without true words in both languages does not get in."""

from pathlib import Path

import pytest

from sandbox import translations
from sandbox.checks.translations import problems

MAPPING = '[[tool.babel.mappings]]\nmethod = "python"\npattern = "portal/**.py"\n'
CODE = """
_("Hello %(name)s")
_ln("%(num)d night", "%(num)d nights", n)
_lp("door", "Open")
"""
WORDS = {
    "ja": (
        "nplurals=1; plural=0;",
        'msgid "Hello %(name)s"\nmsgstr "こんにちは、%(name)s"\n',
        'msgid "%(num)d night"\nmsgid_plural "%(num)d nights"\nmsgstr[0] "%(num)d泊"\n',
        'msgctxt "door"\nmsgid "Open"\nmsgstr "開"\n',
    ),
    "en": (
        "nplurals=2; plural=(n != 1);",
        'msgid "Hello %(name)s"\nmsgstr "Hello %(name)s"\n',
        (
            'msgid "%(num)d night"\nmsgid_plural "%(num)d nights"\n'
            'msgstr[0] "one night"\nmsgstr[1] "%(num)d nights"\n'
        ),
        'msgctxt "door"\nmsgid "Open"\nmsgstr "Open"\n',
    ),
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text(MAPPING)
    (tmp_path / "portal").mkdir()
    (tmp_path / "portal" / "words.py").write_text(CODE)
    for language in WORDS:
        write(tmp_path, language)
    return tmp_path


def write(root: Path, language: str, before: str = "", after: str = "", more: str = "") -> None:
    """The complete catalogue, with one passage replaced and more lines at its end."""
    forms, *entries = WORDS[language]
    header = (
        'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=utf-8\\n"\n'
        f'"Plural-Forms: {forms}\\n"\n'
    )
    text = "\n".join([header, *entries, more])
    assert before in text
    path = translations.path(root, language)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.replace(before, after) if before else text)


def told(root: Path) -> str:
    return "\n".join(problems(root))


def test_complete_catalogues_pass(root: Path) -> None:
    assert problems(root) == []


def test_a_new_message_without_words(root: Path) -> None:
    (root / "portal" / "words.py").write_text(f'{CODE}\n_("The key is being set")\n')

    assert problems(root) == [
        "translations/ja/LC_MESSAGES/messages.po: missing: 'The key is being set'",
        "translations/en/LC_MESSAGES/messages.po: missing: 'The key is being set'",
    ]


def test_one_context_does_not_speak_for_another(root: Path) -> None:
    (root / "portal" / "words.py").write_text(f'{CODE}\npgettext("shop", "Open")\n')

    assert told(root).count("missing: 'Open'") == 2


@pytest.mark.parametrize(
    ("before", "after", "fault"),
    [
        ('"開"', '""', "empty: 'Open'"),
        ('"開"', '" "', "empty: 'Open'"),
        ('msgctxt "door"', '#, fuzzy\nmsgctxt "door"', "fuzzy: 'Open'"),
        ("、%(name)s", "、%(nome)s", "other placeholders than the original: 'Hello"),
        ("、%(name)s", "", "other placeholders than the original: 'Hello"),
        ("%(num)d泊", "泊", "other placeholders than the original: '%(num)d night'"),
        ("nplurals=1; plural=0;", "nplurals=2; plural=(n != 1);", "begin with nplurals=1"),
    ],
)
def test_bad_words(root: Path, before: str, after: str, fault: str) -> None:
    write(root, "ja", before, after)

    assert fault in told(root)


def test_words_that_nobody_says_any_more(root: Path) -> None:
    write(root, "en", more='msgid "Old"\nmsgstr "Old"\n')

    assert "nobody says any more: 'Old'" in told(root)


def test_obsolete_entries(root: Path) -> None:
    write(root, "en", more='#~ msgid "Older"\n#~ msgstr "Older"\n')

    assert "obsolete entry: 'Older'" in told(root)


def test_a_missing_catalogue(root: Path) -> None:
    translations.path(root, "ja").unlink()

    assert problems(root) == ["translations/ja/LC_MESSAGES/messages.po is missing"]


def test_updating_leaves_only_the_japanese_words_to_write(root: Path) -> None:
    (root / "portal" / "words.py").write_text('_("Hello %(name)s")\n_("New")\n')

    translations.update(root)

    assert problems(root) == ["translations/ja/LC_MESSAGES/messages.po: empty: 'New'"]
    assert "こんにちは" in translations.path(root, "ja").read_text()
    again = translations.path(root, "ja").read_bytes()
    translations.update(root)
    assert translations.path(root, "ja").read_bytes() == again


def test_compiling_happens_once(root: Path) -> None:
    translations.compile_stale(root)
    compiled = translations.path(root, "ja").with_suffix(".mo")
    first = compiled.stat().st_mtime_ns
    translations.compile_stale(root)

    assert compiled.stat().st_mtime_ns == first
