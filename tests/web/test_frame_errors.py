"""Pages for what goes wrong: plain, in the person's language, nothing of the inside."""

import json

import pytest
from sqlalchemy.exc import OperationalError
from werkzeug.exceptions import HTTPException, default_exceptions

from portal.web import errors, people
from tests.cast import Cast
from tests.web.audit import audit, main_of, words


@pytest.mark.parametrize("status", sorted(errors.WORDS))
def test_every_error_page_is_a_page(the_trial_app, app, lang, status):
    with the_trial_app.test_request_context("/never", headers={"Accept-Language": lang}):
        answered = the_trial_app.process_response(errors.page(status))
    assert answered.status_code == status
    text = answered.get_data(as_text=True)
    assert f'lang="{lang}"' in text
    assert str(status) in text


@pytest.mark.parametrize("kind", sorted(default_exceptions))
def test_every_http_error_has_some_page(the_trial_app, app, kind):
    with the_trial_app.test_request_context("/never"):
        error = default_exceptions[kind]()
        assert isinstance(error, HTTPException)
        assert errors.on_http(error).status_code == kind


def test_a_wrong_method_is_405_and_says_which(client):
    answered = client.post("/healthz")
    assert answered.status_code == 405
    assert "GET" in answered.headers["Allow"]
    answered = client.delete("/staff/sign-in")
    assert answered.status_code == 405
    audit(answered, client)


def test_a_crash_shows_nothing_of_the_inside(trial_cast: Cast, lang):
    client = trial_cast.signed_in(trial_cast.sato, locale=lang)
    answered = client.get("/staff/trial/crash")
    assert answered.status_code == 500
    page = audit(answered, client)
    for inside in ("Traceback", "ZeroDivision", "the inside of the house", "portal/"):
        assert inside not in answered.text
    assert words(main_of(page))


def test_a_crash_is_recorded_with_the_request_id_and_without_the_path(trial_cast: Cast, capsys):
    from portal import log

    log.configure("INFO")
    client = trial_cast.signed_in(trial_cast.sato)
    answered = client.get("/staff/trial/crash?secret=1")
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines() if line[:1] == "{"]
    log.configure("WARNING")
    unhandled = next(line for line in lines if line["event"] == "unhandled")
    assert unhandled["request_id"] == answered.headers["X-Request-Id"]
    assert "the inside of the house" in unhandled["exception"]
    answered_line = next(line for line in lines if line["event"] == "answered")
    assert answered_line["endpoint"] == "trial.crash"
    assert answered_line["status"] == 500
    assert "secret" not in json.dumps(answered_line)


def test_a_guests_token_is_in_no_line_of_the_log(trial_cast: Cast, capsys):
    from portal import log

    log.configure("DEBUG")
    booked = trial_cast.book()
    client = trial_cast.app.test_client()
    client.get(f"/g/{booked.token}/trial")
    client.get(f"/g/{booked.token}/never")
    client.post(f"/g/{booked.token}/trial")
    said = capsys.readouterr().err
    log.configure("WARNING")
    assert "answered" in said
    assert booked.token not in said


def test_a_database_that_is_away_is_503_and_asks_to_come_back(trial_cast: Cast, monkeypatch, lang):
    client = trial_cast.signed_in(trial_cast.sato, locale=lang)

    def away(*_):
        raise OperationalError("select", {}, Exception("connection refused"))

    monkeypatch.setattr(people, "_person_rows", away)
    answered = client.get("/staff/trial", headers={"Accept-Language": lang})
    assert answered.status_code == 503
    assert answered.headers["Retry-After"] == "30"
    audit(answered, client, lang)
    assert "connection refused" not in answered.text


def test_a_value_no_column_holds_is_the_visitors_fault(trial_cast: Cast, monkeypatch):
    from tests.web import trial

    client = trial_cast.signed_in(trial_cast.sato)
    page = audit(client.get("/staff/trial"), client)
    monkeypatch.setattr(trial, "verb", lambda tx, actor, say: tx.scalar("select 99999999999::int"))
    from tests.web.audit import form_data

    answered = client.post("/staff/trial/do/applied", data=form_data(page))
    assert answered.status_code == 400
    audit(answered, client)
