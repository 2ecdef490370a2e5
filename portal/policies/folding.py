"""Folding for search: what a person types finds what a person stored. Never shown, never sent."""

import unicodedata

import jaconv

# Variants that NFKC leaves apart but that names use for one another.
VARIANTS = str.maketrans(
    "髙﨑邉邊齋齊斉濵濱𠮷澤廣嶋嶌眞櫻國龍瀨",
    "高崎辺辺斎斎斎浜浜吉沢広島島真桜国竜瀬",
)


def fold(text: str) -> str:
    """Width, NFC/NFD, case, kana kind, variants and spaces made one. Empty stays empty."""
    composed = unicodedata.normalize("NFKC", text).casefold()
    together = "".join(jaconv.hira2kata(composed).translate(VARIANTS).split())
    # A mark that stood apart (か゛) now follows its letter, and becomes one with it.
    return jaconv.hira2kata(unicodedata.normalize("NFKC", together))


def digits(text: str) -> str:
    """Only the digits of a phone number as typed, full-width ones included."""
    return "".join(
        str(unicodedata.digit(sign)) for sign in text if unicodedata.category(sign) == "Nd"
    )


def like_pattern(folded: str) -> str:
    """A LIKE pattern that finds the text anywhere, its signs meant literally (escape '\\\\')."""
    escaped = folded.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"
