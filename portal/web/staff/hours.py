"""Opening hours as managers type them, the same every day and the weekdays that differ; and as they
read them, neighbouring days that are alike as one."""

from collections import Counter
from typing import Any

from flask_babel import gettext
from wtforms import Field, ValidationError

from portal import formats
from portal.lazy import _l
from portal.policies import opening
from portal.policies.opening import ALL_DAY, Day, Stretch, Week
from portal.web import forms
from portal.web.locale import language

WEEKDAYS = range(1, opening.DAYS + 1)
"""1 is Monday."""
KINDS = {
    "same": _l("As every day"),
    "closed": _l("Closed all day"),
    "all_day": _l("Open all day"),
    "own": _l("Hours of its own"),
}


class HoursForm(forms.Form):
    """What holds every day, and a row for each weekday: `day_1`, `opens_1`, `closes_1` and so on.
    The times of a row are looked at only where it has hours of its own."""

    opens = forms.ClockTime(_l("Opens at"))
    closes = forms.ClockTime(_l("Closes at"))

    def __init__(self, *args: Any, **values: Any) -> None:
        super().__init__(*args, **values)
        for _, kind, _, _ in self.rows:
            kind.choices = [(key, str(said)) for key, said in KINDS.items()]

    @property
    def rows(self) -> list[tuple[str, Any, Field, Field]]:
        """(weekday's name, what it is, from, to)."""
        names = formats.weekdays(language(), "wide")
        return [
            (names[n - 1], self[f"day_{n}"], self[f"opens_{n}"], self[f"closes_{n}"])
            for n in WEEKDAYS
        ]

    @property
    def differs(self) -> bool:
        """Whether a weekday is not as every day: its rows are then open to see."""
        return any(kind.data != "same" or kind.errors for _, kind, _, _ in self.rows)

    def validate_closes(self, field: Any) -> None:
        if (self.opens.data is None) != (field.data is None):
            raise ValidationError(gettext("Write both times, or neither."))
        if field.data is not None and field.data == self.opens.data:
            raise ValidationError(gettext("For an entrance that never closes, leave both empty."))

    def validate(self, extra_validators: Any = None) -> bool:
        """Each field by itself, then the rows that have hours of their own."""
        alone = super().validate(extra_validators)
        wrong = [
            name
            for name, kind, opens, closes in self.rows
            if kind.data == "own" and not _is_stretch(opens, closes)
        ]
        return not wrong and alone

    def week(self) -> Week | None:
        """Only of a form that is valid. None where it never closes."""
        opens, closes = self.opens.data, self.closes.data
        usual = ALL_DAY if opens is None or closes is None else Stretch(opens, closes)
        week = tuple(_day(usual, *row[1:]) for row in self.rows)
        return None if set(week) == {ALL_DAY} else week


for _n in WEEKDAYS:
    setattr(HoursForm, f"day_{_n}", forms.Choice(_l("Hours"), default="same"))
    setattr(HoursForm, f"opens_{_n}", forms.ClockTime(_l("Opens at")))
    setattr(HoursForm, f"closes_{_n}", forms.ClockTime(_l("Closes at")))


def lines(week: Week | None) -> list[tuple[str, str]]:
    """[(days, hours)] in the page's language, Monday first."""
    whole = (ALL_DAY,) * opening.DAYS
    return [(_days(first, last), _hours(day)) for first, last, day in opening.runs(week or whole)]


def _days(first: int, last: int) -> str:
    names = formats.weekdays(language(), "abbreviated")
    if (first, last) == (0, opening.DAYS - 1):
        return gettext("Every day")
    if first == last:
        return names[first]
    return gettext("%(first)s–%(last)s", first=names[first], last=names[last])


def _hours(day: Day) -> str:
    if day is None:
        return gettext("Closed all day")
    if day == ALL_DAY:
        return gettext("Open all day")
    times = _times(day, "")
    if day.closes < day.opens:
        return gettext("%(opens)s–%(closes)s the next day", **times)
    return gettext("%(opens)s–%(closes)s", **times)


def of_week(week: Week | None) -> dict[str, str]:
    """A week as the form writes it: what most of its open days say holds every day."""
    if week is None:
        return {}
    usual, _ = Counter(day for day in week if day).most_common(1)[0]
    written = {} if usual == ALL_DAY else _times(usual, "")
    for n, day in zip(WEEKDAYS, week, strict=True):
        if day != usual:
            written |= _row(day, n)
    return written


def _row(day: Day, n: int) -> dict[str, str]:
    if day is None:
        return {f"day_{n}": "closed"}
    return (
        {f"day_{n}": "all_day"} if day == ALL_DAY else {f"day_{n}": "own", **_times(day, f"_{n}")}
    )


def _times(stretch: Stretch, row: str) -> dict[str, str]:
    said = {"opens": stretch.opens, "closes": stretch.closes}
    return {f"{name}{row}": formats.clock_time(at) for name, at in said.items()}


def _day(usual: Stretch, kind: Any, opens: Field, closes: Field) -> Day:
    if kind.data == "own":
        return Stretch(opens.data, closes.data)
    return {"same": usual, "all_day": ALL_DAY, "closed": None}[kind.data]


def _is_stretch(opens: Any, closes: Any) -> bool:
    """Both times, and not the same."""
    missing = [field for field in (opens, closes) if field.data is None and not field.errors]
    for field in missing:
        field.errors = [gettext("Please fill this in.")]
    if opens.data is not None and opens.data == closes.data:
        closes.errors = [gettext("For a day without a pause choose “Open all day”.")]
    return not opens.errors and not closes.errors
