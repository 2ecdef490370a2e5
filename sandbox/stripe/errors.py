"""Refusals in Stripe's own JSON shape."""

from typing import Any


class ApiError(Exception):
    """One refusal: HTTP status plus the fields of Stripe's `error` object.

    `executed` says whether the endpoint had begun its work. Stripe keeps the answer of an
    idempotent request only from then on (https://docs.stripe.com/api/idempotent_requests).
    """

    def __init__(
        self,
        status: int,
        kind: str,
        message: str,
        *,
        code: str | None = None,
        param: str | None = None,
        executed: bool = False,
        **more: Any,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.executed = executed
        self.fields: dict[str, Any] = {"type": kind, "message": message, **more}
        if code:
            self.fields["code"] = code
            self.fields["doc_url"] = f"https://stripe.com/docs/error-codes/{code.replace('_', '-')}"
        if param:
            self.fields["param"] = param

    def body(self) -> dict[str, Any]:
        return {"error": self.fields}


def invalid(message: str, *, code: str | None = None, param: str | None = None) -> ApiError:
    """The parameters themselves are wrong; nothing was begun."""
    return ApiError(400, "invalid_request_error", message, code=code, param=param)


def refused(
    message: str, *, code: str | None = None, param: str | None = None, **more: Any
) -> ApiError:
    """The parameters are fine, the state of the objects is not."""
    return ApiError(
        400, "invalid_request_error", message, code=code, param=param, executed=True, **more
    )


def missing(kind: str, object_id: str, param: str = "id") -> ApiError:
    message = f"No such {kind}: '{object_id}'"
    return ApiError(404, "invalid_request_error", message, code="resource_missing", param=param)


def server_error() -> ApiError:
    return ApiError(500, "api_error", "An unknown error occurred", executed=True)
