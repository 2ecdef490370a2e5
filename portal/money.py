"""Money: an integer of the currency's smallest unit, with its currency. Nothing is divided by 100.

JPY has no minor unit, so 500 is five hundred yen here, at the provider and on the receipt.
"""

from dataclasses import dataclass

# Currencies a facility may be set up with, by ISO 4217 exponent. Three-decimal currencies are
# refused: the card rail wants their last digit to be zero, and we would have to round a price.
EXPONENTS = {"JPY": 0, "USD": 2, "EUR": 2, "GBP": 2, "SGD": 2, "TWD": 2}

# The card rail's smallest charge, in smallest units (Stripe, "minimum charge amounts").
CARD_MINIMUM = {"JPY": 50, "USD": 50, "EUR": 50, "GBP": 30, "SGD": 50, "TWD": 1500}

# Above any bill of a house, and far below what the database and the card rail can carry.
LARGEST = 99_999_999


class UnsupportedCurrencyError(ValueError):
    pass


@dataclass(frozen=True, slots=True)
class Money:
    amount: int
    currency: str

    def __post_init__(self) -> None:
        require_supported(self.currency)


def require_supported(currency: str) -> None:
    if currency not in EXPONENTS:
        raise UnsupportedCurrencyError(
            f"{currency} cannot be used: supported currencies are {', '.join(sorted(EXPONENTS))}"
        )


def below_card_minimum(money: Money) -> bool:
    """True for an amount that the card rail would refuse. Zero needs no card and is not below."""
    return 0 < money.amount < CARD_MINIMUM[money.currency]
