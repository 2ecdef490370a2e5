"""Seam, through its official SDK."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeVar, get_args

import httpx
from httpx_retries import Retry
from seam.exceptions import SeamHttpApiError, SeamHttpInvalidResponseError
from seam.resources.access_code import AccessCode
from seam.resources.device import Device
from seam.seam import Seam

from portal.edges.errors import EdgeError, Rejected, Unknown, Unreachable
from portal.edges.locks.port import CodeStatus, LockCode, LockDevice
from portal.fence import require_no_transaction

CONNECT_SECONDS = 3.0
READ_SECONDS = 10.0
MAX_PAGES = 50

# A 404 means "gone" only in Seam's own words. A proxy's 404 page or a wrong endpoint must not
# pass for the confirmed removal of a key.
GONE = {"access_code_not_found", "device_not_found", "not_found"}
DUPLICATE = {"duplicate_access_code", "duplicate_code_on_device", "duplicate_code"}
NEVER_SENT = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.ProxyError,
    httpx.UnsupportedProtocol,
    httpx.InvalidURL,
)

T = TypeVar("T")


class SeamLocks:
    """Implements `Locks`. Safe to share between threads; opens no connection by itself."""

    def __init__(
        self,
        api_key: str,
        *,
        endpoint: str | None = None,
        connect_seconds: float = CONNECT_SECONDS,
        read_seconds: float = READ_SECONDS,
    ) -> None:
        self._seam = Seam(
            api_key,
            endpoint=endpoint,
            wait_for_action_attempt=False,
            # A retry inside the SDK would repeat a write whose fate nobody has asked about.
            retries=Retry(total=0),
            httpx_options={
                "timeout": httpx.Timeout(read_seconds, connect=connect_seconds),
                # A kept connection can be closed just as a write begins, and a forked worker
                # would share it. Lock calls are few: each one connects afresh.
                "limits": httpx.Limits(max_keepalive_connections=0),
                "event_hooks": {"response": [_stop_at_rate_limit]},
            },
        )

    def find_code(self, device_id: str, name: str) -> LockCode | None:
        require_no_transaction("locks.find_code")
        named = [code for code in self._codes(device_id) if code.name == name]
        return min(named, key=lambda code: code.status == "removing", default=None)

    def create_code(
        self, *, device_id: str, name: str, pin: str, starts_at: datetime, ends_at: datetime
    ) -> LockCode:
        require_no_transaction("locks.create_code")
        starts, ends = _instant(starts_at), _instant(ends_at)
        return _write(
            lambda: _lock_code(
                self._seam.access_codes.create(
                    device_id=device_id, name=name, code=pin, starts_at=starts, ends_at=ends
                )
            )
        )

    def update_code(self, code_id: str, *, starts_at: datetime, ends_at: datetime) -> LockCode:
        require_no_transaction("locks.update_code")
        body = {
            "access_code_id": code_id,
            "type": "time_bound",
            "starts_at": _instant(starts_at),
            "ends_at": _instant(ends_at),
        }
        try:
            _write(lambda: self._post("/access_codes/update", body))
        except Rejected as refusal:
            if refusal.code in GONE:
                raise _code_gone() from None
            raise
        return self._read_back(code_id)

    def delete_code(self, code_id: str, *, device_id: str) -> None:
        # The device is not sent: Seam knows it, and its fake would look for any code on it.
        require_no_transaction("locks.delete_code")
        try:
            _write(lambda: self._post("/access_codes/delete", {"access_code_id": code_id}))
        except Rejected as refusal:
            if refusal.code not in GONE:
                raise

    def get_code(self, code_id: str) -> LockCode | None:
        require_no_transaction("locks.get_code")
        return self._get(code_id)

    def list_codes(self, device_id: str) -> list[LockCode]:
        require_no_transaction("locks.list_codes")
        return self._codes(device_id)

    def device(self, device_id: str) -> LockDevice | None:
        require_no_transaction("locks.device")
        return _or_none(lambda: _lock_device(self._seam.devices.get(device_id=device_id)))

    def _post(self, path: str, body: dict[str, Any]) -> None:
        # Seam documents POST for every call. The SDK's own update says PATCH, which Seam's fake
        # refuses; its own delete puts the id into the query, which the fake answers with "no
        # such code" while the code stays: to us that would be a confirmed removal.
        self._seam.client.post(path, json=body)

    def _get(self, code_id: str) -> LockCode | None:
        return _or_none(lambda: _lock_code(self._seam.access_codes.get(access_code_id=code_id)))

    def _read_back(self, code_id: str) -> LockCode:
        """The code after an accepted write. Not being able to look is not a failed write."""
        try:
            code = self._get(code_id)
        except EdgeError as error:
            raise Unknown("accepted, but not readable afterwards", code=error.code) from None
        if code is None:
            raise _code_gone()
        return code

    def _codes(self, device_id: str) -> list[LockCode]:
        # The fake lists the codes of every device, so the device is compared here too.
        found = _read(lambda: [_lock_code(code) for code in self._pages(device_id)])
        return [code for code in found if code.device_id == device_id]

    def _pages(self, device_id: str) -> list[AccessCode]:
        codes: list[AccessCode] = []
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            page = self._seam.access_codes.list(device_id=device_id, page_cursor=cursor)
            codes.extend(page)
            # The SDK's paginator insists on an envelope that the fake does not send.
            following = getattr(page, "pagination", None) or {}
            cursor = following.get("next_page_cursor")
            if not (following.get("has_next_page") and cursor):
                return codes
        raise SeamHttpInvalidResponseError("/access_codes/list", "pagination", "without an end")


def _write(call: Callable[[], T]) -> T:
    return _translated(call, unclear=Unknown)


def _read(call: Callable[[], T]) -> T:
    return _translated(call, unclear=Unreachable)


def _or_none(call: Callable[[], T]) -> T | None:
    try:
        return _read(call)
    except Rejected as refusal:
        if refusal.code in GONE:
            return None
        raise


def _translated(call: Callable[[], T], *, unclear: type[Unknown] | type[Unreachable]) -> T:
    """Run one SDK call; raise only our own errors.

    They are raised outside the handler, so that nothing of the SDK's error hangs on them: its
    request and its message ("duplicate access code 1234 …") hold the PIN.
    """
    try:
        return call()
    except NEVER_SENT as error:
        problem: EdgeError = Unreachable("Seam cannot be reached", code=type(error).__name__)
    except _RateLimited as limit:
        problem = Unreachable("Seam asks to wait", code="rate_limited", retry_after=limit.seconds)
    except SeamHttpApiError as error:
        problem = _answered(error.status_code, str(error.code), unclear)
    except httpx.HTTPStatusError as error:
        status = error.response.status_code
        problem = _answered(status, f"http_{status}", unclear)
    except (httpx.HTTPError, httpx.StreamError) as error:
        problem = unclear("Seam's answer did not arrive", code=type(error).__name__)
    except (SeamHttpInvalidResponseError, AttributeError, TypeError, ValueError) as error:
        problem = unclear("Seam's answer is not readable", code=type(error).__name__)
    raise problem


def _answered(status: int, kind: str, unclear: type[Unknown] | type[Unreachable]) -> EdgeError:
    if status >= 500 or status == 408:
        return unclear(f"Seam answered {status}", code=kind)
    if kind in DUPLICATE:
        return Rejected("the device already has this PIN", code="duplicate_code")
    return Rejected(f"Seam refused: {kind}", code=kind)


class _RateLimited(Exception):
    """429, caught before the SDK drops the header that says how long to wait."""

    def __init__(self, seconds: float | None) -> None:
        super().__init__("rate limited")
        self.seconds = seconds


def _stop_at_rate_limit(response: httpx.Response) -> None:
    if response.status_code == 429:
        wait = response.headers.get("retry-after", "")
        raise _RateLimited(float(wait) if wait.isdecimal() else None)


def _code_gone() -> Rejected:
    return Rejected("the controller no longer has the code", code="code_gone")


def _instant(moment: datetime) -> str:
    """2026-10-10T06:00:00Z. A time without offset would be read in the controller's own zone."""
    if moment.tzinfo is None:
        raise ValueError("a lock needs an instant, not a local time")
    utc = moment.astimezone(UTC).replace(tzinfo=None)
    return utc.isoformat(timespec="seconds") + "Z"


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text).astimezone(UTC)


def _lock_code(code: AccessCode) -> LockCode:
    if not (code.access_code_id and code.device_id):
        raise ValueError("a code without id or device")
    known = code.status in get_args(CodeStatus)
    return LockCode(
        id=code.access_code_id,
        name=code.name or "",
        device_id=code.device_id,
        pin=code.code,
        status=code.status if known else "unknown",
        starts_at=_moment(code.starts_at),
        ends_at=_moment(code.ends_at),
        errors=tuple(getattr(error, "error_code", "unknown_error") for error in code.errors),
    )


def _lock_device(device: Device) -> LockDevice:
    told = device.properties
    level = None if told is None else told.battery_level
    if told is not None and level is None and told.battery is not None:
        level = told.battery.level
    room = None if told is None else told.max_active_codes_supported
    return LockDevice(
        id=device.device_id,
        name=device.nickname or device.display_name,
        online=bool(told and told.online),
        battery=None if level is None else float(level),
        max_codes=None if room is None else int(room),
    )
