"""Measurements, never tests: `python -m benchmarks.inbox`, `python -m benchmarks.lists`."""
