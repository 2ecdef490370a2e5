"""The bare address."""

from flask.testing import FlaskClient


def test_the_bare_address_leads_to_the_desk(client: FlaskClient) -> None:
    answer = client.get("/")
    assert (answer.status_code, answer.headers["Location"]) == (303, "/staff/")


def test_nothing_is_written_there(client: FlaskClient) -> None:
    assert client.post("/").status_code in (400, 405)
