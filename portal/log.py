"""Structured logs. The request id goes with the work: page, row, ring, worker."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from uuid import uuid4

import structlog

_request_id: ContextVar[str] = ContextVar("request_id", default="")

# A log line never holds these, whoever wrote it.
SECRET_KEYS = frozenset(
    {"pin", "code", "password", "token", "client_secret", "secret", "authorization", "cookie"}
)


def request_id() -> str:
    return _request_id.get()


def new_request_id() -> str:
    return uuid4().hex


@contextmanager
def request(identifier: str) -> Iterator[None]:
    """Everything inside carries this request id, in logs, records and rings."""
    before = _request_id.set(identifier)
    try:
        yield
    finally:
        _request_id.reset(before)


def with_request_id(
    _: Any, __: str, line: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    if identifier := request_id():
        line.setdefault("request_id", identifier)
    return line


def without_secrets(
    _: Any, __: str, line: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    for key in SECRET_KEYS & line.keys():
        line[key] = "[sealed]"
    return line


def configure(level: str) -> None:
    """One JSON object a line on stderr, from structlog and from the standard library alike."""
    shared: list[structlog.typing.Processor] = [
        with_request_id,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        without_secrets,
        structlog.processors.format_exc_info,
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,  # what is not written costs nothing more
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(ensure_ascii=False),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level)
    for chatty in ("werkzeug", "httpx", "httpcore", "rq"):  # a line a request says nothing
        logging.getLogger(chatty).setLevel("WARNING")


def get(name: str) -> structlog.stdlib.BoundLogger:
    logger: structlog.stdlib.BoundLogger = structlog.stdlib.get_logger(name)
    return logger
