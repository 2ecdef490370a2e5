"""What stands before an act. Each leaves a quiet house: nothing waits but what the act is about."""

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import date, time, timedelta
from typing import Any
from uuid import UUID, uuid4

import stripe as stripe_sdk

from portal import clock, inbox, seal
from portal.db import transaction
from portal.models import Plan
from portal.outcome import Applied, Refused
from portal.policies.cancellation import Step
from portal.policies.lodging_tax import Band
from portal.policies.membership_end import Reason
from portal.policies.opening import Stretch
from portal.policies.register import Entry
from portal.verbs import (
    blocklist,
    bookings,
    cancellation_policies,
    cash,
    day_close,
    documents,
    entrances,
    facilities,
    guests,
    kiosk,
    lodging_taxes,
    membership_plans,
    memberships,
    payments,
    refunds,
    registers,
    stay_changes,
    stay_plans,
    stays,
)
from portal.verbs.membership_end import Ending, end_membership
from sandbox.stripe.testing import client
from tests.cast import Booked
from tests.matrix import outside
from tests.matrix.stage import Given, Stage
from tests.outside import STRIPE_KEY, receive, work

PRICE = 6000
DEPOSIT = 2000
HOUR = timedelta(hours=1)
HANAKO = "Uhanako"
LONG_AGO = date(2002, 10, 1)
ABROAD = Entry("Emma Smith", "1 High St, Leeds", "emma@x.example", True, "UK", "AB1234567")
ENTRY = Entry("山田 花子", "東京都大田区1-1", "+819012345678", lives_abroad=False)
BANDS = (Band(1000, 9999, 100), Band(10_000, None, 200))
TERMS = membership_plans.Terms(
    "月会員", "Monthly", 9800, "month", "desk", None, "館内では静かに。", "Keep quiet.", "2026-11"
)
TERMS_LATER = replace(TERMS, price=12_000)

Scene = Callable[[Stage], Given]


# Stays ------------------------------------------------------------------------------------------


def reserved(stage: Stage, **more: Any) -> Booked:
    """A stay that begins now; its guest has been written to."""
    stay = stage.cast.book(**{"price": PRICE, **more})
    stage.work()
    return stay


def paid_in_cash(stage: Stage, **more: Any) -> Booked:
    stay = reserved(stage, **more)
    stage.do(cash.take, stay.id, PRICE, uuid4())
    return stay


def in_house(stage: Stage, **more: Any) -> Booked:
    """Admitted, with a code on the lock that the guest knows."""
    stay = stage.admit(paid_in_cash(stage, **more))
    stage.quiet()
    return stay


def a_reserved_stay(stage: Stage) -> Given:
    return stage.given(reserved(stage))


def a_stay_ready_to_admit(stage: Stage) -> Given:
    return stage.given(paid_in_cash(stage))


def a_guest_in_house(stage: Stage) -> Given:
    return stage.given(in_house(stage))


def a_booking_that_waits(stage: Stage) -> Given:
    """Its guest has been told until when the deposit has to come: before any reminder."""
    stage.do(facilities.hold_for_deposit, 2)
    begins = clock.now() + timedelta(days=2)
    stay = reserved(stage, starts_at=begins, deposit_due=DEPOSIT)
    return stage.given(stay, later=begins - HOUR, lifted=None)


def a_deposit_that_never_came(stage: Stage) -> Given:
    return _overdue(stage, a_booking_that_waits(stage))


def a_deposit_that_came_in_part(stage: Stage) -> Given:
    given = a_booking_that_waits(stage)
    stage.do(cash.take, given["stay"], DEPOSIT // 2, uuid4())
    return _overdue(stage, given)


def a_deposit_with_an_open_attempt(stage: Stage) -> Given:
    given = a_booking_that_waits(stage)
    stage.at_desk(payments.open_payment, given["stay"], "deposit")
    return _overdue(stage, given)


def a_deposit_paid_and_unheard(stage: Stage) -> Given:
    given = a_booking_that_waits(stage)
    said = stage.at_desk(payments.open_payment, given["stay"], "deposit")
    stage.pay(said.subject)
    return _overdue(stage, given)


def a_deposit_that_is_let_go(stage: Stage) -> Given:
    """The bank kept the amount ready, since somebody set manual capture at the provider, and keeps
    it no longer."""
    given = a_booking_that_waits(stage)
    said = stage.at_desk(payments.open_payment, given["stay"], "deposit")
    intent = stage.intent(said.subject)
    manual = {"capture_method": "manual"}
    client(stage.stripe.base, STRIPE_KEY).payment_intents.update(intent, manual)
    stage.pay(said.subject)
    stage.hear()
    stage.stripe.post(f"payment_intents/{intent}/expire")
    return given | {"payment": said.subject, "raw": stage.event("payment_intent.canceled").raw}


def _overdue(stage: Stage, given: Given) -> Given:
    stage.owner.run("update stays set deposit_by = now() - interval '1 minute'")
    return given


def a_new_stay(stage: Stage) -> Given:
    """The form of a stay that nobody has sent yet."""
    begins = clock.now().replace(microsecond=0)
    return {
        "facility": stage.cast.tokyo.id,
        "actor": stage.cast.sato.actor,
        "wanted": bookings.NewStay(
            form_key=uuid4(),
            guest=guests.NewGuest(**stage.cast.hanako),
            space_id=stage.cast.tokyo.spaces["A01"],
            plan_id=None,
            starts_at=begins,
            ends_at=begins + 19 * HOUR,
            price=PRICE,
        ),
    }


def a_new_stay_with_lodging_tax(stage: Stage) -> Given:
    """The same form in a house that has a table, for a plan that is lodging."""
    stage.do(lodging_taxes.write_table, LONG_AGO, BANDS, uuid4())
    given = a_new_stay(stage)
    return given | {"wanted": replace(given["wanted"], plan_id=lodging(stage))}


def lodging(stage: Stage) -> UUID:
    """A plan that is lodging."""
    house = stage.cast.tokyo.id
    with stage.cast.transaction(house) as tx:
        return tx.add(
            Plan,
            facility_id=house,
            code="night",
            name_ja="宿泊",
            name_en="Overnight",
            kind="lodging",
            unit="night",
            unit_price=PRICE,
        )


def a_lodging_stay(stage: Stage, price: int = 0) -> Given:
    """Its guest is to fill in the register."""
    stay = stage.cast.book(price=price, plan=None)
    with stage.cast.transaction(stage.cast.tokyo.id) as tx:
        tx.run("update stays set plan_id = :plan where id = :id", plan=lodging(stage), id=stay.id)
    stage.work()
    return stage.given(stay)


def more_persons(stage: Stage) -> Given:
    """Two more come, whom the town taxes."""
    stage.do(lodging_taxes.write_table, LONG_AGO, BANDS, uuid4())
    return a_lodging_stay(stage, PRICE) | {"persons": 3}


def fewer_persons(stage: Stage) -> Given:
    """Two are registered, and one of them does not come."""
    given = more_persons(stage)
    stage.do(stay_changes.change_persons, given["stay"], given["seen"], 2)
    for person in (1, 2):
        stage.do(registers.fill, given["stay"], ENTRY, person)
    return given | {"seen": given["seen"] + 1, "persons": 1}


def a_listed_guest_of_lodging(stage: Stage) -> Given:
    """On the blocklist without a ground of the law: let in, and staff are told."""
    given = a_lodging_stay(stage)
    name = stage.cast.hanako["name"]
    stage.do(blocklist.add, blocklist.NewEntry(form_key=uuid4(), ground="暴れた", name=name))
    return given


def a_register(stage: Stage) -> Given:
    given = a_lodging_stay(stage)
    stage.do(registers.fill, given["stay"], ENTRY)
    return given


def an_old_register(stage: Stage) -> Given:
    """Of a guest who left more than three years ago."""
    given = a_register(stage)
    stage.owner.run("update guest_registers set filled_at = now() - interval '4 years'")
    stage.owner.run(
        "update stays set starts_at = starts_at - interval '4 years',"
        " ends_at = ends_at - interval '4 years'"
    )
    return given


def a_new_stay_of_a_member(stage: Stage) -> Given:
    """The same form with the member chosen, who is then the guest."""
    membership, plan = a_member(stage), stage.cast.for_members()
    given = a_new_stay(stage)
    wanted = replace(
        given["wanted"],
        guest=None,
        membership_id=membership,
        plan_id=stage.cast.tokyo.plans[plan],
        price=0,
    )
    return given | {"wanted": wanted}


def a_member_at_the_door(stage: Stage) -> Given:
    """With a stay that only the membership gives."""
    joined = stage.cast.join()
    stay = stage.cast.book(member=joined, plan=stage.cast.for_members(), price=0)
    stage.work()
    return stage.given(stay)


def a_house_of_managers(stage: Stage) -> Given:
    house = {"facility": stage.cast.tokyo.id, "actor": stage.cast.suzuki.actor}
    return house | {"wish": True, "hours": 48}


def a_new_entrance(stage: Stage) -> Given:
    """The form of an entrance that nobody has sent yet."""
    tokyo = stage.cast.tokyo
    terms = entrances.Terms(
        "正面玄関",
        "Front",
        "walk_in",
        (Stretch(time(6), time(2)),) * 7,
        3,
        frozenset(tokyo.plans.values()),
        frozenset({tokyo.doors["A01"]}),
    )
    return {
        "facility": tokyo.id,
        "actor": stage.cast.suzuki.actor,
        "wanted": entrances.NewEntrance(uuid4(), "front", terms),
    }


def an_entrance(stage: Stage) -> Given:
    """Open, and a form that changes it."""
    given = a_new_entrance(stage)
    made = stage.do(entrances.create, given["wanted"])
    later = replace(given["wanted"].terms, capacity=5, doors=frozenset())
    return given | {"entrance": made.subject, "seen": 1, "later": later}


TABLET = "a-token-of-a-tablet"


def a_tablet(stage: Stage) -> Given:
    """At an entrance of a space, and a form of somebody who comes without a reservation."""
    given = an_entrance(stage)
    with stage.cast.transaction(given["facility"]) as tx:
        plan = tx.add(
            Plan,
            facility_id=given["facility"],
            code="nap",
            name_ja="仮眠",
            name_en="Nap",
            kind="day_use",
            unit="hour",
            unit_price=900,
        )
    wanted = kiosk.WalkIn(uuid4(), guests.NewGuest(**stage.cast.hanako), plan, 2)
    open_always = replace(given["wanted"].terms, week=None, plans=frozenset({plan}))
    stage.do(entrances.change, given["entrance"], 1, open_always)
    return given | {"token": TABLET, "walk_in": wanted}


def a_stay_at_a_tablet(stage: Stage) -> Given:
    """A reservation, and what its guest types."""
    given = a_tablet(stage)
    stay = reserved(stage)
    code = stage.owner.one("select code from stays where id = %s", stay.id)
    return given | {"stay": stay.id, "code": code, "proof": "5678"}


def a_session(stage: Stage) -> Given:
    given = a_stay_at_a_tablet(stage)
    stage.do(kiosk.open_by_code, given["entrance"], TABLET, given["code"], "5678")
    return given | {"session": stage.owner.one("select id from kiosk_sessions")}


def a_walk_in_left_unpaid(stage: Stage) -> Given:
    given = a_tablet(stage)
    made = stage.do(kiosk.walk_in, given["entrance"], TABLET, given["walk_in"])
    stage.work()
    stage.owner.run("update kiosk_sessions set expires_at = now() - interval '11 minutes'")
    return given | {"stay": made.subject}


def a_new_entry(stage: Stage) -> Given:
    """The form of somebody who is not to be let in, with a ground of the law."""
    ground = stage.do(blocklist.add_ground, "ryokan-5-1-2", "違法行為のおそれ", "Unlawful acts")
    return {
        "facility": stage.cast.tokyo.id,
        "actor": stage.cast.suzuki.actor,
        "wanted": blocklist.NewEntry(
            form_key=uuid4(),
            ground="備品を壊した",
            name="山田 花子",
            phone="+819012345678",
            refusal_ground_id=ground.subject,
        ),
        "ground": ground.subject,
        "new_ground": ("ordinance-4", "条例による事由", "A ground of the ordinance"),
    }


def an_entry(stage: Stage) -> Given:
    given = a_new_entry(stage)
    made = stage.do(blocklist.add, given["wanted"])
    return given | {"entry": made.subject, "seen": 1, "why": "人違い"}


def a_reserved_stay_paid_by_card(stage: Stage) -> Given:
    stay, payment = paid_by_card(stage)
    return stage.given(stay, payment=payment)


def a_policy(stage: Stage) -> Given:
    """Chosen for nothing yet; the forms that make another one, change it, and choose it."""
    cast = stage.cast
    cast.for_members()
    terms = cancellation_policies.Terms("直前", "Late", [Step(3, 100, False)])
    return {
        "facility": cast.tokyo.id,
        "actor": cast.suzuki.actor,
        "policy": cast.policy(),
        "plan": cast.tokyo.plans["members-0"],
        "seen": 1,
        "nothing": None,
        "terms": terms,
        "wanted": cancellation_policies.NewPolicy(uuid4(), terms),
    }


def a_plan_of_stays(stage: Stage) -> Given:
    """On sale, and the forms that make another one and that change it."""
    cast = stage.cast
    terms = stay_plans.Terms("個室", "Room", "lodging", "night", 8000, 0, "standard", False)
    made = stage.do(stay_plans.create, stay_plans.NewPlan(uuid4(), "room", terms))
    return {
        "facility": cast.tokyo.id,
        "actor": cast.suzuki.actor,
        "plan": made.subject,
        "seen": 1,
        "terms": replace(terms, unit_price=9000, tax_class="reduced"),
        "wanted": stay_plans.NewPlan(uuid4(), "suite", terms),
    }


def a_plan_withdrawn(stage: Stage) -> Given:
    given = a_plan_of_stays(stage)
    stage.do(stay_plans.withdraw, given["plan"], 1)
    return given | {"seen": 2}


def a_guest_who_cannot_come(stage: Stage) -> Given:
    """Paid by card, for a stay of tomorrow of which half is kept."""
    code = stage.cast.for_members()
    stage.cast.policy((48, 50, False), plan=code)
    joined = stage.cast.join()
    begins = clock.now() + 24 * HOUR
    stay, payment = paid_by_card(stage, starts_at=begins, plan=code, member=joined)
    return stage.given(stay, payment=payment, fee=PRICE // 2)


def a_visit(stage: Stage) -> Given:
    """Booked for tomorrow by a member of two visits a month, and the form that moves it to another
    month."""
    cast = stage.cast
    joined = cast.join(cast.offer("twice", "月二回", "Twice a month", quota=2))
    begins = clock.now() + 24 * HOUR
    stay = reserved(stage, member=joined, plan=cast.for_members(), price=0, starts_at=begins)
    later = begins + 60 * 24 * HOUR
    return stage.given(stay, starts=later, ends=later + HOUR, change=0)


def a_new_visit(stage: Stage) -> Given:
    """The last of the month; a colleague's form, for another space, finds none left."""
    given = a_new_stay_of_a_member(stage)
    stage.owner.run("update memberships set monthly_quota = 1")
    return given | {"other": stage.cast.tokyo.spaces["A02"]}


def a_receipt(stage: Stage) -> Given:
    stay = paid_in_cash(stage)
    made = stage.do(documents.issue, documents.Folio(stay_id=stay.id), HANAKO, uuid4())
    return stage.given(stay, document=made.subject)


def a_no_show(stage: Stage) -> Given:
    stay = reserved(stage)
    stage.do(stays.mark_no_show, stay.id, 1)
    return stage.given(stay)


def another_space(scene: Scene) -> Scene:
    return lambda stage: scene(stage) | {"space": stage.cast.tokyo.spaces["A02"]}


def other_times(scene: Scene, *, longer: timedelta, price_change: int) -> Scene:
    """The form that asks for a later end, or an earlier one."""

    def with_times(stage: Stage) -> Given:
        given = scene(stage)
        starts, ends = stage.owner.row(
            "select starts_at, ends_at from stays where id = %s", given["stay"]
        )
        return given | {"starts": starts, "ends": ends + longer, "change": price_change}

    return with_times


def with_a_form(scene: Scene, **more: Any) -> Scene:
    """A form that makes something: its key makes a double press one."""
    return lambda stage: scene(stage) | {"form": uuid4(), **more}


def a_guest_paid_and_cancelled(stage: Stage) -> Given:
    """The house owes cash."""
    stay = paid_in_cash(stage)
    stage.do(stays.cancel, stay.id, 1)
    stage.work()
    return stage.given(stay)


def a_drawer_to_count(stage: Stage) -> Given:
    """What somebody has counted beside the page of it."""
    paid_in_cash(stage)
    count = day_close.Count(
        form_key=uuid4(),
        day=clock.local_day(clock.now(), stage.cast.tokyo.zone),
        opening=20_000,
        counted=20_000 + PRICE,
        taken=PRICE,
        cash_moved=PRICE,
        left_open=0,
        reason="",
    )
    stage.work()
    return a_house_of_managers(stage) | {"count": count}


def a_guest(stage: Stage) -> Given:
    given = a_reserved_stay(stage)
    return given | {"guest": stage.owner.one("select id from guests"), "locale": "en"}


# Card payments ----------------------------------------------------------------------------------


def opened(stage: Stage, **more: Any) -> tuple[Booked, UUID]:
    stay = reserved(stage, **more)
    return stay, stage.opened(stay)


def paid_by_card(stage: Stage, **more: Any) -> tuple[Booked, UUID]:
    stay, payment = opened(stage, **more)
    stage.pay(payment)
    stage.hear()
    return stay, payment


def an_open_payment(stage: Stage) -> Given:
    stay, payment = opened(stage)
    return stage.given(stay, payment=payment)


def an_open_payment_of_the_old_price(stage: Stage) -> Given:
    given = an_open_payment(stage)
    stage.do(cash.take, given["stay"], 1000, uuid4())
    return given


def a_payment_whose_answer_was_lost(stage: Stage) -> Given:
    """The intent is there; we do not know."""
    stay = reserved(stage)
    stage.stripe.fault("do_then_drop", "^/v1/payment_intents$")
    said = stage.at_desk(payments.open_payment, stay.id, "balance")
    assert isinstance(said, Refused), said
    return stage.given(stay, payment=stage.owner.one("select id from payments"))


def a_payment_that_never_arrived(stage: Stage) -> Given:
    """No intent is there; long enough ago to be sure."""
    stay = reserved(stage)
    stage.stripe.fault("refuse", "^/v1/payment_intents$")
    stage.at_desk(payments.open_payment, stay.id, "balance")
    outside.pass_time(stage.owner)
    return stage.given(stay, payment=stage.owner.one("select id from payments"))


def paid_and_unheard(stage: Stage) -> Given:
    stay, payment = opened(stage)
    stage.pay(payment)
    raw = stage.event("payment_intent.succeeded").raw
    return stage.given(stay, payment=payment, raw=raw)


def paid_and_due_for_reading(stage: Stage) -> Given:
    given = paid_and_unheard(stage)
    stage.owner.run("update payments set next_read_at = now()")
    return given


def cancelled_with_an_open_payment(stage: Stage) -> Given:
    stay, payment = opened(stage)
    stage.do(stays.cancel, stay.id, 1)
    stage.owner.run("update payments set next_read_at = now()")
    return stage.given(stay, payment=payment)


def paid_twice(stage: Stage) -> Given:
    """By card, and in cash before we hear of it: the card's money goes back."""
    given = paid_and_unheard(stage)
    stage.do(cash.take, given["stay"], PRICE, uuid4())
    return given


def paid_and_cancelled_in_between(stage: Stage) -> Given:
    given = paid_and_unheard(stage)
    stage.do(stays.cancel, given["stay"], 1)
    return given


def paid_something_else(stage: Stage) -> Given:
    """The provider tells of another amount than ours."""
    given = paid_and_unheard(stage)
    told = json.loads(given["raw"])
    told["data"]["object"] |= {"amount": PRICE + 1, "amount_received": PRICE + 1}
    return given | {"raw": json.dumps({**told, "id": "evt_another_amount"}).encode()}


def an_event_that_nobody_can_read(stage: Stage) -> Given:
    given = paid_and_unheard(stage)
    told = json.loads(given["raw"])
    del told["data"]["object"]["status"]
    return given | {"raw": json.dumps({**told, "id": "evt_unreadable"}).encode()}


def tried_with(card: str, kind: str, outcome: str = "") -> Scene:
    """A card is tried, and we hear of its event of this kind."""

    def scene(stage: Stage) -> Given:
        stay, payment = opened(stage)
        with suppress(stripe_sdk.CardError):
            stage.pay(payment, card)
        if outcome:
            receive(stage.event("payment_intent.processing"))
            stage.work()
            stage.stripe.post(f"payment_intents/{stage.intent(payment)}/finish", outcome=outcome)
        return stage.given(stay, payment=payment, raw=stage.event(kind).raw)

    return scene


def cancelled_at_the_provider(stage: Stage) -> Given:
    stay, payment = opened(stage)
    client(stage.stripe.base, STRIPE_KEY).payment_intents.cancel(stage.intent(payment))
    return stage.given(stay, payment=payment, raw=stage.event("payment_intent.canceled").raw)


# Refunds ----------------------------------------------------------------------------------------


def an_owed_refund(stage: Stage) -> Given:
    """A stay paid by card is cancelled; nothing is sent yet."""
    stay, payment = paid_by_card(stage)
    version = stage.owner.one("select version from stays where id = %s", stay.id)
    stage.do(stays.cancel, stay.id, version)
    return _of_refund(stage, stay, payment)


def a_refund_whose_answer_was_lost(stage: Stage) -> Given:
    stay, payment = paid_by_card(stage)
    stage.stripe.fault("do_then_drop", "^/v1/refunds$")
    stage.at_desk(refunds.ask, payment, PRICE, uuid4())
    stage.owner.run("update refunds set next_attempt_at = now()")
    return _of_refund(stage, stay, payment)


def a_refund_that_failed(stage: Stage) -> Given:
    stay, payment = refunded(stage)
    code = stage.owner.one("select provider_refund_id from refunds")
    stage.stripe.post(f"refunds/{code}", status="failed")
    stage.hear()
    return _of_refund(stage, stay, payment)


def refunded(stage: Stage) -> tuple[Booked, UUID]:
    stay, payment = paid_by_card(stage)
    stage.at_desk(refunds.ask, payment, PRICE, uuid4())
    stage.hear()
    return stay, payment


def a_refund_that_fails_later(stage: Stage) -> Given:
    """The bank sends it back; we have not heard of that."""
    stay, payment = refunded(stage)
    code = stage.owner.one("select provider_refund_id from refunds")
    stage.stripe.post(f"refunds/{code}", status="failed")
    return _of_refund(stage, stay, payment) | {"raw": stage.event("refund.failed").raw}


def a_refund_of_the_dashboard(kind: str) -> Scene:
    def scene(stage: Stage) -> Given:
        stay, payment = paid_by_card(stage)
        stage.stripe.post("refunds", payment_intent=stage.intent(payment), amount=2000)
        return stage.given(stay, payment=payment, raw=stage.event(kind).raw)

    return scene


def refunds_due_for_reading(stage: Stage) -> Given:
    given = a_refund_of_the_dashboard("charge.refunded")(stage)
    stage.owner.run("update payments set next_read_at = now()")
    return given


def disputed(stage: Stage, status: str = "") -> Given:
    """A bank has taken a payment back, and has decided where `status` says how: of the last of it
    we have not heard."""
    stay, payment = paid_by_card(stage)
    dispute = stage.stripe.post("disputes", payment_intent=stage.intent(payment))
    kind = "charge.dispute.created"
    if status:
        stage.hear()
        stage.stripe.post(f"disputes/{dispute['id']}/close", status=status)
        kind = "charge.dispute.closed"
    return stage.given(stay, payment=payment, raw=stage.event(kind).raw)


def _of_refund(stage: Stage, stay: Booked, payment: UUID) -> Given:
    return stage.given(
        stay, payment=payment, refund=stage.owner.one("select id from refunds limit 1")
    )


# Events, received before and left --------------------------------------------------------------


def a_dead_letter(stage: Stage) -> Given:
    """An event did not agree with our books, which have been put right since."""
    given = paid_and_unheard(stage)
    stage.owner.run("update payments set amount = amount + 1")
    receive(stage.event("payment_intent.succeeded"))
    work(stage.house, "inbox")
    stage.owner.run("update payments set amount = amount - 1")
    return given | {"letter": stage.owner.one("select id from dead_letters")}


def an_old_event(stage: Stage) -> Given:
    """Completed 31 days ago; the provider does not list it any more."""
    given = a_reserved_stay(stage)
    with transaction(None) as tx:
        inbox.receive(
            tx, "stripe", event_id="evt_old", kind="customer.created", created=clock.now(),
            payload=b"{}", headers={},
        )  # fmt: skip
    work(stage.house, "inbox")
    stage.owner.run("update webhook_events set completed_at = now() - interval '31 days'")
    return given


# Keys and locks ---------------------------------------------------------------------------------


def a_key_to_set(stage: Stage) -> Given:
    return stage.given(stage.admit(paid_in_cash(stage)))


def a_key_that_the_lock_has(stage: Stage) -> Given:
    """It is set; we have not asked."""
    given = a_key_to_set(stage)
    work(stage.house, "locks")
    return _look_at_keys(stage, given)


def a_key_to_change(stage: Stage) -> Given:
    given = a_guest_in_house(stage)
    starts, ends = stage.owner.row("select starts_at, ends_at from stays")
    stage.do(stay_changes.change_times, given["stay"], given["seen"], starts, ends + 2 * HOUR, 0)
    return given


def a_key_to_remove(stage: Stage) -> Given:
    given = a_guest_in_house(stage)
    stage.do(stays.depart, given["stay"], given["seen"])
    return given


def a_key_whose_digits_the_lock_has_already(stage: Stage) -> Given:
    given = a_key_to_set(stage)
    stage.house.providers.locks.create_code(
        device_id="haneda-capsule-a01",
        name="Housekeeping",
        pin=seal.unseal(stage.owner.one("select pin_sealed from entry_keys")),
        starts_at=clock.now(),
        ends_at=clock.now() + 48 * HOUR,
    )
    return given


def a_key_that_the_lock_refused(stage: Stage) -> Given:
    """It took the code, and then said that it has it already."""
    stage.seam.control("refuse_codes", {"error_code": "duplicate_code_on_device"})
    return a_key_that_the_lock_has(stage)


def a_key_that_vanished(stage: Stage) -> Given:
    given = a_guest_in_house(stage)
    stage.seam.control(f"codes/{code_of(stage)}/remove", {"gone": True})
    return _look_at_keys(stage, given)


def a_removal_that_was_not_carried_out(stage: Stage) -> Given:
    """The controller took the order, and the code is still there."""
    stage.seam.control("hold", {"stage": "removing"})
    given = a_key_to_remove(stage)
    work(stage.house, "locks")
    stage.seam.control(f"codes/{code_of(stage)}/remove", {"gone": False})
    stage.seam.control("hold", {"stage": "removing", "held": False})
    return _look_at_keys(stage, given)


def a_lock_command_given_up(stage: Stage) -> Given:
    given = a_key_to_set(stage)
    stage.owner.run("update lock_commands set dead_at = now()")
    return given | {"command": stage.owner.one("select id from lock_commands")}


def a_door(stage: Stage) -> Given:
    return a_guest_in_house(stage) | {"door": stage.cast.tokyo.doors["A01"]}


def the_lock_tells(scene: Scene) -> Scene:
    def with_event(stage: Stage) -> Given:
        given = scene(stage)
        return given | {"code": stage.owner.one("select provider_code_id from entry_keys")}

    return with_event


def code_of(stage: Stage) -> str:
    return str(stage.owner.one("select provider_code_id from entry_keys"))


def _look_at_keys(stage: Stage, given: Given) -> Given:
    stage.locks_rest()
    stage.owner.run("update entry_keys set next_poll_at = now()")
    return given


# Words ------------------------------------------------------------------------------------------


def a_mail_to_send(stage: Stage) -> Given:
    return stage.given(stage.cast.book(price=PRICE))


def mails_to_send(stage: Stage) -> Given:
    """Three of one batch."""
    stage.cast.book(price=PRICE, space="A02")
    stay = stage.cast.book(price=PRICE)
    stage.do(cash.take, stay.id, PRICE, uuid4())
    stage.admit(stay)
    work(stage.house, "locks")
    stage.locks_rest()
    stage.owner.run("update entry_keys set next_poll_at = now()")
    work(stage.house, "keys")
    return stage.given(stay)


def a_push_to_send(stage: Stage) -> Given:
    guest = {**stage.cast.hanako, "line_user_id": HANAKO}
    return stage.given(stage.cast.book(price=PRICE, guest=guest))


def a_push_to_somebody_who_blocked_us(stage: Stage) -> Given:
    stage.line.control("block", {"user": HANAKO})
    return a_push_to_send(stage)


def a_message_given_up(stage: Stage) -> Given:
    given = a_mail_to_send(stage)
    stage.owner.run("update outbox set dead_at = now()")
    return given | {"message": stage.owner.one("select id from outbox")}


# Memberships ------------------------------------------------------------------------------------


def an_application_form(stage: Stage) -> Given:
    """The last page before an application, not sent yet."""
    form = memberships.Application(
        form_key=uuid4(),
        plan_id=stage.cast.monthly,
        seen=1,
        guest=guests.NewGuest(**stage.cast.hanako),
        confirmation={"price": "￥9,800"},
    )
    house, actor = stage.cast.tokyo.id, stage.cast.sato.actor
    return {"facility": house, "actor": actor, "wanted": form, "form": form.form_key}


def of_a_membership(stage: Stage, membership: UUID, **more: Any) -> Given:
    return {
        "facility": stage.cast.tokyo.id,
        "actor": stage.cast.sato.actor,
        "membership": membership,
        "seen": stage.owner.one("select version from memberships where id = %s", membership),
        **more,
    }


def an_application(stage: Stage) -> Given:
    joined = stage.cast.apply()
    stage.work()
    return of_a_membership(stage, joined.id)


def a_member(stage: Stage) -> UUID:
    joined = stage.cast.join()
    stage.work()
    return joined.id


def end(stage: Stage, membership: UUID, reason: Reason) -> None:
    said = stage.at_desk(end_membership, membership, Ending(reason))
    assert isinstance(said, Applied), said


def a_membership_that_will_end(stage: Stage) -> Given:
    membership = a_member(stage)
    end(stage, membership, "self_cancel")
    stage.work()
    return of_a_membership(stage, membership)


def a_member_with_a_booking(stage: Stage) -> Given:
    joined = stage.cast.join()
    stage.cast.book(member=joined, price=0, starts_at=clock.now() + timedelta(days=90))
    stage.work()
    return of_a_membership(stage, joined.id)


def a_member_in_house(stage: Stage) -> Given:
    """With a code on the lock that only the membership gave."""
    joined = stage.cast.join()
    stay = stage.cast.book(member=joined, price=0)
    stage.work()
    stage.admit(stay)
    stage.quiet()
    return of_a_membership(stage, joined.id)


def a_membership_past_its_end(stage: Stage) -> Given:
    given = a_membership_that_will_end(stage)
    stage.owner.run("update memberships set ends_at = now() - interval '1 second'")
    return given


def a_plan_form(stage: Stage) -> Given:
    """Filled in, not sent yet."""
    form = membership_plans.NewPlan(uuid4(), "monthly", TERMS)
    house, actor = stage.cast.tokyo.id, stage.cast.sato.actor
    return {"facility": house, "actor": actor, "wanted": form, "form": form.form_key}


def a_plan(stage: Stage) -> Given:
    """Made as a manager makes it, so that its records begin with it."""
    form = membership_plans.NewPlan(uuid4(), "monthly", TERMS)
    plan = stage.do(membership_plans.create, form).subject
    house, actor = stage.cast.tokyo.id, stage.cast.sato.actor
    return {"facility": house, "actor": actor, "plan": plan, "seen": 1, "wanted": TERMS_LATER}


def a_plan_with_a_member(stage: Stage) -> Given:
    given = a_plan(stage)
    stage.cast.join(given["plan"])
    stage.work()
    return given


def a_plan_that_was_retired(stage: Stage) -> Given:
    """Nobody has looked yet at its member, who could not be ended before."""
    given = a_plan(stage)
    refused = stage.cast.join(given["plan"], {**stage.cast.hanako, "email": "three@guest.example"})
    stage.work()
    stage.do(membership_plans.retire, given["plan"], 1)
    stage.owner.run(
        "update memberships set end_tries = 1, end_refusal = 'BILLING_UNAVAILABLE',"
        " next_look_at = now() - interval '1 minute' where id = %s",  # each run in one order
        refused.id,
    )
    return given


def an_end_to_prove(stage: Stage) -> Given:
    """Ended and told; nobody has looked yet whether all that follows is so."""
    membership = a_member(stage)
    end(stage, membership, "force_cancel")
    stage.work()
    stage.owner.run(
        "update end_obligations set proven_at = null, proof = null, next_look_at = now()"
    )
    return of_a_membership(stage, membership)
