"""The forms of a stay: what a person types, and what it means on the house's clocks."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta
from typing import Any
from uuid import UUID, uuid4

from flask_babel import gettext
from werkzeug.datastructures import MultiDict
from wtforms import ValidationError

from portal import clock, wording
from portal.db import Row
from portal.lazy import _l, _lp
from portal.models.stay import MOST_PERSONS
from portal.money import LARGEST
from portal.policies import pricing, stay_codes
from portal.verbs.bookings import NewStay
from portal.verbs.guests import NewGuest
from portal.web import forms, people, words
from portal.web.locale import language, money, plain_name
from portal.web.people import House

# A browser counts UTF-16 units, of which a character may have two: it must not cut what we take.
NOTE_UNITS = {"maxlength": 2 * forms.LONGEST_NOTE}
SHORT_STAY = timedelta(hours=3)
ASKED = (
    "plan_id",
    "space_id",
    "arrive_day",
    "arrive_time",
    "leave_day",
    "leave_time",
    "source",
    "member",
    "membership_id",
)
"""What an address may ask the empty form to hold; nothing that is written of a person is among it.
"""


class WhenForm(forms.Form):
    """Day and time from and to, in the facility's zone."""

    arrive_day = forms.Day(_l("Arrival day"), [forms.required()])
    arrive_time = forms.ClockTime(_l("Arrival time"), [forms.required()])
    leave_day = forms.Day(_l("Departure day"), [forms.required()])
    leave_time = forms.ClockTime(_l("Departure time"), [forms.required()])

    def period(self, zone: str) -> tuple[datetime, datetime] | None:
        """[from, to) as instants; None while a part cannot be read."""
        begins = _instant(self.arrive_day.data, self.arrive_time.data, zone)
        ends = _instant(self.leave_day.data, self.leave_time.data, zone)
        return (begins, ends) if begins and ends else None


class StayForm(WhenForm, forms.MakeForm):
    member = forms.Text(_l("Member"), render_kw={"autocomplete": "off"})
    membership_id = forms.Choice(_l("Membership"), default="")
    name = forms.PersonName(_l("Name"), [forms.required(unless="membership_id")])
    kana = forms.PersonName(_l("Name in kana"))
    email = forms.Email(_l("E-mail"))
    phone = forms.Phone(_l("Telephone"))
    document = forms.Text(
        _l("Number of a passport or card"), most=60, render_kw={"autocomplete": "off"}
    )
    locale = forms.Choice(_l("Language of messages"), default="")
    plan_id = forms.Choice(_l("Plan"), default="")
    persons = forms.Amount(_l("Persons"), [forms.required()], least=1, most=MOST_PERSONS)
    space_id = forms.Choice(_lp("desk", "Space"))
    price = forms.Amount(_l("Price"))
    deposit = forms.Amount(_l("Deposit asked for"))
    ticket = forms.Text(_l("Code of a ticket book"), most=20, render_kw={"autocomplete": "off"})
    source = forms.Choice(_l("How it came"), default="desk")
    note = forms.Note(_l("Note for colleagues"), render_kw=NOTE_UNITS)

    def validate_member(self, field: Any) -> None:
        """What was looked for is chosen, or taken out again: nobody is booked by a guess."""
        if not field.data or self.membership_id.data:
            return
        if len(self.membership_id.choices) == 1:
            raise ValidationError(gettext("No running membership has this name or address."))
        raise ValidationError(gettext("Choose the membership below, or leave this empty."))

    def validate_membership_id(self, field: Any) -> None:
        typed = (self.name, self.kana, self.phone, self.email, self.document, self.locale)
        if field.data and any(one.data for one in typed):
            raise ValidationError(
                gettext(
                    "The member is the guest, and is known already. Leave the fields below empty."
                )
            )

    def validate_name(self, field: Any) -> None:
        if not self.membership_id.data:
            forms.require_a_name(field)

    def validate_price(self, field: Any) -> None:
        if field.data is None and not field.errors and not self.plan_id.data:
            raise ValidationError(gettext("Write a price or choose a plan."))

    def validate_ticket(self, field: Any) -> None:
        field.data = stay_codes.as_typed(field.data or "") or None
        if field.data and (self.price.data or self.deposit.data):
            raise ValidationError(
                gettext("A ticket pays all of it. Leave price and deposit empty.")
            )

    def wanted(self, house: House, plan: Row | None) -> NewStay:
        """What the verb is asked for; only of a form that is valid."""
        period = self.period(house.time_zone)
        if period is None:
            raise ValueError("a stay without times")
        price = 0 if self.ticket.data else self.price.data
        if price is None:
            price = quote(plan, period, house.time_zone)
        return NewStay(
            form_key=self.form_key.data,
            guest=None if self.membership_id.data else self._guest(),
            membership_id=people.uuid_of(self.membership_id.data),
            space_id=UUID(self.space_id.data),
            plan_id=plan.id if plan else None,
            starts_at=period[0],
            ends_at=period[1],
            price=price,
            deposit_due=self._deposit(plan, price),
            source=self.source.data,
            note=self.note.data or "",
            persons=self.persons.data,
            ticket=self.ticket.data,
        )

    def _guest(self) -> NewGuest:
        return NewGuest(
            name=self.name.data or "",
            kana=self.kana.data or "",
            email=self.email.data,
            phone=self.phone.data,
            locale=self.locale.data or None,
            document=self.document.data or None,
        )

    def _deposit(self, plan: Row | None, price: int) -> int:
        if self.deposit.data is not None:
            return int(self.deposit.data)
        return min(plan.deposit, price) if plan else 0


class TimesForm(WhenForm, forms.ActForm):
    price_change = forms.Amount(_l("Change of the price"), least=-LARGEST)


class DeadlineForm(forms.ActForm):
    deposit_by = forms.Moment(_l("The deposit must come by"), [forms.required()])


class PersonsForm(forms.ActForm):
    persons = forms.Count(_l("Persons"), [forms.required()], least=1, most=MOST_PERSONS)


class CancelForm(forms.ActForm):
    fee = forms.Amount(_l("Cancellation fee"), default=0)


class CashForm(forms.MakeForm):
    amount = forms.Amount(_l("Amount"), [forms.required()], least=1)


def quote(plan: Row | None, period: tuple[datetime, datetime], zone: str) -> int:
    """The plan's price for these times, in the smallest unit; 0 without a plan."""
    if plan is None or period[1] <= period[0]:
        return 0
    return min(pricing.quote(plan.unit, plan.unit_price, *period, zone), LARGEST)


def fresh(house: House, plans: Sequence[Row], asked: Mapping[str, str]) -> MultiDict[str, Any]:
    """The values of a new form: the house's usual times, and what the address asks for."""
    wanted = {name: asked[name] for name in ASKED if asked.get(name)}
    chosen = wanted.get("plan_id") or (str(plans[0].id) if plans else "")
    plan = find(plans, chosen)
    begins, ends = _usual_times(house, plan.unit if plan else "night")
    return MultiDict(
        {
            "form_key": str(uuid4()),
            "plan_id": chosen,
            "source": "desk",
            "persons": "1",
            **_written("arrive", begins),
            **_written("leave", ends),
            **wanted,
        }
    )


def of_period(starts_at: datetime, ends_at: datetime, zone: str) -> dict[str, str]:
    """A stay's times as a form writes them."""
    return {
        **_written("arrive", clock.local(starts_at, zone)),
        **_written("leave", clock.local(ends_at, zone)),
    }


def set_choices(
    form: StayForm, plans: Sequence[Row], spaces: Sequence[Row], members: Sequence[Row]
) -> None:
    """In the language of the page, as this request reads it."""
    form.locale.choices = [("", gettext("The facility's")), *_pairs(words.LANGUAGES)]
    form.source.choices = [(key, words.said(words.SOURCES, key)) for key in ("desk", "walk_in")]
    form.plan_id.choices = [
        *((str(plan.id), plan_label(plan)) for plan in plans),
        ("", gettext("No plan")),
    ]
    usable = sorted(spaces, key=lambda space: (space.taken, space.resting))
    form.space_id.choices = [(str(space.id), space_label(space)) for space in usable]
    form.membership_id.choices = [
        ("", gettext("No member")),
        *((str(member.id), member_label(member)) for member in members),
    ]


def plan_label(plan: Row) -> str:
    told = {
        "plan": plan.name_ja if language() == "ja" else plan.name_en,
        "price": money(plan.unit_price),
        "unit": words.said(words.UNITS, plan.unit),
    }
    if plan.members_only:
        return gettext("%(plan)s, %(price)s %(unit)s, for members only", **told)
    return gettext("%(plan)s, %(price)s %(unit)s", **told)


def member_label(member: Row) -> str:
    """Whoever it is, and what stands in the way of a booking, if anything does."""
    told = {
        "name": plain_name(member.guest),
        "plan": member.plan_ja if language() == "ja" else member.plan_en,
        "address": member.email_key,
    }
    if member.paused:
        return gettext("%(name)s, %(plan)s, %(address)s (paused)", **told)
    if member.state == "active":
        return gettext("%(name)s, %(plan)s, %(address)s", **told)
    state = wording.state_name("membership", member.state)
    return gettext("%(name)s, %(plan)s, %(address)s (%(state)s)", state=state, **told)


def space_label(space: Row) -> str:
    if space.taken:
        return gettext("%(space)s (taken then)", space=space_name(space))
    if space.resting:
        return gettext("%(space)s (last key not yet removed)", space=space_name(space))
    return space_name(space)


def space_name(space: Row) -> str:
    """The name that staff know; its code stands before a name that does not hold it."""
    name = str(space.name_ja if language() == "ja" else space.name_en)
    return name if space.code in name else f"{space.code} {name}"


def find(rows: Sequence[Row], wanted: str | None) -> Row | None:
    return next((row for row in rows if str(row.id) == wanted), None)


def _pairs(table: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(key, str(value)) for key, value in table.items()]


def _instant(day: date | None, at: time | None, zone: str) -> datetime | None:
    return clock.instant_at(day, at, zone) if day and at is not None else None


def _written(which: str, at: datetime) -> dict[str, str]:
    return {f"{which}_day": at.date().isoformat(), f"{which}_time": at.strftime("%H:%M")}


def _usual_times(house: House, unit: str) -> tuple[datetime, datetime]:
    """Overnight from the house's check-in to its check-out; otherwise from now for a while."""
    now = clock.local(clock.now(), house.time_zone)
    if unit == "night":
        begins = datetime.combine(now.date(), house.check_in_from, now.tzinfo)
        return begins, datetime.combine(
            now.date() + timedelta(days=1), house.check_out_by, now.tzinfo
        )
    begins = now.replace(minute=now.minute // 5 * 5, second=0, microsecond=0)
    return begins, begins + SHORT_STAY
