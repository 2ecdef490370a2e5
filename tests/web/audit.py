"""What every page must be, whoever wrote it: each page test audits the page that it fetched.

`audit(response, client)` returns the parsed page or fails with everything that is wrong.
"""

from __future__ import annotations

import re
from collections import Counter
from urllib.parse import urljoin, urlsplit
from xml.etree.ElementTree import Element

import html5lib
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.exceptions import HTTPException, MethodNotAllowed
from werkzeug.routing import RequestRedirect
from werkzeug.test import TestResponse

# html5lib's codes that browsers and the standard accept, or that it reports for entities only.
FORGIVEN: frozenset[str] = frozenset()
CONTROLS = {"input", "select", "textarea"}
UNLABELLED = {"hidden", "submit", "button", "image", "reset"}
JAPANESE = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]")
UNFILLED = re.compile(r"%\(\w+\)[sd]")
TYPED = re.compile(r'value="[^"]*"|<textarea[^>]*>[^<]*')
"""What a form shows again: those are its sender's words, not ours."""


def audit(response: TestResponse, client: FlaskClient | Flask, lang: str | None = None) -> Element:
    """The page's <html> element. `lang`: the language that it must be in."""
    app = client if isinstance(client, Flask) else client.application
    text = response.get_data(as_text=True)
    page, problems = parse(text)
    problems += [
        *_document(page, response, lang),
        *_ids(page),
        *_labels(page),
        *_buttons(page),
        *_forms(page, app, response),
        *_links(page, app, response),
        *_inline(page),
        *_references(page),
    ]
    if found := UNFILLED.search(TYPED.sub("", text)):
        problems.append(f"a placeholder was never filled: {found.group()}")
    assert not problems, "\n".join([response.request.path, *problems])
    return page


def parse(text: str) -> tuple[Element, list[str]]:
    parser = html5lib.HTMLParser(namespaceHTMLElements=False)
    page: Element = parser.parse(text)
    faults = [
        f"html: {code} {values} at {position}"
        for position, code, values in parser.errors
        if code not in FORGIVEN
    ]
    return page, faults


def words(element: Element) -> str:
    """What a person reads in it, spaces made one."""
    return " ".join("".join(element.itertext()).split())


def by_id(page: Element, wanted: str) -> Element | None:
    return next((element for element in page.iter() if element.get("id") == wanted), None)


def main_of(page: Element) -> Element:
    found = by_id(page, "main")
    assert found is not None, "the page has no #main"
    return found


def form_data(page: Element, action: str | None = None) -> dict[str, str]:
    """What a browser would send of the (first) form with this action, nothing changed."""
    form = next(
        form for form in page.iter("form") if action is None or form.get("action") == action
    )
    data: dict[str, str] = {}
    for element in form.iter():
        name = element.get("name")
        if not name or element.tag not in CONTROLS:
            continue
        if element.tag == "textarea":
            data[name] = "".join(element.itertext())
        elif element.tag == "select":
            data[name] = _selected(element)
        elif element.get("type") not in ("checkbox", "radio") or "checked" in element.attrib:
            data[name] = element.get("value", "")
    return data


def _selected(select: Element) -> str:
    options = list(select.iter("option"))
    chosen = [option for option in options if "selected" in option.attrib] or options[:1]
    if not chosen:
        return ""
    value = chosen[0].get("value")
    return words(chosen[0]) if value is None else value


def _document(page: Element, response: TestResponse, lang: str | None) -> list[str]:
    problems = []
    html_lang = page.get("lang")
    if html_lang not in ("ja", "en") or (lang and html_lang != lang):
        problems.append(f"lang is {html_lang}, wanted {lang or 'ja or en'}")
    if response.headers.get("Content-Language") != html_lang:
        problems.append("Content-Language and <html lang> differ")
    if len(list(page.iter("h1"))) != 1:
        problems.append(f"{len(list(page.iter('h1')))} h1")
    for heading in page.iter("h1"):
        if not words(heading):
            problems.append("the h1 is empty")
    if len(list(page.iter("main"))) != 1 or by_id(page, "main") is None:
        problems.append("not one main#main")
    titles = list(page.iter("title"))
    if len(titles) != 1 or not words(titles[0]):
        problems.append("no title")
    vary = {name.strip().lower() for name in response.headers.get("Vary", "").split(",")}
    if not {"hx-request", "accept-language", "cookie"} <= vary:
        problems.append(f"Vary is {sorted(vary)}")
    if "no-store" not in response.headers.get("Cache-Control", ""):
        problems.append("may be stored")
    problems += _heading_order(page)
    return problems


def _heading_order(page: Element) -> list[str]:
    last, problems = 0, []
    for element in page.iter():
        if isinstance(element.tag, str) and re.fullmatch(r"h[1-6]", element.tag):
            level = int(element.tag[1])
            if level > last + 1:
                problems.append(f"{element.tag} ({words(element)}) follows h{last}")
            last = level
    return problems


def _ids(page: Element) -> list[str]:
    counted = Counter(element.get("id") for element in page.iter() if element.get("id"))
    return [f"id {name} stands {times} times" for name, times in counted.items() if times > 1]


def _labels(page: Element) -> list[str]:
    named = {label.get("for") for label in page.iter("label")}
    inside = {id(child) for label in page.iter("label") for child in label.iter()}
    problems = []
    for control in page.iter():
        if control.tag not in CONTROLS or control.get("type") in UNLABELLED:
            continue
        if (
            control.get("id") not in named
            and id(control) not in inside
            and not control.get("aria-label")
            and not control.get("aria-labelledby")
        ):
            problems.append(f"no label for {control.tag} {control.get('name')}")
    return problems


def _buttons(page: Element) -> list[str]:
    problems = []
    for element in page.iter():
        if element.tag in ("button", "a") and not words(element) and not element.get("aria-label"):
            problems.append(f"a {element.tag} without words: {element.attrib}")
        if element.tag == "img" and element.get("alt") is None:
            problems.append(f"an image without alt: {element.get('src')}")
        if element.tag == "th" and element.get("scope") is None:
            problems.append(f"th without scope: {words(element)}")
    return problems


def _forms(page: Element, app: Flask, response: TestResponse) -> list[str]:
    problems = []
    for form in page.iter("form"):
        method = (form.get("method") or "get").upper()
        action = form.get("action") or response.request.path
        if method == "POST" and not _has_token(form):
            problems.append(f"no CSRF token in the form to {action}")
        if method == "GET" and _has_token(form):
            problems.append(f"the CSRF token would stand in the address of {action}")
        problems += _resolves(app, response, action, method)
        for button in form.iter("button"):
            if button.get("formaction"):
                problems += _resolves(app, response, button.get("formaction", ""), method)
    return problems


def _has_token(form: Element) -> bool:
    return any(
        field.get("name") == "csrf_token" and field.get("value") for field in form.iter("input")
    )


def _links(page: Element, app: Flask, response: TestResponse) -> list[str]:
    problems = []
    for element in page.iter():
        for name in ("href", "src", "hx-get", "hx-post"):
            value = element.get(name)
            if value is None:
                continue
            if value.startswith("#") and len(value) > 1:
                if by_id(page, value[1:]) is None:
                    problems.append(f"{value} leads nowhere")
                continue
            method = "POST" if name == "hx-post" else "GET"
            problems += _resolves(app, response, value, method)
    return problems


def _resolves(app: Flask, response: TestResponse, url: str, method: str) -> list[str]:
    """An address of ours must be one that the app answers, with this method."""
    parts = urlsplit(urljoin(response.request.url, url))
    ours = urlsplit(response.request.url)
    if parts.scheme not in ("http", "https") or parts.netloc != ours.netloc:
        return []
    try:
        app.url_map.bind(ours.netloc).match(parts.path, method=method)
    except RequestRedirect:
        return [f"{url} redirects"]
    except MethodNotAllowed:
        return [f"{url} does not take {method}"]
    except HTTPException:
        return [f"{url} is no page of ours"]
    return []


def _inline(page: Element) -> list[str]:
    """Nothing that the content security policy would refuse."""
    problems = []
    for element in page.iter():
        for name in element.attrib:
            if name == "style" or (name.startswith("on") and name != "one"):
                problems.append(f"{name} on {element.tag}")
        if element.tag == "style" or (element.tag == "script" and not element.get("src")):
            problems.append(f"an inline {element.tag}")
    return problems


def _references(page: Element) -> list[str]:
    ids = {element.get("id") for element in page.iter()}
    return [
        f"{name} names {target}, which is not there"
        for element in page.iter()
        for name in ("aria-describedby", "aria-labelledby", "aria-controls", "for")
        for target in (element.get(name) or "").split()
        if target not in ids
    ]
