"""The form of the register of guests, the same for the guest and the desk."""

from typing import Any

from flask_babel import gettext
from wtforms import BooleanField, ValidationError

from portal.db import Row
from portal.lazy import _l
from portal.policies.register import Entry
from portal.web import forms

LONGEST_ADDRESS = 300
UNITS = {"maxlength": 2 * LONGEST_ADDRESS, "autocomplete": "street-address"}


class RegisterForm(forms.Form):
    name = forms.PersonName(_l("Name"), [forms.required()])
    address = forms.Text(_l("Address"), [forms.required()], most=LONGEST_ADDRESS, render_kw=UNITS)
    contact = forms.Text(_l("Telephone or e-mail"), [forms.required()], most=254)
    lives_abroad = BooleanField(_l("No address in Japan"))
    nationality = forms.Text(_l("Nationality"), most=60)
    passport = forms.Text(_l("Passport number"), most=20, render_kw={"autocomplete": "off"})
    occupation = forms.Text(_l("Occupation"), most=60)

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


def fresh(stay: Row) -> RegisterForm:
    """With what the booking says already; what was filled in before is sealed and not shown."""
    return RegisterForm(formdata=None, data={"name": stay.guest, "contact": stay.contact})
