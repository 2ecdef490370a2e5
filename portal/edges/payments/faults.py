"""What an exception of the SDK means: was anything done, perhaps done, or refused?"""

from __future__ import annotations

import ssl
from collections.abc import Iterator

import requests
import stripe
import urllib3.exceptions as pool

from portal.edges.errors import EdgeError, Rejected, Unknown, Unreachable

_NEVER_SENT = (
    requests.exceptions.ConnectTimeout,
    requests.exceptions.InvalidURL,
    requests.exceptions.InvalidSchema,
    requests.exceptions.MissingSchema,
    requests.exceptions.InvalidHeader,
)
_DEFINITE_NO = (
    stripe.CardError,
    stripe.InvalidRequestError,
    stripe.IdempotencyError,
    stripe.AuthenticationError,
    stripe.PermissionError,
)
_KINDS = ("card_error", "invalid_request_error", "idempotency_error", "api_error")
_NEVER_CONNECTED = (pool.NewConnectionError, pool.ConnectTimeoutError, pool.ProxyError)


def of_write(error: stripe.StripeError) -> EdgeError:
    """Unreachable only where the request certainly did nothing; Rejected where Stripe said no."""
    if isinstance(error, stripe.APIConnectionError):
        if never_sent(error):
            return Unreachable("the card provider could not be reached")
        return Unknown("the card provider's answer was lost")
    return _of_answer(error) or Unknown(_message(error), code=_code(error))


def of_read(error: stripe.StripeError) -> EdgeError:
    """A read changes nothing, so whatever keeps its answer from us is Unreachable."""
    if isinstance(error, stripe.APIConnectionError):
        return Unreachable("the card provider could not be reached")
    return _of_answer(error) or Unreachable(_message(error), code=_code(error))


def never_sent(error: stripe.APIConnectionError) -> bool:
    """True when the connection was never made, so that no byte of the request has left.

    The SDK says only "connection error"; the requests exception beneath it tells which. A
    connection that was made and then cut may have carried the request, so it is not counted.
    """
    cause = error.__cause__
    if isinstance(cause, _NEVER_SENT):
        return True
    return any(
        isinstance(inner, (*_NEVER_CONNECTED, ssl.SSLCertVerificationError))
        for inner in _beneath(cause)
    )


def _beneath(error: BaseException | None) -> Iterator[BaseException]:
    """Down through what requests and urllib3 wrap: args[0], then `reason`, then its own args."""
    for _ in range(5):
        if error is None:
            return
        yield error
        reason = getattr(error, "reason", None)
        inner = reason if reason is not None else next(iter(error.args), None)
        error = inner if isinstance(inner, BaseException) else None


def _of_answer(error: stripe.StripeError) -> EdgeError | None:
    """Stripe's own definite answers. None for whatever leaves the outcome open."""
    if isinstance(error, stripe.RateLimitError):
        return Unreachable(
            _message(error), code=_code(error) or "rate_limit", retry_after=_retry_after(error)
        )
    # Without Stripe's own kind of error a 4xx may be a proxy's, which proves nothing.
    if isinstance(error, _DEFINITE_NO) and getattr(error.error, "type", None) in _KINDS:
        return Rejected(_message(error), code=_code(error))
    return None


def _code(error: stripe.StripeError) -> str | None:
    """Stripe's short code; where it gives none, its kind of error."""
    return getattr(error.error, "code", None) or getattr(error.error, "type", None)


def _message(error: stripe.StripeError) -> str:
    """Stripe's words. What is not Stripe's may be anybody's page, and stays out of our logs."""
    if error.error is None:
        return "the card provider gave no readable answer"
    return error.user_message or "the card provider gave no reason"


def _retry_after(error: stripe.StripeError) -> float | None:
    try:
        return float((error.headers or {}).get("Retry-After", ""))
    except ValueError:
        return None
