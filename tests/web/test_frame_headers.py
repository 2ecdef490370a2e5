"""What every answer tells the browser about safety and keeping."""

import re

import pytest

from portal import config
from portal.web import factory, headers
from tests.cast import Cast
from tests.web.audit import audit, main_of, words


def test_h2_one_page_has_one_shape_however_it_is_asked_for(trial_cast: Cast):
    client = trial_cast.signed_in(trial_cast.sato)
    asked = [
        {},
        {"HX-Request": "true"},
        {"HX-Request": "true", "HX-History-Restore-Request": "true"},
        {"HX-Request": "true", "HX-Boosted": "true"},
        {},
    ]
    shown = []
    for extra in asked:
        answered = client.get("/staff/trial", headers=extra)
        page = audit(answered, client, "ja")
        shown.append(words(page))
        vary = {name.strip() for name in answered.headers["Vary"].split(",")}
        assert {"HX-Request", "Accept-Language", "Cookie"} <= vary
        assert answered.headers["Cache-Control"] == "no-store"
        assert main_of(page) is not None
    assert len(set(shown)) == 1


def test_h2_a_history_restore_is_answered_as_a_whole_page(trial_cast: Cast):
    """Were a restore taken for htmx's own request, a post's page would stay in the history."""
    from portal.web import answer

    with trial_cast.app.test_request_context(
        headers={"HX-Request": "true", "HX-History-Restore-Request": "true"}
    ):
        assert not answer.is_htmx()


@pytest.mark.parametrize("path", ["/staff/sign-in", "/never", "/static/monban.css"])
def test_every_page_is_guarded(client, path):
    answered = client.get(path)
    assert answered.headers["X-Content-Type-Options"] == "nosniff"
    policy = answered.headers["Content-Security-Policy"]
    assert "default-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert re.fullmatch(r"[0-9a-f]{32}", answered.headers["X-Request-Id"])


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics", "/webhooks/stripe"])
def test_what_a_machine_is_told_is_no_page_and_is_not_kept(client, path):
    answered = client.post(path) if "webhooks" in path else client.get(path)
    assert answered.headers["X-Content-Type-Options"] == "nosniff"
    assert answered.headers["Cache-Control"] == "no-store"
    assert answered.mimetype in ("text/plain", "application/json")
    assert "Set-Cookie" not in answered.headers
    assert re.fullmatch(r"[0-9a-f]{32}", answered.headers["X-Request-Id"])


def test_the_frame_of_pages_is_not_for_machines(app, client, monkeypatch):
    """Nobody counts how often a provider comes, or looks for its session."""
    seen = []
    frame = {
        "before_request_funcs": lambda: seen.append("before"),
        "after_request_funcs": lambda response: seen.append("after") or response,
        "teardown_request_funcs": lambda _: seen.append("teardown"),
    }
    for name, function in frame.items():
        monkeypatch.setitem(getattr(app, name), None, [function])
    assert client.get("/healthz").status_code == 200
    assert client.post("/webhooks/stripe").status_code == 400
    assert seen == []
    client.get("/static/monban.css").close()
    assert seen == ["before", "after", "teardown"]


def test_a_request_id_is_never_taken_from_outside(client):
    theirs = "0" * 32
    one = client.get("/healthz", headers={"X-Request-Id": theirs}).headers["X-Request-Id"]
    two = client.get("/healthz", headers={"X-Request-Id": theirs}).headers["X-Request-Id"]
    assert len({one, two, theirs}) == 3


def test_a_guests_link_goes_to_no_other_site(trial_cast: Cast):
    booked = trial_cast.book()
    answered = trial_cast.app.test_client().get(f"/g/{booked.token}/trial")
    assert answered.headers["Referrer-Policy"] == "no-referrer"
    assert answered.headers["Cache-Control"] == "no-store"


def test_static_files_may_be_kept(client):
    assert "no-store" not in client.get("/static/monban.css").headers.get("Cache-Control", "")


def test_cookies_are_for_us_alone_and_https_is_kept(settings, app):
    safe = settings | {"PUBLIC_URL": "https://monban.example", "SECRET_KEY": "another-key"}
    over_tls = factory.create_app(config.from_environment(safe)).test_client()
    answered = over_tls.get("/staff/sign-in")
    cookie = answered.headers["Set-Cookie"]
    for word in ("Secure", "HttpOnly", "SameSite=Lax"):
        assert word in cookie
    assert "max-age=31536000" in answered.headers["Strict-Transport-Security"]
    plain = app.test_client().get("/staff/sign-in")
    assert "Secure" not in plain.headers["Set-Cookie"]
    assert "Strict-Transport-Security" not in plain.headers


def test_only_the_pay_page_lets_the_payment_provider_in(settings, app, configured):
    from dataclasses import replace

    with app.test_request_context():
        assert "stripe" not in headers.policy(configured)
        headers.allow_payment()
        real = headers.policy(configured)
        stand_in = headers.policy(replace(configured, stripe_api_base="http://127.0.0.1:8001"))
    for part in (
        "script-src 'self' https://js.stripe.com",
        "frame-src https://js.stripe.com",
        "connect-src 'self' https://api.stripe.com",
    ):
        assert part in real
    assert "form-action 'self' http://127.0.0.1:8001" in stand_in
    assert "js.stripe.com" not in stand_in
