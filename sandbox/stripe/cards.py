"""Which test card does what. Numbers and ids are Stripe's published ones, except `processing`."""

from dataclasses import dataclass

from sandbox.stripe.errors import ApiError, invalid, missing


@dataclass(frozen=True, slots=True)
class Card:
    """`behaviour`: pay, decline, challenge (3-D Secure) or process."""

    number: str = ""
    alias: str = ""
    behaviour: str = "decline"
    hint_ja: str = ""
    hint_en: str = ""
    code: str = "card_declined"
    decline_code: str | None = None
    message: str = "Your card was declined."


CARDS = (
    Card("4242424242424242", "visa", "pay", "支払い成功", "Succeeds"),
    Card(
        "4000000000000002",
        "visa_chargeDeclined",
        "decline",
        "拒否",
        "Declined",
        decline_code="generic_decline",
    ),
    Card(
        "4000000000009995",
        "visa_chargeDeclinedInsufficientFunds",
        "decline",
        "残高不足",
        "Insufficient funds",
        decline_code="insufficient_funds",
        message="Your card has insufficient funds.",
    ),
    Card(
        "4000000000000069",
        "chargeDeclinedExpiredCard",
        "decline",
        "有効期限切れ",
        "Expired card",
        code="expired_card",
        decline_code="expired_card",
        message="Your card has expired.",
    ),
    Card(
        "4000000000000341",
        "chargeCustomerFail",
        "decline",
        "登録はできるが請求は拒否",
        "Attaches, later charges decline",
        decline_code="generic_decline",
    ),
    Card("4000002500003155", "authenticationRequired", "challenge", "3Dセキュア", "3-D Secure"),
    Card(
        "4000002760003184",
        "authenticationRequiredOnSetup",
        "challenge",
        "3Dセキュア（毎回）",
        "3-D Secure, every time",
    ),
    Card("4000000000000077", "processing", "process", "処理中のまま待つ", "Stays in processing"),
)

_BY_NUMBER = {card.number: card for card in CARDS}
_BY_ALIAS = {card.alias: card for card in CARDS}


def by_number(number: str) -> Card:
    """Raises the card error that a mistyped number gets."""
    digits = "".join(ch for ch in number if ch.isdigit())
    card = _BY_NUMBER.get(digits)
    if card is None:
        message = "Your card number is incorrect."
        raise ApiError(402, "card_error", message, code="incorrect_number", param="number")
    return card


def by_alias(alias: str) -> Card:
    """`pm_card_visa` and `tok_visa` without their prefixes."""
    card = _BY_ALIAS.get(alias)
    if card is None:
        raise missing("PaymentMethod", alias, "payment_method")
    return card


def by_token(token: str) -> Card:
    if not token.startswith("tok_"):
        raise invalid(f"No such token: '{token}'", code="resource_missing", param="card[token]")
    return by_alias(token.removeprefix("tok_"))
