"""Providers: each edge is a small Protocol (port) and the real adapter behind it."""
