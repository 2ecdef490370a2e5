"""The form of the register of guests, the same for the guest and the desk."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flask_babel import gettext
from wtforms import BooleanField, HiddenField, ValidationError

from portal.db import Actor, Row
from portal.lazy import _l
from portal.policies.register import Entry
from portal.verbs.registers import most
from portal.web import forms

LONGEST_ADDRESS = 300
OF_THE_FIRST = forms.required(unless="companion")
"""Whoever comes along may leave it empty."""
UNITS = {"maxlength": 2 * LONGEST_ADDRESS, "autocomplete": "street-address"}


class Companion(HiddenField):
    """Which of a stay's persons: a number from 2 on; empty for the guest who has booked."""

    data: Any

    def process_formdata(self, valuelist: list[str]) -> None:
        text = valuelist[0] if valuelist else ""
        self.data = int(text) if re.fullmatch(r"[0-9]{1,4}", text) and int(text) > 1 else None


class RegisterForm(forms.Form):
    companion = Companion()
    name = forms.PersonName(_l("Name"), [forms.required()])
    address = forms.Text(_l("Address"), [OF_THE_FIRST], most=LONGEST_ADDRESS, render_kw=UNITS)
    contact = forms.Text(_l("Telephone or e-mail"), [OF_THE_FIRST], most=254)
    lives_abroad = BooleanField(_l("No address in Japan"))
    nationality = forms.Text(_l("Nationality"), most=60)
    passport = forms.Text(_l("Passport number"), most=20, render_kw={"autocomplete": "off"})
    occupation = forms.Text(_l("Occupation"), most=60)

    def __init__(self, *args: Any, **values: Any) -> None:
        super().__init__(*args, **values)
        for field in (self.address, self.contact):
            field.flags.required = self.companion.data is None

    @property
    def person(self) -> int:
        return int(self.companion.data or 1)

    def validate_nationality(self, field: Any) -> None:
        self._asked_abroad(field)

    def validate_passport(self, field: Any) -> None:
        self._asked_abroad(field)

    def _asked_abroad(self, field: Any) -> None:
        if self.lives_abroad.data and not field.data:
            raise ValidationError(gettext("Please fill this in."))

    def entry(self) -> Entry:
        """Only of a form that is valid."""
        return Entry(
            name=self.name.data or "",
            address=self.address.data or "",
            contact=self.contact.data or "",
            lives_abroad=bool(self.lives_abroad.data),
            nationality=self.nationality.data or "",
            passport=self.passport.data or "",
            occupation=self.occupation.data or "",
        )


def fresh(stay: Row, person: int) -> RegisterForm:
    """With what the booking says already; what was filled in before is sealed and not shown."""
    if person > 1:
        return RegisterForm(formdata=None, data={"companion": person})
    return RegisterForm(formdata=None, data={"name": stay.guest, "contact": stay.contact})


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the register of one stay is: by person, their entry without what is sealed; `most`
    that it takes."""

    persons: int
    most: int
    entries: Mapping[int, Row]

    @property
    def missing(self) -> list[int]:
        return [one for one in range(1, self.persons + 1) if one not in self.entries]

    def asked(self, typed: str | None) -> int:
        """Whose form is shown: theirs who was asked for, else the first who is missing."""
        wanted = int(typed) if typed and re.fullmatch(r"[0-9]{1,4}", typed) else 0
        return wanted if 1 <= wanted <= self.most else next(iter(self.missing), 1)


def progress(stay: Row, filled: Sequence[Row], actor: Actor) -> Progress:
    return Progress(stay.persons, most(stay, actor), {row.person: row for row in filled})
