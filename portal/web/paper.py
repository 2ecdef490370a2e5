"""A document in the page's language: the same words on the page, on the roll and in the PDF."""

import re
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal

from flask import Response, request
from flask_babel import gettext, pgettext

from portal.db import Row
from portal.lazy import _l
from portal.web import pdf, words
from portal.web.locale import day, language, money, plain_name

Sheet = Literal["a4", "roll"]

ITEMS = {
    "lodging_tax": _l("Lodging tax"),
    "ticket_book": _l("Ticket book, taxed when it is used"),
    "fee": _l("Cancellation fee"),
}
HOW = {"card": _l("By card"), "cash": _l("In cash")}
TITLES = {"receipt": _l("Receipt"), "return": _l("Return of a receipt")}
HONOURED = re.compile(r"(様|御中|殿|先生)$")


@dataclass(frozen=True, slots=True)
class Line:
    """One row of a table on paper."""

    words: str
    rate: str
    amount: str


@dataclass(frozen=True, slots=True)
class Paper:
    title: str
    number: str
    again: str
    """The mark of a document that was issued again; '' on the first."""
    day: str
    addressee: str
    amount: str
    subject: str
    lines: list[Line]
    totals: list[Line]
    paid_how: str
    paid: list[Line]
    issuer: list[str]
    notes: list[str]


def sheet() -> Sheet:
    """What the person prints on."""
    return "roll" if request.args.get("sheet") == "roll" else "a4"


def paper(document: Row) -> Paper:
    stated, currency = document.stated, document.currency
    sign = -1 if document.kind == "return" else 1

    def amount(value: int) -> str:
        return money(sign * value, currency)

    return Paper(
        title=_title(document),
        number=f"{document.number:06d}",
        again=gettext("Issued again (%(count)s)", count=document.copies) if document.copies else "",
        day=day(document.day),
        addressee=_addressed(document.addressee),
        amount=money(document.amount, currency),
        subject=_subject(stated["subject"]),
        lines=[
            Line(_item(part, stated), _rate(part["rate"], stated), amount(part["amount"]))
            for part in stated["parts"]
        ],
        totals=[_total(total, stated, amount) for total in stated["totals"]],
        paid_how=gettext("How it was paid") if sign > 0 else gettext("How it was returned"),
        paid=[
            Line(words.said(HOW, one["how"]), "", amount(one["amount"])) for one in stated["paid"]
        ],
        issuer=_issuer(stated["issuer"]),
        notes=_notes(document),
    )


def as_pdf(document: Row) -> Response:
    """For keeping and for printing elsewhere."""
    made = pdf.write(paper(document), sheet(), _headings(), language())
    answer = Response(made, mimetype="application/pdf")
    name = f"{document.kind}-{document.number:06d}.pdf"
    answer.headers["Content-Disposition"] = f'inline; filename="{name}"'
    return answer


def _headings() -> pdf.Headings:
    return pdf.Headings(
        number=gettext("No."),
        what=pgettext("receipt", "For"),
        rate=gettext("Tax"),
        amount=gettext("Amount"),
        issuer=gettext("Issued by"),
    )


def _title(document: Row) -> str:
    """Only who is registered issues a qualified return."""
    if document.kind == "return" and not document.stated["issuer"]["tax_number"]:
        return gettext("Statement of a return")
    return words.said(TITLES, document.kind)


def _addressed(name: str) -> str:
    """With the honorific that a name has on paper, unless it was typed with one."""
    name = plain_name(name)
    if not name or language() != "ja" or HONOURED.search(name):
        return name
    return f"{name} 様"


def _subject(subject: dict[str, Any]) -> str:
    """What was sold, as short as it can be said."""
    lang = language()
    named = [subject[f"plan_{lang}"], subject[f"space_{lang}"], subject["code"]]
    said = " / ".join(one for one in named if one)
    if not subject["from"]:
        return said
    begins, ends = (date.fromisoformat(subject[name]) for name in ("from", "until"))
    period = day(begins) if begins == ends else f"{day(begins)} – {day(ends)}"
    return f"{said} / {period}"


def _item(part: dict[str, Any], stated: dict[str, Any]) -> str:
    if part["item"]:
        return words.said(ITEMS, part["item"])
    return stated["subject"][f"plan_{language()}"] or gettext("Accommodation and use")


def _rate(rate: int, stated: dict[str, Any]) -> str:
    if not rate:
        return gettext("untaxed")
    return f"{rate}%※" if rate == stated["reduced_rate"] else f"{rate}%"


def _total(total: dict[str, Any], stated: dict[str, Any], amount: Any) -> Line:
    if not total["rate"]:
        return Line(gettext("Untaxed"), "", amount(total["amount"]))
    said = gettext(
        "At %(rate)s, tax included (of which tax %(tax)s)",
        rate=_rate(total["rate"], stated),
        tax=amount(total["tax"]),
    )
    return Line(said, "", amount(total["amount"]))


def _issuer(issuer: dict[str, Any]) -> list[str]:
    lang = language()
    lines = [issuer["issuer_name"], issuer[f"name_{lang}"], issuer[f"address_{lang}"]]
    if issuer["phone"]:
        lines.append(gettext("Telephone %(number)s", number=issuer["phone"]))
    if issuer["tax_number"]:
        lines.append(gettext("Registration number %(number)s", number=issuer["tax_number"]))
    return [line for line in dict.fromkeys(lines) if line]


def _notes(document: Row) -> list[str]:
    stated, notes = document.stated, []
    if stated["received_on"] and document.kind == "receipt":
        received = day(date.fromisoformat(stated["received_on"]))
        notes.append(gettext("Received with thanks, the last of it on %(day)s.", day=received))
    if document.kind == "receipt" and stated["still_due"] > 0:
        due = money(stated["still_due"], document.currency)
        notes.append(gettext("Part of the price. %(amount)s was still to be paid.", amount=due))
    if stated["corrects"]:
        numbers = ", ".join(f"{number:06d}" for number in stated["corrects"])
        notes.append(
            gettext("It takes back what these receipts state: %(numbers)s", numbers=numbers)
        )
    if any(part["rate"] == stated["reduced_rate"] for part in stated["parts"]):
        notes.append(gettext("※ at the reduced rate of tax"))
    return notes
