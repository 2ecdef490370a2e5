"""Migrations are one line of history, and what has been released never moves."""

from __future__ import annotations

import ast
import hashlib
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

VERSIONS = Path("migrations/versions")
RELEASED = Path("migrations/released.txt")


@dataclass(frozen=True)
class Migration:
    path: Path
    revision: str
    parents: tuple[str, ...]


def problems(root: Path) -> list[str]:
    known = read_all(root / VERSIONS)
    if not known:
        return [f"{VERSIONS}: there is no migration"]
    return [*identities(known), *history(known), *released(known, root / RELEASED)]


def read_all(versions: Path) -> list[Migration]:
    """Read without importing: a migration in the making may not even run yet."""
    return [read(path) for path in sorted(versions.glob("*.py")) if path.name != "__init__.py"]


def read(path: Path) -> Migration:
    values: dict[str, object] = {}
    for node in ast.parse(path.read_text(), str(path)).body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                values[name] = _literal(value)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                values[name] = _literal(value)
    parents = values.get("down_revision") or ()
    return Migration(
        path,
        str(values.get("revision", "")),
        (parents,) if isinstance(parents, str) else tuple(map(str, parents)),  # type: ignore[call-overload]
    )


def identities(known: list[Migration]) -> list[str]:
    unnamed = [f"{m.path.name}: has no revision id" for m in known if not m.revision]
    times = Counter(m.revision for m in known if m.revision)
    doubled = [
        f"revision {revision} is claimed by {names(known, revision)}; give the newer one another id"
        for revision, count in times.items()
        if count > 1
    ]
    return unnamed + doubled


def history(known: list[Migration]) -> list[str]:
    """Exactly one first, exactly one last, and nobody follows somebody who is not there."""
    revisions = {m.revision for m in known}
    followed = {parent for m in known for parent in m.parents}
    lost = [
        f"{m.path.name}: follows {parent}, which does not exist"
        for m in known
        for parent in m.parents
        if parent not in revisions
    ]
    heads, bases = revisions - followed, {m.revision for m in known if not m.parents}
    if len(heads) != 1:
        lost.append(f"there must be one last migration, there are {len(heads)}: {listed(heads)}")
    if len(bases) != 1:
        lost.append(f"there must be one first migration, there are {len(bases)}: {listed(bases)}")
    return lost


def released(known: list[Migration], record: Path) -> list[str]:
    """The released ids, in their order, are the beginning of the history, and say what they did."""
    if not record.exists():
        return [f"{RELEASED} is missing: a released revision id and its digest a line"]
    lines = re.findall(r"^\s*([^#\s]+)[ \t]*(\S*)", record.read_text(), re.MULTILINE)
    ids = [revision for revision, _ in lines]
    parents = {m.revision: m.parents for m in known}
    found = changed(known, dict(lines))
    for before, revision in zip([None, *ids], ids, strict=False):
        if revision not in parents:
            found.append(f"released migration {revision} is gone; databases out there stand on it")
        elif parents[revision] != ((before,) if before else ()):
            found.append(f"released migration {revision} no longer follows {before or 'nothing'}")
    return found


def changed(known: list[Migration], digests: dict[str, str]) -> list[str]:
    """A database that stands on it has run it as it was: a change reaches no such house."""
    return [
        f"released migration {m.revision} was changed; write a new one ({digest(m)} is its digest)"
        for m in known
        if m.revision in digests and digests[m.revision] != digest(m)
    ]


def digest(migration: Migration) -> str:
    """Over the migration and the statements in SQL that it runs, which bear its number."""
    statements = migration.path.parent.parent / "sql"
    files = [migration.path, *sorted(statements.glob(f"{migration.revision}_*.sql"))]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]


def names(known: list[Migration], revision: str) -> str:
    return " and ".join(m.path.name for m in known if m.revision == revision)


def listed(revisions: set[str]) -> str:
    return ", ".join(sorted(revisions)) or "none"


def _literal(node: ast.expr) -> object:
    try:
        return ast.literal_eval(node)
    except ValueError:
        return None
