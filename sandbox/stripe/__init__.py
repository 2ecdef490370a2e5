"""A stateful stand-in that speaks Stripe's wire protocol. Test money only, own process.

Start it with `python -m sandbox.stripe --port 0`; drive it through `/_control/…` (control.py).
"""

API_VERSION = "2026-10-28.endive"
"""The version whose shapes are spoken: the one that the official SDK in use pins."""
