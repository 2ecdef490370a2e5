"""What can go wrong at an edge, in exactly three kinds.

`Unreachable`: the provider certainly did nothing. `Unknown`: it may have acted, the answer is
lost; only asking it again can tell. `Rejected`: it answered no.
"""

NO_SUCH = "resource_missing"
"""The card provider's own word that it has no such thing. Any other refusal proves nothing."""


class EdgeError(Exception):
    """`code` is the provider's own short code where it gave one; never a secret."""

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(message)
        self.code = code


class Unreachable(EdgeError):
    """Nothing was done: refused connection, no route, rate limit. Safe to try again later."""

    def __init__(
        self, message: str, *, code: str | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(message, code=code)
        self.retry_after = retry_after


class Unknown(EdgeError):
    """It may have been carried out: time-out after send, cut reply, 5xx, still in flight."""


class Rejected(EdgeError):
    """The provider understood and refused. The same request will be refused again."""
