"""What a page hides the server refuses: every act that the pages of a row do not offer is sent all
the same, in every state of it and by everybody, and changes nothing."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID, uuid4

import pytest
from flask.testing import FlaskClient
from werkzeug.exceptions import HTTPException
from werkzeug.test import TestResponse

from portal import clock
from portal.jobs import house
from portal.outcome import Applied
from portal.policies.register import Entry
from portal.verbs import cash, disputes, facilities, memberships, payments, registers, stays
from portal.verbs.membership_end import Ending, end_membership
from tests.cast import Booked, Colleague
from tests.figures import Figure
from tests.outside import Owner
from tests.surface.world import TOKEN
from tests.verbs.billing import Billed, running
from tests.web.audit import form_data, parse
from tests.web.staff.houses import FrontDesk

REFUSED = {303, 403, 404, 409, 422}
NOT_BOOKS = {"alembic_version", "gate_audits", "staff_sessions"}
"""What a refusal may write: that it was one."""

Forms = dict[str, dict[str, str]]
"""By endpoint: what its form would send."""


@dataclass
class Rows:
    """The rows of one kind, one in each of its states; `prefix` is where their pages are."""

    prefix: str
    argument: str
    table: str
    states: dict[str, UUID] = field(default_factory=dict)
    versions: bool = True


class Scene:
    def __init__(self, front: FrontDesk, owner: Owner) -> None:
        self.front, self.owner = front, owner
        self.app, self.cast = front.app, front.cast

    def do(self, verb: Any, row: UUID, *more: Any) -> None:
        table = "stays" if verb.__module__.endswith("stays") else "memberships"
        seen = self.owner.one(f"select version from {table} where id = %s", row)
        with self.cast.transaction(self.cast.tokyo.id) as tx:
            said = verb(tx, self.cast.sato.actor, row, seen, *more)
        assert isinstance(said, Applied), said

    def stay(self, *verbs: Any, **more: Any) -> Booked:
        """A stay that these verbs were done to."""
        made = self.cast.book(**{"price": 0, **more})
        for verb in verbs:
            self.do(verb, made.id)
        return made

    def stays(self) -> Rows:
        self.cast.tickets(self.cast.tokyo)
        made = {
            # What is over leaves its space to the next.
            "no_show": self.stay(stays.mark_no_show),
            "owed cash": self.paid_and_cancelled(),
            "cancelled": self.stay(stays.cancel),
            "departed": self.stay(stays.admit, stays.depart),
            "reserved": self.stay(),
            "admitted": self.stay(stays.admit, space="A02"),
            "owing": self.stay(price=6000, space="A03"),
            "registered": self.registered(),
            "a visit": self.stay(price=1800, plan="visit", space="B01"),
            "waiting": self.waiting(),
        }
        found = {state: stay.id for state, stay in made.items()}
        return Rows("/staff/stays/", "stay_id", "stays", found)

    def registered(self) -> Booked:
        stay = self.stay(plan="night", starts_at=clock.now() + timedelta(days=2))
        entry = Entry("山田 花子", "東京都大田区1-1", "+819012345678", lives_abroad=False)
        with self.cast.transaction(self.cast.tokyo.id) as tx:
            registers.fill(tx, self.cast.sato.actor, stay.id, entry)
        return stay

    def waiting(self) -> Booked:
        """For its deposit, until a deadline."""
        with self.cast.transaction(self.cast.tokyo.id) as tx:
            facilities.hold_for_deposit(tx, self.cast.suzuki.actor, 48)
        begins = clock.now() + timedelta(days=5)
        return self.stay(price=6000, deposit_due=2000, starts_at=begins)

    def paid_and_cancelled(self) -> Booked:
        stay = self.stay(price=6000)
        with self.cast.transaction(self.cast.tokyo.id) as tx:
            cash.take(tx, self.cast.sato.actor, stay.id, 6000, uuid4())
        self.do(stays.cancel, stay.id)
        return stay

    def memberships(self) -> Rows:
        plan, by_card = self.cast.monthly, self.cast.offer("c", "カード", "Card", billing="card")
        named = ("applying", "active", "scheduled_to_end", "ended", "checkout")
        made = {
            state: self.cast.apply(
                by_card if state == "checkout" else plan,
                {**self.cast.hanako, "email": f"{state}@guest.example"},
            )
            for state in named
        }
        with self.app.app_context():
            desk, actor = self.front.desk(), self.cast.sato.actor
            for state in named[1:]:
                said = memberships.approve(desk, actor, made[state].id, 1)
                assert isinstance(said, Applied), (state, said)
            end_membership(desk, actor, made["scheduled_to_end"].id, Ending("self_cancel"))
            end_membership(desk, actor, made["ended"].id, Ending("force_cancel", note="x"))
        found = {state: one.id for state, one in made.items()}
        found["active by card"] = self.by_card(by_card)
        return Rows("/staff/members/", "membership_id", "memberships", found)

    def by_card(self, plan: UUID) -> UUID:
        """One that runs and is billed by card, and another plan that it could change to."""
        self.cast.offer("more", "もっと", "More", price=19_800, billing="card")
        joined = self.cast.apply(plan, {**self.cast.emma, "email": "card@guest.example"})
        house.open_house(self.front.house)
        billed = Billed(self.cast, self.front.house, self.front.stripe, self.owner, joined)
        with self.app.app_context():
            running(billed)
        return joined.id

    def payments(self) -> Rows:
        canceled = self.front.opened(self.stay(price=3000, space="A01"))
        with self.app.app_context():
            said = payments.cancel_attempt(self.front.desk(), self.cast.sato.actor, canceled)
        assert isinstance(said, Applied), said
        found = {
            "canceled": canceled,
            "open": self.front.opened(self.stay(price=4000, space="A02")),
            "succeeded": self.front.paid(self.stay(price=5000, space="A03")),
            "disputed": self.disputed(),
        }
        return Rows("/staff/payments/", "payment_id", "payments", found, versions=False)

    def disputed(self) -> UUID:
        payment = self.front.paid(self.stay(price=6000, space="B01"))
        intent = self.owner.one("select intent_id from payments where id = %s", payment)
        self.front.stripe.post("disputes", payment_intent=intent)
        with self.app.app_context():
            said = disputes.ask(self.front.desk(), self.cast.sato.actor, payment)
        assert isinstance(said, Applied), said
        return payment


@pytest.fixture
def scene(front: FrontDesk, owner: Owner, unlimited: None) -> Scene:
    return Scene(front, owner)


def posts_of(scene: Scene, rows: Rows) -> dict[str, str]:
    """Endpoint → address, of every post to one row of this kind and to nothing else beside it."""
    return {
        rule.endpoint: rule.rule
        for rule in scene.app.url_map.iter_rules()
        if "POST" in (rule.methods or ())
        and rule.arguments == {rows.argument}
        and rule.rule.startswith(rows.prefix)
    }


def offered(scene: Scene, client: FlaskClient, url: str) -> Forms:
    """The forms on a row's page, and on the pages of its own that lead from there to an act."""
    shown = client.get(url)
    assert shown.status_code == 200, url
    page, _ = parse(shown.text)
    links = {str(one.get("href", "")).partition("?")[0] for one in page.iter("a")}
    found = forms_on(scene, shown)
    for link in sorted(link for link in links if link.startswith(f"{url}/")):
        found |= forms_on(scene, client.get(link))
    return found


def forms_on(scene: Scene, shown: TestResponse) -> Forms:
    page, _ = parse(shown.text)
    found: Forms = {}
    for form in page.iter("form"):
        action = str(form.get("action") or "")
        with_post = (form.get("method") or "get").upper() == "POST"
        if with_post and (endpoint := endpoint_of(scene, action)):
            found[endpoint] = form_data(page, action)
    return found


def endpoint_of(scene: Scene, address: str) -> str | None:
    try:
        return scene.app.url_map.bind("here").match(urlsplit(address).path, method="POST")[0]
    except HTTPException:
        return None


def books(owner: Owner) -> dict[str, str]:
    tables = [
        str(name)
        for (name,) in owner.rows("select tablename from pg_tables where schemaname = 'public'")
        if name not in NOT_BOOKS
    ]
    asked = " union all ".join(
        f"select '{name}', md5(coalesce(string_agg(t::text, '|' order by t::text), ''))"
        f' from "{name}" t'
        for name in tables
    )
    return dict(owner.rows(asked))


def everybody(scene: Scene) -> Iterator[tuple[str, FlaskClient]]:
    people: dict[str, Colleague] = {
        "owner": scene.cast.tanaka,
        "manager": scene.cast.suzuki,
        "front desk": scene.cast.sato,
    }
    for role, person in people.items():
        yield role, scene.cast.signed_in(person, scene.cast.tokyo)
    stranger = scene.cast.hire("else@monban.example", "Else", [(scene.cast.osaka, "owner")])
    yield "another house", scene.cast.signed_in(stranger, scene.cast.osaka)


def token_of(client: FlaskClient) -> str:
    found = TOKEN.search(client.get("/staff/facility").text)
    assert found
    return found[1]


@pytest.mark.parametrize("kind", ["stays", "memberships", "payments"])
def test_what_a_page_hides_the_server_refuses(
    scene: Scene, owner: Owner, figure: Figure, kind: str
) -> None:
    rows: Rows = getattr(scene, kind)()
    posts = posts_of(scene, rows)
    visible: dict[tuple[str, str], Forms] = {}
    clients = dict(everybody(scene))
    for role, client in clients.items():
        for state, row in rows.states.items():
            if role != "another house":
                visible[role, state] = offered(scene, client, f"{rows.prefix}{row}")
    examples = {name: data for forms in visible.values() for name, data in forms.items()}
    assert set(posts) <= set(examples), f"offered in no state: {set(posts) - set(examples)}"

    tried, wrong = 0, []
    for role, client in clients.items():
        token, before = token_of(client), books(owner)
        for state, row in rows.states.items():
            for endpoint in set(posts) - set(visible.get((role, state), {})):
                data = examples[endpoint] | {"csrf_token": token}
                data |= {"form_key": str(uuid4())} if "form_key" in data else {}
                if rows.versions:
                    seen = f"select version from {rows.table} where id = %s"
                    data["version"] = str(owner.one(seen, row))
                address = re.sub(r"<[^>]+>", str(row), posts[endpoint])
                said = client.post(address, data=data)
                tried += 1
                if said.status_code not in REFUSED or books(owner) != before:
                    now = books(owner)
                    changed = [name for name, held in now.items() if before[name] != held]
                    wrong.append(f"{role}: {endpoint} of {state}: {said.status_code}, {changed}")
                    before = now
    assert not wrong, "\n".join(wrong)
    figure("hidden acts", **{kind: tried})
