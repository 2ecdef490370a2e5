"""Two houses full of rows of every kind, the people who ask, and what each may be shown."""

import re
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import cached_property
from typing import Any
from uuid import UUID, uuid4

from flask.testing import FlaskClient
from werkzeug.exceptions import HTTPException

from portal import clock
from portal.outcome import Applied
from portal.policies.lodging_tax import Band
from portal.policies.register import Entry
from portal.queries import day_closes
from portal.verbs import (
    blocklist,
    day_close,
    documents,
    entrances,
    lodging_taxes,
    memberships,
    registers,
)
from portal.verbs.membership_end import Ending, end_membership
from tests.cast import Booked, Colleague, HouseOf, Joined
from tests.outside import Owner
from tests.web.audit import CONTROLS, parse
from tests.web.staff.houses import FrontDesk
from tests.web.staff.test_attention import (
    dead_command,
    dead_letter,
    fail_refund,
    later,
    lose,
)

UUIDS = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
TOKEN = re.compile(r'name="csrf_token" value="([^"]+)"')

# Words that stand nowhere but in the rows of one house.
TOKYO_ONLY = {"name": "Tokyojin Zq7", "email": "tokyojin@zq7.example", "kana": "", "locale": "ja"}
OSAKA_ONLY = {"name": "Osakajin Xk4", "email": "osakajin@xk4.example", "kana": "", "locale": "en"}

# Where the name of an argument does not name its table.
TABLES = {
    "blocklist_entry": "blocklist_entries",
    "cancellation_policy": "cancellation_policies",
    "letter": "dead_letters",
    "message": "outbox",
    "command": "lock_commands",
}


@dataclass
class Role:
    """Somebody who asks: their cookie, their token against forged posts, their house."""

    name: str
    house: UUID | None
    person: Colleague | None = None
    cookie: str = ""
    csrf: str = ""


@dataclass
class World:
    front: FrontDesk
    owner: Owner
    tokens: dict[UUID, list[str]] = field(default_factory=dict)
    memberships: dict[UUID, list[str]] = field(default_factory=dict)
    entrances: dict[UUID, list[str]] = field(default_factory=dict)
    roles: dict[str, Role] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for house, guest in ((self.tokyo, TOKYO_ONLY), (self.osaka, OSAKA_ONLY)):
            self.front.cast.policy((48, 50, True), (0, 100, False), house=house)
            self.tokens[house.id] = [stay.token for stay in self._fill(house, guest)]
            self.memberships[house.id] = [one.token for one in self._members(house, guest)]
            self._close_yesterday(house)
            self._ways_in(house, guest)
        self._tokyo_alone()
        hired = {
            "front desk": (self.tokyo, "front_desk", "ja"),
            "manager": (self.tokyo, "manager", "en"),
            "owner": (self.tokyo, "owner", "ja"),
            "other house": (self.osaka, "owner", "en"),
        }
        for name, (house, role, locale) in hired.items():
            mail = f"{name.replace(' ', '.')}@monban.example"
            person = self.front.cast.hire(mail, name.title(), [(house, role)], locale)
            self.roles[name] = Role(name, house.id, person)
        self.roles["guest"] = Role("guest", self.tokyo.id)
        self.roles["nobody"] = Role("nobody", None)
        for role in self.roles.values():
            self.come_in(role)

    @property
    def tokyo(self) -> HouseOf:
        return self.front.cast.tokyo

    @property
    def osaka(self) -> HouseOf:
        return self.front.cast.osaka

    # Rows ------------------------------------------------------------------------------------

    def _fill(self, house: HouseOf, guest: dict[str, Any]) -> list[Booked]:
        """A stay that is paid for, one in house with its key, with their messages."""
        cast, spaces = self.front.cast, list(house.spaces)
        offer = cast.tickets(house)
        note = f"note of {guest['name']}"
        paid = cast.book(house, guest, space=spaces[0], price=10_000, note=note)
        self.front.paid(paid)
        with cast.transaction(house.id) as tx:
            tx.run("update plans set kind = 'lodging'")
            tx.run("update stays set plan_id = (select id from plans limit 1)")
            entry = Entry(guest["name"], "x", guest["email"], lives_abroad=False)
            registers.fill(tx, cast.sato.actor, paid.id, entry)
            bands = [Band(10_000, None, 100)]
            lodging_taxes.write_table(tx, cast.sato.actor, date(2026, 1, 1), bands, uuid4())
            folio = documents.Folio(stay_id=paid.id)
            documents.issue(tx, cast.sato.actor, folio, guest["name"], uuid4())
        inside = cast.book(house, guest, space=spaces[1], price=0, note=note)
        self.front.admitted(inside)
        cast.sell_tickets(inside, offer)
        return [paid, inside]

    def _members(self, house: HouseOf, guest: dict[str, Any]) -> list[Joined]:
        """One who applies, one who has joined, one who will leave, one who left, one to pay."""
        cast = self.front.cast
        plan = cast.offer("monthly", "月会員", "Monthly", house=house)
        made = [
            cast.apply(plan, {**guest, "email": f"{number}.{guest['email']}"}, house=house)
            for number in range(4)
        ]
        by_card = cast.offer("card", "カード会員", "By card", house=house, billing="card")
        made.append(cast.apply(by_card, guest, house=house))
        for joined in made[1:]:
            with self.front.app.app_context():
                memberships.approve(self.front.desk(house), cast.sato.actor, joined.id, 1)
        for joined, ending in ((made[2], Ending("self_cancel")), (made[3], Ending("force_cancel"))):
            with self.front.app.app_context():
                end_membership(self.front.desk(house), cast.sato.actor, joined.id, ending)
        return made

    def _close_yesterday(self, house: HouseOf) -> None:
        """So that a day is closed, and today can be."""
        with self.front.cast.transaction(house.id) as tx:
            now = day_closes.to_close(tx, clock.now())
            yesterday = clock.local_day(clock.now(), house.zone) - timedelta(days=1)
            said = day_close.close(
                tx,
                self.front.cast.sato.actor,
                day_close.Count(
                    form_key=uuid4(),
                    day=yesterday,
                    opening=0,
                    counted=0,
                    taken=0,
                    cash_moved=now.figures.cash_moved,
                    left_open=len(now.matters),
                    reason="nothing was counted",
                ),
            )
        assert isinstance(said, Applied), said

    def _ways_in(self, house: HouseOf, guest: dict[str, Any]) -> None:
        """An entrance with a door and every plan, and somebody who is not let in at it."""
        manager, last = self.front.cast.suzuki.actor, list(house.doors.values())[-1]
        way = entrances.Terms(
            "正面玄関",
            "Front",
            "walk_in",
            None,
            9,
            frozenset(house.plans.values()),
            frozenset({last}),
        )
        with self.front.cast.transaction(house.id) as tx:
            entrances.create(tx, manager, entrances.NewEntrance(uuid4(), "front", way))
            ground = blocklist.add_ground(tx, manager, "ordinance", "条例の事由", "An ordinance")
            wanted = blocklist.NewEntry(
                form_key=uuid4(),
                ground=f"told of {guest['name']}",
                name="Nobody Here",
                refusal_ground_id=ground.subject if isinstance(ground, Applied) else None,
            )
            blocklist.add(tx, manager, wanted)
            names = tx.rows("select public_name from entrances")
        self.entrances[house.id] = [row.public_name for row in names]

    def links(self, rule: str, house: UUID) -> list[str]:
        """What `<token>` may be in an address of this rule: of a stay, of a membership, a house."""
        if rule.startswith("/e/"):
            return self.entrances[house]
        if rule.startswith("/join/"):
            return [self.tokyo.slug if house == self.tokyo.id else self.osaka.slug]
        return (self.memberships if rule.startswith("/m/") else self.tokens)[house]

    def _tokyo_alone(self) -> None:
        """What waits for a person: lost money, a failed refund, dead letters and commands."""
        cast, owner = self.front.cast, self.owner
        coming = cast.book(space="A03", price=5000, deposit_due=2000, guest=TOKYO_ONLY)
        self.tokens[self.tokyo.id].append(coming.token)
        self.front.opened(coming)
        failed = self.front.paid(later(self.front, price=900))
        fail_refund(self.front, owner, failed)
        unsure = cast.book(space="B01", price=7000, guest=TOKYO_ONLY)
        lose(owner, "payments", self.front.opened(unsure))
        dead_command(
            owner,
            owner.one("select id from entry_keys where facility_id = %s limit 1", self.tokyo.id),
        )
        owner.run("update outbox set dead_at = now() where facility_id = %s", self.tokyo.id)
        dead_letter(self.front)
        dead_letter(self.front)

    @cached_property
    def scoped(self) -> list[str]:
        """Tables whose rows belong to a house."""
        return [
            str(name)
            for (name,) in self.owner.rows(
                "select c.table_name from information_schema.columns c"
                " join information_schema.tables t using (table_schema, table_name)"
                " where c.table_schema = 'public' and c.column_name = 'facility_id'"
                " and t.table_type = 'BASE TABLE' order by 1"
            )
        ]

    @cached_property
    def tables(self) -> list[str]:
        rows = self.owner.rows("select tablename from pg_tables where schemaname = 'public'")
        return sorted(str(name) for (name,) in rows)

    def digest(self, house: UUID | None = None) -> dict[str, str]:
        """What every table holds, of one house or of all."""
        names = self.scoped if house else self.tables
        where = f"where t.facility_id = '{house}'" if house else ""
        asked = " union all ".join(
            f"select '{name}', md5(coalesce(string_agg(t::text, '|' order by t::text), ''))"
            f' from "{name}" t {where}'
            for name in names
        )
        return dict(self.owner.rows(asked))

    def ids(self, house: UUID, table: str) -> list[str]:
        return [
            str(found)
            for (found,) in self.owner.rows(
                f'select id from "{table}" where facility_id = %s order by id', house
            )
        ]

    def ids_for(self, argument: str, house: UUID) -> list[str]:
        """Rows that an argument of this name can mean: `stay_id` → stays."""
        stem = argument.removesuffix("_id")
        table = TABLES.get(stem) or next((t for t in self.scoped if t == f"{stem}s"), None)
        if table == "dead_letters":
            return [str(i) for (i,) in self.owner.rows("select id from dead_letters order by id")]
        return self.ids(house, table) if table else sorted(self.all_ids(house))

    def words_for(self, rule: str, argument: str, house: UUID) -> list[str]:
        """What an argument of an address may be in this house."""
        if argument == "token":
            return self.links(rule, house)
        return ["monthly"] if argument == "plan" else self.ids_for(argument, house)

    def all_ids(self, house: UUID) -> set[str]:
        with_id = {
            name
            for (name,) in self.owner.rows(
                "select table_name from information_schema.columns"
                " where table_schema = 'public' and column_name = 'id' and data_type = 'uuid'"
            )
        }
        return {one for table in self.scoped if table in with_id for one in self.ids(house, table)}

    # People ----------------------------------------------------------------------------------

    def come_in(self, role: Role) -> None:
        """A fresh browser session, and a token that belongs to it."""
        if role.person:
            where = self.osaka if role.house == self.osaka.id else self.tokyo
            client = self.front.cast.signed_in(role.person, where)
        else:
            client = self.front.app.test_client()
        shown = client.get(self._page_with_a_form(role))
        found = TOKEN.search(shown.text)
        assert found, f"{role.name}: no form at {shown.request.path}"
        role.csrf, role.cookie = found[1], _cookie(client)

    def _page_with_a_form(self, role: Role) -> str:
        """A guest's own page has none once the stay is over; the token is the browser's anyway."""
        return "/staff/facility" if role.person else "/staff/sign-in"

    def secrets(self, of: HouseOf) -> tuple[str, ...]:
        """Words that nobody outside this house reads."""
        guest = TOKYO_ONLY if of is self.tokyo else OSAKA_ONLY
        return (guest["name"], guest["email"], of.name_ja, of.name_en)

    # Forms -----------------------------------------------------------------------------------

    def forms(self) -> dict[str, list[dict[str, str]]]:
        """By endpoint: what the forms of every page that can be had would send."""
        found: dict[str, list[dict[str, str]]] = {}
        for role in (self.roles["owner"], self.roles["guest"], self.roles["nobody"]):
            client = self.front.app.test_client(use_cookies=False)
            for url in self._pages():
                shown = client.get(url, headers={"Cookie": role.cookie})
                if shown.status_code == 200 and shown.mimetype == "text/html":
                    self._read_forms(shown.text, url, found)
        return found

    def _pages(self) -> list[str]:
        pages = []
        for rule in sorted(self.front.app.url_map.iter_rules(), key=str):
            if "GET" not in (rule.methods or ()) or rule.endpoint == "static":
                continue
            for number in range(3 if rule.arguments else 1):
                values = {name: self._row(rule.rule, name, number) for name in rule.arguments}
                page = rule.rule
                for name, value in values.items():
                    page = re.sub(rf"<(?:\w+:)?{name}>", value or "none", page)
                pages.append(page)
        return pages

    def _row(self, rule: str, argument: str, number: int) -> str:
        known = self.words_for(rule, argument, self.tokyo.id)
        return known[number % len(known)] if known else ""

    def _read_forms(self, html: str, url: str, found: dict[str, list[dict[str, str]]]) -> None:
        page, _ = parse(html)
        for form in page.iter("form"):
            action = (form.get("action") or url).partition("?")[0]
            method = (form.get("method") or "get").upper()
            try:
                bound = self.front.app.url_map.bind("localhost")
                endpoint, _ = bound.match(action, method=method)
            except HTTPException:
                continue
            fields = {}
            for control in form.iter():
                if control.tag in CONTROLS and control.get("name"):
                    fields[str(control.get("name"))] = control.get("value") or _chosen(control)
            fields.pop("csrf_token", None)
            found.setdefault(endpoint, []).append(fields)


def _chosen(control: Any) -> str:
    if control.tag == "textarea":
        return "".join(control.itertext())
    options = [option.get("value") or "" for option in control.iter("option")]
    return next((value for value in options if value), "")


def _cookie(client: FlaskClient) -> str:
    found = client.get_cookie("monban")
    return f"monban={found.value}" if found else ""
