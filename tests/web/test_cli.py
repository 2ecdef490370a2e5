"""What an operator does without a browser."""

import json

import pytest

from portal.machines import MACHINES
from portal.outcome import Code
from tests.cast import Cast, Colleague


@pytest.fixture
def run(app):
    def invoke(*words: str, typed: str | None = None):
        return app.test_cli_runner().invoke(args=list(words), input=typed)

    return invoke


def test_outcomes_as_json(run):
    listed = json.loads(run("outcomes", "--json").stdout)
    assert [entry["code"] for entry in listed] == [code.value for code in Code]
    taken = next(entry for entry in listed if entry["code"] == "SPACE_TAKEN")
    assert taken["statuses"] == ["refused"]
    assert taken["en"] == "Another stay has this space at that time."
    assert taken["ja"] != taken["en"]
    assert all(set(entry) == {"code", "statuses", "ja", "en"} for entry in listed)


def test_states_as_json(run):
    tables = json.loads(run("states", "--json").stdout)
    assert set(tables) == {machine.name for machine in MACHINES}
    assert tables["stay"]["reserved"]["admitted"] == "admitted"
    assert tables["stay"]["departed"] == {}


def test_a_person_is_added_and_can_sign_in(run, cast: Cast):
    assert cast.tokyo.id != cast.osaka.id
    added = run(
        "staff",
        "add",
        "--email",
        "new@monban.example",
        "--name",
        "新田 新",
        "--facility",
        "haneda-capsule:manager",
        "--facility",
        "umeda-sauna",
    )
    assert added.exit_code == 0, added.output
    password = added.output.split("Password: ")[1].strip()
    from tests.web.test_sign_in import enter

    client = cast.app.test_client()
    assert (
        enter(client, Colleague(cast.tokyo.id, "new@monban.example", "", (), password)).status_code
        == 303
    )
    page = client.get("/staff/facility").text
    assert "マネージャー" in page
    assert "フロント" in page


def test_a_password_from_standard_input_is_not_printed(run, cast: Cast):
    assert cast.tokyo
    added = run(
        "staff",
        "add",
        "--email",
        "a@b.example",
        "--name",
        "A",
        "--facility",
        "haneda-capsule",
        "--password-stdin",
        typed="a long enough secret\n",
    )
    assert added.exit_code == 0
    assert "secret" not in added.output


@pytest.mark.parametrize(
    "words",
    [
        ("--email", "a@b.example", "--name", "A", "--facility", "nowhere"),
        ("--email", "a@b.example", "--name", "A", "--facility", "haneda-capsule:king"),
        ("--email", "a@b.example", "--name", "A"),
    ],
)
def test_what_cannot_be_added_leaves_nobody(run, cast: Cast, words):
    assert cast.tokyo
    refused = run("staff", "add", *words)
    assert refused.exit_code != 0
    assert "Traceback" not in refused.output
    with cast.transaction(None) as tx:
        assert tx.scalar("select count(*) from staff") == 0


def test_nobody_is_added_twice(run, cast: Cast):
    words = (
        "staff",
        "add",
        "--email",
        cast.sato.email.upper(),
        "--name",
        "A",
        "--facility",
        "haneda-capsule",
    )
    refused = run(*words)
    assert refused.exit_code != 0
    assert "already" in refused.output
