"""Lists as Stripe pages them: newest first, by cursor, never by page number."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from sandbox.stripe import params
from sandbox.stripe.errors import invalid, missing
from sandbox.stripe.params import Params
from sandbox.stripe.world import Obj, World

_PAGING = ("limit", "starting_after", "ending_before", "created")
Keep = Callable[[Obj], bool]


def page(
    world: World, given: Params, kind: str, url: str, filters: Mapping[str, Callable[[Obj], Any]]
) -> Obj:
    """One page of `kind`. `filters` names the parameters and what each must equal."""
    params.only(given, (*_PAGING, *filters))
    keep = _created_filter(given)
    wanted = {name: value for name in filters if (value := params.text(given, name))}
    found = [
        obj
        for obj in world.newest_first(kind)
        if keep(obj) and all(filters[name](obj) == value for name, value in wanted.items())
    ]
    return cut(found, given, url)


def cut(found: list[Obj], given: Params, url: str) -> Obj:
    limit = params.integer(given, "limit") or 10
    if not 1 <= limit <= 100:
        raise invalid("Invalid limit: must be between 1 and 100.", param="limit")
    after, before = params.text(given, "starting_after"), params.text(given, "ending_before")
    if before is not None:
        newer = found[: _place(found, before, "ending_before")]
        return _listing(newer[-limit:], len(newer) > limit, url)
    rest = found[_place(found, after, "starting_after") + 1 :] if after else found
    return _listing(rest[:limit], len(rest) > limit, url)


def _listing(data: list[Obj], has_more: bool, url: str) -> Obj:
    return {"object": "list", "data": data, "has_more": has_more, "url": url}


def _place(found: list[Obj], object_id: str, param: str) -> int:
    for index, obj in enumerate(found):
        if obj["id"] == object_id:
            return index
    raise missing("object", object_id, param)


def _created_filter(given: Params) -> Keep:
    created = given.get("created")
    if created is None:
        return lambda obj: True
    if isinstance(created, str):
        exactly = params.integer(given, "created")
        return lambda obj: obj["created"] == exactly
    bounds = {name: params.integer(created, name) for name in ("gt", "gte", "lt", "lte")}
    return lambda obj: _within(obj["created"], bounds)


def _within(moment: int, bounds: Mapping[str, int | None]) -> bool:
    gt, gte, lt, lte = (bounds[name] for name in ("gt", "gte", "lt", "lte"))
    return not (
        (gt is not None and moment <= gt)
        or (gte is not None and moment < gte)
        or (lt is not None and moment >= lt)
        or (lte is not None and moment > lte)
    )


def events(world: World, given: Params) -> Obj:
    """`type` may end in `.*`; `types` is a list. Both narrow what is listed."""
    params.only(given, (*_PAGING, "type", "types", "delivery_success"))
    keep = _created_filter(given)
    patterns = [str(row) for row in params.rows(given, "types")]
    if one := params.text(given, "type"):
        patterns.append(one)
    found = [
        event
        for event in world.newest_first("event")
        if keep(event) and (not patterns or any(matches(p, event["type"]) for p in patterns))
    ]
    return cut(found, given, "/v1/events")


def matches(pattern: str, event_type: str) -> bool:
    return re.fullmatch(re.escape(pattern).replace(r"\*", ".*"), event_type) is not None
