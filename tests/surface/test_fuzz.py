"""Every address, method and person of the URL map, with values that nobody means well with.

A new route joins by itself: the URL map is walked, forms are read off the pages, and the names of
arguments and fields from the code. MONBAN_FUZZ_SEED makes it another.
"""

import os
import random
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote_plus, urljoin, urlsplit

import pytest
from flask import Flask, got_request_exception
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from portal import clock
from portal.web import access
from sandbox.stripe.signing import header as signature
from tests.conftest import SECRETS
from tests.figures import Figure
from tests.outside import Owner
from tests.surface.nasty import MARK, Asked, Nasty
from tests.surface.world import UUIDS, Role, World
from tests.web.audit import JAPANESE, audit, by_id, main_of, words
from tests.web.staff.houses import FrontDesk

ROUNDS = 10
"""More than 20,000 requests; of them one round is the share."""
SEED = os.environ.get("MONBAN_FUZZ_SEED", "monban")
METHODS = ("GET", "HEAD", "OPTIONS", "PUT", "DELETE", "POST")
TAKEN_TIMES = 2
"""How often a method is tried where it leads to a view; elsewhere once."""
POSTS = 3
MOST_FAULTS = 10
INSIDES = re.compile(
    r"Traceback \(most recent|File \"/|psycopg\.|sqlalchemy\.|werkzeug\.exc|jinja2\.|site-packages"
)
WEB = Path(access.__file__).parent
NAMES = re.compile(r"""(?:args|form|values)(?:\.get\(|\[)"(\w+)\"""")
FIELDS = re.compile(r"^    (\w+) = (?:forms\.|PasswordField|RadioField)", re.MULTILINE)
EXCUSED = {503: {"hooks.from_stripe", "hooks.from_seam"}}
"""Who may answer so: a provider comes again."""


def names_in_code() -> dict[str, list[str]]:
    """By module: every argument and field that a view of it reads."""
    found: dict[str, list[str]] = {}
    for path in sorted(WEB.rglob("*.py")):
        code = path.read_text()
        names = {*NAMES.findall(code), *FIELDS.findall(code)} - {"csrf_token"}
        module = path.relative_to(WEB.parent.parent).with_suffix("")
        found[".".join(module.parts)] = sorted(names)
    return found


class Fuzz:
    """Asks, and holds every answer to the rules of the whole surface."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.app: Flask = world.front.app
        self.client: FlaskClient = self.app.test_client(use_cookies=False)
        self.names_of = names_in_code()
        self.names = sorted({name for names in self.names_of.values() for name in names})
        self.asked = 0
        self.statuses: Counter[int] = Counter()
        self.faults: list[str] = []
        self.audited: set[object] = set()
        self.raised: list[str] = []
        self.rules = sorted({str(rule.rule) for rule in self.app.url_map.iter_rules()})
        self.look_again()

    def look_again(self) -> None:
        """The rows and forms as they are now."""
        world = self.world
        self.forms = world.forms()
        self.rows = {house.id: world.all_ids(house.id) for house in (world.tokyo, world.osaka)}

    def nasty(self, role: Role) -> Nasty:
        """Its own source for each request, so that one can be asked again alone."""
        chance = random.Random(f"{SEED}:{self.asked}")
        ours = role.house or self.world.tokyo.id
        theirs = self.world.osaka if ours == self.world.tokyo.id else self.world.tokyo
        return Nasty(chance, sorted(self.rows[theirs.id]), sorted(self.rows[ours]))

    def takes(self, rule: str, method: str) -> bool:
        """Does it lead to a view of ours? Flask itself answers HEAD by GET and every OPTIONS."""
        return any(
            str(one.rule) == rule and method in (one.methods or ())
            for one in self.app.url_map.iter_rules()
            if method in ("GET", "POST")
        )

    def known(self, rule: str, role: Role) -> dict[str, list[str]]:
        house = role.house or self.world.tokyo.id
        known = {"filename": ["app.css", "htmx.min.js"]}
        for name in re.findall(r"<(?:\w+:)?(\w+)>", rule):
            if name == "token":
                known[name] = [
                    one for at in self.world.tokens for one in self.world.links(rule, at)
                ]
            elif name != "filename":
                known[name] = self.world.words_for(rule, name, house)
        return known

    def ask(self, role: Role, asked: Asked) -> TestResponse:
        self.asked += 1
        self.raised.clear()
        if role.cookie:
            asked.headers["Cookie"] = role.cookie
        path = f"{asked.path}?{asked.query}" if asked.query else asked.path
        answered = self.client.open(
            path,
            method=asked.method,
            data=asked.body or None,
            content_type=asked.kind or None,
            headers=asked.headers,
        )
        self.statuses[answered.status_code] += 1
        problems = [
            *self.sound(asked, answered),
            *self.kept_apart(role, asked, answered),
            *self.readable(role, answered),
        ]
        for problem in problems:
            self.fault(role, asked, answered, problem)
        return answered

    def fault(self, role: Role, asked: Asked, answered: TestResponse, problem: str) -> None:
        told = f"{problem}\n{role.name}, request {self.asked} of seed {SEED}: {asked}\n"
        told += f"  → {answered.status_code} {answered.headers.get('Location', '')}\n"
        self.faults.append(told + "".join(self.raised))
        assert len(self.faults) < MOST_FAULTS, "\n\n".join(self.faults)

    # What holds of every answer ----------------------------------------------------------------

    def sound(self, asked: Asked, answered: TestResponse) -> Iterator[str]:
        status, endpoint = answered.status_code, self.endpoint(asked)
        if status >= 500 and endpoint not in EXCUSED.get(status, set()):
            yield f"answered {status}"
        if self.raised:
            yield "an exception reached Flask"
        for name, value in answered.headers:
            if "\r" in value or "\n" in value:
                yield f"a line ends within {name}"
            if name.lower() == MARK.lower() or (name == "Set-Cookie" and "evil" in value):
                yield f"an injected header: {name}"
        place = answered.headers.get("Location")
        if place is not None and not _is_ours(place, answered.request.url):
            yield f"led to {place!r}"
        if asked.method == "HEAD" and answered.data:
            yield "a HEAD has a body"
        if answered.mimetype.startswith("text") and (found := INSIDES.search(answered.text)):
            yield f"the inside shows: {found[0]}"

    def kept_apart(self, role: Role, asked: Asked, answered: TestResponse) -> Iterator[str]:
        """Nothing of a house in an answer to somebody of another."""
        if not answered.data or asked.path.startswith("/static"):
            return
        body = answered.data.decode(errors="replace")
        sent = f"{asked.path} {asked.query} {asked.body!r} {asked.headers}"
        own = unquote_plus(sent)
        named = set(UUIDS.findall(body)) - set(UUIDS.findall(sent))
        for house in (self.world.tokyo, self.world.osaka):
            if house.id == self.house_of(role, asked):
                continue
            shown = named & self.rows[house.id]
            if shown and (shown := shown - self.addressees(self.house_of(role, asked))):
                yield f"rows of {house.slug}: {sorted(shown)[:3]}"
            if told := [w for w in self.world.secrets(house) if w in body and w not in own]:
                yield f"words of {house.slug}: {told}"

    def addressees(self, house: object) -> set[str]:
        """What an earlier request had printed as the name on a receipt: the house shows its own."""
        kept = self.world.owner.rows(
            "select addressee from documents where facility_id = %s", house
        )
        return {name for (name,) in kept}

    def house_of(self, role: Role, asked: Asked) -> object:
        """Whose house an answer may speak of: a link's own, else the person's."""
        for house in self.world.tokens:
            for door in ("/g/", "/m/", "/join/", "/e/"):
                links = self.world.links(door, house)
                if any(asked.path.startswith(f"{door}{token}") for token in links):
                    return house
        return role.house if role.person else None

    def readable(self, role: Role, answered: TestResponse) -> Iterator[str]:
        """Pages of errors and refused forms are pages like any other, each looked at once."""
        status, html = answered.status_code, answered.mimetype == "text/html"
        if status < 400 or not html or not answered.data:
            return
        text = re.sub(r'value="[^"]{40,}"|href="[^"]*"', "", answered.text)
        if (seen := (status, hash(text))) in self.audited:
            return
        self.audited.add(seen)
        try:
            page = audit(answered, self.app)
        except AssertionError as fault:
            yield f"the page is not well: {fault}"
            return
        heading = next(words(element) for element in page.iter("h1"))
        if by_id(page, "main") is not None and status not in (409, 422):
            said = f"{heading} {words(main_of(page))}"
            if bool(JAPANESE.search(said)) != (page.get("lang") == "ja"):
                yield f"not in {page.get('lang')}: {said[:200]}"

    def names_for(self, nasty: Nasty, endpoint: str) -> list[str]:
        """Mostly what the view's own module reads."""
        view = self.app.view_functions.get(endpoint)
        own = self.names_of.get(getattr(view, "__module__", ""), [])
        return own if own and nasty.chance.random() < 0.75 else self.names

    def endpoint(self, asked: Asked) -> str:
        try:
            bound = self.app.url_map.bind("localhost")
            return str(bound.match(asked.path, method=asked.method)[0])
        except Exception:  # noqa: BLE001
            return ""


def _is_ours(place: str, asked_at: str) -> bool:
    """As a browser reads it: backslashes are slashes, tabs and line ends are nothing."""
    read = re.sub(r"[\t\r\n]", "", place).strip().replace("\\", "/")
    led = urlsplit(urljoin(asked_at, read))
    return led.scheme == "http" and led.netloc == urlsplit(asked_at).netloc


@pytest.fixture
def fuzz(front: FrontDesk, owner: Owner, unlimited: None) -> Iterator[Fuzz]:
    front.app.config["PROPAGATE_EXCEPTIONS"] = False
    made = Fuzz(World(front, owner))
    with _hearing(front.app, made.raised):
        yield made
    front.app.config["PROPAGATE_EXCEPTIONS"] = None
    print(f"{made.asked} requests, seed {SEED}: {dict(sorted(made.statuses.items()))}")


@contextmanager
def _hearing(app: Flask, raised: list[str]) -> Iterator[None]:
    """Flask tells of every exception that it turns into a 500."""
    import traceback

    def hear(sender: Flask, exception: BaseException, **more: object) -> None:
        raised.append("".join(traceback.format_exception(exception)[-6:]))

    got_request_exception.connect(hear, app)
    try:
        yield
    finally:
        got_request_exception.disconnect(hear, app)


@pytest.fixture
def rounds(whole: bool) -> int:
    return ROUNDS if whole else 1


def counted(fuzz: Fuzz, figure: Figure) -> None:
    assert not fuzz.faults, "\n\n".join(fuzz.faults)
    figure("fuzz", requests=fuzz.asked, faults=len(fuzz.faults))


@pytest.mark.proof
def test_fuzz_without_a_token_nothing_is_written(fuzz: Fuzz, rounds: int, figure: Figure) -> None:
    """Whatever is asked without a valid token of the very session, by whomever: no row changes."""
    world = fuzz.world
    before = world.digest()
    for _ in range(rounds):
        for rule in fuzz.rules:
            methods = [m for m in METHODS for _ in range(TAKEN_TIMES if fuzz.takes(rule, m) else 1)]
            for role in world.roles.values():
                known = fuzz.known(rule, role)
                for method in methods:
                    asked = _unproven(fuzz, role, rule, method, known)
                    answered = fuzz.ask(role, asked)
                    if method == "POST" and answered.status_code < 400:
                        fuzz.fault(role, asked, answered, "a forged post was taken")
                now = world.digest()
                changed = [name for name in now if now[name] != before[name]]
                assert not changed, f"{role.name} wrote {changed} at {rule}, seed {SEED}"
    counted(fuzz, figure)


def _unproven(fuzz: Fuzz, role: Role, rule: str, method: str, known: dict[str, list[str]]) -> Asked:
    nasty = fuzz.nasty(role)
    asked = Asked(method, nasty.path(rule, known), headers=nasty.headers())
    names = fuzz.names_for(nasty, fuzz.endpoint(asked))
    asked.query = nasty.query(names)
    if method in ("GET", "HEAD", "OPTIONS"):
        return asked
    well = nasty.chance.choice(fuzz.forms.get(fuzz.endpoint(asked)) or [{}])
    others = [other.csrf for other in fuzz.world.roles.values() if other is not role]
    token = nasty.chance.choice((None, "", "junk", role.csrf[:-3], role.csrf + "x", *others))
    asked.body, asked.kind = nasty.form(nasty.pairs(names, well), token)
    trick = nasty.chance.random()
    if trick < 0.15:
        asked.query += f"&csrf_token={role.csrf}"
    elif trick < 0.3:
        # A valid token, from a page of another site.
        asked.headers |= {"Sec-Fetch-Site": "cross-site", "X-CSRFToken": role.csrf}
    return asked


@pytest.mark.proof
def test_fuzz_with_a_token_or_a_signature_stays_in_its_house(
    fuzz: Fuzz, rounds: int, figure: Figure
) -> None:
    """Forms that the sender is entitled to send, spoilt: refused or done, and only at home."""
    world = fuzz.world
    for _ in range(rounds):
        fuzz.look_again()
        for rule in [rule for rule in fuzz.rules if fuzz.takes(rule, "POST")]:
            for role in world.roles.values():
                at_home = role.house or world.tokyo.id
                away = next(house for house in world.tokens if house != at_home)
                before = world.digest(away)
                known = fuzz.known(rule, role)
                if "token" in known:
                    known["token"] = world.links(rule, at_home)
                for _ in range(POSTS):
                    fuzz.ask(role, _entitled(fuzz, role, rule, known))
                    if rule == "/staff/sign-out":
                        world.come_in(role)
                assert world.digest(away) == before, f"{role.name} wrote elsewhere at {rule}"
    assert fuzz.statuses[303] > 20, fuzz.statuses
    assert fuzz.statuses[422] > 20, fuzz.statuses
    _from_the_provider(fuzz, rounds)
    counted(fuzz, figure)


def _entitled(fuzz: Fuzz, role: Role, rule: str, known: dict[str, list[str]]) -> Asked:
    nasty = fuzz.nasty(role)
    asked = Asked("POST", nasty.path(rule, known), headers=nasty.headers())
    names = fuzz.names_for(nasty, fuzz.endpoint(asked))
    if nasty.chance.random() < 0.2:
        asked.query = nasty.query(names)
    well = nasty.chance.choice(fuzz.forms.get(fuzz.endpoint(asked)) or [{}])
    names = sorted(well) if well and nasty.chance.random() < 0.6 else names
    asked.body, asked.kind = nasty.form(nasty.pairs(names, well), role.csrf)
    if "form" not in asked.kind:
        asked.headers["X-CSRFToken"] = role.csrf
    return asked


def _from_the_provider(fuzz: Fuzz, rounds: int) -> None:
    """Even the provider itself may send anything: an answer for each, and no row but the inbox's.
    The bodies are JSON of all shapes and bytes of none."""
    world = fuzz.world
    fuzz.statuses.clear()
    before = {house: world.digest(house) for house in world.tokens}
    for _ in range(60 * rounds):
        nasty = fuzz.nasty(world.roles["nobody"])
        body = _payload(nasty)
        signed = signature(body, SECRETS["STRIPE_WEBHOOK_SECRET"], int(clock.now().timestamp()))
        asked = Asked("POST", "/webhooks/stripe", body=body, kind="application/json")
        asked.headers = {"Stripe-Signature": signed}
        fuzz.ask(world.roles["nobody"], asked)
    assert {house: world.digest(house) for house in world.tokens} == before
    assert fuzz.statuses[200] > 5, fuzz.statuses


def _payload(nasty: Nasty) -> bytes:
    import json

    def value(depth: int = 0) -> object:
        luck = nasty.chance.random()
        if depth < 3 and luck < 0.25:
            return {nasty.text()[:50]: value(depth + 1) for _ in range(3)}
        if depth < 3 and luck < 0.35:
            return [value(depth + 1) for _ in range(3)]
        return nasty.chance.choice((None, True, -1, 10**30, 1.5, nasty.text()[:300]))

    event: dict[str, object] = {
        "id": f"evt_{nasty.chance.getrandbits(64):x}",
        "object": "event",
        "type": "payment_intent.succeeded",
        "created": 1_790_000_000,
        "livemode": False,
        "api_version": "2026-10-28.endive",
        "data": {"object": {"id": "pi_1", "object": "payment_intent"}},
    }
    for name in nasty.chance.sample(sorted(event), nasty.chance.randint(0, 2)):
        event[name] = value()
    if nasty.chance.random() < 0.15:
        event.pop(nasty.chance.choice(sorted(event)))
    body = json.dumps(event).encode()
    return body[: nasty.chance.randint(0, len(body))] if nasty.chance.random() < 0.1 else body
