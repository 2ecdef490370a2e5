"""Tells the story through the portal's own verbs, at the times at which it happened.

For the past the demo plays the guest, the desk and the lock; what is in house now is left to the
worker and the real stand-ins. Only dates of creation are set back by hand.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode
from urllib.request import ProxyHandler, Request, build_opener
from uuid import UUID, uuid4

from argon2 import PasswordHasher

from portal import clock, config, log, seal
from portal.config import Config, UnsafeConfigurationError
from portal.db import SYSTEM, Actor, Tx, transaction
from portal.demo import members, papers, tickets, ways_in
from portal.demo.houses import (
    CANCELLING,
    DEPOSIT_HOURS,
    HANEDA,
    HOUSES,
    PASSWORD,
    PEOPLE,
    UMEDA,
    HouseOf,
    PersonOf,
    PlanOf,
    made,
)
from portal.demo.story import ZONE, Scene, scenes
from portal.edges.providers import providers
from portal.models import Stay
from portal.outcome import Applied, Outcome
from portal.policies import pricing
from portal.verbs import (
    bookings,
    cancellation_policies,
    cash,
    facilities,
    guests,
    keys,
    payment_answers,
    payments,
    stay_changes,
    stays,
)
from portal.verbs.cancellation_policies import NewPolicy
from portal.verbs.desk import Desk

# Shaped as `Tx.enter` wants it: the facility, and the row, which here is the facility again.
THIS = "(select cast(:id as uuid) as facility_id, cast(:id as uuid) as id)"

MINUTE = timedelta(minutes=1)
DAYS_OF_LINKS = 7


def load(settings: Config | None = None, now: datetime | None = None) -> dict[str, Any]:
    """Write what is not there yet. Returns logins, links and names. Refuses a portal that the world
    can reach, and live money. `now`: the moment until which the story is told."""
    wanted = settings or config.from_environment()
    refuse_real(wanted)
    now = now or clock.now()
    houses = {house.slug: furnish(house) for house in HOUSES}
    for person in PEOPLE:
        hire(person, houses)
    for house in HOUSES:
        stage = Stage(house, houses[house.slug], wanted, now)
        with at(now):
            ways_in.open_them(house.slug, stage.id, stage.clerk)
        papers.furnish(houses[house.slug], house.slug, stage.clerk)
        tickets.offer(houses[house.slug], house.slug, stage.clerk)
        for scene in scenes(house.slug, now):
            stage.play(scene)
        papers.write(houses[house.slug], house.slug, stage.clerk)
        tickets.sell(houses[house.slug], house.slug, stage.clerk)
        members.join(house.slug, stage.desk, stage.clerk, now, stage.beat)
    return told(wanted, houses, now)


def refuse_real(wanted: Config) -> None:
    """Its password stands in the source."""
    if wanted.stripe_live or not config.is_local(wanted.public_url):
        raise UnsafeConfigurationError(
            "demo data is for a local PUBLIC_URL without live money: its password is known"
        )


def told(wanted: Config, houses: dict[str, UUID], now: datetime) -> dict[str, Any]:
    return {
        "logins": [
            {"email": person.email, "password": PASSWORD, "role": person.what_en}
            for person in PEOPLE
        ],
        "guest_in_English": _link(wanted, houses[HANEDA.slug], "emma", now),
        "guest_in_Japanese": _link(wanted, houses[HANEDA.slug], "hanako", now),
        "joining": f"{wanted.public_url}/join/{HANEDA.slug}/traveller",
        "kiosk_Haneda": _kiosk(wanted, houses[HANEDA.slug]),
        "kiosk_Umeda": _kiosk(wanted, houses[UMEDA.slug]),
        "houses": ", ".join(f"{house.name_ja} ({house.name_en})" for house in HOUSES),
    }


def _kiosk(wanted: Config, house_id: UUID) -> str:
    """The tablet's page of the house's first entrance."""
    with transaction(house_id) as tx:
        name = tx.scalar("select public_name from entrances order by created_at, slug limit 1")
    return f"{wanted.public_url}/e/{name}"


def _link(wanted: Config, house_id: UUID, guest: str, now: datetime) -> str:
    """Of the guest's newest stay: on a later day the capsule may still be taken by the last."""
    days = [clock.local_day(now, ZONE) - timedelta(days=back) for back in range(DAYS_OF_LINKS)]
    with transaction(house_id) as tx:
        sealed = tx.scalar(
            "select token_sealed from stays where form_key = any(:keys)"
            " order by starts_at desc limit 1",
            keys=[made(HANEDA.slug, f"{guest}:{day.isoformat()}") for day in days],
        )
    return f"{wanted.public_url}/g/{seal.unseal(sealed)}" if sealed else "-"


# Houses and people ----------------------------------------------------------------------------


def furnish(house: HouseOf) -> UUID:
    """The house with its doors, spaces and plans. Returns its id, whoever opened it."""
    with transaction(None) as tx:
        known: UUID | None = tx.scalar("select facility_by_slug(:slug)", slug=house.slug)
    if known is not None:
        return known
    house_id = made(house.slug)
    with transaction(house_id) as tx:
        tx.run(
            """
            insert into facilities (id, slug, name_ja, name_en, kind, time_zone, default_locale,
                currency, phone, email, address_ja, address_en, check_in_from, check_out_by,
                early_minutes)
            values (:id, :slug, :name_ja, :name_en, :kind, :zone, 'ja', 'JPY', :phone, :email,
                :address_ja, :address_en, :check_in_from, :check_out_by, :early_minutes)
            """,
            id=house_id,
            zone=ZONE,
            email=f"desk@{house.slug}.example",
            **{name: getattr(house, name) for name in HOUSE_COLUMNS},
        )
        _furnish_doors(tx, house, house_id)
        for plan in house.plans:
            _sell(tx, house, house_id, plan)
        _agree(tx, house)
        facilities.hold_for_deposit(tx, SYSTEM, DEPOSIT_HOURS)
    return house_id


def _agree(tx: Tx, house: HouseOf) -> None:
    """One cancellation policy for everything that is sold."""
    wanted = NewPolicy(made(house.slug, "cancelling"), CANCELLING)
    policy = cancellation_policies.create(tx, SYSTEM, wanted)
    if isinstance(policy, Applied):
        for plan in house.plans:
            plan_id = made(house.slug, "plan", plan.code)
            cancellation_policies.choose(tx, SYSTEM, plan_id, None, policy.subject)


HOUSE_COLUMNS = (
    "slug",
    "name_ja",
    "name_en",
    "kind",
    "phone",
    "address_ja",
    "address_en",
    "check_in_from",
    "check_out_by",
    "early_minutes",
)


def _furnish_doors(tx: Tx, house: HouseOf, house_id: UUID) -> None:
    for door in house.doors:
        tx.run(
            """
            insert into doors (id, facility_id, name_ja, name_en, device_id)
            values (:id, :house, :name_ja, :name_en, :device)
            """,
            id=made(house.slug, "door", door.code),
            house=house_id,
            name_ja=door.name_ja,
            name_en=door.name_en,
            device=door.device_id,
        )
    for space in house.spaces:
        tx.run(
            """
            insert into spaces (id, facility_id, code, name_ja, name_en, door_id)
            values (:id, :house, :code, :name_ja, :name_en, :door)
            """,
            id=made(house.slug, "space", space.code),
            house=house_id,
            code=space.code,
            name_ja=space.name_ja,
            name_en=space.name_en,
            door=made(house.slug, "door", space.door),
        )


def _sell(tx: Tx, house: HouseOf, house_id: UUID, plan: PlanOf) -> None:
    tx.run(
        """
        insert into plans (id, facility_id, code, name_ja, name_en, kind, unit, unit_price,
            deposit, members_only)
        values (:id, :house, :code, :name_ja, :name_en, :kind, :unit, :unit_price, :deposit,
            :members_only)
        """,
        id=made(house.slug, "plan", plan.code),
        house=house_id,
        code=plan.code,
        name_ja=plan.name_ja,
        name_en=plan.name_en,
        kind=plan.kind,
        unit=plan.unit,
        unit_price=plan.unit_price,
        deposit=plan.deposit,
        members_only=plan.members_only,
    )


def hire(person: PersonOf, houses: dict[str, UUID]) -> None:
    with transaction(None) as tx:
        if tx.scalar("select 1 from staff where lower(email) = :email", email=person.email):
            return
        person_id = made("staff", person.email)
        tx.run(
            "insert into staff (id, email, name, password_hash, locale)"
            " values (:id, :email, :name, :hash, :locale)",
            id=person_id,
            email=person.email,
            name=person.name,
            hash=PasswordHasher().hash(PASSWORD),
            locale=person.locale,
        )
        for slug, role in person.roles:
            tx.enter(THIS, id=houses[slug])
            tx.run(
                "insert into staff_roles (staff_id, facility_id, role) values (:p, :f, :role)",
                p=person_id,
                f=houses[slug],
                role=role,
            )


# Scenes ---------------------------------------------------------------------------------------


class Stage:
    """One house in which scenes are played."""

    def __init__(self, house: HouseOf, house_id: UUID, wanted: Config, now: datetime) -> None:
        self.house, self.id, self.config, self.now = house, house_id, wanted, now
        clerk = next(p for p in PEOPLE if house.slug in dict(p.roles))
        self.clerk = Actor("staff", made("staff", clerk.email), clerk.name)
        self.plans = {plan.code: plan for plan in house.plans}
        self.desk = Desk.of(house_id, providers(wanted), wanted.public_url)

    def play(self, scene: Scene) -> None:
        """From its booking to its end; nothing where it was played before or cannot be."""
        booked_at = scene.starts_at - scene.booked_before
        with self.beat(min(booked_at, self.now - 2 * MINUTE)) as tx:
            made_stay = self.book(tx, scene)
            if not isinstance(made_stay, Applied) or made_stay.subject is None:
                return
            stay_id = made_stay.subject
            _set_back(tx, "stays", stay_id)
        if scene.paid in ("card", "deposit_card"):
            paid_at = min(booked_at + 3 * MINUTE, self.now - MINUTE)
            with at(paid_at), log.request(log.new_request_id()):
                self.pay_by_card(scene, stay_id)
        END[scene.end](self, scene, stay_id)

    @contextmanager
    def beat(self, moment: datetime) -> Iterator[Tx]:
        """One transaction at `moment`, under a request id of its own. What it asks to be sent is
        dated then as well."""
        with at(moment), log.request(log.new_request_id()), transaction(self.id) as tx:
            yield tx
            for table in ("outbox", "refunds"):
                tx.run(
                    f"update {table} set created_at = :at where request_id = :id",
                    at=moment,
                    id=log.request_id(),
                )

    def book(self, tx: Tx, scene: Scene) -> Outcome:
        plan = self.plans[scene.plan]
        price = pricing.quote(plan.unit, plan.unit_price, scene.starts_at, scene.ends_at, ZONE)
        guest = scene.guest
        return bookings.create(
            tx,
            self.clerk if scene.source != "web" else Actor("guest", None, guest.name),
            bookings.NewStay(
                form_key=made(self.house.slug, scene.name),
                guest=guests.NewGuest(
                    guest.name,
                    guest.kana,
                    guest.email,
                    guest.phone,
                    locale=guest.locale,
                    phone_typed=_as_typed(guest.phone),
                ),
                space_id=made(self.house.slug, "space", scene.space),
                plan_id=made(self.house.slug, "plan", scene.plan),
                starts_at=scene.starts_at,
                ends_at=scene.ends_at,
                price=price,
                # Whoever books at the desk pays there.
                deposit_due=min(plan.deposit, price) if scene.source == "web" else 0,
                source=scene.source,
                note=scene.note,
            ),
        )

    def pay_by_card(self, scene: Scene, stay_id: UUID) -> None:
        """As the guest would on the stand-in's page. Without a stand-in nobody pays by card."""
        if self.config.stripe_api_base is None:
            return
        guest = Actor("guest", None, scene.guest.name)
        part: payments.Part = "deposit" if scene.paid == "deposit_card" else "balance"
        opened = payments.open_payment(self.desk, guest, stay_id, part)
        if not isinstance(opened, Applied) or opened.subject is None:
            return
        with transaction(self.id) as tx:
            _set_back(tx, "payments", opened.subject)
            intent = tx.scalar("select intent_id from payments where id = :id", id=opened.subject)
        _confirm(self.config, intent)
        payment_answers.resolve(self.desk, self.clerk, opened.subject)

    def stay_reserved(self, scene: Scene, stay_id: UUID) -> None:
        """Waits for its day."""

    def come(self, scene: Scene, stay_id: UUID) -> None:
        with self.beat(min(scene.starts_at + 12 * MINUTE, self.now)) as tx:
            self.pay_rest(tx, stay_id)
            stays.admit(tx, self.clerk, stay_id, _version(tx, stay_id))
        with self.beat(min(scene.starts_at + 150 * MINUTE, self.now)) as tx:
            self.twist(tx, scene, stay_id)

    def come_and_go(self, scene: Scene, stay_id: UUID) -> None:
        self.come(scene, stay_id)
        with self.beat(scene.starts_at + 13 * MINUTE) as tx:
            _lock_says(tx, stay_id, "set")
        with self.beat(scene.ends_at - 25 * MINUTE) as tx:
            stays.depart(tx, self.clerk, stay_id, _version(tx, stay_id))
        with self.beat(scene.ends_at - 24 * MINUTE) as tx:
            _lock_says(tx, stay_id, None)

    def cancel(self, scene: Scene, stay_id: UUID) -> None:
        with self.beat(self.now - timedelta(hours=20)) as tx:
            stays.cancel(tx, self.clerk, stay_id, _version(tx, stay_id))

    def stay_away(self, scene: Scene, stay_id: UUID) -> None:
        late = min(scene.ends_at, scene.starts_at + timedelta(hours=8))
        with self.beat(late) as tx:
            stays.mark_no_show(tx, self.clerk, stay_id, _version(tx, stay_id))

    def pay_rest(self, tx: Tx, stay_id: UUID) -> None:
        """In cash, whatever was not paid by card before."""
        due = tx.scalar(
            "select coalesce(sum(amount), 0) from ledger_lines where stay_id = :id", id=stay_id
        )
        if due > 0:
            cash.take(tx, self.clerk, stay_id, int(due), uuid4())

    def twist(self, tx: Tx, scene: Scene, stay_id: UUID) -> None:
        seen, day = _version(tx, stay_id), timedelta(days=1)
        price = self.plans[scene.plan].unit_price
        if scene.twist == "moved":
            other = made(self.house.slug, "space", "M06")
            stay_changes.move_to(tx, self.clerk, stay_id, seen, other)
        elif scene.twist:
            more = 1 if scene.twist == "extended" else -1
            stay_changes.change_times(
                tx, self.clerk, stay_id, seen, scene.starts_at, scene.ends_at + more * day,
                more * price,
            )  # fmt: skip
        if scene.twist == "extended":
            self.pay_rest(tx, stay_id)


END = {
    "reserved": Stage.stay_reserved,
    "in_house": Stage.come,
    "departed": Stage.come_and_go,
    "cancelled": Stage.cancel,
    "no_show": Stage.stay_away,
}


@contextmanager
def at(moment: datetime) -> Iterator[None]:
    """Inside, it is `moment`."""
    clock.set_source(lambda: moment)
    try:
        yield
    finally:
        clock.set_source(None)


def _version(tx: Tx, stay_id: UUID) -> int:
    stay = tx.get(Stay, stay_id)
    if stay is None:
        raise LookupError(stay_id)
    return stay.version


def _set_back(tx: Tx, table: str, row_id: UUID) -> None:
    tx.run(f"update {table} set created_at = :at where id = :id", at=clock.now(), id=row_id)


def _lock_says(tx: Tx, stay_id: UUID, status: str | None) -> None:
    """The controller's word, for keys that were set and gone before the worker ever ran."""
    found = tx.rows(
        "select id from entry_keys where stay_id = :stay and state not in ('revoked', 'failed')",
        stay=stay_id,
    )
    for key in found:
        keys.observe(tx, key.id, status=status)
        tx.run(
            "update lock_commands set created_at = :asked, done_at = :at, result = 'accepted'"
            " where key_id = :key and done_at is null",
            key=key.id,
            asked=clock.now() - MINUTE,
            at=clock.now(),
        )


def _as_typed(phone: str | None) -> str:
    if phone and phone.startswith("+81"):
        return "0" + phone[3:]
    return phone or ""


def _confirm(wanted: Config, intent_id: str) -> None:
    """The guest's card, put in at the stand-in. Never at a provider that is not one."""
    request = Request(  # noqa: S310 (the stand-in's own address)
        f"{wanted.stripe_api_base}/v1/payment_intents/{intent_id}/confirm",
        data=urlencode({"payment_method": "pm_card_visa"}).encode(),
        headers={"Authorization": f"Bearer {wanted.stripe_secret_key}"},
    )
    with build_opener(ProxyHandler({})).open(request, timeout=10) as answer:
        answer.read()
