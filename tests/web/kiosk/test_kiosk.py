"""The tablet at an entrance."""

from datetime import UTC, datetime, time, timedelta
from typing import Any
from uuid import uuid4

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from portal import clock
from portal.db import SYSTEM
from portal.jobs import walk_ins
from portal.policies.opening import Day, Stretch
from portal.policies.register import Entry
from portal.verbs import cash, facilities, keys, payment_answers, registers, stays
from portal.web.extensions import limiter
from sandbox.watch import statements
from tests.cast import Booked, Cast
from tests.outside import Owner, pay
from tests.verbs.test_blocklist import added
from tests.verbs.test_entrances import opened
from tests.web.audit import audit, form_data, main_of, words
from tests.web.staff.desk import at
from tests.web.staff.houses import FrontDesk

GUEST = {"name": "Emma Smith", "phone": "+44 7700 900123", "email": "emma@guest.example"}


@pytest.fixture(autouse=True)
def fresh_limits(front: FrontDesk) -> None:
    with front.app.app_context():
        limiter.reset()


@pytest.fixture
def cast(front: FrontDesk) -> Cast:
    return front.cast


@pytest.fixture
def tablet(front: FrontDesk) -> FlaskClient:
    return front.app.test_client()


def entrance(cast: Cast, **changes: Any) -> str:
    """Every door of Tokyo, always open; its address."""
    plain: dict[str, Any] = {
        "doors": frozenset(cast.tokyo.doors.values()),
        "week": None,
        "capacity": None,
    }
    way = opened(cast, **{**plain, **changes})
    with cast.transaction(cast.tokyo.id) as tx:
        return f"/e/{tx.scalar('select public_name from entrances where id = :id', id=way)}"


def look(tablet: FlaskClient, url: str, lang: str = "en", status: int = 200) -> Any:
    response = tablet.get(f"{url}?lang={lang}")
    assert response.status_code == status, response.text[:2000]
    assert response.headers["Cache-Control"] == "no-store"
    return audit(response, tablet, lang)


def send(tablet: FlaskClient, shown_at: str, action: str, **typed: str) -> TestResponse:
    return tablet.post(action, data=form_data(look(tablet, shown_at), action) | typed)


def shown(tablet: FlaskClient, url: str) -> str:
    return words(main_of(look(tablet, url)))


def code(response: TestResponse, tablet: FlaskClient) -> str | None:
    if response.status_code == 303:
        response = tablet.get(response.location)
    found = audit(response, tablet)
    return next((e.get("data-code") for e in found.iter() if e.get("data-code")), None)


def find(tablet: FlaskClient, way: str, stay: Booked, cast: Cast, proof: str) -> TestResponse:
    with cast.transaction(stay.facility_id) as tx:
        said = tx.scalar("select code from stays where id = :id", id=stay.id)
    return send(tablet, f"{way}/code", f"{way}/code", code=said, proof=proof)


def book(tablet: FlaskClient, way: str, cast: Cast, plan: str = "nap", **more: str) -> TestResponse:
    typed = {**GUEST, "plan_id": str(cast.tokyo.plans[plan]), **more}
    return send(tablet, f"{way}/walk-in", f"{way}/walk-in", **typed)


def paid_outside(front: FrontDesk, owner: Owner) -> None:
    """The guest has paid, and the provider told us."""
    payment, intent = owner.row("select id, intent_id from payments where state = 'open'")
    pay(front.stripe, intent)
    with front.app.app_context():
        assert payment_answers.resolve(front.desk(), SYSTEM, payment).status == "applied"


def test_a_walk_in_pays_on_the_tablet_and_reads_the_code(
    front: FrontDesk, cast: Cast, tablet: FlaskClient, owner: Owner, lang: str
) -> None:
    way = entrance(cast)
    page = audit(tablet.get(way), tablet)
    assert {e.get("href") for e in page.iter("a") if e.get("hreflang")} == {
        f"{way}/begin?lang=ja",
        f"{way}/begin?lang=en",
    }
    for url in (f"{way}/begin", f"{way}/code", f"{way}/walk-in"):
        look(tablet, url, lang)
    done = book(tablet, way, cast, hours="2")
    assert (done.status_code, done.location) == (303, f"{way}/stay")
    assert owner.row("select source, state from stays") == ("walk_in", "reserved")
    assert "¥1,800" in shown(tablet, f"{way}/stay")
    opened_payment = send(tablet, f"{way}/stay", f"{way}/pay")
    assert opened_payment.status_code == 303
    look(tablet, opened_payment.location, lang)
    paid_outside(front, owner)
    look(tablet, f"{way}/stay", lang)
    done = send(tablet, f"{way}/stay", f"{way}/check-in")
    assert code(done, tablet) == "STAY_ADMITTED"
    key = owner.one("select id from entry_keys")
    front.work("locks", "keys")
    with cast.transaction(cast.tokyo.id) as tx:
        if tx.scalar("select state from entry_keys where id = :id", id=key) != "issued":
            keys.observe(tx, key, status="set")
    page = look(tablet, f"{way}/stay", lang)
    assert any(e.get("id") == "door-code" for e in page.iter())


def test_nothing_of_the_last_guest_is_left(
    cast: Cast, tablet: FlaskClient, owner: Owner, lang: str
) -> None:
    """After the end, after the first page came back by itself, and after the session's time."""
    way = entrance(cast)
    stay = cast.book(price=0, guest=cast.emma)
    leave: list[Any] = [
        lambda: send(tablet, f"{way}/stay", f"{way}/end"),
        lambda: tablet.get(way),
        lambda: owner.run("update kiosk_sessions set expires_at = now()"),
    ]
    for go in leave:
        assert find(tablet, way, stay, cast, "0123").location == f"{way}/stay"
        said = shown(tablet, f"{way}/stay")
        assert "Smith" not in said, "nor does a page that others may see name the guest"
        go()
        back = tablet.get(f"{way}/stay")
        assert (back.status_code, back.location) == (303, way)
        assert code(tablet.get(way), tablet) is None
        token = form_data(look(tablet, f"{way}/code"), f"{way}/code")["csrf_token"]
        for act in ("pay", "check-in"):
            sent = tablet.post(f"{way}/{act}", data={"csrf_token": token, "version": "1"})
            assert (sent.status_code, sent.location) == (303, way)
    assert owner.one("select state from stays") == "reserved"


def test_what_was_typed_is_neither_offered_nor_sent_again(
    cast: Cast, tablet: FlaskClient, owner: Owner
) -> None:
    """A browser remembers what it posted, and would post it again for whoever goes back."""
    way = entrance(cast)
    for url in (f"{way}/code", f"{way}/walk-in"):
        page = look(tablet, url)
        typed = [e for e in page.iter("input") if e.get("type") not in ("hidden", None)]
        assert typed
        assert {e.get("autocomplete") for e in typed} == {"off"}
    posted = form_data(look(tablet, f"{way}/walk-in"), f"{way}/walk-in")
    posted |= {**GUEST, "phone": "no number", "plan_id": str(cast.tokyo.plans["nap"])}
    wrong = tablet.post(f"{way}/walk-in", data=posted)
    assert wrong.status_code == 422
    assert "Emma Smith" in wrong.text
    tablet.get(way)
    again = tablet.post(f"{way}/walk-in", data=posted)
    assert again.status_code == 400
    assert "Emma" not in again.text
    assert owner.one("select count(*) from stays") == 0


@pytest.mark.parametrize("proof", ["0123", "００１２３", "Emma Smith", "smith emma", "Smith"])
def test_a_code_with_what_the_guest_knows(cast: Cast, tablet: FlaskClient, proof: str) -> None:
    way = entrance(cast)
    assert find(tablet, way, cast.book(guest=cast.emma), cast, proof).status_code == 303


@pytest.mark.parametrize("proof", ["9999", "123", "3", "Emily", "S", "%", "@"])
def test_a_code_alone_shows_nobodys_stay(
    cast: Cast, tablet: FlaskClient, owner: Owner, proof: str
) -> None:
    way = entrance(cast)
    done = find(tablet, way, cast.book(guest=cast.emma), cast, proof)
    assert done.status_code == 422
    assert code(done, tablet) == "KIOSK_NOTHING_FOUND"
    assert "Smith" not in done.text
    assert owner.one("select count(*) from kiosk_sessions") == 0


def test_a_stay_of_another_entrance_or_house_is_not_found(cast: Cast, tablet: FlaskClient) -> None:
    here = entrance(cast, doors=frozenset({cast.tokyo.doors["A01"]}))
    elsewhere = cast.book(space="A02", guest=cast.emma)
    theirs = cast.book(cast.osaka, cast.emma)
    for stay in (elsewhere, theirs):
        assert find(tablet, here, stay, cast, "0123").status_code == 422
    assert tablet.get("/e/none").status_code == 404
    assert tablet.get(f"/e/{uuid4().hex[:20]}/stay").status_code == 404


def test_a_register_that_is_missing_is_filled_in_on_the_guests_phone(
    cast: Cast, tablet: FlaskClient, lang: str
) -> None:
    way = entrance(cast)
    stay = cast.book(price=0, plan="night", guest=cast.emma)
    with cast.transaction(cast.tokyo.id) as tx:
        facilities.require_register(tx, SYSTEM, True)
    find(tablet, way, stay, cast, "0123")
    crafted = form_data(look(tablet, f"{way}/stay"), f"{way}/end")
    page = words(main_of(look(tablet, f"{way}/stay", lang)))
    assert {"ja": "宿泊者名簿", "en": "register of guests"}[lang] in page
    said = tablet.post(f"{way}/check-in", data={**crafted, "version": "1"})
    assert code(said, tablet) == "REGISTER_MISSING"
    entry = Entry("Emma Smith", "1 High St", "emma@x.example", True, "UK", "AB1234567")
    with cast.transaction(cast.tokyo.id) as tx:
        registers.fill(tx, SYSTEM, stay.id, entry)
    done = send(tablet, f"{way}/stay", f"{way}/check-in")
    assert code(done, tablet) == "STAY_ADMITTED"


def test_guesses_are_few(cast: Cast, tablet: FlaskClient) -> None:
    way = entrance(cast)
    stay = cast.book(guest=cast.emma)
    said = [find(tablet, way, stay, cast, f"{guess:04}").status_code for guess in range(7000, 7012)]
    assert said == [422] * 10 + [429] * 2
    assert find(tablet, way, stay, cast, "0123").status_code == 429
    assert tablet.get(f"{way}/begin").status_code == 200


def test_a_blocked_guest_is_told_to_ask_and_nothing_more(
    cast: Cast, tablet: FlaskClient, owner: Owner
) -> None:
    way = entrance(cast)
    stay = cast.book(price=0, guest=cast.emma, plan="nap")
    added(cast, name="Emma Smith", ground="備品を壊した")
    find(tablet, way, stay, cast, "0123")
    said = send(tablet, f"{way}/stay", f"{way}/check-in")
    page = tablet.get(said.location)
    assert code(page, tablet) == "ASK_AT_DESK"
    again = book(tablet, way, cast)
    assert code(again, tablet) == "ASK_AT_DESK"
    for text in (page.text, again.text):
        assert "備品" not in text
        assert "GUEST_BLOCKED" not in text
    assert [row[0] for row in owner.rows("select code from gate_audits")] == ["GUEST_BLOCKED"] * 2
    assert owner.one("select count(*) from stays") == 1


def test_who_is_let_in_though_listed_does_not_learn_of_it(
    cast: Cast, tablet: FlaskClient, owner: Owner
) -> None:
    way = entrance(cast)
    stay = cast.book(price=0, guest=cast.emma, plan="night")
    added(cast, name="Emma Smith")
    find(tablet, way, stay, cast, "0123")
    assert code(send(tablet, f"{way}/stay", f"{way}/check-in"), tablet) == "STAY_ADMITTED"
    assert owner.one("select count(*) from dead_letters where source_kind = 'gate'") == 1


def test_what_a_page_hides_the_gate_refuses(cast: Cast, tablet: FlaskClient, owner: Owner) -> None:
    """A walk-in where none is let in, and a plan that is not offered here, both crafted."""
    members = cast.for_members()
    way = entrance(cast, mode="reservation_only", plans=frozenset({cast.tokyo.plans["night"]}))
    assert "walk-in" not in tablet.get(f"{way}/begin?lang=en").text
    assert code(book(tablet, way, cast, "night"), tablet) == "WALK_IN_NOT_ALLOWED"
    for plan in ("nap", members):
        assert book(tablet, way, cast, plan).status_code == 422
    assert owner.one("select count(*) from stays") == 0


def test_one_form_is_one_stay(cast: Cast, tablet: FlaskClient, owner: Owner) -> None:
    way = entrance(cast)
    key = str(uuid4())
    for _ in range(2):
        assert book(tablet, way, cast, form_key=key).location == f"{way}/stay"
    assert owner.one("select count(*) from stays") == 1


def test_a_full_house_says_so(cast: Cast, tablet: FlaskClient, owner: Owner) -> None:
    way = entrance(cast, doors=frozenset({cast.tokyo.doors["A01"]}))
    assert book(tablet, way, cast).status_code == 303
    assert code(book(tablet, way, cast, name="Other"), tablet) == "ENTRANCE_FULL"


def test_a_space_that_is_wanted_later_is_sold_only_until_then(
    cast: Cast, tablet: FlaskClient, owner: Owner
) -> None:
    way = entrance(cast, doors=frozenset({cast.tokyo.doors["A01"]}))
    cast.book(starts_at=clock.now() + timedelta(hours=2), space="A01")
    assert code(book(tablet, way, cast, hours="3"), tablet) == "ENTRANCE_FULL"
    assert book(tablet, way, cast, hours="1").status_code == 303


@pytest.mark.parametrize("held", ["unpaid", "fresh", "paid", "processing", "desk"])
def test_what_was_left_unpaid_is_let_go(
    front: FrontDesk, cast: Cast, tablet: FlaskClient, owner: Owner, held: str
) -> None:
    way = entrance(cast)
    if held == "desk":
        cast.book(source="walk_in", plan="nap")
    else:
        book(tablet, way, cast)
    if held in ("paid", "processing"):
        send(tablet, f"{way}/stay", f"{way}/pay")
    if held == "paid":
        paid_outside(front, owner)
    if held == "processing":
        owner.run(
            "set session_replication_role = replica;"
            " update payments set state = 'processing'; set session_replication_role = origin"
        )
    if held != "fresh":
        owner.run("update kiosk_sessions set expires_at = now() - interval '11 minutes'")
    with front.app.app_context():
        assert walk_ins.let_go() == (1 if held == "unpaid" else 0)
        assert walk_ins.let_go() == 0
    state = owner.one("select state from stays")
    assert state == ("cancelled" if held == "unpaid" else "reserved")


NOON = datetime(2026, 10, 10, 3, tzinfo=UTC)
"""12:00 in Tokyo, on a Saturday."""


@pytest.mark.parametrize(
    ("saturday", "words_of"),
    [
        (Stretch(time(15), time(23)), {"en": "today at 15:00", "ja": "本日 15:00"}),
        (None, {"en": "at Mon 12 Oct 2026 10:00", "ja": "2026年10月12日(月) 10:00"}),
    ],
)
def test_a_closed_entrance_tells_when_it_opens(
    cast: Cast, tablet: FlaskClient, lang: str, saturday: Day, words_of: dict[str, str]
) -> None:
    """The weekday with it where that is another day; Sunday is closed."""
    week = (*(Stretch(time(10), time(23)),) * 5, saturday, None)
    way = entrance(cast, week=week)
    with at(NOON):
        said = words(main_of(look(tablet, f"{way}/begin", lang)))
        assert words_of[lang] in said
        assert not [
            e for e in look(tablet, f"{way}/begin").iter("a") if "walk-in" in e.get("href", "")
        ]
    with at(NOON + timedelta(days=2)):
        assert "closed" not in words(main_of(look(tablet, f"{way}/begin")))


def test_another_tablets_token_opens_nothing(
    front: FrontDesk, cast: Cast, tablet: FlaskClient
) -> None:
    """A session is that of the entrance where it was opened."""
    here = entrance(cast, doors=frozenset({cast.tokyo.doors["A01"]}))
    other = opened(cast, "side", doors=frozenset(), week=None)
    find(tablet, here, cast.book(guest=cast.emma), cast, "0123")
    with cast.transaction(cast.tokyo.id) as tx:
        name = tx.scalar("select public_name from entrances where id = :id", id=other)
    assert tablet.get(f"/e/{name}/stay").location == f"/e/{name}"


def test_it_costs_as_much_whatever_the_house_holds(cast: Cast, tablet: FlaskClient) -> None:
    way = entrance(cast)
    find(tablet, way, cast.book(guest=cast.emma), cast, "0123")
    with statements() as said:
        look(tablet, f"{way}/stay")
    assert len(said) <= 9, said


def test_a_stay_that_is_over_is_not_found(cast: Cast, tablet: FlaskClient, owner: Owner) -> None:
    way = entrance(cast)
    stay = cast.book(guest=cast.emma)
    with cast.transaction(cast.tokyo.id) as tx:
        assert stays.cancel(tx, cast.sato.actor, stay.id, 1).status == "applied"
    assert find(tablet, way, stay, cast, "0123").status_code == 422


def test_a_ticket_pays_a_walk_in(cast: Cast, tablet: FlaskClient, owner: Owner, lang: str) -> None:
    cast.for_visits(cast.tokyo)
    way = entrance(cast, plans=frozenset(cast.tokyo.plans.values()))
    assert "ticket" not in form_data(look(tablet, f"{way}/walk-in", lang), f"{way}/walk-in")
    sold = cast.book(plan="visit", price=0, space="A03", starts_at=clock.now() + timedelta(days=9))
    _, said = cast.sell_tickets(sold, cast.tickets(cast.tokyo))
    assert code(book(tablet, way, cast, "visit", ticket=said), tablet) == "TICKET_BOOK_UNPAID"
    pay_cash(cast, sold, 5000)
    for wrong, answered in (("NOSUCHCD", "TICKET_BOOK_UNKNOWN"), ("'", "TICKET_BOOK_UNKNOWN")):
        assert code(book(tablet, way, cast, "visit", ticket=wrong), tablet) == answered
    other = book(tablet, way, cast, "nap", ticket=said)
    assert code(other, tablet) == "TICKET_BOOK_OF_ANOTHER_PLAN"

    done = book(tablet, way, cast, "visit", ticket=f"{said[:4]} {said[4:].lower()}")
    assert (done.status_code, done.location) == (303, f"{way}/stay")
    assert owner.row("select granted, used from ticket_books") == (3, 1)
    done = send(tablet, f"{way}/stay", f"{way}/check-in")
    assert code(done, tablet) == "STAY_ADMITTED", "nothing is left to pay"


def test_codes_of_tickets_are_not_guessed(cast: Cast, tablet: FlaskClient) -> None:
    cast.tickets(cast.tokyo)
    way = entrance(cast, plans=frozenset(cast.tokyo.plans.values()))
    typed = {**GUEST, "plan_id": str(cast.tokyo.plans["visit"]), "ticket": "NOSUCHCD"}
    form = form_data(look(tablet, f"{way}/walk-in"), f"{way}/walk-in") | typed
    said = [tablet.post(f"{way}/walk-in", data=form).status_code for _ in range(21)]
    assert said == [422] * 20 + [429]


def pay_cash(cast: Cast, stay: Booked, amount: int) -> None:
    with cast.transaction(stay.facility_id) as tx:
        said = cash.take(tx, cast.sato.actor, stay.id, amount, uuid4())
    assert said.status == "applied", said
