"""The form of a cancellation policy: what a manager types, and what it means."""

from typing import Any

from flask_babel import gettext
from werkzeug.datastructures import MultiDict
from wtforms import BooleanField, Field

from portal.db import Row
from portal.lazy import _l
from portal.policies.cancellation import EARLIEST, MOST_STEPS, Step, steps_of
from portal.verbs.cancellation_policies import NewPolicy, Terms
from portal.web import forms

ROWS = range(1, MOST_STEPS + 1)


class TermsForm(forms.Form):
    """Names, and a row for each step: `hours_1`, `fee_1`, `back_1` and so on. An empty row is no
    step."""

    name_ja = forms.Text(_l("Name in Japanese"), [forms.required()])
    name_en = forms.Text(_l("Name in English"), [forms.required()])

    @property
    def rows(self) -> list[tuple[Field, Field, Field]]:
        return [(self[f"hours_{n}"], self[f"fee_{n}"], self[f"back_{n}"]) for n in ROWS]

    def validate(self, extra_validators: Any = None) -> bool:
        """Each field by itself, then what the rows are beside one another."""
        alone = super().validate(extra_validators)
        return self._whole() and self._apart() and alone

    def _whole(self) -> bool:
        """A row has both of its figures or none, and there is one at least."""
        missing = [
            empty
            for hours, fee, _ in self.rows
            for empty, other in ((hours, fee), (fee, hours))
            if not _said(empty) and _said(other)
        ]
        if not any(_said(hours) or _said(fee) for hours, fee, _ in self.rows):
            missing = list(self.rows[0][:2])
        for field in missing:
            field.errors = [*field.errors, gettext("Please fill this in.")]
        return not missing

    def _apart(self) -> bool:
        """No two steps begin at once."""
        begun: set[int] = set()
        twice = []
        for hours, _, _ in self.rows:
            if hours.data in begun:
                twice.append(hours)
            elif hours.data is not None:
                begun.add(hours.data)
        for field in twice:
            field.errors = [*field.errors, gettext("Another step begins at this hour already.")]
        return not twice

    def terms(self) -> Terms:
        """Only of a form that is valid."""
        steps = [
            Step(hours.data, fee.data, bool(back.data))
            for hours, fee, back in self.rows
            if hours.data is not None
        ]
        return Terms(self.name_ja.data or "", self.name_en.data or "", steps)


for _n in ROWS:
    setattr(TermsForm, f"hours_{_n}", forms.Count(_l("Hours before arrival"), most=EARLIEST))
    setattr(TermsForm, f"fee_{_n}", forms.Count(_l("Fee in percent of the price"), most=100))
    setattr(TermsForm, f"back_{_n}", BooleanField(_l("The visit of a member's month comes back")))


class NewPolicyForm(TermsForm, forms.MakeForm):
    def wanted(self) -> NewPolicy:
        """Only of a form that is valid."""
        return NewPolicy(self.form_key.data, self.terms())


class PolicyForm(TermsForm, forms.ActForm):
    pass


def of_policy(policy: Row) -> PolicyForm:
    """A policy's newest terms as a form writes them."""
    written = {name: str(getattr(policy, name)) for name in ("name_ja", "name_en", "version")}
    for n, step in enumerate(steps_of(policy.steps), start=1):
        written |= {f"hours_{n}": str(step.hours_before), f"fee_{n}": str(step.fee_percent)}
        written |= {f"back_{n}": "y"} if step.returns_quota else {}
    return PolicyForm(formdata=MultiDict(written))


def _said(field: Field) -> bool:
    return bool((forms.typed(field) or "").strip())
