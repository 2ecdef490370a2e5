"""Receipts and returns: for money that arrived, numbered without gaps, stated once."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from flask import Flask
from sqlalchemy.exc import DBAPIError, IntegrityError

from portal import clock
from portal.db import SYSTEM, Actor, Tx, transaction
from portal.outcome import Applied, Code, Noop, Outcome, Refused
from portal.verbs import cash, documents, facilities, stays
from portal.verbs.documents import Folio
from tests.cast import Booked, Cast
from tests.outside import Owner

NUMBER = "T7123456789012"


def issue(stay: Booked, addressee: str = "株式会社 山田", key: UUID | None = None) -> Outcome:
    with transaction(stay.facility_id) as tx:
        return documents.issue(tx, SYSTEM, Folio(stay_id=stay.id), addressee, key or uuid4())


def paid(stay: Booked, amount: int) -> None:
    with transaction(stay.facility_id) as tx:
        said = cash.take(tx, SYSTEM, stay.id, amount, uuid4())
        assert isinstance(said, Applied), said


def handed_back(stay: Booked, amount: int) -> None:
    with transaction(stay.facility_id) as tx:
        said = cash.hand_back(tx, SYSTEM, stay.id, amount, uuid4())
        assert isinstance(said, Applied), said


def cancelled(stay: Booked, fee: int) -> None:
    with transaction(stay.facility_id) as tx:
        seen = tx.scalar("select version from stays where id = :id", id=stay.id)
        said = stays.cancel(tx, SYSTEM, stay.id, seen, fee=fee)
        assert isinstance(said, Applied), said


def of(house: UUID) -> list[Any]:
    with transaction(house) as tx:
        return list(tx.rows("select * from documents order by number"))


def parts(document: Any) -> list[tuple[str, int, int]]:
    return [(p["item"], p["rate"], p["amount"]) for p in document.stated["parts"]]


def test_a_receipt_states_what_arrived_and_the_tax_in_it(cast: Cast, inside: Flask) -> None:
    stay = cast.book(plan="night", price=6000)
    with transaction(stay.facility_id) as tx:
        facilities.name_issuer(tx, SYSTEM, "株式会社門番", NUMBER)
    paid(stay, 6000)
    said = issue(stay)
    assert (said.code, said.status) == (Code.RECEIPT_ISSUED, "applied")
    (made,) = of(stay.facility_id)
    assert (made.number, made.kind, made.amount, made.addressee) == (
        1, "receipt", 6000, "株式会社 山田",
    )  # fmt: skip
    assert made.stated["totals"] == [{"rate": 10, "amount": 6000, "tax": 545}]
    assert made.stated["paid"] == [{"how": "cash", "amount": 6000}]
    assert made.stated["issuer"]["tax_number"] == NUMBER
    assert made.stated["issuer"]["issuer_name"] == "株式会社門番"
    assert made.stated["still_due"] == 0


def test_nothing_is_issued_for_money_that_did_not_arrive(cast: Cast, inside: Flask) -> None:
    stay = cast.book()
    assert issue(stay).code == Code.RECEIPT_NOTHING_RECEIVED
    paid(stay, 1000)
    assert issue(stay).code == Code.RECEIPT_ISSUED
    assert issue(stay).code == Code.RECEIPT_NOTHING_RECEIVED
    assert [(one.number, one.amount) for one in of(stay.facility_id)] == [(1, 1000)]
    free = cast.book(space="A02", price=0)
    assert issue(free).code == Code.RECEIPT_NOTHING_RECEIVED


def test_c13_parts_paid_one_after_the_other_add_up(cast: Cast, inside: Flask) -> None:
    stay = cast.book(price=6001)
    for amount in (2000, 1, 4000):
        paid(stay, amount)
        assert issue(stay).code == Code.RECEIPT_ISSUED
    made = of(stay.facility_id)
    assert [one.amount for one in made] == [2000, 1, 4000]
    assert [one.stated["still_due"] for one in made] == [4001, 4000, 0]
    assert sum(amount for one in made for _, _, amount in parts(one)) == 6001


def test_more_than_is_charged_waits(cast: Cast, inside: Flask) -> None:
    stay = cast.book(price=6000, starts_at=clock.now() + timedelta(days=2))
    paid(stay, 6000)
    cancelled(stay, fee=1000)
    said = issue(stay)
    assert isinstance(said, Refused)
    assert said.code == Code.RECEIPT_MORE_THAN_CHARGED
    assert said.details["amount"].amount == 5000
    handed_back(stay, 5000)
    assert issue(stay).code == Code.RECEIPT_ISSUED
    (made,) = of(stay.facility_id)
    assert (made.amount, parts(made)) == (1000, [("fee", 0, 1000)])


def test_a_return_states_what_went_back_and_names_its_receipt(cast: Cast, inside: Flask) -> None:
    stay = cast.book(price=6000, starts_at=clock.now() + timedelta(days=2))
    paid(stay, 6000)
    issue(stay, "山田 花子")
    cancelled(stay, fee=1000)
    assert issue(stay, "").code == Code.RECEIPT_MORE_THAN_CHARGED, "nothing went back yet"
    handed_back(stay, 5000)
    assert issue(stay, "").code == Code.RETURN_ISSUED
    receipt, returned = of(stay.facility_id)
    assert (returned.kind, returned.amount, returned.corrects_id) == ("return", 5000, receipt.id)
    assert returned.addressee == "山田 花子"
    assert returned.stated["corrects"] == [1]
    assert parts(returned) == [("", 10, -6000), ("fee", 0, 1000)]
    assert returned.stated["totals"][0] == {"rate": 10, "amount": -6000, "tax": -545}
    assert issue(stay).code == Code.RECEIPT_NOTHING_RECEIVED


def test_a_price_that_became_a_fee_is_corrected_without_money(cast: Cast, inside: Flask) -> None:
    """The receipt said that it contains tax; a cancellation fee contains none."""
    stay = cast.book(price=6000, starts_at=clock.now() + timedelta(days=2))
    paid(stay, 6000)
    issue(stay)
    cancelled(stay, fee=6000)
    assert issue(stay).code == Code.RETURN_ISSUED
    assert [(one.kind, one.amount) for one in of(stay.facility_id)] == [
        ("receipt", 6000), ("return", 0),
    ]  # fmt: skip


def test_h1_one_form_is_one_receipt(cast: Cast, inside: Flask) -> None:
    stay, key = cast.book(), uuid4()
    paid(stay, 6000)
    first, again = issue(stay, key=key), issue(stay, key=key)
    assert isinstance(again, Noop)
    assert isinstance(first, Applied)
    assert (again.code, again.subject) == (Code.RECEIPT_ALREADY_ISSUED, first.subject)


def test_again_is_the_same_number_and_counted(cast: Cast, inside: Flask) -> None:
    stay, other = cast.book(), cast.book(space="A02")
    paid(stay, 6000)
    made, key = issue(stay), uuid4()
    assert isinstance(made, Applied)
    assert made.subject
    with transaction(stay.facility_id) as tx:
        for form, wanted in ((key, "applied"), (key, "noop"), (uuid4(), "applied")):
            said = documents.issue_again(tx, SYSTEM, made.subject, form, Folio(stay_id=stay.id))
            assert said.status == wanted
        elses = documents.issue_again(tx, SYSTEM, made.subject, uuid4(), Folio(stay_id=other.id))
        assert elses.code == Code.NOT_FOUND
        assert tx.scalar("select count(*) from document_copies") == 2
    assert len(of(stay.facility_id)) == 1


def test_receipts_issued_at_once_are_numbered_without_gap_or_double(
    cast: Cast, inside: Flask
) -> None:
    """Ten connections, five stays, each asked for twice."""
    booked = [cast.book(starts_at=clock.now() + timedelta(days=1 + day)) for day in range(5)]
    for stay in booked:
        paid(stay, 6000)

    def press(stay: Booked) -> Code:
        with inside.app_context():
            return issue(stay).code

    with ThreadPoolExecutor(10) as pool:
        said = list(pool.map(press, booked * 2))
    assert sorted(said) == sorted([Code.RECEIPT_ISSUED] * 5 + [Code.RECEIPT_NOTHING_RECEIVED] * 5)
    assert [one.number for one in of(booked[0].facility_id)] == [1, 2, 3, 4, 5]


def test_a_number_that_was_not_kept_is_the_next_ones(cast: Cast, inside: Flask) -> None:
    """Whoever issues meanwhile waits: the number is theirs where this one is rolled back."""
    first, second = cast.book(), cast.book(space="A02")
    for stay in (first, second):
        paid(stay, 6000)

    class OutOfPaperError(Exception):
        pass

    def issued_and_undone() -> None:
        with transaction(first.facility_id) as tx:
            said = documents.issue(tx, SYSTEM, Folio(stay_id=first.id), "", uuid4())
            assert said.code == Code.RECEIPT_ISSUED
            raise OutOfPaperError

    with pytest.raises(OutOfPaperError):
        issued_and_undone()
    issue(second)
    issue(first)
    assert [(one.number, one.stay_id) for one in of(first.facility_id)] == [
        (1, second.id), (2, first.id),
    ]  # fmt: skip


def test_each_house_counts_for_itself(cast: Cast, inside: Flask) -> None:
    for stay in (cast.book(), cast.book(cast.osaka)):
        paid(stay, 6000)
        issue(stay)
        assert [one.number for one in of(stay.facility_id)] == [1]


def test_what_is_stated_never_changes(cast: Cast, inside: Flask) -> None:
    stay = cast.book(plan="night")
    paid(stay, 6000)
    issue(stay)
    before = of(stay.facility_id)[0].stated
    for change in ("update documents set amount = 1", "delete from documents",
                   "update document_copies set at = now()",
                   "delete from document_counters"):  # fmt: skip
        with (
            pytest.raises(DBAPIError, match="permission denied"),
            transaction(stay.facility_id) as tx,
        ):
            tx.run(change)
    with transaction(stay.facility_id) as tx:
        tx.run("update plans set name_ja = 'x'")
        facilities.name_issuer(tx, SYSTEM, "別の会社", None)
    assert of(stay.facility_id)[0].stated == before


def test_the_database_keeps_an_amount_on_one_document(
    cast: Cast, inside: Flask, owner: Owner
) -> None:
    stay = cast.book()
    paid(stay, 6000)
    issue(stay)
    with pytest.raises(IntegrityError, match="upto"), transaction(stay.facility_id) as tx:
        tx.run(
            """
            insert into documents (facility_id, number, kind, stay_id, day, addressee, amount,
                currency, upto, stated, form_key, actor_kind, actor_name, issued_at)
            select facility_id, 2, kind, stay_id, day, addressee, amount, currency, upto, stated,
                gen_random_uuid(), actor_kind, actor_name, issued_at from documents
            """
        )


def test_nobody_issues_for_another_house(cast: Cast, inside: Flask) -> None:
    stay = cast.book()
    paid(stay, 6000)
    with transaction(cast.osaka.id) as tx:
        said = documents.issue(tx, SYSTEM, Folio(stay_id=stay.id), "", uuid4())
        assert said.code == Code.NOT_FOUND
        assert documents.issue_again(tx, SYSTEM, uuid4(), uuid4()).code == Code.NOT_FOUND


def test_an_issue_costs_seven_statements(
    cast: Cast, inside: Flask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the account holds."""
    stay = cast.book(price=50)
    for _ in range(30):
        paid(stay, 1)
    sent: list[str] = []
    real = Tx._send
    monkeypatch.setattr(
        Tx, "_send", lambda tx, sql, params: (sent.append(sql), real(tx, sql, params))[1]
    )
    assert issue(stay).code == Code.RECEIPT_ISSUED
    assert len(sent) <= 8, sent


@pytest.mark.parametrize("number", ["T7123456789013", "7123456789012", "T1", ""])
def test_a_registration_number_with_a_slip_is_refused(
    cast: Cast, inside: Flask, number: str
) -> None:
    with transaction(cast.tokyo.id) as tx:
        said = facilities.name_issuer(tx, Actor("staff", None, "x"), "", number or None)
    assert said.code == (Code.TAX_NUMBER_WRONG if number else Code.SETTINGS_UNCHANGED)
