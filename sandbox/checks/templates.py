"""Every template parses, names only templates that exist, and passes djLint."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from jinja2 import Environment, TemplateSyntaxError
from jinja2.meta import find_referenced_templates

FOLDER = Path("templates")


def problems(root: Path) -> list[str]:
    environment = Environment(extensions=["jinja2.ext.i18n", "jinja2.ext.do"], autoescape=True)
    files = [path for path in sorted((root / FOLDER).rglob("*")) if path.is_file()]
    if not files:
        return [f"{FOLDER}: there is no template"]
    return [fault for file in files for fault in faults(root, file, environment)] + lint(root)


def faults(root: Path, file: Path, environment: Environment) -> list[str]:
    try:
        tree = environment.parse(file.read_text(encoding="utf-8"))
    except (TemplateSyntaxError, UnicodeDecodeError) as fault:
        line = getattr(fault, "lineno", 1)
        return [f"{file.relative_to(root)}:{line}: {fault}"]
    return [
        f"{file.relative_to(root)}: names {name}, which does not exist"
        for name in find_referenced_templates(tree)
        if name is not None and not (root / FOLDER / name).is_file()
    ]


def lint(root: Path) -> list[str]:
    argv = [
        sys.executable,
        "-m",
        "djlint",
        str(FOLDER),
        "--lint",
        "--profile=jinja",
        "--quiet",
        "--linter-output-format",
        "{filename}:{line}: {code} {message} {match}",
    ]
    done = subprocess.run(argv, cwd=root, capture_output=True, text=True)
    if done.returncode == 0:
        return []
    told = [line for line in done.stdout.splitlines() if line.strip()]
    return told or [f"djlint: {done.stderr.strip()}"]
