"""Forms: forged and expired posts, and everything that people and machines type."""

import re
from datetime import UTC, date, datetime
from uuid import uuid4

import pytest
from itsdangerous import URLSafeTimedSerializer
from itsdangerous.timed import TimestampSigner

from tests.cast import Cast
from tests.web import trial
from tests.web.audit import audit, by_id, form_data, main_of, words

URL = "/staff/trial/new"


def fresh(client):
    return form_data(audit(client.get(URL), client), URL)


def old(client, monkeypatch, url=URL, seconds=3601):
    """A form as it was given out `seconds` ago."""
    data = form_data(audit(client.get(url), client), url if url == URL else None)
    with client.session_transaction() as session:
        secret = session["csrf_token"]
    real = TimestampSigner.get_timestamp
    with monkeypatch.context() as patch:
        patch.setattr(TimestampSigner, "get_timestamp", lambda self: real(self) - seconds)
        key = client.application.secret_key
        data["csrf_token"] = URLSafeTimedSerializer(key, salt="wtf-csrf-token").dumps(secret)
    return data


@pytest.mark.parametrize("headers", [{}, {"HX-Request": "true"}])
def test_h4_an_expired_form_comes_back_with_its_values(
    trial_cast: Cast, lang, headers, monkeypatch
):
    client = trial_cast.signed_in(trial_cast.sato, locale=lang)
    data = old(client, monkeypatch) | {"guest": "山田 花子", "note": "窓側", "amount": "3000"}
    answered = client.post(URL, data=data, headers=headers)
    assert 400 <= answered.status_code < 500
    page = audit(answered, client, lang)
    kept = form_data(page, URL)
    assert (kept["guest"], kept["note"], kept["amount"]) == ("山田 花子", "窓側", "3000")
    told = "開いたまま" if lang == "ja" else "open for too long"
    assert told in words(main_of(page))
    assert (trial.made, trial.runs) == ([], [])
    assert kept["csrf_token"] != data["csrf_token"]
    assert client.post(URL, data=kept, headers=headers).status_code in (200, 303)
    assert len(trial.made) == 1


@pytest.mark.parametrize("headers", [{}, {"HX-Request": "true"}])
def test_h4_an_expired_button_does_nothing_and_says_so(trial_cast: Cast, headers, monkeypatch):
    client = trial_cast.signed_in(trial_cast.sato, locale="en")
    data = old(client, monkeypatch, "/staff/trial")
    answered = client.post("/staff/trial/do/applied", data=data, headers=headers)
    page = audit(answered if headers else client.get("/staff/trial"), client)
    assert answered.status_code == (422 if headers else 303)
    assert "open for too long" in words(by_id(page, "notices"))
    assert trial.runs == []


@pytest.mark.parametrize("token", [None, "", "forged", "x.y.z", "é\udcff", "a" * 5000])
def test_h4_a_forged_token_is_refused_without_echo(trial_cast: Cast, lang, token):
    client = trial_cast.signed_in(trial_cast.sato, locale=lang)
    data = fresh(client) | {"guest": "<secret words>"}
    if token is None:
        del data["csrf_token"]
    else:
        data["csrf_token"] = token.encode("utf-8", "surrogateescape").decode("latin-1")
    answered = client.post(URL, data=data)
    assert answered.status_code == 400
    audit(answered, client, lang)
    assert "secret words" not in answered.text
    assert trial.made == []


def test_h4_anothers_token_is_forged_however_fresh(trial_cast: Cast):
    mine, theirs = (trial_cast.signed_in(trial_cast.sato) for _ in range(2))
    data = fresh(mine) | {"guest": "A", "csrf_token": fresh(theirs)["csrf_token"]}
    assert mine.post(URL, data=data).status_code == 400


def test_h4_anothers_expired_token_is_forged_too(trial_cast: Cast, monkeypatch):
    mine, theirs = (trial_cast.signed_in(trial_cast.sato) for _ in range(2))
    data = fresh(mine) | {"guest": "A", "csrf_token": old(theirs, monkeypatch)["csrf_token"]}
    assert mine.post(URL, data=data).status_code == 400


def test_a_post_from_another_site_is_refused_by_the_browsers_word(trial_cast: Cast):
    client = trial_cast.signed_in(trial_cast.sato)
    headers = {"Sec-Fetch-Site": "cross-site"}
    assert client.post(URL, data=fresh(client) | {"guest": "A"}, headers=headers).status_code == 400


GOOD = [
    ("guest", "  山田 花子　", "山田 花子"),
    ("guest", "👨‍👩‍👧‍👦" * 17, "👨‍👩‍👧‍👦" * 17),
    ("guest", "a\u202eb", "a\u202eb"),
    ("note", "one\r\ntwo", "one\ntwo"),
    ("amount", "12,000", 12000),
    ("amount", "１２，０００円", 12000),
    ("amount", "¥500", 500),
    ("amount", "", None),
    ("email", " hanako@guest.example ", None),
    ("email", "Hanako@EXAMPLE.com", "Hanako@example.com"),
    ("email", "", None),
    ("phone", "０９０-１２３４-５６７８", "+819012345678"),
    ("phone", "+44 7700 900123", "+447700900123"),
    ("phone", "", None),
    ("day", "2026-04-01", date(2026, 4, 1)),
    ("at", "2026-04-01T15:00", datetime(2026, 4, 1, 6, 0, tzinfo=UTC)),
]


@pytest.mark.parametrize(("name", "typed", "taken"), GOOD)
def test_what_people_type_is_understood(trial_cast: Cast, name, typed, taken):
    client = trial_cast.signed_in(trial_cast.sato)
    data = fresh(client) | {"guest": "A", name: typed}
    answered = client.post(URL, data=data)
    if name == "email" and "guest.example" in typed:
        taken = "hanako@guest.example"
    assert answered.status_code == 303, answered.text
    assert trial.made[0][name] == taken


BAD = [
    ("guest", ""), ("guest", "   "), ("guest", "a\x00b"), ("guest", "x" * 121), ("guest", "a\x1bb"),
    ("guest", "a\ufffdb"), ("guest", "a\nb"),
    ("note", "x" * 2001), ("note", "a\x00"),
    ("amount", "-1"), ("amount", "0"), ("amount", "1.5"), ("amount", "9" * 40), ("amount", "一万"),
    ("amount", "1e3"), ("amount", "NaN"), ("amount", "100000000"), ("amount", "\x00"),
    ("email", "nobody"), ("email", "a@b@c"), ("email", "a\x00@example.com"), ("email", "x" * 300),
    ("phone", "call me"), ("phone", "12"), ("phone", "+" * 40), ("phone", "9" * 41),
    ("day", "2026-02-30"), ("day", "0202-01-01"), ("day", "９"), ("day", "9999-12-31"),
    ("at", "2026-04-01"), ("at", "T"), ("at", "99999-01-01T00:00"),
    ("kind", "c"), ("kind", ""), ("kind", "\x00"),
    ("form_key", ""), ("form_key", "nonsense"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "typed"), BAD)
def test_what_nobody_should_type_is_told_at_its_field(trial_cast: Cast, lang, name, typed):
    client = trial_cast.signed_in(trial_cast.sato, locale=lang)
    answered = client.post(URL, data=fresh(client) | {"guest": "A", name: typed})
    assert answered.status_code == 422
    page = audit(answered, client, lang)
    assert trial.made == []
    if name == "form_key":
        assert any(element.get("role") == "alert" for element in page.iter("p"))
        return
    field = by_id(page, name)
    assert field is not None
    assert field.get("aria-invalid") == "true"
    error = by_id(page, f"{name}-error")
    assert error is not None
    assert words(error)


def test_broken_utf8_in_a_form_is_told_and_not_stored(trial_cast: Cast):
    client = trial_cast.signed_in(trial_cast.sato)
    data = fresh(client)
    body = (
        f"csrf_token={data['csrf_token']}&form_key={data['form_key']}&kind=a&guest=%FF%FE".encode()
    )
    kind = "application/x-www-form-urlencoded"
    answered = client.post(URL, data=body, content_type=kind)
    assert answered.status_code == 400
    assert trial.made == []


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("/staff/trial?name=%00", 400),
        ("/staff/trial?name=%ff", 400),
        ("/staff/trial?%00=1", 400),
        ("/staff/%00", 404),
        ("/staff/%ff%fe", 404),
        ("/staff/trial?name=" + "x" * 9000, 200),
    ],
)
def test_broken_addresses_get_a_plain_answer(trial_cast: Cast, address, status):
    client = trial_cast.signed_in(trial_cast.sato)
    answered = client.get(address)
    assert answered.status_code == status
    audit(answered, client)


def test_a_form_of_a_thousand_fields_or_half_a_megabyte_is_too_large(trial_cast: Cast):
    client = trial_cast.signed_in(trial_cast.sato)
    big = client.post(URL, data=fresh(client) | {"note": "x" * 500_000})
    assert big.status_code == 413
    audit(big, client, "ja")
    many = {f"f{number}": (b"x", "") for number in range(1000)}
    crowd = client.post(URL, data=many, content_type="multipart/form-data")
    assert crowd.status_code == 413


def test_a_json_body_is_no_form(trial_cast: Cast):
    client = trial_cast.signed_in(trial_cast.sato)
    token = fresh(client)["csrf_token"]
    answered = client.post(URL, json={"guest": "A"}, headers={"X-CSRFToken": token})
    assert answered.status_code in (400, 415, 422)
    assert trial.made == []


def test_h4_no_endpoint_of_staff_acts_on_an_expired_form(trial_cast: Cast, monkeypatch):
    """Signing out apart, which an old page may always do."""
    client = trial_cast.signed_in(trial_cast.tanaka, trial_cast.tokyo, locale="en")
    booked = trial_cast.book()
    before = everything(trial_cast)
    for rule in trial_cast.app.url_map.iter_rules():
        if "POST" not in rule.methods or not rule.rule.startswith("/staff/"):
            continue
        if rule.endpoint in ("session.begin", "session.sign_out"):
            continue
        url = rule.rule.replace("<say>", "applied")
        for name in rule.arguments:
            url = re.sub(rf"<[^<>]*\b{name}>", str(booked.id), url)
        data = old(client, monkeypatch, "/staff/trial") | {
            "version": "1",
            "form_key": str(uuid4()),
            "lang": "ja",
            "facility": str(trial_cast.osaka.id),
        }
        assert client.post(url, data=data).status_code in (303, 400, 404, 409, 413, 422), url
    assert everything(trial_cast) == before
    assert trial.runs == []


def everything(cast):
    """How many rows there are of what verbs write, and what a person may change of themselves."""
    counted = []
    for house in (cast.tokyo, cast.osaka):
        with cast.transaction(house.id) as tx:
            for table in ("transitions", "stays", "payments", "refunds", "ledger_lines", "outbox"):
                counted.append(tx.scalar(f"select count(*) from {table}"))
            counted += tx.rows("select locale from staff order by id")
            counted += tx.rows("select chosen_facility from staff_sessions order by token_hash")
    return counted
