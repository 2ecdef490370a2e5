"""A template that would fail on its first visitor fails here."""

from pathlib import Path

import pytest

from sandbox.checks.templates import problems

GOOD = '<p class="note">{% trans %}Welcome{% endtrans %} {{ name }}</p>\n'


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path, "base.html", GOOD)
    return tmp_path


def write(root: Path, name: str, text: str) -> None:
    path = root / "templates" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_good_templates_pass(root: Path) -> None:
    write(root, "staff/stay.html", f'{{% include "base.html" %}}\n{GOOD}')

    assert problems(root) == []


def test_a_block_that_never_ends(root: Path) -> None:
    write(root, "a.html", "{% if x %}\n<p>y</p>\n")

    assert problems(root)[0].startswith("templates/a.html:1: Unexpected end of template")


def test_an_include_of_nothing(root: Path) -> None:
    write(root, "a.html", '{% include "gone.html" %}\n')

    assert problems(root) == ["templates/a.html: names gone.html, which does not exist"]


def test_the_linter_is_listened_to(root: Path) -> None:
    write(root, "a.html", '<p><a href="">x</a>\n<img src="x"></p>\n<p>{{name}}</p>\n')

    told = "\n".join(problems(root))

    assert "H013" in told  # an image without words
    assert "T001" in told  # braces without room


def test_no_template_at_all(tmp_path: Path) -> None:
    assert problems(tmp_path) == ["templates: there is no template"]
