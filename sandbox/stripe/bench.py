"""What the control door has its hands on."""

from collections.abc import Callable
from dataclasses import dataclass

from sandbox.stripe.api import Api
from sandbox.stripe.webhooks import Webhooks
from sandbox.stripe.world import World


@dataclass(slots=True)
class Bench:
    """`set_listening` opens and shuts the API's own port, for connections really refused.

    `processing_seconds` None leaves a payment in processing until a test decides it.
    """

    world: World
    api: Api
    webhooks: Webhooks
    set_listening: Callable[[bool], None]
    processing_seconds: int | None = None
