"""Signing in and out, the facility in use, the language."""

from datetime import UTC, datetime, timedelta

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from portal import clock
from portal.web import passwords
from tests.cast import Cast, Colleague
from tests.web.audit import audit, by_id, form_data, main_of, words

URL = "/staff/sign-in"


def sign_in(
    client: FlaskClient, email: str, password: str, wanted: str = "", **headers: str
) -> TestResponse:
    page = audit(client.get(URL, query_string={"next": wanted} if wanted else None), client)
    data = form_data(page, URL) | {"email": email, "password": password}
    return client.post(URL, data=data, headers=headers)


def enter(client: FlaskClient, person: Colleague) -> TestResponse:
    return sign_in(client, person.email, person.password)


def is_signed_in(client: FlaskClient) -> bool:
    return client.get("/staff/facility").status_code == 200


def cookie(client: FlaskClient) -> str:
    found = client.get_cookie("monban")
    assert found is not None
    return found.value


def test_a_person_signs_in_and_lands_where_they_wanted(client: FlaskClient, cast: Cast) -> None:
    refused = client.get("/staff/facility?x=1")
    assert refused.status_code == 303
    assert refused.location == "/staff/sign-in?next=/staff/facility?x%3D1"
    done = sign_in(client, cast.sato.email.upper(), cast.sato.password, "/staff/facility?x=1")
    assert (done.status_code, done.location) == (303, "/staff/facility?x=1")
    page = audit(client.get("/staff/facility"), client, "ja")
    assert "羽田カプセルホテル" in words(page)


@pytest.mark.parametrize(
    "wanted",
    ["//evil.example", "https://evil.example/staff", "/\\evil.example", "javascript:alert(1)",
     "/\tevil", "\\\\evil", "/a\\b"],
)  # fmt: skip
def test_the_way_on_never_leads_to_another_site(client, cast, wanted):
    done = sign_in(client, cast.sato.email, cast.sato.password, wanted)
    assert done.location == "/staff/home"


@pytest.mark.parametrize(
    ("email", "password"),
    [
        ("sato@monban.example", "wrong"),
        ("nobody@monban.example", "correct horse battery staple"),
        ("sato@monban.example' or 1=1 --", "a secret"),
        ("👩" * 200, "👩" * 900),
    ],
)
def test_a_wrong_one_is_told_without_saying_which(client, cast, lang, email, password):
    assert cast.sato
    client.get(f"{URL}?lang={lang}")
    refused = sign_in(client, email, password)
    assert refused.status_code == 422
    page = audit(refused, client, lang)
    told = by_id(page, "password-error")
    assert words(told) == (
        "メールアドレスまたはパスワードが正しくありません。"
        if lang == "ja"
        else "E-mail or password is not right."
    )
    assert password not in refused.text
    assert not is_signed_in(client)


@pytest.mark.parametrize("email", ["sato@monban.example\x00", "", "  ", "x" * 255, "\ufffd"])
def test_what_is_no_address_is_told_at_its_field(client, cast, email):
    assert cast.sato
    refused = sign_in(client, email, cast.sato.password)
    assert refused.status_code == 422
    assert by_id(audit(refused, client), "email-error") is not None


def test_an_unknown_person_costs_as_much_as_a_wrong_password(client, cast, monkeypatch):
    asked = []
    real = passwords._hasher.__class__.verify
    monkeypatch.setattr(
        passwords._hasher.__class__,
        "verify",
        lambda self, kept, typed: asked.append(kept) or real(self, kept, typed),
    )
    sign_in(client, "nobody@monban.example", "x")
    assert len(asked) == 1


def test_who_no_longer_works_here_cannot_come_in(client, cast):
    inside = cast.signed_in(cast.sato)
    assert is_signed_in(inside)
    with cast.transaction(None) as tx:
        tx.run("update staff set active = false where id = :id", id=cast.sato.id)
    assert not is_signed_in(inside)
    assert enter(client, cast.sato).status_code == 422


def test_an_old_hash_is_made_stronger(client, cast):
    enter(client, cast.sato)
    with cast.transaction(None) as tx:
        kept = tx.scalar("select password_hash from staff where id = :id", id=cast.sato.id)
    assert not passwords.outdated(kept)
    assert enter(cast.app.test_client(), cast.sato).status_code == 303


def test_a_session_ends_after_twelve_hours(cast):
    client = cast.app.test_client()
    enter(client, cast.sato)
    for past, here in (("11 hours 59 minutes", True), ("2 minutes", False)):
        with cast.transaction(None) as tx:
            tx.run(
                "update staff_sessions set expires_at = expires_at - cast(:p as interval)", p=past
            )
        assert is_signed_in(client) is here


def test_a_session_is_as_long_by_a_clock_that_is_wrong(cast):
    """It begins and ends in the database's time, whichever machine answers."""
    clock.set_source(lambda: datetime.now(UTC) + timedelta(hours=13))
    ahead = cast.app.test_client()
    enter(ahead, cast.sato)
    with cast.transaction(None) as tx:
        lasts = tx.scalar("select expires_at - now() from staff_sessions")
    assert timedelta(hours=11, minutes=58) < lasts <= timedelta(hours=12)
    assert is_signed_in(ahead)


def test_h5_a_session_from_before_signing_in_stays_anonymous(client, cast):
    client.get(URL)
    before = cookie(client)
    assert enter(client, cast.sato).status_code == 303
    assert cookie(client) != before
    elsewhere = cast.app.test_client()
    elsewhere.set_cookie("monban", before)
    assert not is_signed_in(elsewhere)


def test_h5_a_cookie_from_before_signing_out_is_nobodys(client, cast):
    enter(client, cast.sato)
    page = audit(client.get("/staff/facility"), client)
    inside = cookie(client)
    client.post("/staff/sign-out", data=form_data(page, "/staff/sign-out"))
    assert not is_signed_in(client)
    elsewhere = cast.app.test_client()
    elsewhere.set_cookie("monban", inside)
    assert not is_signed_in(elsewhere)


def test_h5_the_csrf_token_changes_with_the_session(client, cast):
    outside = form_data(audit(client.get(URL), client), URL)["csrf_token"]
    enter(client, cast.sato)
    page = audit(client.get("/staff/facility"), client)
    inside = form_data(page, "/staff/sign-out")
    assert client.post("/staff/sign-out", data={"csrf_token": outside}).status_code == 400
    assert client.post("/staff/sign-out", data=inside).status_code == 303
    enter(client, cast.sato)
    assert client.post("/staff/sign-out", data=inside).status_code == 400


def test_h5_two_browsers_of_one_person_are_two_sessions(cast):
    one, two = cast.signed_in(cast.sato), cast.signed_in(cast.sato)
    page = audit(one.get("/staff/facility"), one)
    one.post("/staff/sign-out", data=form_data(page, "/staff/sign-out"))
    assert not is_signed_in(one)
    assert is_signed_in(two)


def test_too_many_wrong_ones_are_slowed_by_account_and_by_address(client, cast, lang):
    client.get(f"{URL}?lang={lang}")
    for _ in range(10):
        assert sign_in(client, cast.sato.email, "wrong").status_code == 422
    for password in ("wrong", cast.sato.password):
        limited = sign_in(client, cast.sato.email.upper(), password)
        assert limited.status_code == 429
        assert "試行回数" in words(main_of(audit(limited, client, lang))) or lang == "en"
    assert enter(client, cast.suzuki).status_code == 303
    other = cast.app.test_client()
    for number in range(20):
        assert sign_in(other, f"nobody{number}@monban.example", "x").status_code == 422
    assert sign_in(other, "nobody@monban.example", "x").status_code == 429


def test_right_ones_are_not_counted(client, cast):
    for _ in range(12):
        assert enter(cast.app.test_client(), cast.sato).status_code == 303


def test_one_of_several_facilities_is_chosen_before_work(client, cast):
    enter(client, cast.suzuki)
    page = audit(client.get("/staff/home", follow_redirects=True), client, "ja")
    assert "施設を選ぶ" in words(page)
    forms = [form for form in page.iter("form") if form.get("action") == "/staff/facility"]
    osaka = next(form for form in forms if "梅田サウナ" in words(form))
    data = {field.get("name"): field.get("value") for field in osaka.iter("input")}
    assert client.post("/staff/facility", data=data).status_code == 303
    banner = next(audit(client.get("/staff/facility"), client).iter("header"))
    assert "梅田サウナ" in words(banner)
    assert "フロント" in words(banner)


def test_nobody_chooses_a_facility_that_is_not_theirs(cast):
    client = cast.signed_in(cast.sato)
    data = form_data(audit(client.get("/staff/facility"), client), "/staff/facility")
    for wanted in (str(cast.osaka.id), "", "nonsense", "\x00"):
        refused = client.post("/staff/facility", data=data | {"facility": wanted})
        assert refused.status_code == 403
    assert "羽田" in client.get("/staff/facility").text


def test_a_cookie_that_names_another_facility_gets_only_the_chosen_one(cast):
    client = cast.signed_in(cast.suzuki, cast.tokyo)
    with client.session_transaction() as session:
        session["facility"] = str(cast.osaka.id)
    banner = next(audit(client.get("/staff/facility"), client).iter("header"))
    assert "羽田" in words(banner)
    assert "マネージャー" in words(banner)


def test_the_language_is_the_persons_everywhere(cast):
    client = cast.signed_in(cast.sato, locale="ja")
    page = audit(client.get("/staff/facility"), client, "ja")
    data = form_data(page, "/staff/language") | {"lang": "en"}
    assert client.post("/staff/language", data=data).location == "/staff/facility"
    audit(client.get("/staff/facility"), client, "en")
    audit(cast.signed_in(cast.sato).get("/staff/facility"), client, "en")
    for wrong in ("fr", "", "\x00"):
        client.post("/staff/language", data=data | {"lang": wrong})
    audit(client.get("/staff/facility"), client, "en")


def test_a_dead_queue_does_not_lock_staff_out(settings, cast):
    from portal import config
    from portal.web import factory

    app = factory.create_app(
        config.from_environment(settings | {"REDIS_URL": "redis://127.0.0.1:9/0"})
    )
    client = app.test_client()
    for _ in range(10):
        assert sign_in(client, cast.sato.email, "wrong").status_code == 422
    assert sign_in(client, cast.sato.email, "wrong").status_code == 429
    assert enter(app.test_client(), cast.suzuki).status_code == 303
