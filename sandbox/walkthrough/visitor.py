"""Somebody with a browser that runs no script: pages, forms, cookies, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urljoin, urlsplit

import requests

VOID = frozenset({"input", "br", "hr", "img", "meta", "link"})


@dataclass
class Form:
    action: str
    method: str
    fields: dict[str, str] = field(default_factory=dict)
    choices: dict[str, list[tuple[str, str]]] = field(default_factory=dict)


class _Reader(HTMLParser):
    """The forms, links, visible words and language of one page."""

    def __init__(self) -> None:
        super().__init__()
        self.forms: list[Form] = []
        self.links: list[tuple[str, str]] = []
        self.words: list[str] = []
        self.language = ""
        self._form: Form | None = None
        self._select: str | None = None
        self._option: list[str] | None = None
        self._link: str | None = None
        self._area: str | None = None
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "html":
            self.language = given.get("lang", "")
        elif tag in ("script", "style", "template"):
            self._hidden += 1
        elif tag == "form":
            self._form = Form(given.get("action", ""), given.get("method", "get").lower())
            self.forms.append(self._form)
        elif tag == "a":
            self._link = given.get("href")
        elif self._form is not None:
            self._field(tag, given)

    def _field(self, tag: str, given: dict[str, str]) -> None:
        form, name = self._form, given.get("name", "")
        if form is None:
            return
        if tag == "input" and name:
            loose = given.get("type") in ("checkbox", "radio")
            if not loose or "checked" in given:
                form.fields[name] = given.get("value", "on" if loose else "")
        elif tag == "button" and name:
            form.fields.setdefault(name, given.get("value", ""))
        elif tag == "textarea":
            self._area = name
            form.fields[name] = ""
        elif tag == "select":
            self._select = name
            form.choices[name] = []
        elif tag == "option" and self._select is not None:
            self._option = [given.get("value", ""), ""]
            if "selected" in given or self._select not in form.fields:
                form.fields[self._select] = given.get("value", "")

    def handle_endtag(self, tag: str) -> None:
        if tag in ("script", "style", "template"):
            self._hidden -= 1
        elif tag == "form":
            self._form = None
        elif tag == "select":
            self._select = None
        elif tag == "option" and self._option and self._form and self._select:
            value, label = self._option
            self._form.choices[self._select].append((value, label.strip()))
            self._option = None
        elif tag == "textarea":
            self._area = None
        elif tag == "a":
            self._link = None

    def handle_data(self, data: str) -> None:
        if self._hidden:
            return
        if self._area and self._form is not None:
            self._form.fields[self._area] += data
        if self._option is not None:
            self._option[1] += data
        if self._link is not None:
            self.links.append((self._link, data.strip()))
        self.words.append(data)


@dataclass
class Page:
    url: str
    status: int
    text: str
    forms: list[Form]
    links: list[tuple[str, str]]
    words: str
    language: str

    def form(self, ending: str) -> Form:
        """The form whose action's path ends so; one without an action is this page's own."""
        for form in self.forms:
            if urlsplit(urljoin(self.url, form.action)).path.endswith(ending):
                return form
        raise LookupError(f"{self.url} has no form for {ending!r} ({self.status})")

    def link(self, part: str) -> str:
        for href, _ in self.links:
            if part in href:
                return urljoin(self.url, href)
        raise LookupError(f"{self.url} has no link to {part!r}")


class Visitor:
    """One person's browser. `base` is the portal's address."""

    def __init__(self, base: str, language: str = "ja") -> None:
        self.base = base
        self.session = requests.Session()
        self.session.trust_env = False
        self.session.headers["Accept-Language"] = language

    def open(self, where: str) -> Page:
        return self._page(self.session.get(urljoin(self.base, where), timeout=30))

    def submit(self, page: Page, ending: str, **values: Any) -> Page:
        """Fill in a form and send it, following where it leads."""
        form = page.form(ending)
        filled = {**form.fields, **{name: str(value) for name, value in values.items()}}
        where = urljoin(page.url, form.action)
        if form.method == "get":
            return self._page(self.session.get(where, params=filled, timeout=30))
        referer = {"Referer": page.url}
        return self._page(self.session.post(where, data=filled, headers=referer, timeout=30))

    def _page(self, response: requests.Response) -> Page:
        reader = _Reader()
        reader.feed(response.text)
        return Page(
            url=response.url,
            status=response.status_code,
            text=response.text,
            forms=reader.forms,
            links=reader.links,
            words=" ".join(" ".join(reader.words).split()),
            language=reader.language,
        )
