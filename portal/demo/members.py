"""Who has joined the two houses: one of each kind, told once through the verbs."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from portal.db import Actor, Tx
from portal.demo.houses import HANEDA, UMEDA, made
from portal.outcome import Applied
from portal.verbs import bookings, memberships, stays
from portal.verbs.desk import Desk
from portal.verbs.guests import NewGuest
from portal.verbs.membership_end import Ending, end_membership

TERMS_JA = "会員証の貸与はできません。館内では静かにお過ごしください。"
TERMS_EN = "A membership is for one person. Please keep the house quiet."


@dataclass(frozen=True, slots=True)
class JoinOf:
    """What can be joined. `price` in yen, for a month or a year."""

    code: str
    name_ja: str
    name_en: str
    price: int
    billed_every: str = "month"
    monthly_quota: int | None = None
    billing: str = "desk"


@dataclass(frozen=True, slots=True)
class MemberOf:
    """`end`: what became of the application, as the state that it is in."""

    name: str
    kana: str
    email: str
    locale: str
    plan: str
    end: str
    days_ago: int


PLANS = {
    HANEDA.slug: (
        JoinOf("traveller", "旅の会員", "Traveller", 3300, monthly_quota=4),
        JoinOf("traveller-year", "旅の会員（年）", "Traveller, by the year", 33_000, "year"),
        JoinOf("card", "カード会員", "Member by card", 4980, billing="card"),
        JoinOf("card-plus", "カード会員プラス", "Member by card, plus", 7980, billing="card"),
    ),
    UMEDA.slug: (JoinOf("desk", "デスク会員", "Desk member", 9800),),
}

MEMBERS = {
    HANEDA.slug: (
        MemberOf(
            "小林 直樹", "コバヤシ ナオキ", "naoki@guest.example", "ja", "traveller", "applying", 1
        ),
        MemberOf("平野 蓮", "ヒラノ レン", "ren@guest.example", "ja", "card", "applying", 0),
        MemberOf("Noah Brown", "", "noah@guest.example", "en", "card", "checkout", 0),
        MemberOf("Grace Lee", "", "grace@guest.example", "en", "traveller", "active", 40),
        MemberOf("森 美咲", "モリ ミサキ", "misaki@guest.example", "ja", "traveller", "ending", 70),
        MemberOf(
            "岡田 修", "オカダ オサム", "osamu@guest.example", "ja", "traveller-year", "ended", 90
        ),
    ),
    UMEDA.slug: (
        MemberOf("西村 航", "ニシムラ ワタル", "wataru@guest.example", "ja", "desk", "applying", 0),
        MemberOf("石川 遥", "イシカワ ハルカ", "haruka@guest.example", "ja", "desk", "active", 25),
    ),
}

Beat = Callable[[datetime], AbstractContextManager[Tx]]


def join(slug: str, desk: Desk, clerk: Actor, now: datetime, beat: Beat) -> None:
    """`beat` is one transaction of the house, at a moment of its past."""
    with beat(now) as tx:
        for plan in PLANS[slug]:
            _offer(tx, slug, desk.facility_id, plan)
    for member in MEMBERS[slug]:
        applied = now - timedelta(days=member.days_ago, minutes=30)
        with beat(applied) as tx:
            made_of = memberships.apply(tx, Actor("guest", None, member.name), _form(slug, member))
        if isinstance(made_of, Applied) and made_of.subject is not None:
            _live(member, made_of.subject, desk, clerk, beat, applied)
            if member.end == "active" and slug == HANEDA.slug:
                with beat(now) as tx:
                    _visit(tx, clerk, member, made_of.subject, now)


def _offer(tx: Tx, slug: str, house_id: UUID, plan: JoinOf) -> None:
    tx.run(
        """
        insert into membership_plans (id, facility_id, code, name_ja, name_en, price, billed_every,
            billing, monthly_quota, terms_ja, terms_en, terms_version)
        values (:id, :house, :code, :ja, :en, :price, :every, :billing, :quota, :terms_ja,
            :terms_en, '2026-11')
        on conflict do nothing
        """,
        id=made(slug, "membership", plan.code),
        house=house_id,
        code=plan.code,
        ja=plan.name_ja,
        en=plan.name_en,
        price=plan.price,
        every=plan.billed_every,
        quota=plan.monthly_quota,
        billing=plan.billing,
        terms_ja=TERMS_JA,
        terms_en=TERMS_EN,
    )


def _visit(tx: Tx, clerk: Actor, member: MemberOf, membership: UUID, now: datetime) -> None:
    """Three visits booked ahead, of which one was cancelled in time and has come back."""
    for days in (3, 5, 33):
        begins = (now + timedelta(days=days)).replace(hour=3, minute=0, second=0, microsecond=0)
        booked = bookings.create(
            tx,
            clerk,
            bookings.NewStay(
                form_key=made(HANEDA.slug, "visit", member.email, str(days)),
                guest=None,
                membership_id=membership,
                space_id=made(HANEDA.slug, "space", "L01"),
                plan_id=made(HANEDA.slug, "plan", "member-booth"),
                starts_at=begins,
                ends_at=begins + timedelta(hours=2),
                price=0,
            ),
        )
        if days == 5 and isinstance(booked, Applied) and booked.subject is not None:
            stays.cancel(tx, clerk, booked.subject, 1)


def _form(slug: str, member: MemberOf) -> memberships.Application:
    plan = next(plan for plan in PLANS[slug] if plan.code == member.plan)
    japanese = member.locale == "ja"
    promises = [
        ["プラン" if japanese else "Plan", plan.name_ja if japanese else plan.name_en],
        ["規約の版" if japanese else "Terms", "2026-11"],
    ]
    return memberships.Application(
        form_key=made(slug, "joins", member.email),
        plan_id=made(slug, "membership", member.plan),
        seen=1,
        guest=NewGuest(member.name, member.kana, member.email, locale=member.locale),
        confirmation={"language": member.locale, "promises": promises},
    )


def _live(
    member: MemberOf, membership: UUID, desk: Desk, clerk: Actor, beat: Beat, applied: datetime
) -> None:
    with beat(applied) as tx:
        tx.run("update memberships set created_at = :at where id = :id", at=applied, id=membership)
    if member.end == "applying":
        return
    memberships.approve(desk, clerk, membership, 1)
    with beat(applied + timedelta(minutes=10)) as tx:
        tx.run(
            "update memberships set started_at = :at where id = :id and started_at is not null",
            at=applied + timedelta(minutes=10),
            id=membership,
        )
    if member.end in ("ending", "ended"):
        reason = (
            Ending("self_cancel")
            if member.end == "ending"
            else Ending("force_cancel", note="本人からの電話")
        )
        end_membership(desk, clerk, membership, reason)
