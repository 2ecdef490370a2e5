"""The forms of an entrance: what a manager types, and what it means."""

import re
from collections.abc import Iterable
from typing import Any
from uuid import UUID

from flask_babel import gettext
from werkzeug.datastructures import MultiDict
from wtforms import SelectMultipleField, ValidationError

from portal.db import Row
from portal.lazy import _l
from portal.policies import opening
from portal.verbs.entrances import NewEntrance, Terms
from portal.web import forms
from portal.web.locale import language
from portal.web.staff import hours

MOST_GUESTS = 100_000
MODES = {
    "reservation_only": _l("With a reservation only"),
    "walk_in": _l("Walk-ins are let in"),
}


class TermsForm(hours.HoursForm):
    name_ja = forms.Text(_l("Name in Japanese"), [forms.required()])
    name_en = forms.Text(_l("Name in English"), [forms.required()])
    mode = forms.Choice(_l("Who may come"), default="reservation_only")
    capacity = forms.Amount(_l("Guests at once"), least=1)
    plans = SelectMultipleField(_l("Plans that are sold here"))
    doors = SelectMultipleField(_l("Doors behind this entrance"))

    def __init__(self, *args: Any, **values: Any) -> None:
        super().__init__(*args, **values)
        self.mode.choices = [(key, str(said)) for key, said in MODES.items()]

    def offer(self, plans: Iterable[Row], doors: Iterable[Row], own: UUID | None = None) -> None:
        """What can be chosen: the plans, and the doors that no other entrance has."""
        self.plans.choices = [(str(plan.id), _plan_name(plan)) for plan in plans]
        free = [door for door in doors if door.entrance_id in (None, own)]
        self.doors.choices = [(str(door.id), _name(door)) for door in free]

    def validate_capacity(self, field: Any) -> None:
        if field.data is not None and field.data > MOST_GUESTS:
            raise ValidationError(gettext("That is more than a house holds."))

    def terms(self) -> Terms:
        """Only of a form that is valid."""
        return Terms(
            name_ja=self.name_ja.data or "",
            name_en=self.name_en.data or "",
            mode=self.mode.data,
            week=self.week(),
            capacity=self.capacity.data,
            plans=frozenset(UUID(one) for one in self.plans.data or ()),
            doors=frozenset(UUID(one) for one in self.doors.data or ()),
        )


class NewEntranceForm(TermsForm, forms.MakeForm):
    slug = forms.Text(_l("Short name"), [forms.required()], most=40)

    def validate_slug(self, field: Any) -> None:
        if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", field.data or ""):
            raise ValidationError(gettext("Small letters, figures and hyphens between them."))

    def wanted(self) -> NewEntrance:
        """Only of a form that is valid."""
        return NewEntrance(self.form_key.data, self.slug.data or "", self.terms())


class EntranceForm(TermsForm, forms.ActForm):
    pass


def of_entrance(entrance: Row) -> EntranceForm:
    """An entrance as a form writes it."""
    week = opening.week(entrance.opens, entrance.closes)
    written: MultiDict[str, str] = MultiDict(hours.of_week(week))
    for name in ("version", "name_ja", "name_en", "mode", "capacity"):
        value = getattr(entrance, name)
        if value is not None:
            written.add(name, str(value))
    for name, chosen in (("plans", entrance.plan_ids), ("doors", entrance.door_ids)):
        written.setlist(name, [str(one) for one in chosen])
    return EntranceForm(formdata=written)


def _plan_name(plan: Row) -> str:
    return _name(plan) if plan.active else gettext("%(plan)s (withdrawn)", plan=_name(plan))


def _name(row: Row) -> str:
    return str(row.name_ja if language() == "ja" else row.name_en)
