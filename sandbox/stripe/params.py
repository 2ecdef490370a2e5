"""Form-encoded nested parameters, as the SDK sends them, and typed readers over them."""

import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import parse_qsl

from sandbox.stripe.errors import invalid

Params = dict[str, Any]


def decode(text: str) -> Params:
    """`a[b][0]=x&c=1` → {"a": {"b": ["x"]}, "c": "1"}. Leaves stay strings."""
    tree: Params = {}
    for name, value in parse_qsl(text, keep_blank_values=True):
        _plant(tree, _path(name), value)
    return {name: _lists(branch) for name, branch in tree.items()}


def _path(name: str) -> list[str]:
    head, *_ = name.split("[", 1)
    return [head, *re.findall(r"\[([^\]]*)\]", name)]


def _plant(tree: Params, path: list[str], value: str) -> None:
    for step in path[:-1]:
        branch = tree.setdefault(step, {})
        if not isinstance(branch, dict):
            raise invalid(f"Invalid hash: {path[0]}", param=path[0])
        tree = branch
    leaf = path[-1] if path[-1] != "" else str(len(tree))
    tree[leaf] = value


def _lists(branch: Any) -> Any:
    if not isinstance(branch, dict):
        return branch
    children = {key: _lists(value) for key, value in branch.items()}
    if children and all(key.isdecimal() for key in children):
        return [children[key] for key in sorted(children, key=int)]
    return children


def only(params: Mapping[str, Any], known: Iterable[str]) -> None:
    """Refuse what the endpoint does not know, as Stripe does."""
    for name in params:
        if name not in known and name != "expand":
            message = f"Received unknown parameter: {name}"
            raise invalid(message, code="parameter_unknown", param=name)


def text(params: Mapping[str, Any], name: str) -> str | None:
    value = params.get(name)
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise invalid(f"Invalid string: {value}", param=name)
    return value


def need_text(params: Mapping[str, Any], name: str) -> str:
    value = text(params, name)
    if value is None:
        message = f"Missing required param: {name}."
        raise invalid(message, code="parameter_missing", param=name)
    return value


def integer(params: Mapping[str, Any], name: str) -> int | None:
    value = text(params, name)
    if value is None:
        return None
    if not re.fullmatch(r"-?[0-9]{1,12}", value):
        message = f"Invalid integer: {value}"
        raise invalid(message, code="parameter_invalid_integer", param=name)
    return int(value)


def positive(params: Mapping[str, Any], name: str) -> int | None:
    value = integer(params, name)
    if value is not None and value < 1:
        message = "This value must be greater than or equal to 1."
        raise invalid(message, code="parameter_invalid_integer", param=name)
    return value


def boolean(params: Mapping[str, Any], name: str) -> bool | None:
    value = text(params, name)
    if value is None:
        return None
    if value not in ("true", "false"):
        raise invalid(f"Invalid boolean: {value}", param=name)
    return value == "true"


def choice(params: Mapping[str, Any], name: str, allowed: tuple[str, ...]) -> str | None:
    value = text(params, name)
    if value is not None and value not in allowed:
        raise invalid(f"Invalid {name}: must be one of {', '.join(allowed)}", param=name)
    return value


def table(params: Mapping[str, Any], name: str) -> Params:
    value = params.get(name)
    if value is None or value == "":
        return {}
    if not isinstance(value, dict):
        raise invalid(f"Invalid hash: {name}", param=name)
    return value


def rows(params: Mapping[str, Any], name: str) -> list[Any]:
    value = params.get(name)
    if value is None or value == "":
        return []
    if not isinstance(value, list):
        raise invalid(f"Invalid array: {name}", param=name)
    return value


def metadata(params: Mapping[str, Any], before: Mapping[str, str] | None = None) -> dict[str, str]:
    """Merged as Stripe merges it: an empty value unsets its key, an empty table unsets all."""
    if params.get("metadata") == "":
        return {}
    merged = dict(before or {})
    given = params.get("metadata", {})
    # Purely numeric keys arrive looking like a list; metadata never is one.
    pairs = enumerate(given) if isinstance(given, list) else given.items()
    for key, value in pairs:
        merged[str(key)] = str(value)
    _within_limits(merged)
    return {key: value for key, value in merged.items() if value != ""}


def _within_limits(data: Mapping[str, str]) -> None:
    """50 keys, 40 characters a key, 500 a value: https://docs.stripe.com/api/metadata"""
    if len(data) > 50:
        raise invalid("Metadata can have up to 50 keys", param="metadata")
    for key, value in data.items():
        if len(key) > 40:
            raise invalid("Metadata keys can have up to 40 characters", param="metadata")
        if len(value) > 500:
            message = "Metadata values can have up to 500 characters"
            raise invalid(message, param=f"metadata[{key}]")
