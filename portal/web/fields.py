"""The fields of forms: what people type, understood or told at its field."""

import re
import unicodedata
from datetime import date, datetime, time
from typing import Any, cast
from uuid import UUID, uuid4

import phonenumbers
from email_validator import EmailNotValidError, validate_email
from wtforms import Field, HiddenField, SelectField, StringField, TextAreaField, ValidationError
from wtforms.fields.choices import SelectChoice  # type: ignore[attr-defined]
from wtforms.validators import StopValidation
from wtforms.widgets import DateInput, DateTimeLocalInput, TextInput, TimeInput

from portal import clock
from portal.lazy import _l
from portal.money import LARGEST
from portal.web import people

LONGEST_NOTE = 2000
LONGEST_NAME = 120
LONGEST_PERSON = 100


class Required:
    """Something is typed; spaces are nothing. `unless`: nothing is asked where the form's field of
    this name has a value."""

    field_flags = {"required": True}

    def __init__(self, unless: str = "") -> None:
        self.unless = unless

    def __call__(self, form: Any, field: Field) -> None:
        if self.unless and form[self.unless].data:
            return
        typed = field.raw_data[0] if field.raw_data else None
        if typed is None or (isinstance(typed, str) and not typed.strip()):
            field.errors = []
            raise StopValidation(str(_l("Please fill this in.")))


def required(*, unless: str = "") -> Required:
    return Required(unless)


class AtMost:
    """Counted in characters, as people count: code points, not bytes."""

    def __init__(self, length: int) -> None:
        self.length = length
        self.field_flags = {"maxlength": length}

    def __call__(self, form: Any, field: Field) -> None:
        if field.data and len(field.data) > self.length:
            raise StopValidation(str(_l("At most %(count)s characters.", count=self.length)))


def is_clean(text: str, *, lines: bool = False) -> bool:
    """No control characters, no broken encoding. `lines` allows line ends."""
    return all(_is_clean(character, lines) for character in text)


def _is_clean(character: str, lines: bool) -> bool:
    if lines and character in "\n\t":
        return True
    # Cc: controls, NUL among them. Cs: halves of a pair. The rest are never characters.
    point = ord(character)
    never = point & 0xFFFE == 0xFFFE or 0xFDD0 <= point <= 0xFDEF or character == "\ufffd"
    return not never and unicodedata.category(character) not in ("Cc", "Cs")


def typed(field: Field) -> str | None:
    """What was typed, to be shown again; without what no page may hold. None: nothing was sent."""
    if not field.raw_data:
        return None
    return "".join(letter for letter in str(field.raw_data[0]) if _is_clean(letter, lines=True))


class _Clean:
    """Refuses what no person types and PostgreSQL cannot hold."""

    lines = False
    data: str | None

    def _value(self) -> str:
        shown = typed(cast("Field", self))
        return (self.data or "") if shown is None else shown

    def take(self, text: str) -> str:
        text = text.replace("\r\n", "\n").replace("\r", "\n").strip()
        if not is_clean(text, lines=self.lines):
            raise ValueError(str(_l("There are characters here that cannot be stored.")))
        return text


class Text(_Clean, StringField):
    """One line. The value is trimmed; "" when nothing was typed."""

    def __init__(
        self, label: Any = None, validators: Any = None, *, most: int = LONGEST_NAME, **options: Any
    ) -> None:
        super().__init__(label, [*(validators or []), AtMost(most)], **options)

    def process_formdata(self, valuelist: list[str]) -> None:
        self.data = valuelist[0] if valuelist else ""
        self.data = self.take(self.data)


class Note(_Clean, TextAreaField):
    """Several lines."""

    lines = True

    def __init__(
        self, label: Any = None, validators: Any = None, *, most: int = LONGEST_NOTE, **options: Any
    ) -> None:
        super().__init__(label, [*(validators or []), AtMost(most)], **options)

    def process_formdata(self, valuelist: list[str]) -> None:
        self.data = valuelist[0] if valuelist else ""
        self.data = self.take(self.data)


class PersonName(Text):
    """A browser counts UTF-16 units, of which a character may have two: it must not cut what we
    take."""

    def __init__(self, label: Any = None, validators: Any = None, **options: Any) -> None:
        units = {"maxlength": 2 * LONGEST_PERSON}
        super().__init__(label, validators, most=LONGEST_PERSON, render_kw=units, **options)


class Email(Text):
    """None when empty."""

    def __init__(self, label: Any = None, validators: Any = None, **options: Any) -> None:
        render = {"type": "email", "autocomplete": "email", **options.pop("render_kw", {})}
        super().__init__(label, validators, most=254, render_kw=render, **options)

    def process_formdata(self, valuelist: list[str]) -> None:
        super().process_formdata(valuelist)
        if not self.data:
            self.data = None
            return
        try:
            self.data = validate_email(self.data, check_deliverability=False).normalized
        except EmailNotValidError:
            raise ValueError(str(_l("This is not an e-mail address."))) from None


class Phone(Text):
    """E.164; None when empty. A number without a country is a Japanese one."""

    def __init__(self, label: Any = None, validators: Any = None, **options: Any) -> None:
        render = {"type": "tel", "autocomplete": "tel", **options.pop("render_kw", {})}
        super().__init__(label, validators, most=40, render_kw=render, **options)

    def process_formdata(self, valuelist: list[str]) -> None:
        super().process_formdata(valuelist)
        if not self.data:
            self.data = None
            return
        try:
            number = phonenumbers.parse(unicodedata.normalize("NFKC", self.data), "JP")
        except phonenumbers.NumberParseException:
            number = None
        if number is None or not phonenumbers.is_possible_number(number):
            raise ValueError(str(_l("This is not a telephone number.")))
        self.data = phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)


class Amount(Field):
    """Whole smallest units of the facility's currency: an int, or None when empty.

    Full-width digits and thousands separators are taken as people type them.
    """

    widget = TextInput()

    def __init__(
        self,
        label: Any = None,
        validators: Any = None,
        *,
        least: int = 0,
        most: int = LARGEST,
        **options: Any,
    ) -> None:
        render = {"inputmode": "numeric", "autocomplete": "off", **options.pop("render_kw", {})}
        super().__init__(label, validators, render_kw=render, **options)
        self.least, self.most = least, most

    def _value(self) -> str:
        shown = typed(self)
        if shown is not None:
            return shown
        return "" if self.data is None else str(self.data)

    def process_formdata(self, valuelist: list[str]) -> None:
        self.data = None
        text = unicodedata.normalize("NFKC", valuelist[0]).strip() if valuelist else ""
        if not text:
            return
        # U+2212 is the minus that a Japanese keyboard writes; NFKC leaves it.
        plain = re.sub(r"[,\s]", "", text).replace("−", "-").removeprefix("¥").removesuffix("円")
        if not re.fullmatch(r"-?[0-9]{1,12}", plain):
            raise ValueError(str(_l("Write a whole amount in figures.")))
        amount = int(plain)
        if not self.least <= amount <= self.most:
            raise ValueError(
                str(
                    _l(
                        "Write an amount from %(least)s to %(most)s.",
                        least=self.least,
                        most=f"{self.most:,}",
                    )
                )
            )
        self.data = amount


class Count(Amount):
    """How many of something: no money, and told so."""

    def process_formdata(self, valuelist: list[str]) -> None:
        try:
            super().process_formdata(valuelist)
        except ValueError:
            bounds = {"least": self.least, "most": self.most}
            raise ValueError(
                str(_l("Write a whole number from %(least)s to %(most)s.", **bounds))
            ) from None


class Day(Field):
    """A calendar day of the facility, or None."""

    widget = DateInput()
    data: date | None

    def _value(self) -> str:
        shown = typed(self)
        if shown is not None:
            return shown
        return self.data.isoformat() if self.data else ""

    def process_formdata(self, valuelist: list[str]) -> None:
        self.data = None
        if valuelist and valuelist[0].strip():
            try:
                self.data = in_reach(datetime.strptime(valuelist[0].strip(), "%Y-%m-%d").date())
            except ValueError:
                raise ValueError(str(_l("This is not a day."))) from None


class ClockTime(Field):
    """A wall-clock time, or None."""

    widget = TimeInput()
    data: time | None

    def _value(self) -> str:
        shown = typed(self)
        if shown is not None:
            return shown
        return self.data.strftime("%H:%M") if self.data else ""

    def process_formdata(self, valuelist: list[str]) -> None:
        self.data = None
        if valuelist and valuelist[0].strip():
            try:
                self.data = datetime.strptime(valuelist[0].strip()[:5], "%H:%M").time()
            except ValueError:
                raise ValueError(str(_l("This is not a time."))) from None


class Moment(Field):
    """A wall-clock moment of the facility, as an aware UTC instant, or None."""

    widget = DateTimeLocalInput()
    data: datetime | None

    def _value(self) -> str:
        shown = typed(self)
        if shown is not None:
            return shown
        return clock.local(self.data, _zone()).strftime("%Y-%m-%dT%H:%M") if self.data else ""

    def process_formdata(self, valuelist: list[str]) -> None:
        self.data = None
        if valuelist and valuelist[0].strip():
            try:
                typed = datetime.strptime(valuelist[0].strip()[:16], "%Y-%m-%dT%H:%M")
                self.data = clock.instant_at(in_reach(typed.date()), typed.time(), _zone())
            except ValueError:
                raise ValueError(str(_l("This is not a day and time."))) from None


class Choice(SelectField):
    """One of `choices`, pairs of value and words; the message of a crafted value is ours."""

    @property
    def choices(self) -> Any:
        return self._choices

    @choices.setter
    def choices(self, pairs: Any) -> None:
        self._choices = [SelectChoice(value, words) for value, words in pairs or ()]

    def pre_validate(self, form: Any) -> None:
        if not any(self.data == value for value, *_ in self.iter_choices()):
            raise ValidationError(str(_l("Choose one of the list.")))


class Version(HiddenField):
    """The row's version that the person saw: an int."""

    data: Any
    pattern = r"[0-9]{1,9}"

    def process_formdata(self, valuelist: list[str]) -> None:
        text = valuelist[0] if valuelist else ""
        self.data = int(text) if re.fullmatch(self.pattern, text) else None

    def pre_validate(self, form: Any) -> None:
        if self.data is None:
            raise StopValidation(str(_l("This form is not complete. Load the page again.")))


class Seen(Version):
    """A figure that the page showed, and that the person decided by: an int."""

    pattern = r"-?[0-9]{1,15}"


class Key(HiddenField):
    """A UUID made when the form was shown: one form creates one thing, however often it is sent."""

    data: Any

    def __init__(self, label: Any = None, validators: Any = None, **options: Any) -> None:
        super().__init__(label, validators, **{"default": uuid4, **options})

    def process_formdata(self, valuelist: list[str]) -> None:
        try:
            self.data = UUID(valuelist[0])
        except (ValueError, IndexError):
            self.data = None

    def pre_validate(self, form: Any) -> None:
        if self.data is None:
            raise StopValidation(str(_l("This form is not complete. Load the page again.")))


def in_reach(day: date) -> date:
    """Years that a house can mean; a typed 0202 or 9999 is a slip."""
    if not 2000 <= day.year <= 2100:
        raise ValueError(day)
    return day


def _zone() -> str:
    house = people.facility()
    return house.time_zone if house else "UTC"
