"""The cast of every test: two houses, three people of staff, two guests.

Everything is written as the app's own role. Attributes are made when they are first named, so a
test that needs one house has one house.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from functools import cached_property
from typing import Any
from uuid import UUID, uuid4

from argon2 import PasswordHasher
from flask import Flask
from flask.testing import FlaskClient

from portal import clock, seal
from portal.db import Actor, Tx, transaction
from portal.models import Door, MembershipPlan, Plan, Space
from portal.outcome import Applied
from portal.verbs.desk import Desk

PASSWORD = "correct horse battery staple"

# As slow as a test can afford; a sign-in makes it stronger.
_QUICK = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
_DIGEST = _QUICK.hash(PASSWORD)


@dataclass(frozen=True)
class HouseOf:
    """A facility of the cast: ids by code."""

    id: UUID
    slug: str
    name_ja: str
    name_en: str
    zone: str
    spaces: dict[str, UUID]
    doors: dict[str, UUID]
    plans: dict[str, UUID]


@dataclass(frozen=True)
class Colleague:
    id: UUID
    email: str
    name: str
    houses: tuple[UUID, ...]
    password: str = PASSWORD

    @property
    def actor(self) -> Actor:
        return Actor("staff", self.id, self.name)


@dataclass(frozen=True)
class Booked:
    """A stay with the token of its link."""

    id: UUID
    facility_id: UUID
    token: str


@dataclass(frozen=True)
class Joined:
    """A membership with the token of its link."""

    id: UUID
    facility_id: UUID
    token: str


GUEST = Actor("guest", None, "山田 花子")


class Cast:
    def __init__(self, app: Flask) -> None:
        self.app = app

    # Houses ----------------------------------------------------------------------------------

    @cached_property
    def tokyo(self) -> HouseOf:
        return self.open_house(
            "haneda-capsule",
            "羽田カプセルホテル",
            "Haneda Capsule Hotel",
            kind="capsule_hotel",
            spaces=("A01", "A02", "A03", "B01"),
            plans=(
                ("night", "宿泊", "Overnight", "lodging", "night", 6000, 2000),
                ("nap", "仮眠", "Nap", "day_use", "hour", 900, 0),
            ),
        )

    @cached_property
    def osaka(self) -> HouseOf:
        return self.open_house(
            "umeda-sauna",
            "梅田サウナ",
            "Umeda Sauna",
            kind="sauna",
            spaces=("S01", "S02"),
            plans=(("visit", "サウナ入浴", "Sauna visit", "day_use", "visit", 1800, 0),),
        )

    def open_house(
        self,
        slug: str,
        name_ja: str,
        name_en: str,
        *,
        kind: str = "capsule_hotel",
        zone: str = "Asia/Tokyo",
        currency: str = "JPY",
        locale: str = "ja",
        spaces: Sequence[str] = ("A01", "A02"),
        plans: Sequence[tuple[str, str, str, str, str, int, int]] = (),
    ) -> HouseOf:
        """A facility with one door for each space."""
        house = uuid4()
        with self.transaction(house) as tx:
            tx.run(
                """
                insert into facilities (id, slug, name_ja, name_en, kind, time_zone, currency,
                    default_locale, phone, email, address_ja, address_en, check_in_from,
                    check_out_by)
                values (:id, :slug, :ja, :en, :kind, :zone, :currency, :locale, '+81312345678',
                    :email, '東京都大田区1-1', '1-1 Ota, Tokyo', :in_from, :out_by)
                """,
                id=house,
                slug=slug,
                ja=name_ja,
                en=name_en,
                kind=kind,
                zone=zone,
                currency=currency,
                locale=locale,
                email=f"desk@{slug}.example",
                in_from=time(15),
                out_by=time(10),
            )
            doors = {code: self._door(tx, house, slug, code) for code in spaces}
            rooms = {
                code: tx.add(
                    Space,
                    facility_id=house,
                    code=code,
                    name_ja=f"{code}号",
                    name_en=f"Space {code}",
                    door_id=doors[code],
                )
                for code in spaces
            }
            sold = {
                code: tx.add(
                    Plan,
                    facility_id=house,
                    code=code,
                    name_ja=ja,
                    name_en=en,
                    kind=sort,
                    unit=unit,
                    unit_price=price,
                    deposit=deposit,
                )
                for code, ja, en, sort, unit, price, deposit in plans
            }
        return HouseOf(house, slug, name_ja, name_en, zone, rooms, doors, sold)

    def _door(self, tx: Tx, house: UUID, slug: str, code: str) -> UUID:
        return tx.add(
            Door,
            facility_id=house,
            name_ja=f"{code}の扉",
            name_en=f"Door {code}",
            device_id=f"{slug}-{code}".lower(),
        )

    # People ----------------------------------------------------------------------------------

    @cached_property
    def sato(self) -> Colleague:
        """Front desk in Tokyo."""
        return self.hire("sato@monban.example", "佐藤 健", [(self.tokyo, "front_desk")])

    @cached_property
    def suzuki(self) -> Colleague:
        """Manager in Tokyo, front desk in Osaka."""
        return self.hire(
            "suzuki@monban.example",
            "鈴木 愛",
            [(self.tokyo, "manager"), (self.osaka, "front_desk")],
        )

    @cached_property
    def tanaka(self) -> Colleague:
        """Owner of both."""
        return self.hire(
            "tanaka@monban.example", "田中 実", [(self.tokyo, "owner"), (self.osaka, "owner")]
        )

    def hire(
        self, email: str, name: str, places: Sequence[tuple[HouseOf, str]], locale: str = "ja"
    ) -> Colleague:
        with self.transaction(None) as tx:
            person = tx.scalar(
                """
                insert into staff (email, name, password_hash, locale)
                values (:email, :name, :hash, :locale) returning id
                """,
                email=email,
                name=name,
                hash=_DIGEST,
                locale=locale,
            )
            for house, role in places:
                tx.enter(
                    "(select cast(:id as uuid) as facility_id, cast(:id as uuid) as id)",
                    id=house.id,
                )
                tx.run(
                    "insert into staff_roles (staff_id, facility_id, role) values (:p, :f, :role)",
                    p=person,
                    f=house.id,
                    role=role,
                )
        return Colleague(person, email, name, tuple(house.id for house, _ in places))

    def speaks(self, person: Colleague, locale: str) -> None:
        with self.transaction(None) as tx:
            tx.run("update staff set locale = :l where id = :id", l=locale, id=person.id)

    def signed_in(
        self, person: Colleague, house: HouseOf | None = None, *, locale: str | None = None
    ) -> FlaskClient:
        """A browser in which the person is signed in; `house` is the one in use."""
        client = self.app.test_client()
        if locale:
            self.speaks(person, locale)
        chosen = house.id if house else person.houses[0]
        token = seal.new_token()
        with self.transaction(None) as tx:
            tx.run(
                """
                insert into staff_sessions (token_hash, staff_id, chosen_facility, expires_at)
                values (:hash, :who, :chosen, now() + interval '12 hours')
                """,
                hash=seal.token_hash(token),
                who=person.id,
                chosen=chosen,
            )
        with client.session_transaction() as session:
            session.update(_user_id=token, _fresh=True, facility=str(chosen))
        return client

    # Guests and their stays --------------------------------------------------------------------

    @cached_property
    def hanako(self) -> dict[str, Any]:
        """Fields of a guest who reads Japanese; for `NewGuest(**…)`."""
        return {
            "name": "山田 花子",
            "kana": "ヤマダ ハナコ",
            "email": "hanako@guest.example",
            "phone": "+819012345678",
            "locale": "ja",
        }

    @cached_property
    def emma(self) -> dict[str, Any]:
        """Fields of a guest who reads English."""
        return {
            "name": "Emma Smith",
            "kana": "",
            "email": "emma@guest.example",
            "phone": "+447700900123",
            "locale": "en",
        }

    @cached_property
    def monthly(self) -> UUID:
        """A plan of Tokyo that is joined by the month and paid at the desk."""
        return self.offer("monthly", "月会員", "Monthly", price=9800)

    def for_members(self, house: HouseOf | None = None, price: int = 0) -> str:
        """A plan of stays that only members may book; its code, as `book` takes it."""
        house, code = house or self.tokyo, f"members-{price}"
        with self.transaction(house.id) as tx:
            house.plans[code] = tx.add(
                Plan,
                facility_id=house.id,
                code=code,
                name_ja="会員入浴",
                name_en="Visit for members",
                kind="day_use",
                unit="visit",
                unit_price=price,
                members_only=True,
            )
        return code

    def policy(
        self, *steps: tuple[int, int, bool], house: HouseOf | None = None, plan: str | None = None
    ) -> UUID:
        """A cancellation policy of (hours before, percent, returns), chosen for `plan` if named."""
        from portal.policies.cancellation import Step
        from portal.verbs import cancellation_policies as verbs

        house = house or self.tokyo
        terms = verbs.Terms(
            "標準", "Standard", [Step(*step) for step in steps or ((24, 50, False),)]
        )
        with self.transaction(house.id) as tx:
            made = verbs.create(tx, self.suzuki.actor, verbs.NewPolicy(uuid4(), terms))
            assert isinstance(made, Applied), made
            assert made.subject is not None
            if plan:
                verbs.choose(tx, self.suzuki.actor, house.plans[plan], None, made.subject)
        return made.subject

    def for_visits(self, house: HouseOf) -> UUID:
        """A plan of day use by the visit, `visit` by its code."""
        if "visit" not in house.plans:
            with self.transaction(house.id) as tx:
                house.plans["visit"] = tx.add(
                    Plan,
                    facility_id=house.id,
                    code="visit",
                    name_ja="入浴",
                    name_en="Visit",
                    kind="day_use",
                    unit="visit",
                    unit_price=1800,
                )
        return house.plans["visit"]

    def tickets(
        self,
        house: HouseOf | None = None,
        *,
        tickets: int = 3,
        price: int = 5000,
        months: int = 6,
    ) -> UUID:
        """A book of visits that is sold, by default in Osaka."""
        from portal.verbs import ticket_offers

        house = house or self.osaka
        self.for_visits(house)
        wanted = ticket_offers.NewOffer(
            form_key=uuid4(),
            name_ja="回数券",
            name_en="Book of visits",
            plan_id=house.plans["visit"],
            tickets=tickets,
            price=price,
            months=months,
        )
        with self.transaction(house.id) as tx:
            made = ticket_offers.create(tx, self.suzuki.actor, wanted)
        assert isinstance(made, Applied), made
        assert made.subject is not None
        return made.subject

    def sell_tickets(self, stay: Booked, offer: UUID) -> tuple[UUID, str]:
        """A book on the stay's account, as its id and code."""
        from portal.verbs import ticket_books

        with self.transaction(stay.facility_id) as tx:
            made = ticket_books.sell(tx, self.sato.actor, stay.id, offer, uuid4())
            code = tx.scalar("select code from ticket_books where id = :id", id=made.subject)
        assert isinstance(made, Applied), made
        assert made.subject is not None
        return made.subject, code

    def offer(
        self,
        code: str,
        name_ja: str,
        name_en: str,
        *,
        house: HouseOf | None = None,
        price: int = 9800,
        billed_every: str = "month",
        billing: str = "desk",
        quota: int | None = None,
    ) -> UUID:
        """A plan that can be joined."""
        house = house or self.tokyo
        with self.transaction(house.id) as tx:
            return tx.add(
                MembershipPlan,
                facility_id=house.id,
                code=code,
                name_ja=name_ja,
                name_en=name_en,
                price=price,
                billed_every=billed_every,
                billing=billing,
                monthly_quota=quota,
                terms_version="2026-11",
            )

    def apply(
        self, plan: UUID | None = None, guest: dict[str, Any] | None = None, **more: Any
    ) -> Joined:
        """An application through the verb itself."""
        from portal.verbs import guests, memberships

        wanted = memberships.Application(
            form_key=more.pop("form_key", uuid4()),
            plan_id=plan or self.monthly,
            seen=more.pop("seen", 1),
            guest=guests.NewGuest(**(guest or self.hanako)),
            confirmation={"price": 9800},
        )
        house = more.pop("house", None) or self.tokyo
        with self.transaction(house.id) as tx:
            made = memberships.apply(tx, GUEST, wanted)
            assert isinstance(made, Applied), made
            row = tx.row("select token_sealed from memberships where id = :id", id=made.subject)
        assert made.subject is not None
        assert row is not None
        return Joined(made.subject, house.id, seal.unseal(row.token_sealed))

    def join(
        self, plan: UUID | None = None, guest: dict[str, Any] | None = None, **more: Any
    ) -> Joined:
        """An application that staff have approved."""
        from portal.verbs import memberships

        joined = self.apply(plan, guest, **more)
        nobody: Any = None  # whoever is paid at the desk concerns no provider
        desk = Desk(joined.facility_id, nobody, nobody, nobody, "http://here.example")
        with self.app.app_context():
            said = memberships.approve(desk, self.sato.actor, joined.id, 1)
        assert isinstance(said, Applied), said
        return joined

    def book(
        self,
        house: HouseOf | None = None,
        guest: dict[str, Any] | None = None,
        *,
        space: str | None = None,
        starts_at: datetime | None = None,
        ends_at: datetime | None = None,
        price: int = 6000,
        deposit_due: int = 0,
        source: str = "desk",
        plan: str | None = None,
        note: str = "",
        actor: Actor | None = None,
        member: Joined | None = None,
        persons: int = 1,
        ticket: str | None = None,
    ) -> Booked:
        """A reserved stay through the verb itself; by default it begins now and lasts a night. A
        `member` is its guest."""
        from portal.verbs import bookings, guests

        house = house or self.tokyo
        starts = starts_at or clock.now() - timedelta(minutes=5)
        wanted = bookings.NewStay(
            form_key=uuid4(),
            guest=None if member else guests.NewGuest(**(guest or self.hanako)),
            membership_id=member.id if member else None,
            space_id=house.spaces[space or next(iter(house.spaces))],
            plan_id=house.plans[plan] if plan else None,
            starts_at=starts,
            ends_at=ends_at or starts + timedelta(hours=19),
            price=price,
            deposit_due=deposit_due,
            source=source,
            note=note,
            persons=persons,
            ticket=ticket,
        )
        with self.transaction(house.id) as tx:
            made = bookings.create(tx, actor or self.sato.actor, wanted)
            assert isinstance(made, Applied), made
            assert made.subject is not None
            sealed = tx.scalar("select token_sealed from stays where id = :id", id=made.subject)
        return Booked(made.subject, house.id, seal.unseal(sealed))

    # The database ------------------------------------------------------------------------------

    def transaction(self, facility_id: UUID | None) -> Any:
        """`transaction()` for a test that holds no app context."""
        return _Scoped(self.app, facility_id)


class _Scoped:
    def __init__(self, app: Flask, facility_id: UUID | None) -> None:
        self._context = app.app_context()
        self._facility = facility_id

    def __enter__(self) -> Tx:
        self._context.__enter__()
        self._inner = transaction(self._facility)
        return self._inner.__enter__()

    def __exit__(self, *fault: Any) -> bool | None:
        try:
            return self._inner.__exit__(*fault)
        finally:
            self._context.__exit__(*fault)
