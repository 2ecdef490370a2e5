"""The mutants, all of them mutmut's own.

Within functions mutmut puts every mutant beside the original, and the name chosen at run time says
which one is called. What it changes outside of functions (the state tables, schedules, defaults of
fields) it makes too, but cannot switch at run time: each of those is a module's whole text.
"""

from __future__ import annotations

import ast
import difflib
import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterator
from pathlib import Path

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider
from mutmut.configuration import config
from mutmut.mutation.file_mutation import (
    Mutation,
    create_mutations,
    deep_replace,
    mutate_file_contents,
)
from mutmut.mutation.trampoline_templates import mangle_function_name
from mutmut.utils.file_utils import walk_source_files

from sandbox.mutation.notes import OUTSIDE, Mutant


def chosen_files(words: list[str]) -> list[str]:
    """The files to mutate, by the configuration and by words of the command line."""
    files = sorted(str(path) for path in walk_source_files() if config().should_mutate(path))
    return [path for path in files if not words or any(word in path for word in words)]


def mutants_of(path: str, kept: Path) -> list[Mutant]:
    """All of a file's, in their order in the text."""
    module, inside, outside = _of_text(path)
    where = MetadataWrapper(module, unsafe_skip_copy=True).resolve(PositionProvider)
    statements = _statements(module.code)
    beginnings = _beginnings(switchable(path, kept))
    told = []
    for name, function, mutations in inside:
        digest = _digest(module.code_for_node(function))
        shift = beginnings[f"{name}_orig"] - where[function].start.line
        for number, mutation in enumerate(mutations, 1):
            found = where.get(mutation.original_node) or where[function]
            first, last = statements.get(found.start.line, (found.start.line, found.end.line))
            lines = (first + shift, last + shift)
            told.append(Mutant(path, f"{_module(path)}.{name}_{number}", digest, lines))
    whole = _digest(module.code)
    told += [Mutant(path, f"{_module(path)}{OUTSIDE}{n}", whole) for n in range(len(outside))]
    return told


def _statements(text: str) -> dict[int, tuple[int, int]]:
    """The lines of the statement, or of the head of the block, that each line belongs to. What a
    function's head holds is seen by whoever reaches its first statement."""
    found: dict[int, tuple[int, int]] = {}
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.stmt):
            continue
        body = getattr(node, "body", None)
        last = body[0].lineno - 1 if body else node.end_lineno or node.lineno
        span = (node.lineno, max(node.lineno, last))
        if isinstance(node, ast.FunctionDef):
            first = node.body[1 if ast.get_docstring(node) and len(node.body) > 1 else 0]
            within = getattr(first, "body", None)
            end = within[0].lineno - 1 if within else first.end_lineno or first.lineno
            span = (first.lineno, max(first.lineno, end))
        for line in range(node.lineno, max(node.lineno, last) + 1):
            found[line] = span
    return found


def _beginnings(text: str) -> dict[str, int]:
    return {
        node.name: node.lineno
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef) and node.name.endswith("_orig")
    }


def switchable(path: str, kept: Path) -> str:
    """The module's text with every mutant of its functions in it; `kept` remembers, it is slow."""
    text = Path(path).read_text(encoding="utf-8")
    memory = kept / f"{_module(path)}-{_digest(text)}.py"
    if not memory.exists():
        kept.mkdir(parents=True, exist_ok=True)
        memory.write_text(mutate_file_contents(path, text).code, encoding="utf-8")
    return memory.read_text(encoding="utf-8")


def places(path: str, kept: Path) -> dict[str, range]:
    """Where each mutant of a function stands in the file that holds them all."""
    return {
        f"{_module(path)}.{node.name}": range(node.lineno, (node.end_lineno or node.lineno) + 1)
        for node in ast.walk(ast.parse(switchable(path, kept)))
        if isinstance(node, ast.FunctionDef) and "__mutmut_" in node.name
    }


def change(path: str, text: str) -> str:
    """What a mutant's text changes, as a diff."""
    original = Path(path).read_text(encoding="utf-8").splitlines()
    return "\n".join(list(difflib.unified_diff(original, text.splitlines(), n=0, lineterm=""))[2:])


def texts(path: str, wanted: Collection[str]) -> Iterator[tuple[str, str]]:
    """(name, the whole module with this one change) of the mutants named."""
    module, inside, outside = _of_text(path)
    named = [
        (f"{_module(path)}.{name}_{number}", mutation)
        for name, _, mutations in inside
        for number, mutation in enumerate(mutations, 1)
    ]
    named += [(f"{_module(path)}{OUTSIDE}{n}", mutation) for n, mutation in enumerate(outside)]
    for name, mutation in named:
        if name in wanted:
            yield name, _changed(module, mutation)


def _changed(module: cst.Module, mutation: Mutation) -> str:
    changed = deep_replace(module, mutation.original_node, mutation.mutated_node)
    return cst.ensure_type(changed, cst.Module).code


Inside = list[tuple[str, cst.FunctionDef, list[Mutation]]]


def _of_text(path: str) -> tuple[cst.Module, Inside, list[Mutation]]:
    text = Path(path).read_text(encoding="utf-8")
    module, mutations, _, _ = create_mutations(path, text)
    by_place: dict[cst.CSTNode | None, list[Mutation]] = defaultdict(list)
    for mutation in mutations:
        by_place[mutation.contained_by_top_level_function].append(mutation)
    inside = [
        (
            f"{mangle_function_name(name=function.name.value, class_name=owner)}__mutmut",
            function,
            of,
        )
        for function, owner in _functions(module)
        if (of := by_place.pop(function, []))
    ]
    return module, inside, [mutation for rest in by_place.values() for mutation in rest]


def _functions(module: cst.Module) -> Iterator[tuple[cst.FunctionDef, str | None]]:
    for statement in module.body:
        if isinstance(statement, cst.FunctionDef):
            yield statement, None
        elif isinstance(statement, cst.ClassDef):
            for inner in statement.body.body:
                if isinstance(inner, cst.FunctionDef):
                    yield inner, statement.name.value


def _module(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
