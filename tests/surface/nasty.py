"""Values that nobody means well with, and requests made of them. All from one seeded source."""

import json
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import quote, quote_from_bytes

MARK = "X-Injected"

TEXTS = (
    "",
    " ",
    "\u3000",
    "\x00",
    "a\x00b",
    "\x1b[2J",
    "\u202egnirts",
    "\u200f\u2067שלום\u2069",
    "مرحبا",
    "🍱👩‍👩‍👧‍👦",
    "👍" * 5000,
    "é" * 300,
    "\ufffe",
    "ﬀ㌔①",
    "x" * 20_000,
    "' or 1=1 --",
    "'; drop table stays; --",
    "%' or '1'='1",
    "\\'; select pg_sleep(9); --",
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "{{ 7 * 7 }}{% raw %}",
    "%(name)s %s %d {0}",
    f"a\r\n{MARK}: 1",
    f"a\n{MARK}: 1\n\n<html>",
    f"%0d%0a{MARK}:%201",
    "../../../../etc/passwd",
    "..\\..\\windows",
    "null",
    "undefined",
    "NaN",
    "true",
    "[object Object]",
    "csrf_token",
)
NUMBERS = (
    "0", "-1", "1", "00", "-0", "1e9", "1.5", "0x10", "99999999999999999999", "2147483648",
    "-2147483649", "9223372036854775808",
    "١٢٣", "１２３", "¥1,000", "−5", "+1", "1_000", "inf", "²",
)  # fmt: skip
TIMES = (
    "0000-00-00", "0001-01-01", "9999-12-31", "2026-02-30", "2100-12-31", "2000-01-01",
    "2026-10-25T02:30", "99999-01-01", "-2026-01-01", "2026-1-1", "24:00", "25:61", "23:59:60",
    "1969-12-31T23:59", "2026-10-10T10:10+99:00", "today", "２０２６-10-10", "9999-12-31T23:59",
)  # fmt: skip
TARGETS = (
    "//evil.example", "///evil.example", "/\\evil.example", "\\\\evil.example", "/\t/evil.example",
    "https://evil.example/", "http:evil.example", "javascript:alert(1)", "/%2f%2fevil.example",
    "//evil.example/%2f..", "/staff/../../evil.example", "/ok\r\nLocation: https://evil.example",
    "https:\\\\evil.example", "//user@evil.example", "/.//evil.example", "?next=//evil.example",
    "data:text/html,x", "/staff/stays?x=%0d%0aSet-Cookie:evil=1",
)  # fmt: skip
KEYS = (
    "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff", "not-a-uuid",
    "{00000000-0000-0000-0000-000000000000}", "urn:uuid:00000000-0000-0000-0000-000000000000",
)  # fmt: skip
BYTES = (b"\xff", b"\xc3\x28", b"\xed\xa0\x80", b"\xf8\xa1\xa1\xa1\xa1", b"\x00", b"%", b"%zz")
LANGUAGES = ("ja", "en", "de, *;q=0", "ja;q=x, en;q=0.5", "x" * 3000, "*", "", "en;q=1e400")


@dataclass
class Asked:
    """One request, as it goes over the wire."""

    method: str
    path: str
    query: str = ""
    body: bytes = b""
    kind: str = ""
    headers: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        shown = {name: value[:80] for name, value in self.headers.items() if name != "Cookie"}
        query = f"?{self.query[:300]}" if self.query else ""
        return (
            f"{self.method} {self.path[:300]}{query}\n  {self.kind} {shown}\n  {self.body[:400]!r}"
        )


class Nasty:
    """`theirs`: ids of the house that this one has no business with."""

    def __init__(self, chance: random.Random, theirs: Sequence[str], ours: Sequence[str]) -> None:
        self.chance, self.theirs, self.ours = chance, theirs, ours

    def text(self) -> str:
        pool: Sequence[str] = self.chance.choice(
            (TEXTS, TEXTS, NUMBERS, TIMES, TARGETS, KEYS, self.theirs or KEYS, self.ours or KEYS)
        )
        return self.chance.choice(pool)

    def value(self, name: str) -> str:
        """What hurts most in a field of this name, or anything."""
        if self.chance.random() < 0.4:
            return self.text()
        if name == "next":
            return self.chance.choice(TARGETS)
        if name == "subject":
            kind = self.chance.choice(("stay", "key", "payment", "refund", "message", "x", ""))
            return f"{kind}:{self.chance.choice([*self.theirs, *self.ours, *KEYS])}"
        if re.search("day|time|at$|since", name):
            return self.chance.choice(TIMES)
        if re.search("amount|price|deposit|fee|version|page", name):
            return self.chance.choice(NUMBERS)
        if re.search("id$|key|facility|after|before", name):
            return self.chance.choice([*self.theirs, *self.ours, *KEYS])
        return self.text()

    def quoted(self, safe: str = "") -> str:
        """A value for an address: mostly text, at times bytes that are none."""
        if self.chance.random() < 0.1:
            return quote_from_bytes(self.chance.choice(BYTES), safe)
        return quote(self.text()[:2000], safe=safe)

    def path(self, rule: str, known: dict[str, list[str]]) -> str:
        """The address of a rule; each argument is a row of ours, of theirs, or nonsense."""

        def fill(match: re.Match[str]) -> str:
            converter, name = match[1] or "", match[2]
            luck = self.chance.random()
            if known.get(name) and luck < 0.65:
                return self.chance.choice(known[name])
            if self.theirs and luck < 0.85 and converter == "uuid:":
                return self.chance.choice(self.theirs)
            return self.quoted(safe="/" if converter == "path:" else "") or "x"

        return re.sub(r"<(\w+:)?(?:\([^)]*\))?(\w+)>", fill, rule)

    def pairs(self, names: Sequence[str], well: dict[str, str]) -> list[tuple[str, str]]:
        """Fields: what a browser would send, with some of it spoilt, doubled, or made an array."""
        given = dict(well)
        for name in self.chance.sample(list(names), min(len(names), self.chance.randint(0, 3))):
            given[name] = self.value(name)
        if given and self.chance.random() < 0.2:
            given.pop(self.chance.choice(sorted(given)))
        pairs = list(given.items())
        if pairs and self.chance.random() < 0.3:
            name, _ = self.chance.choice(pairs)
            twist = self.chance.choice((name, f"{name}[]", f"{name}[0]", f"{name}.x", "__proto__"))
            pairs.append((twist, self.value(name)))
        self.chance.shuffle(pairs)
        return pairs

    def query(self, names: Sequence[str]) -> str:
        if self.chance.random() < 0.25:
            return ""
        pairs = self.pairs(names, {}) or [("q", self.text())]
        said = "&".join(f"{quote(n)}={quote(v[:3000], safe='')}" for n, v in pairs)
        if self.chance.random() < 0.1:
            said += f"&{self.chance.choice(names or ['q'])}={self.quoted()}"
        return said

    def form(self, pairs: list[tuple[str, str]], token: str | None) -> tuple[bytes, str]:
        """(body, content type): mostly a form; at times another kind of body, or broken text."""
        if token is not None:
            pairs = [*pairs, ("csrf_token", token)]
        luck = self.chance.random()
        if luck < 0.15:
            return multipart(pairs)
        if luck < 0.22:
            body = json.dumps(dict(pairs)).encode("utf-8", "surrogatepass")
            return body, self.chance.choice(("application/json", "text/plain", "x", ""))
        encoded = "&".join(
            f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in pairs
        ).encode()
        if luck < 0.27:
            encoded += b"&name=" + self.chance.choice(BYTES)
        if luck > 0.99:
            encoded += b"&note=" + b"x" * 300_000
        kind = "application/x-www-form-urlencoded"
        return encoded, kind if luck < 0.95 else f"{kind}; charset=utf-16"

    def headers(self) -> dict[str, str]:
        said: dict[str, str] = {}
        if self.chance.random() < 0.4:
            said["Accept-Language"] = self.chance.choice(LANGUAGES)
        if self.chance.random() < 0.3:
            said["HX-Request"] = self.chance.choice(("true", "TRUE", "x"))
            said["HX-Current-URL"] = _line(self.text())
        if self.chance.random() < 0.15:
            said["Referer"] = _line(self.chance.choice((*TARGETS, self.text())))
        if self.chance.random() < 0.05:
            said["HX-History-Restore-Request"] = "true"
        if self.chance.random() < 0.1:
            said["X-Forwarded-Host"] = "evil.example"
        return said


def multipart(pairs: list[tuple[str, str]]) -> tuple[bytes, str]:
    """By hand, so that nothing is tidied up on the way: NUL stays NUL."""
    parts = [
        b'--edge\r\nContent-Disposition: form-data; name="'
        + re.sub(r'["\r\n]', "_", name).encode("utf-8", "replace")
        + b'"\r\n\r\n'
        + value.encode("utf-8", "surrogatepass")
        + b"\r\n"
        for name, value in pairs
    ]
    return b"".join(parts) + b"--edge--\r\n", "multipart/form-data; boundary=edge"


def _line(text: str) -> str:
    """A header is one line already when a server reads it, in Latin-1 of some kind."""
    one = re.sub(r"[\x00-\x1f\x7f]", "", text)[:2000]
    return one.encode("utf-8", "replace").decode("latin-1")
