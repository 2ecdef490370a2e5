"""The journeys, one after the other, in one house."""

from __future__ import annotations

from sandbox.walkthrough.books import Books
from sandbox.walkthrough.house import OpenHouse
from sandbox.walkthrough.journeys import Journeys
from sandbox.walkthrough.told import Teller


def through(house: OpenHouse, teller: Teller) -> None:
    day = Journeys(house, teller)
    teller.journey("A booking with a deposit, in English", day.in_english)
    teller.journey("A walk-in who pays in cash, in Japanese", day.in_japanese)
    teller.journey("A forged return", day.forged_return)
    teller.journey("One event three times, and out of order", day.repeated_events)
    teller.journey("The payment provider is down at a refund", day.provider_down)
    teller.journey("The lock controller is down at check-in", day.controller_down)
    teller.journey("The books are compared with the far side", Books(day).compared)
