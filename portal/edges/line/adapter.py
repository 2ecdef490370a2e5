"""LINE's Messaging API, through its official SDK."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import regex
import urllib3
from linebot.v3.messaging.api.messaging_api import MessagingApi
from linebot.v3.messaging.api_client import ApiClient
from linebot.v3.messaging.configuration import Configuration
from linebot.v3.messaging.exceptions import ApiException
from linebot.v3.messaging.models.push_message_request import PushMessageRequest
from linebot.v3.messaging.models.text_message import TextMessage
from urllib3 import exceptions as http

from portal.edges.errors import EdgeError, Rejected, Unknown, Unreachable
from portal.fence import require_no_transaction

CONNECT_SECONDS = 3.0
READ_SECONDS = 10.0
LIMIT = 5000

NEVER_SENT = (
    http.NewConnectionError,  # refused, no route, no such name
    http.ConnectTimeoutError,
    http.ProxyError,
    http.LocationValueError,
    http.EmptyPoolError,
)


class LineMessages:
    """Implements `Line`. Safe to share between threads; opens no connection by itself."""

    def __init__(
        self,
        channel_token: str,
        *,
        api_base: str | None = None,
        connect_seconds: float = CONNECT_SECONDS,
        read_seconds: float = READ_SECONDS,
    ) -> None:
        host = api_base.rstrip("/") if api_base else None
        settings: Any = Configuration(host, access_token=channel_token)  # type: ignore[no-untyped-call]
        # Whether to try again is the outbox's decision, and it keeps the key for it.
        settings.retries = urllib3.Retry(0, redirect=False, raise_on_redirect=False)
        self._api: Any = MessagingApi(ApiClient(settings))  # type: ignore[no-untyped-call]
        self._timeouts = (connect_seconds, read_seconds)

    def push(self, *, to: str, text: str, retry_key: UUID) -> None:
        require_no_transaction("line.push")
        if problem := self._problem(_request(to, fitting(text)), str(retry_key)):
            raise problem

    def _problem(self, message: PushMessageRequest, retry_key: str) -> EdgeError | None:
        """Send once. What went wrong comes back, so that it is raised without the SDK's error:
        that one holds the token's headers and LINE's whole answer."""
        try:
            self._api.push_message(message, retry_key, _request_timeout=self._timeouts)
        except ApiException as answer:
            return _answered(answer)
        except http.MaxRetryError as error:
            return _failed(error.reason or error)
        except http.HTTPError as error:
            return _failed(error)
        except (ValueError, TypeError) as error:
            return Unknown("LINE's answer is not readable", code=type(error).__name__)
        return None


def _request(to: str, text: str) -> PushMessageRequest:
    # Through dictionaries, because the generated models declare every optional field as needed.
    message: dict[str, Any] = {"text": text}
    request: dict[str, Any] = {"to": to, "messages": [TextMessage(**message)]}
    return PushMessageRequest(**request)


def fitting(text: str, limit: int = LIMIT) -> str:
    """The longest beginning of `text` that LINE takes, cut between grapheme clusters.

    LINE counts UTF-16 units: https://developers.line.biz/en/docs/messaging-api/text-character-count/
    """
    used = 0
    for cluster in regex.finditer(r"\X", text):
        used += _units(cluster.group())
        if used > limit:
            return text[: cluster.start()] or _units_of(text, limit)
    return text


def _units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _units_of(text: str, limit: int) -> str:
    """For one cluster that is longer than a whole message, as an endless row of accents is."""
    return text.encode("utf-16-le", "surrogatepass")[: 2 * limit].decode("utf-16-le", "ignore")


def _answered(answer: ApiException) -> EdgeError | None:
    status = answer.status or 0
    if status == 409:
        return None  # this key was accepted before
    if status == 429:
        wait = (answer.headers or {}).get("Retry-After", "")
        seconds = float(wait) if wait.isdecimal() else None
        return Unreachable("LINE asks to wait", code="rate_limited", retry_after=seconds)
    if status == 0:
        return Unreachable("no secure connection to LINE", code="tls")
    if status >= 500 or status == 408:
        return Unknown(f"LINE answered {status}", code=f"http_{status}")
    return Rejected(f"LINE refused with {status}", code=f"http_{status}")


def _failed(error: Exception) -> EdgeError:
    kind = type(error).__name__
    if isinstance(error, NEVER_SENT):
        return Unreachable("LINE cannot be reached", code=kind)
    return Unknown("LINE's answer did not arrive", code=kind)
