"""`flask --app app …`: what an operator does without a browser."""

import json
import secrets
import sys
from dataclasses import asdict
from importlib import import_module
from typing import Any

import click
from flask import Flask, current_app
from flask.cli import AppGroup, with_appcontext
from flask_babel import force_locale
from sqlalchemy.exc import IntegrityError

from portal import wording
from portal.db import transaction
from portal.edges.providers import Providers
from portal.jobs import reconcile as job
from portal.outcome import Code
from portal.web import people
from portal.web.passwords import digest

# Shaped as `Tx.enter` wants it: the facility, and the row, which here is the facility again.
HOUSE_BY_SLUG = (
    "(select f as facility_id, f as id from facility_by_slug(:slug) f where f is not null)"
)

staff = AppGroup("staff", help="People who work here.")
demo = AppGroup("demo", help="Data to try the portal with.")


def init_app(app: Flask) -> None:
    app.cli.add_command(staff)
    app.cli.add_command(demo)
    app.cli.add_command(outcomes)
    app.cli.add_command(states)
    app.cli.add_command(reconcile)


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@with_appcontext
def outcomes(as_json: bool) -> None:
    """Every code a verb may answer, with its words."""
    ja, en = _catalogue("ja"), _catalogue("en")
    found = [
        {
            "code": code.value,
            "statuses": list(wording.statuses(code)),
            "ja": ja(code),
            "en": en(code),
        }
        for code in Code
    ]
    if as_json:
        click.echo(json.dumps(found, ensure_ascii=False, indent=2))
        return
    for line in found:
        click.echo(f"{line['code']} ({', '.join(line['statuses'])}): {line['en']}")


def _catalogue(locale: str) -> Any:
    def words(code: Code) -> str:
        with current_app.test_request_context(), force_locale(locale):
            return str(wording.MESSAGES[code][1])

    return words


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@with_appcontext
def states(as_json: bool) -> None:
    """Every state table."""
    tables = wording.states()
    if as_json:
        click.echo(json.dumps(tables, indent=2))
        return
    for machine, table in tables.items():
        for state, exits in table.items():
            for event, to in exits.items():
                click.echo(f"{machine}: {state} --{event}--> {to}")


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--settle", default=job.SETTLES_SECONDS, help="Seconds that work under way is given.")
@with_appcontext
def reconcile(as_json: bool, settle: float) -> None:
    """Compare the books with the provider's and the locks' now. Ends with 1 while they differ."""
    held: Providers = current_app.extensions["monban.providers"]
    told = asdict(job.reconcile(held, settle))
    if as_json:
        click.echo(json.dumps(told))
    else:
        click.echo(", ".join(f"{name}: {value}" for name, value in told.items()))
    if told["open"] or told["unread"]:
        sys.exit(1)


@staff.command("add")
@click.option("--email", required=True)
@click.option("--name", required=True)
@click.option("--role", default="front_desk", type=click.Choice(people.ROLES))
@click.option("--facility", "houses", multiple=True, required=True, help="slug or slug:role")
@click.option("--locale", default="ja", type=click.Choice(["ja", "en"]))
@click.option("--password-stdin", is_flag=True, help="Read the password from standard input.")
def add(
    email: str, name: str, role: str, houses: tuple[str, ...], locale: str, password_stdin: bool
) -> None:
    """Add a person with a role in one or more facilities."""
    password = sys.stdin.readline().rstrip("\n") if password_stdin else ""
    made = password or secrets.token_urlsafe(12)
    places = [_place(house, role) for house in houses]
    try:
        add_person(email.strip(), name.strip(), made, locale, places)
    except IntegrityError:
        raise click.ClickException(f"{email} is there already") from None
    click.echo(f"Added {email}." + ("" if password else f" Password: {made}"))


def _place(house: str, role: str) -> tuple[str, str]:
    slug, _, own = house.partition(":")
    if own and own not in people.ROLES:
        raise click.ClickException(f"{own} is not a role: {', '.join(people.ROLES)}")
    return slug, own or role


def add_person(
    email: str, name: str, password: str, locale: str, places: list[tuple[str, str]]
) -> None:
    """Write one person and their roles, [(facility's slug, role)]."""
    with transaction(None) as tx:
        person = tx.scalar(
            """
            insert into staff (email, name, password_hash, locale)
            values (:email, :name, :hash, :locale) returning id
            """,
            email=email,
            name=name,
            hash=digest(password),
            locale=locale,
        )
        for slug, role in places:
            house = tx.enter(HOUSE_BY_SLUG, slug=slug)
            if house is None:
                raise click.ClickException(f"there is no facility {slug}")
            tx.run(
                "insert into staff_roles (staff_id, facility_id, role) values (:p, :f, :role)",
                p=person,
                f=house,
                role=role,
            )


@demo.command("load")
@click.option("--json", "as_json", is_flag=True, help="Print what was made as JSON.")
def load(as_json: bool) -> None:
    """Two facilities, their people and today's arrivals. Changes nothing that is there."""
    told = import_module("portal.demo").load()  # only this command needs it
    if as_json:
        click.echo(json.dumps(told, ensure_ascii=False, default=str))
        return
    for name, value in told.items():
        click.echo(f"{name}: {value}")
