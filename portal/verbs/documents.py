"""The verbs of receipts: issued for money that arrived, and issued again."""

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from portal import clock, ledger
from portal.db import Actor, Row, Tx
from portal.log import request_id
from portal.models import Document
from portal.money import Money
from portal.move import signed
from portal.outcome import Applied, Code, Noop, Outcome, Refused
from portal.policies import tax
from portal.policies.tax import Part


@dataclass(frozen=True, slots=True)
class Folio:
    """Whose account: a stay's or a membership's."""

    stay_id: UUID | None = None
    membership_id: UUID | None = None

    @property
    def id(self) -> UUID:
        found = self.stay_id or self.membership_id
        if found is None:
            raise ValueError("an account of nobody")
        return found

    @property
    def column(self) -> str:
        return "stay_id" if self.stay_id else "membership_id"


@dataclass(frozen=True, slots=True)
class Account:
    """A folio as it is held: what it is for and who issues, its lines and earlier documents."""

    folio: Folio
    subject: Row
    lines: Sequence[Row]
    before: Sequence[Row]

    @property
    def received(self) -> int:
        return -sum(int(line.amount) for line in self.lines if line.kind in ledger.MONEY)

    @property
    def charges(self) -> list[Part]:
        return [_charge(line) for line in self.lines if line.kind not in ledger.MONEY]

    @property
    def new(self) -> list[Row]:
        """The lines that no document knows."""
        known = self.before[-1].upto if self.before else 0
        return [line for line in self.lines if line.id > known]


def issue(tx: Tx, actor: Actor, folio: Folio, addressee: str, form_key: UUID) -> Outcome:
    """→ a receipt for what has arrived since the last document, or a return of what has gone back.
    Each amount stands on one document."""
    subject = _held(tx, folio)
    if subject is None:
        return Refused(Code.NOT_FOUND)
    if again := tx.made_by(Document, form_key):
        return Noop(Code.RECEIPT_ALREADY_ISSUED, subject=again)
    account = Account(folio, subject, _lines(tx, folio), _before(tx, folio))
    charges, received = account.charges, account.received
    if (over := received - sum(part.amount for part in charges)) > 0:
        return Refused(Code.RECEIPT_MORE_THAN_CHARGED, {"amount": Money(over, subject.currency)})
    parts = tax.stated(charges, received, [part for one in account.before for part in _parts(one)])
    if not parts:
        return Refused(Code.RECEIPT_NOTHING_RECEIVED)

    document_id = _write(tx, actor, account, parts, addressee, form_key)
    if sum(part.amount for part in parts) > 0:
        return Applied(Code.RECEIPT_ISSUED, to="receipt", subject=document_id)
    return Applied(Code.RETURN_ISSUED, to="return", subject=document_id)


def issue_again(
    tx: Tx, actor: Actor, document_id: UUID, form_key: UUID, folio: Folio | None = None
) -> Outcome:
    """The same document under the same number, marked as issued again and counted. Whoever came by
    the link of a `folio` gets its own."""
    own = f"and {folio.column} = :folio" if folio else ""
    known = tx.scalar(
        f"select id from documents where id = :id {own}",
        id=document_id,
        folio=folio.id if folio else None,
    )
    if known is None:
        return Refused(Code.NOT_FOUND)
    made = tx.run(
        """
        insert into document_copies (facility_id, document_id, form_key, actor_kind, actor_id,
            actor_name, request_id, at)
        values (:facility_id, :id, :form_key, :actor_kind, :actor_id, :actor_name, :request_id,
            :at)
        on conflict do nothing
        """,
        id=document_id,
        form_key=form_key,
        **signed(tx, actor),
    )
    if made.rowcount:
        return Applied(Code.RECEIPT_ISSUED_AGAIN, to="copy", subject=document_id)
    return Noop(Code.RECEIPT_ALREADY_ISSUED, subject=document_id)


_STAY = """
    select s.currency, s.code, s.starts_at, s.ends_at, space.name_ja as space_ja,
           space.name_en as space_en, coalesce(plan.name_ja, '') as plan_ja,
           coalesce(plan.name_en, '') as plan_en, {issuer}
    from stays s join facilities f on f.id = s.facility_id
    join spaces space on space.id = s.space_id left join plans plan on plan.id = s.plan_id
    where s.id = :id
    for no key update of s
"""
_MEMBERSHIP = """
    select m.currency, '' as code, null::timestamptz as starts_at, null::timestamptz as ends_at,
           '' as space_ja, '' as space_en, plan.name_ja as plan_ja, plan.name_en as plan_en,
           {issuer}
    from memberships m join facilities f on f.id = m.facility_id
    join membership_plans plan on plan.id = m.plan_id
    where m.id = :id
    for no key update of m
"""
_ISSUER = """
    f.time_zone, f.name_ja, f.name_en, f.issuer_name, f.address_ja, f.address_en, f.phone,
    f.tax_number
"""


def _held(tx: Tx, folio: Folio) -> Row | None:
    """What it is for, and who issues it. Locked as by whoever books a line on it."""
    asked = _STAY if folio.stay_id else _MEMBERSHIP
    return tx.row(asked.format(issuer=_ISSUER), id=folio.id)


def _lines(tx: Tx, folio: Folio) -> Sequence[Row]:
    """A charge from before lines had a rate has the standard rate of its day."""
    return tx.rows(
        f"""
        select l.id, l.kind, l.amount, l.item, l.at, coalesce(l.tax_rate, (
            select r.percent from consumption_tax_rates r
            where r.tax_class = 'standard' and l.kind <> 'fee'
              and r.valid_from <= (l.at at time zone f.time_zone)::date
            order by r.valid_from desc limit 1
        ), 0) as rate
        from ledger_lines l join facilities f on f.id = l.facility_id
        where l.{folio.column} = :id order by l.id
        """,
        id=folio.id,
    )


def _before(tx: Tx, folio: Folio) -> Sequence[Row]:
    """The account's documents, in their order."""
    return tx.rows(
        f"""
        select id, kind, number, addressee, upto, stated from documents
        where {folio.column} = :id order by number
        """,
        id=folio.id,
    )


def _charge(line: Row) -> Part:
    return Part("fee" if line.kind == "fee" else line.item, int(line.rate), int(line.amount))


def _parts(document: Row) -> list[Part]:
    return [Part(**part) for part in document.stated["parts"]]


def _write(
    tx: Tx, actor: Actor, account: Account, parts: list[Part], addressee: str, form_key: UUID
) -> UUID:
    """The number comes last: from then on other issues of the house wait for this commit."""
    now, amount = clock.now(), sum(part.amount for part in parts)
    before, subject = account.before, account.subject
    corrects = [one for one in before if one.kind == "receipt"] if amount <= 0 else []
    stated = {
        **_stated(account, parts),
        "reduced_rate": _reduced_rate(tx, now, subject.time_zone),
        "corrects": [one.number for one in corrects],
    }
    return tx.add(
        Document,
        kind="receipt" if amount > 0 else "return",
        stay_id=account.folio.stay_id,
        membership_id=account.folio.membership_id,
        corrects_id=corrects[-1].id if corrects else None,
        day=clock.local_day(now, subject.time_zone),
        addressee=addressee or (before[-1].addressee if before else ""),
        amount=abs(amount),
        currency=subject.currency,
        upto=account.lines[-1].id,
        stated=json.dumps(stated, ensure_ascii=False),
        form_key=form_key,
        issued_at=now,
        facility_id=tx.facility_id,
        request_id=request_id(),
        **actor.columns,
        number=_next_number(tx),
    )


ISSUER = ("name_ja", "name_en", "issuer_name", "address_ja", "address_en", "phone", "tax_number")
SUBJECT = ("code", "plan_ja", "plan_en", "space_ja", "space_en")


def _stated(account: Account, parts: list[Part]) -> dict[str, Any]:
    subject, money = account.subject, [line for line in account.new if line.kind in ledger.MONEY]
    moved: defaultdict[str, int] = defaultdict(int)
    for line in money:
        moved["cash" if line.kind in ledger.CASH else "card"] -= line.amount
    return {
        "issuer": {name: getattr(subject, name) for name in ISSUER},
        "subject": {name: getattr(subject, name) for name in SUBJECT}
        | {
            "from": _day(subject.starts_at, subject.time_zone),
            "until": _day(subject.ends_at, subject.time_zone),
        },
        "parts": [asdict(part) for part in parts],
        "totals": [asdict(total) for total in tax.totals(parts)],
        "paid": [{"how": how, "amount": amount} for how, amount in sorted(moved.items()) if amount],
        "received_on": _day(money[-1].at if money else None, subject.time_zone),
        "still_due": sum(line.amount for line in account.lines),
    }


def _day(instant: datetime | None, zone: str) -> str | None:
    return clock.local_day(instant, zone).isoformat() if instant else None


def _reduced_rate(tx: Tx, now: datetime, zone: str) -> int | None:
    """What is marked as reduced on a document of today."""
    found: int | None = tx.scalar(
        """
        select percent from consumption_tax_rates
        where tax_class = 'reduced' and valid_from <= :day order by valid_from desc limit 1
        """,
        day=clock.local_day(now, zone),
    )
    return found


def _next_number(tx: Tx) -> int:
    return int(
        tx.scalar(
            """
            insert into document_counters as c (facility_id, last) values (:facility, 1)
            on conflict (facility_id) do update set last = c.last + 1
            returning last
            """,
            facility=tx.facility_id,
        )
    )
