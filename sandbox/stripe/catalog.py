"""Products and prices, as little of them as a membership needs."""

from sandbox.stripe import params, shapes_billing
from sandbox.stripe.errors import invalid
from sandbox.stripe.params import Params
from sandbox.stripe.world import Obj, World

_INTERVALS = ("day", "week", "month", "year")


def create_product(world: World, given: Params) -> Obj:
    params.only(given, ("name", "description", "metadata", "active", "id"))
    product = shapes_billing.product(
        world,
        params.need_text(given, "name"),
        description=params.text(given, "description"),
        metadata=params.metadata(given),
    )
    if own_id := params.text(given, "id"):
        product["id"] = own_id
    world.add(product)
    world.emit("product.created", product)
    return product


def retrieve_product(world: World, given: Params, product_id: str) -> Obj:
    return world.get("product", product_id)


def create_price(world: World, given: Params) -> Obj:
    params.only(
        given,
        (
            "product",
            "product_data",
            "unit_amount",
            "currency",
            "recurring",
            "metadata",
            "nickname",
            "lookup_key",
        ),
    )
    params.need_text(given, "unit_amount")
    price = shapes_billing.price(
        world,
        _product_of(world, given),
        params.integer(given, "unit_amount") or 0,
        params.need_text(given, "currency").lower(),
        recurring=_recurring(given),
        metadata=params.metadata(given),
        nickname=params.text(given, "nickname"),
        lookup_key=params.text(given, "lookup_key"),
    )
    world.add(price)
    world.emit("price.created", price)
    return price


def retrieve_price(world: World, given: Params, price_id: str) -> Obj:
    return world.get("price", price_id)


def _product_of(world: World, given: Params) -> str:
    fresh = params.table(given, "product_data")
    if fresh:
        return str(create_product(world, fresh)["id"])
    product_id = params.need_text(given, "product")
    return str(world.get("product", product_id, "product")["id"])


def _recurring(given: Params) -> Obj | None:
    recurring = params.table(given, "recurring")
    if not recurring:
        return None
    interval = params.choice(recurring, "interval", _INTERVALS)
    if interval is None:
        raise invalid("Missing required param: recurring[interval].", param="recurring[interval]")
    return {
        "interval": interval,
        "interval_count": params.positive(recurring, "interval_count") or 1,
        "meter": None,
        "trial_period_days": None,
        "usage_type": "licensed",
    }
