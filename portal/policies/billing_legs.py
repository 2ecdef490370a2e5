"""Whether an act at the card provider has been done, by what the subscription is now."""

from typing import Literal

from portal.policies.membership_progress import OVER, Word

Kind = Literal["subscribe", "set_end", "end_now", "abandon_checkout", "go_on", "switch"]


def done(kind: Kind, word: Word, *, price_id: str, wished_price: str | None = None) -> bool:
    """`wished_price` is the one that a switch asked for. A subscription that is there was made."""
    over = word.status in OVER
    match kind:
        case "subscribe":
            return True
        case "set_end":
            return over or word.ends_at is not None
        case "end_now" | "abandon_checkout":
            return over
        case "go_on":
            return not over and word.ends_at is None
        case "switch":
            return not over and price_id == wished_price
