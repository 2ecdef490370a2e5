"""Who may come in: declared by every endpoint, asked before every view."""

import pytest
from sqlalchemy import event

from portal.db import db
from portal.web import access
from sandbox.watch import statements
from tests.cast import Cast
from tests.web.audit import audit, form_data, main_of, words


def test_every_endpoint_declares_who_may_use_it(app):
    with app.app_context():
        silent = {rule.endpoint for rule in app.url_map.iter_rules()} - {
            endpoint for endpoint in app.view_functions if access.declared(endpoint)
        }
    assert silent == set()


def test_every_guests_address_carries_a_token(app):
    with app.app_context():
        for rule in app.url_map.iter_rules():
            declared = access.declared(rule.endpoint)
            if declared and declared.kind == "guest":
                assert "token" in rule.arguments, rule


def test_machines_alone_are_without_a_token_of_ours(app):
    with app.app_context():
        machines = {
            rule.endpoint
            for rule in app.url_map.iter_rules()
            if (declared := access.declared(rule.endpoint)) and declared.kind == "machine"
        }
    assert {name.split(".")[0] for name in machines} <= {"health", "hooks"}


def test_an_endpoint_that_declares_nothing_is_a_fault(trial_cast: Cast):
    client = trial_cast.signed_in(trial_cast.sato)
    assert client.get("/staff/trial/undeclared").status_code == 500


def test_a_stranger_is_led_to_the_sign_in(trial_cast: Cast):
    client = trial_cast.app.test_client()
    led = client.get("/staff/trial?name=a%20b")
    assert (led.status_code, led.location) == (
        303,
        "/staff/sign-in?next=/staff/trial?name%3Da%2520b",
    )
    part = client.get("/staff/trial", headers={"HX-Request": "true"})
    assert (part.status_code, part.headers["HX-Refresh"]) == (401, "true")


def test_a_strangers_post_is_401_with_a_way_on(trial_cast: Cast, lang):
    client = trial_cast.app.test_client()
    client.get(f"/staff/sign-in?lang={lang}")
    refused = client.post("/staff/trial/do/applied")
    assert refused.status_code == 401
    page = audit(refused, client, lang)
    assert any(link.get("href") == "/staff/sign-in" for link in page.iter("a"))


def test_a_role_that_is_too_small_is_403(trial_cast: Cast, lang):
    for person, status in (
        (trial_cast.sato, 403),
        (trial_cast.suzuki, 403),
        (trial_cast.tanaka, 200),
    ):
        client = trial_cast.signed_in(person, trial_cast.tokyo, locale=lang)
        answered = client.get("/staff/trial/owner")
        assert answered.status_code == status
        page = audit(answered, client, lang)
        if status == 403:
            told = "権限がありません" if lang == "ja" else "Your role does not allow this."
            assert told in words(main_of(page))


def test_a_person_without_a_chosen_facility_chooses_first(trial_cast: Cast):
    client = trial_cast.signed_in(trial_cast.suzuki)
    with trial_cast.transaction(None) as tx:
        tx.run("update staff_sessions set chosen_facility = null")
    led = client.get("/staff/trial")
    assert (led.status_code, led.location) == (303, "/staff/facility")


def test_a_role_taken_away_counts_at_once(trial_cast: Cast):
    client = trial_cast.signed_in(trial_cast.tanaka, trial_cast.tokyo)
    assert client.get("/staff/trial/owner").status_code == 200
    with trial_cast.transaction(trial_cast.tokyo.id) as tx:
        tx.run(
            "update staff_roles set role = 'front_desk' where staff_id = :id",
            id=trial_cast.tanaka.id,
        )
    assert client.get("/staff/trial/owner").status_code == 403


@pytest.mark.parametrize("token", ["nonsense", "x" * 500, "%00", "%ff", "🍱", "..", "' or 1=1"])
def test_an_unknown_link_is_an_address_that_never_was(trial_cast: Cast, token):
    client = trial_cast.app.test_client()
    unknown, never = client.get(f"/g/{token}/trial"), client.get("/never")
    assert unknown.status_code == 404
    assert unknown.data == never.data
    audit(unknown, client)


@pytest.mark.parametrize(
    "way", ["/g//evil.example/pay", "/g/%2F%2Fevil.example/pay", "//staff/stays"]
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_an_address_is_not_mended_by_a_redirect(client, method, way):
    """To be sent on, a post would have to be answered before its token is looked at."""
    assert client.open(f"http://localhost{way}", method=method).status_code == 404


def test_a_link_opens_its_own_house_only(trial_cast: Cast):
    tokyo = trial_cast.book(trial_cast.tokyo, trial_cast.hanako)
    osaka = trial_cast.book(trial_cast.osaka, trial_cast.emma)
    client = trial_cast.app.test_client()
    assert "羽田カプセルホテル" in audit_text(client, tokyo.token)
    assert "Umeda Sauna" in audit_text(client, osaka.token)


def audit_text(client, token):
    return words(audit(client.get(f"/g/{token}/trial"), client))


def test_knowing_the_person_costs_one_transaction_and_two_statements(trial_cast: Cast):
    client = trial_cast.signed_in(trial_cast.suzuki, trial_cast.tokyo)
    client.get("/staff/trial")
    begun: list[object] = []
    with trial_cast.app.app_context():
        engine = db.engine

    def begin(conn):
        begun.append(conn)

    event.listen(engine, "begin", begin)
    try:
        with statements() as said:
            assert client.get("/staff/trial").status_code == 200
    finally:
        event.remove(engine, "begin", begin)
    assert len(said) == 2, said
    assert len(begun) == 1


def test_a_get_changes_nothing_but_the_browsers_own_session(trial_cast: Cast):
    client = trial_cast.signed_in(trial_cast.sato)
    for address in ("/staff/trial?lang=en", "/staff/sign-out", "/staff/language"):
        client.get(address)
    page = audit(client.get("/staff/trial"), client, "ja")
    assert form_data(page, "/staff/sign-out")
