"""Is this JSON what the official SDK says it gets? Read from its own type annotations.

Unknown fields, missing required ones, wrong types and enum values that do not exist are all
problems, through nested classes, lists and expanded objects.
"""

import typing
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from functools import cache
from types import NoneType
from typing import Any

import stripe
from stripe.billing import FeedbackOption
from stripe.test_helpers import TestClock

_ALIASES: dict[str, Any] = {
    "CardResource": stripe.Card,
    "FeedbackOption": FeedbackOption,
    "TestClock": TestClock,
}
_LIST_FIELDS = {"object", "data", "has_more", "url"}


class _Names(dict[str, Any]):
    """Names that the SDK imports for type checkers only."""

    def __missing__(self, name: str) -> Any:
        try:
            return _ALIASES.get(name) or getattr(stripe, name)
        except AttributeError:
            raise KeyError(name) from None


def class_of(obj: dict[str, Any]) -> Any:
    """The SDK's class for a top-level object, by its `object` field."""
    kind = str(obj.get("object"))
    name = "".join(word.capitalize() for word in kind.split("_"))
    return {"line_item": stripe.InvoiceLineItem}.get(kind) or getattr(stripe, name)


def problems(obj: dict[str, Any]) -> list[str]:
    """What is wrong with a top-level object or a list of them; empty when all is well."""
    if obj.get("object") == "list":
        return [found for row in obj["data"] for found in problems(row)]
    found = list(_of_class(class_of(obj), obj, str(obj.get("object"))))
    if obj.get("object") == "event":
        found.extend(problems(obj["data"]["object"]))
    return found


@cache
def _hints(cls: Any) -> dict[str, Any]:
    found = typing.get_type_hints(cls, localns=_Names())
    return {
        name: hint
        for name, hint in found.items()
        if not name.startswith("_") and typing.get_origin(hint) is not typing.ClassVar
    }


def _of_class(cls: Any, value: Any, path: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{path}: {value!r} is not a {cls.__name__}"
        return
    hints = _hints(cls)
    for name in value.keys() - hints.keys():
        yield f"{path}.{name}: unknown field"
    for name, hint in hints.items():
        if name in value:
            yield from _of_hint(hint, value[name], f"{path}.{name}")
        elif NoneType not in typing.get_args(hint):
            yield f"{path}.{name}: missing"


def _of_hint(hint: Any, value: Any, path: str) -> Iterator[str]:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any or isinstance(hint, typing.TypeVar):
        return
    if origin is typing.Union:
        yield from _of_union(args, value, path)
    elif origin is typing.Literal:
        if value not in args:
            yield f"{path}: {value!r} is no value of this field"
    elif origin is list:
        yield from _of_rows(args[0], value, path)
    elif origin is stripe.ListObject:
        yield from _of_list_object(args[0], value, path)
    elif _is_table(origin or hint):
        yield from _of_table(args[-1] if args else Any, value, path)
    elif isinstance(hint, type) and issubclass(hint, stripe.StripeObject):
        yield from _of_class(hint, value, path)
    else:
        yield from _of_plain(hint, value, path)


def _of_union(args: tuple[Any, ...], value: Any, path: str) -> Iterator[str]:
    """The nearest member decides. An enum is typed `Literal | str`: there only the enum counts."""
    enums = [arg for arg in args if typing.get_origin(arg) is typing.Literal]
    if enums and isinstance(value, str):
        args = tuple(enums)
    tries = [list(_of_hint(arg, value, path)) for arg in args]
    yield from min(tries, key=len)


def _of_rows(hint: Any, value: Any, path: str) -> Iterator[str]:
    if not isinstance(value, list):
        yield f"{path}: {value!r} is not a list"
        return
    for index, row in enumerate(value):
        yield from _of_hint(hint, row, f"{path}[{index}]")


def _of_list_object(hint: Any, value: Any, path: str) -> Iterator[str]:
    if not isinstance(value, dict) or value.keys() != _LIST_FIELDS or value["object"] != "list":
        yield f"{path}: not a list object"
        return
    yield from _of_rows(hint, value["data"], f"{path}.data")


def _is_table(hint: Any) -> bool:
    return hint is dict or getattr(hint, "__name__", "") == "UntypedStripeObject"


def _of_table(hint: Any, value: Any, path: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{path}: {value!r} is not an object"
        return
    for name, inner in value.items():
        yield from _of_hint(hint, inner, f"{path}[{name}]")


def _of_plain(hint: Any, value: Any, path: str) -> Iterator[str]:
    if hint is Decimal:
        if not _is_decimal(value):
            yield f"{path}: {value!r} is not a decimal in a string"
    elif hint is float:
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            yield f"{path}: {value!r} is not a number"
    elif type(value) is not hint:
        yield f"{path}: {value!r} is not {getattr(hint, '__name__', hint)}"


def _is_decimal(value: Any) -> bool:
    try:
        return isinstance(value, str) and Decimal(value).is_finite()
    except InvalidOperation:
        return False
