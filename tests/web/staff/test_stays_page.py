"""One stay's page: money, keys, messages and all that happened."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from portal import seal
from portal.db import SYSTEM
from portal.machines import MACHINES
from portal.verbs import keys, refunds, stay_changes, stays
from portal.web import words
from portal.web.staff.stay_view import moment
from sandbox.watch import statements
from tests.cast import Booked, Cast
from tests.web.audit import by_id
from tests.web.staff.desk import NOON, admitted, at, has_form, look, pay, row, text
from tests.web.staff.houses import FrontDesk

BEFORE = {"check-in", "times", "move", "persons", "no-show", "cancel"}
IN_HOUSE = {"check-out", "times", "move", "persons", "key", "link"}


def url(stay: Booked) -> str:
    return f"/staff/stays/{stay.id}"


def acts(page, stay: Booked) -> set[str]:
    """The acts that the page offers, forms and links alike. Receipts and register have
    pages of their own."""
    found = {form.get("action", "") for form in page.iter("form")}
    found |= {link.get("href", "") for link in page.iter("a")}
    acts = {act.rsplit("/", 1)[1] for act in found if act.startswith(f"{url(stay)}/")}
    return acts - {"receipts", "register"}


def verb(cast: Cast, what, stay: Booked, *args) -> None:
    with cast.transaction(stay.facility_id) as tx:
        version = tx.scalar("select version from stays where id = :id", id=stay.id)
        said = what(tx, cast.sato.actor, stay.id, version, *args)
    assert said.status == "applied", said


def test_a_reserved_stay(cast: Cast, lang: str) -> None:
    stay = cast.book(plan="night", deposit_due=2000, note="<b>上段</b>希望")
    page = look(cast.signed_in(cast.sato, locale=lang), url(stay), lang)
    assert acts(page, stay) == {*BEFORE, "cash", "link"}
    seen = text(page)
    assert "山田 花子" in seen
    assert row(cast, stay).code in seen
    assert "<b>上段</b>希望" in seen
    assert ("残額 ￥6,000" if lang == "ja" else "¥6,000 due") in seen
    assert f"/g/{stay.token}" in [
        i.get("value", "")[-len(stay.token) - 3 :] for i in page.iter("input")
    ]
    assert any(True for _ in page.iter("{http://www.w3.org/2000/svg}svg")) or any(
        True for _ in page.iter("svg")
    )


def test_in_house_left_cancelled_and_missed(cast: Cast, lang: str) -> None:
    client = cast.signed_in(cast.sato, locale=lang)
    stay = admitted(cast, space="A01")
    assert acts(look(client, url(stay), lang), stay) == IN_HOUSE
    verb(cast, stays.depart, stay)
    assert acts(look(client, url(stay), lang), stay) == {"link"}
    missed = cast.book(space="A02", starts_at=datetime.now(UTC) - timedelta(hours=1))
    verb(cast, stays.mark_no_show, missed)
    assert acts(look(client, url(missed), lang), missed) == {"reinstate", "cancel", "cash", "link"}
    pay(cast, missed, 6000)
    verb(cast, stays.cancel, missed, 1000)
    page = look(client, url(missed), lang)
    assert acts(page, missed) == {"cash-back", "link"}
    assert "5,000" in text(page)


@pytest.mark.parametrize(
    ("nights", "ja", "en"), [(0, "0泊", "0 nights"), (1, "1泊", "1 night"), (2, "2泊", "2 nights")]
)
def test_h11_nights_are_counted_in_words(cast: Cast, nights: int, ja: str, en: str) -> None:
    begins = datetime(2026, 10, 10, 1, tzinfo=UTC)
    stay = cast.book(starts_at=begins, ends_at=begins + timedelta(days=nights, hours=3))
    seen = {
        lang: text(look(cast.signed_in(cast.sato, locale=lang), url(stay))) for lang in ("ja", "en")
    }
    assert ja in seen["ja"]
    assert f"{en} " in f"{seen['en']} "


def test_everything_of_a_full_life_in_one_timeline(front: FrontDesk, lang: str) -> None:
    """Card paid, a refund asked, moved, retimed, a key that failed, messages in every state."""
    cast = front.cast
    stay = cast.book(plan="night", space="A01")
    payment = front.paid(stay)
    verb(cast, stays.admit, stay)
    with cast.transaction(cast.tokyo.id) as tx:
        key = tx.scalar("select id from entry_keys where stay_id = :s", s=stay.id)
        keys.observe(tx, key, status="set", code_id="code-1")
    verb(cast, stay_changes.move_to, stay, cast.tokyo.spaces["A03"])
    now = row(cast, stay)
    verb(
        cast, stay_changes.change_times, stay, now.starts_at, now.ends_at + timedelta(days=1), 6000
    )
    with cast.transaction(cast.tokyo.id) as tx:
        fresh = tx.scalar(
            "select id from entry_keys where stay_id = :s and id <> :k", s=stay.id, k=key
        )
        keys.refuse(tx, fresh, "code_invalid")
        tx.run(
            "update lock_commands set dead_at = now(), last_error = 'away' where key_id = :k",
            k=fresh,
        )
        for n, state in enumerate(
            ("sent_at", "suppressed_at", "withdrawn_at", "unknown_at", "dead_at")
        ):
            tx.run(
                f"""
                insert into outbox (facility_id, stay_id, dedupe_key, consumer_key, event_type,
                    channel, recipient, locale, payload, priority, {state})
                values (:f, :s, 'k' || :n, 'k' || :n, 'payment_received', 'line', 'U1', 'en',
                    '{{}}', 2, now())
                """,
                f=cast.tokyo.id, s=stay.id, n=n,
            )  # fmt: skip
    with front.app.app_context():
        refunds.ask(front.desk(), SYSTEM, payment, 1000, uuid4(), lowers_price=True)
    client = cast.signed_in(cast.sato, locale=lang)
    with statements() as said:
        page = look(client, url(stay), lang)
    assert len(said) <= 12, said
    history = by_id(page, "history")
    assert history is not None
    seen = text(page)
    assert "A01 → A03" in seen
    assert f"/staff/payments/{payment}/refund" in [a.get("href") for a in page.iter("a")]
    moments = [
        t.get("datetime")
        for t in next(o for o in page.iter("ol") if o.get("class") == "timeline").iter("time")
    ]
    assert moments == sorted(moments, reverse=True)
    assert "pin" not in seen.lower()


def test_the_page_costs_at_most_twelve_statements_whatever_happened(front: FrontDesk) -> None:
    cast = front.cast
    stay = cast.book()
    client = cast.signed_in(cast.sato)
    with statements() as quiet:
        look(client, url(stay))
    with cast.transaction(cast.tokyo.id) as tx:
        tx.run(
            """
            insert into ledger_lines (facility_id, stay_id, kind, amount, currency, actor_kind,
                actor_name, at)
            select :f, :s, 'charge', 10, 'JPY', 'staff', 'x', now() from generate_series(1, 300)
            """,
            f=cast.tokyo.id, s=stay.id,
        )  # fmt: skip
    with statements() as busy:
        look(client, url(stay))
    assert len(busy) == len(quiet) <= 12


def test_every_event_that_can_be_recorded_has_words(cast: Cast) -> None:
    """A record of any machine of ours, any ledger line, any message can be shown."""
    from types import SimpleNamespace as Row

    base = {
        "at": NOON,
        "verb": "",
        "detail": "",
        "actor_kind": "staff",
        "actor_name": "x",
        "amount": 1,
    }
    with cast.app.test_request_context():
        for machine in MACHINES:
            if machine.name not in ("stay", "entry_key", "payment", "refund"):
                continue
            for _, event, _to in machine.pairs():
                assert moment(Row(**base, kind=machine.name, event=event)).words
        for kind, table in (
            ("ledger", words.LEDGER),
            ("message", words.MESSAGE_STATES),
            ("lock", words.COMMANDS),
            ("gate", words.GATE),
        ):
            for event in table:
                assert moment(Row(**base, kind=kind, event=event)).words


def test_the_door_code_is_nowhere_on_a_page_of_staff(cast: Cast) -> None:
    stay = admitted(cast)
    with cast.transaction(cast.tokyo.id) as tx:
        key = tx.row("select id, pin_sealed from entry_keys where stay_id = :s", s=stay.id)
        keys.observe(tx, key.id, status="set", code_id="c")
        pin = seal.unseal(key.pin_sealed)
    client = cast.signed_in(cast.sato)
    for page in ("", "/move", "/times", "/cancel"):
        assert pin not in client.get(url(stay) + page).get_data(as_text=True)
    assert pin not in client.get("/staff/").get_data(as_text=True)


def test_h17_a_name_cannot_turn_the_line(cast: Cast, lang: str) -> None:
    stay = cast.book(guest={"name": "مريم\u202e abc", "kana": "\u202eカナ"})
    client = cast.signed_in(cast.sato, locale=lang)
    for page in (url(stay), "/staff/", "/staff/stays"):
        body = client.get(page).get_data(as_text=True)
        assert '<bdi class="name">مريم\u202e abc</bdi>' in body
        title = body.split("<title>")[1].split("</title>")[0]
        assert "\u202e" not in title


def test_another_houses_stay_is_no_stay(cast: Cast) -> None:
    theirs = cast.book(cast.osaka)
    client = cast.signed_in(cast.sato)
    for part in ("", "/cancel", "/move", "/times"):
        mains = set()
        for stay_id in (theirs.id, uuid4()):
            mains.add(text(look(client, f"/staff/stays/{stay_id}{part}", status=404)))
        assert len(mains) == 1


def test_an_address_that_is_none_is_not_found(cast: Cast) -> None:
    client = cast.signed_in(cast.sato)
    for broken in ("x", "00000000-0000-0000-0000-00000000000g", "%00", "%ff"):
        for part in ("", "/move"):
            assert client.get(f"/staff/stays/{broken}{part}").status_code in (400, 404)


def test_e8_the_page_knows_when_the_time_of_a_stay_is_over(cast: Cast) -> None:
    with at(NOON):
        stay = cast.book(starts_at=NOON - timedelta(hours=5), ends_at=NOON + timedelta(hours=1))
        pay(cast, stay, 6000)
        client = cast.signed_in(cast.sato, locale="en")
        assert "ended at" not in text(look(client, url(stay)))
    with at(NOON + timedelta(hours=1)):
        page = look(client, url(stay))
    assert "ended at" in text(page)
    assert has_form(page, f"{url(stay)}/check-in"), "the button stays; the server refuses"
