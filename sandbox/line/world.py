"""What LINE remembers: accepted retry keys, blocked users, the pushes themselves.

Shapes and messages follow https://developers.line.biz/en/reference/messaging-api/
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

LIMIT = 5000  # UTF-16 units
REFUSED = "The request body has 1 error(s)"


@dataclass(frozen=True)
class Push:
    """One message that a user has received."""

    id: str
    to: str
    text: str
    retry_key: str | None
    at: str


@dataclass(frozen=True)
class Answer:
    status: int
    body: dict[str, Any]
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class World:
    pushes: list[Push] = field(default_factory=list)
    blocked: set[str] = field(default_factory=set)
    accepted: dict[str, tuple[str, list[dict[str, str]]]] = field(default_factory=dict)

    async def forget(self) -> None:
        self.pushes.clear()
        self.blocked.clear()
        self.accepted.clear()

    def push(self, body: Any, retry_key: str | None) -> Answer:
        """Deliver once per retry key. Refuses what LINE refuses, and then delivers nothing."""
        request_id = str(uuid4())
        if retry_key is not None and not is_uuid(retry_key):
            return error(400, "Invalid retry key", request_id)
        if retry_key in self.accepted:
            return self._again(retry_key, request_id)
        if problem := problem_in(body):
            return error(400, problem, request_id)
        if body["to"] in self.blocked:
            return error(400, "Failed to send messages", request_id)
        return self._deliver(body, retry_key, request_id)

    def _again(self, retry_key: str, request_id: str) -> Answer:
        first, sent = self.accepted[retry_key]
        told = {"message": "The retry key is already accepted", "sentMessages": sent}
        headers = {"x-line-request-id": request_id, "x-line-accepted-request-id": first}
        return Answer(409, told, headers)

    def _deliver(self, body: dict[str, Any], retry_key: str | None, request_id: str) -> Answer:
        sent = []
        for message in body["messages"]:
            at = datetime.now(UTC).isoformat(timespec="seconds")
            push = Push(str(uuid4().int)[:18], body["to"], message["text"], retry_key, at)
            self.pushes.append(push)
            sent.append({"id": push.id, "quoteToken": uuid4().hex})
        if retry_key is not None:
            self.accepted[retry_key] = (request_id, sent)
        return Answer(200, {"sentMessages": sent}, {"x-line-request-id": request_id})


def problem_in(body: Any) -> str | None:
    if not isinstance(body, dict):
        return "The request body could not be parsed as JSON"
    if not (isinstance(body.get("to"), str) and body["to"]):
        return "The property, 'to', in the request body is invalid"
    messages = body.get("messages")
    if not (isinstance(messages, list) and 1 <= len(messages) <= 5):
        return REFUSED
    return None if all(is_text(message) for message in messages) else REFUSED


def is_text(message: Any) -> bool:
    text = message.get("text") if isinstance(message, dict) else None
    if not isinstance(text, str) or message.get("type") != "text":
        return False
    return 0 < len(text.encode("utf-16-le", "surrogatepass")) // 2 <= LIMIT


def is_uuid(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True


def error(status: int, message: str, request_id: str) -> Answer:
    return Answer(status, {"message": message}, {"x-line-request-id": request_id})
