"""Rules of the whole app, read off its own registries, so that what is new is held to them too."""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, urljoin, urlsplit

import pytest
from flask import Flask
from flask_babel import force_locale

from portal import doorbell, verbs, wording
from portal.doorbell import KINDS
from portal.jobs import drain, sweeps
from portal.outcome import Code
from portal.web import access, answer
from portal.web.locale import LOCALES
from tests.cast import Cast
from tests.surface.nasty import TARGETS
from tests.surface.world import TOKEN

PORTAL = Path(doorbell.__file__).parent
RUNNERS = {"act", "act_at_desk"}

# Posts that reach no verb of a stay's life: the session itself, and the doors of machines.
OWN_MATTER = {"session.begin", "session.sign_out", "session.choose", "session.language"}


def posts(app: Flask) -> Iterator[str]:
    """Endpoints that change something, machines apart."""
    with app.app_context():
        for rule in app.url_map.iter_rules():
            declared = access.declared(rule.endpoint)
            assert declared is not None, f"{rule.endpoint} does not say who may use it"
            writes = {"POST", "PUT", "PATCH", "DELETE"} & set(rule.methods or ())
            if writes and declared.kind != "machine":
                yield rule.endpoint


def calls_of(function: object) -> list[ast.Call]:
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))  # type: ignore[arg-type]
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call)]


def verbs_run(view: object, module: object, seen: frozenset[str] = frozenset()) -> list[str]:
    """`answer.act(verb, …)` in the view, or in a helper of its module that it calls."""
    found: list[str] = []
    for call in calls_of(view):
        name = ast.unparse(call.func)
        if name.rpartition(".")[2] in RUNNERS and name.startswith("answer."):
            found.append(ast.unparse(call.args[0]))
        elif name in vars(module) and name not in seen:
            helper = vars(module)[name]
            if inspect.isfunction(helper) and helper.__module__ == module.__name__:  # type: ignore[attr-defined]
                found += verbs_run(helper, module, seen | {name})
    return found


def test_every_endpoint_is_guarded_by_a_declaration(app: Flask) -> None:
    """And the check that reads it runs before every view, ahead of the forms' own."""
    with app.app_context():
        for rule in app.url_map.iter_rules():
            assert access.declared(rule.endpoint), rule.endpoint
    before = [hook.__module__ for hook in app.before_request_funcs[None]]
    assert "portal.web.access" in before
    assert before.index("portal.web.access") < before.index("portal.web.forms")


def test_every_page_of_staff_is_staffs_and_every_link_a_guests(app: Flask) -> None:
    """By its address: nobody declares a page of the desk as anyone's by a slip."""
    with app.app_context():
        kinds = {
            str(rule.rule): getattr(access.declared(rule.endpoint), "kind", None)
            for rule in app.url_map.iter_rules()
        }
    for rule, kind in kinds.items():
        if rule.startswith("/staff") and rule != "/staff/sign-in":
            assert kind == "staff", rule
        if rule.startswith(("/g/", "/m/", "/join/", "/e/")):
            assert kind == "guest", rule
        if rule.startswith("/webhooks/"):
            assert kind == "machine", rule


def test_every_post_reaches_one_verb(app: Flask) -> None:
    for endpoint in posts(app):
        view = inspect.unwrap(app.view_functions[endpoint])
        run = verbs_run(view, inspect.getmodule(view))
        expected = 0 if endpoint in OWN_MATTER else 1
        assert len(run) == expected, f"{endpoint} runs {run}"


def test_no_view_writes_by_itself(app: Flask) -> None:
    """Statements that write stand in verbs and jobs, and for the session in its own module."""
    writes = re.compile(r"\b(insert\s+into|update\s+\w+\s+set|delete\s+from)\b", re.IGNORECASE)
    for path in (PORTAL / "web").rglob("*.py"):
        if path.name not in ("session.py", "cli.py"):
            assert not writes.search(path.read_text()), path


def test_every_verb_is_reached_from_somewhere() -> None:
    """A verb that nothing calls is a promise that nobody keeps."""
    sources = {path: path.read_text() for path in PORTAL.rglob("*.py")}
    for path in Path(verbs.__file__).parent.glob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if not isinstance(node, ast.FunctionDef) or node.name.startswith("_"):
                continue
            named = re.compile(rf"\b{node.name}\b")
            uses = sum(len(named.findall(source)) for source in sources.values())
            assert uses > 1, f"{path.stem}.{node.name}"


def test_every_code_has_words(app: Flask) -> None:
    """In each language; what they say is held in `test_wording`."""
    assert set(wording.MESSAGES) == {str(code) for code in Code}
    for locale in LOCALES:
        with app.test_request_context(), force_locale(locale):
            for code in Code:
                assert str(wording.MESSAGES[code][1]).strip(), code


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_promise_has_a_job_and_a_sweep(kind: doorbell.Kind) -> None:
    """Rung or not, committed work is found."""
    assert callable(drain.WORK[kind])
    assert 0 < sweeps.EVERY[kind] <= 60
    rung = re.compile(rf"""ring\(\s*"{kind}"\s*\)""")
    assert any(rung.search(path.read_text()) for path in PORTAL.rglob("*.py")), kind


def test_no_kind_of_work_is_without_a_name() -> None:
    assert set(drain.WORK) == set(sweeps.EVERY) == set(KINDS)


def test_every_answer_of_a_verb_has_a_status() -> None:
    assert set(answer.HTTP) == {"applied", "noop", "conflict", "refused"}


def test_no_address_leads_to_another_site(cast: Cast) -> None:
    """Every page without arguments, and the posts that go back to where one was."""
    client = cast.signed_in(cast.sato)
    token = TOKEN.search(client.get("/staff/facility").text)
    assert token
    pages = [str(rule.rule) for rule in cast.app.url_map.iter_rules() if not rule.arguments]
    led = []
    for target in TARGETS:
        named = quote(target, safe="")
        led += [client.get(f"{page}?next={named}") for page in sorted(set(pages))]
        form = {"csrf_token": token[1], "next": target, "lang": "ja"}
        led.append(client.post("/staff/language", data=form))
    places = [one.headers["Location"] for one in led if "Location" in one.headers]
    assert len(places) > len(TARGETS)
    for place in places:
        read = re.sub(r"[\t\r\n]", "", place).strip().replace("\\", "/")
        assert urlsplit(urljoin("http://here/", read))[:2] == ("http", "here"), place
