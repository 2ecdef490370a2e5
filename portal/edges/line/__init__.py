"""LINE messages to guests and staff."""

from portal.edges.line.port import Line

__all__ = ["Line"]
