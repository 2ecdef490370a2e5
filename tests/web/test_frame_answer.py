"""From an outcome to what the person sees, with and without htmx."""

from datetime import UTC, datetime

import pytest
from sqlalchemy.exc import OperationalError

from portal import clock
from portal.outcome import Applied, Code
from portal.web import answer
from tests.cast import Cast
from tests.web import trial
from tests.web.audit import audit, by_id, form_data, main_of, words

NOON = datetime(2026, 4, 1, 3, 0, tzinfo=UTC)  # noon in Tokyo
HTMX = {"HX-Request": "true", "HX-Current-URL": "http://localhost/staff/trial"}


def do(client, say, **headers):
    page = audit(client.get("/staff/trial"), client)
    action = f"/staff/trial/do/{say}"
    data = form_data(page, action) if say in trial.PAGE else form_data(page)
    return client.post(action, data=data, headers=headers)


@pytest.mark.parametrize(
    ("say", "status", "ja", "en"),
    [
        ("applied", 200, "チェックイン", "Checked in."),
        ("noop", 200, "すでにチェックイン", "checked in already"),
        ("conflict", 409, "キャンセル済み", "It is now: Cancelled"),
        ("refused", 422, "￥4,000", "¥4,000"),
    ],
)
def test_htmx_gets_the_page_afresh_with_the_word_in_it(trial_cast: Cast, lang, say, status, ja, en):
    clock.set_source(lambda: NOON)
    client = trial_cast.signed_in(trial_cast.sato, locale=lang)
    answered = do(client, say, **HTMX)
    assert answered.status_code == status
    page = audit(answered, client, lang)
    notice = by_id(page, "notices")
    assert notice is not None
    assert (ja if lang == "ja" else en) in words(notice)
    assert words(by_id(page, "runs")) == "1"
    assert answered.headers["HX-Push-Url"] == "false"
    assert "refused" in [button.get("class") for button in page.iter("button")]


@pytest.mark.parametrize("say", ["applied", "noop", "conflict", "refused"])
def test_without_script_the_same_text_follows_a_redirect(trial_cast: Cast, lang, say):
    clock.set_source(lambda: NOON)
    client = trial_cast.signed_in(trial_cast.sato, locale=lang)
    spoken = words(by_id(audit(do(client, say, **HTMX), client, lang), "notices"))
    answered = do(client, say)
    assert (answered.status_code, answered.location) == (303, "/staff/trial")
    followed = audit(client.get("/staff/trial"), client, lang)
    assert words(by_id(followed, "notices")) == spoken
    again = audit(client.get("/staff/trial"), client, lang)
    assert words(by_id(again, "notices")) == ""


def test_a_conflict_says_since_when_on_the_facilitys_clock_and_by_whom(trial_cast: Cast):
    clock.set_source(lambda: NOON)
    client = trial_cast.signed_in(trial_cast.sato, locale="en")
    text = words(by_id(audit(do(client, "conflict", **HTMX), client), "notices"))
    assert "since Wed 1 Apr 2026 12:00, by 鈴木 愛" in text


def test_h10_a_note_speaks_the_language_of_the_page_that_shows_it(trial_cast: Cast):
    client = trial_cast.signed_in(trial_cast.sato, locale="ja")
    do(client, "refused")
    trial_cast.speaks(trial_cast.sato, "en")
    page = audit(client.get("/staff/trial"), client, "en")
    assert "¥4,000 is due" in words(by_id(page, "notices"))


def test_h10_labels_choices_and_messages_follow_the_request(trial_cast: Cast):
    client = trial_cast.signed_in(trial_cast.sato)
    seen = []
    for locale in ("ja", "en", "ja"):
        trial_cast.speaks(trial_cast.sato, locale)
        page = audit(client.get("/staff/trial/new"), client, locale)
        data = form_data(page, "/staff/trial/new")
        wrong = audit(client.post("/staff/trial/new", data=data | {"amount": "x"}), client, locale)
        seen.append((words(main_of(page)), words(main_of(wrong))))
    assert seen[0] == seen[2]
    assert seen[0] != seen[1]
    assert "Please fill this in." in seen[1][1]
    assert "Please" not in seen[0][1]


def test_what_is_not_there_looks_like_an_address_that_never_was(trial_cast: Cast):
    client = trial_cast.signed_in(trial_cast.sato)
    hidden, never = do(client, "absent"), client.get("/staff/never")
    assert hidden.status_code == never.status_code == 404
    assert hidden.data == never.data
    audit(hidden, client, "ja")


def test_a_refusal_by_role_is_403(trial_cast: Cast):
    client = trial_cast.signed_in(trial_cast.sato)
    refused = do(client, "forbidden")
    assert refused.status_code == 403
    audit(refused, client, "ja")


def test_a_refused_form_keeps_what_was_typed_in_both_modes(trial_cast: Cast, lang):
    client = trial_cast.signed_in(trial_cast.sato, locale=lang)
    for headers in ({}, HTMX):
        page = audit(client.get("/staff/trial/new"), client, lang)
        data = form_data(page, "/staff/trial/new") | {"guest": "refuse me", "note": "左の棚"}
        refused = client.post("/staff/trial/new", data=data, headers=headers)
        assert refused.status_code == 422
        shown = audit(refused, client, lang)
        kept = form_data(shown, "/staff/trial/new")
        assert (kept["guest"], kept["note"]) == ("refuse me", "左の棚")
        assert kept["form_key"] == data["form_key"]
        assert "4,000" in words(by_id(shown, "notices"))


def test_the_verb_runs_as_the_person_in_their_facility(trial_cast: Cast):
    do(trial_cast.signed_in(trial_cast.sato), "applied")
    assert trial.runs == [(trial_cast.sato.actor, "applied")]


def test_a_guests_act_is_the_guests(trial_cast: Cast):
    booked = trial_cast.book(guest=trial_cast.emma)
    client = trial_cast.app.test_client()
    page = audit(client.get(f"/g/{booked.token}/trial"), client, "en")
    done = client.post(f"/g/{booked.token}/trial", data=form_data(page))
    assert done.status_code == 303
    ((actor, _),) = trial.runs
    assert (actor.kind, actor.name) == ("guest", "Emma Smith")


class _Deadlock(Exception):
    sqlstate = "40P01"


def test_a_deadlock_is_tried_again_and_then_told(trial_cast: Cast, monkeypatch):
    left = [2]

    def stumbling(tx, actor, say):
        if left[0]:
            left[0] -= 1
            raise OperationalError("update", {}, _Deadlock())
        return Applied(Code.STAY_ADMITTED, to="admitted")

    monkeypatch.setattr(trial, "verb", stumbling)
    client = trial_cast.signed_in(trial_cast.sato)
    assert do(client, "applied").status_code == 303
    left[0] = answer.ATTEMPTS
    assert do(client, "applied").status_code == 503
