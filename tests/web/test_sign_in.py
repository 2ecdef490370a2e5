"""Signing in and out."""

from flask.testing import FlaskClient

from tests.cast import Cast
from tests.web.audit import audit, form_data


def sign_in(client: FlaskClient, email: str, password: str, next: str = ""):  # noqa: A002
    page = audit(client.get("/staff/sign-in" + (f"?next={next}" if next else "")), client)
    data = form_data(page, "/staff/sign-in") | {"email": email, "password": password}
    return client.post("/staff/sign-in", data=data)


def test_a_person_signs_in_and_lands_where_they_wanted(client: FlaskClient, cast: Cast) -> None:
    refused = client.get("/staff/facility?x=1")
    assert refused.status_code == 303
    assert refused.location == "/staff/sign-in?next=/staff/facility?x%3D1"
    done = sign_in(client, cast.sato.email.upper(), cast.sato.password, "/staff/facility")
    assert (done.status_code, done.location) == (303, "/staff/facility")
    page = audit(client.get("/staff/facility"), client, "ja")
    assert page
