"""What the provider's word of a dispute means for the money. Pure."""

OPEN = ("warning_needs_response", "warning_under_review", "needs_response", "under_review")

_ORDER = {
    "warning_needs_response": 0,
    "warning_under_review": 1,
    "needs_response": 2,
    "under_review": 3,
    "warning_closed": 4,
    "prevented": 4,
    "won": 4,
    "lost": 4,
}
"""A question may become a dispute; what is decided stays decided."""

_BANK_HAS_IT = ("needs_response", "under_review", "lost")


def moves_on(was: str, told: str) -> bool:
    """Whether this word is younger than the last: events come in any order, and twice."""
    return _ORDER[told] > _ORDER[was]


def bank_has_it(status: str) -> bool:
    """The provider has taken the amount from the house's balance."""
    return status in _BANK_HAS_IT
