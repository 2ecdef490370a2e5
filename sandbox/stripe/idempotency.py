"""Idempotency as Stripe documents it (https://docs.stripe.com/api/idempotent_requests).

The first answer is kept, body and status, 500 included, once the endpoint has begun. Changed
parameters are refused, a second call while the first runs gets 409, a key is forgotten a day on.
"""

from contextlib import suppress

from sandbox.stripe.errors import ApiError
from sandbox.stripe.world import Obj, World

_KEPT_SECONDS = 24 * 3600
_LONGEST = 255


class Keys:
    """The answers live in `world.idempotency`; what is in flight dies with the process."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._in_flight: dict[str, tuple[str, str]] = {}

    def begin(self, key: str, path: str, body: str) -> Obj | None:
        """The stored answer to replay, or None: then the caller must `finish` or `abandon`."""
        if len(key) > _LONGEST:
            message = f"Idempotency keys can be at most {_LONGEST} characters."
            raise ApiError(400, "idempotency_error", message)
        with self._world.lock:
            self._prune()
            if key in self._in_flight:
                _require_same(key, self._in_flight[key], (path, body))
                raise _in_use(key)
            stored = self._world.idempotency.get(key)
            if stored is not None:
                _require_same(key, (stored["path"], stored["body"]), (path, body))
                return stored
            self._in_flight[key] = (path, body)
            return None

    def finish(self, key: str, status: int, answer: str, request_id: str) -> None:
        with self._world.lock:
            if key not in self._in_flight:
                # A reset came between.
                return
            path, body = self._in_flight.pop(key)
            self._world.idempotency[key] = {
                "path": path,
                "body": body,
                "status": status,
                "answer": answer,
                "request_id": request_id,
                "at": self._world.now(),
            }

    def abandon(self, key: str) -> None:
        """Nothing was begun, so nothing is kept."""
        with self._world.lock, suppress(KeyError):
            del self._in_flight[key]

    def clear(self) -> None:
        self._in_flight.clear()

    def _prune(self) -> None:
        oldest = self._world.now() - _KEPT_SECONDS
        kept = self._world.idempotency
        for key in [key for key, stored in kept.items() if stored["at"] <= oldest]:
            del kept[key]


def _require_same(key: str, first: tuple[str, str], now: tuple[str, str]) -> None:
    if first == now:
        return
    what = "endpoint they were first used for" if first[0] != now[0] else "parameters they"
    tail = f" ('{first[0]}')" if first[0] != now[0] else " were first used with"
    message = (
        f"Keys for idempotent requests can only be used with the same {what}{tail}. Try using a "
        f"key other than '{key}' if you meant to execute a different request."
    )
    raise ApiError(400, "idempotency_error", message)


def _in_use(key: str) -> ApiError:
    message = (
        "There is currently another in-progress request using this Idempotency Key (that probably "
        f"means you submitted twice, and the other request is still going through): {key}. "
        "Please try again later."
    )
    return ApiError(409, "idempotency_error", message, code="idempotency_key_in_use")
