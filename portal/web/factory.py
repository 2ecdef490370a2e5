"""The application, put together. Making it touches neither database nor queue."""

import time
from collections.abc import Iterable
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from flask import Flask, Request, Response, g, request, url_for
from flask.sessions import SecureCookieSession, SecureCookieSessionInterface
from flask.typing import ResponseReturnValue
from werkzeug.middleware.proxy_fix import ProxyFix

import portal.models  # noqa: F401  (declares the tables for migrations)
from portal import doorbell, log, seal, wording
from portal.config import Config
from portal.db import ALONE, db, require_alive
from portal.edges.providers import providers
from portal.lazy import _l
from portal.web import (
    access,
    answer,
    cli,
    errors,
    extensions,
    forms,
    headers,
    health,
    locale,
    people,
)

ROOT = Path(__file__).parent.parent.parent

# Every page of the portal: a module with a `blueprint`. A new one is one line here.
BLUEPRINTS = (
    "portal.web.front",
    "portal.web.health",
    "portal.web.hooks",
    "portal.web.staff.session",
    "portal.web.staff.today",
    "portal.web.staff.stays",
    "portal.web.staff.receipts",
    "portal.web.staff.member_receipts",
    "portal.web.staff.members",
    "portal.web.staff.plans",
    "portal.web.staff.stay_plans",
    "portal.web.staff.payments",
    "portal.web.staff.day_closes",
    "portal.web.staff.doors",
    "portal.web.staff.attention",
    "portal.web.staff.timeline",
    "portal.web.staff.refusals",
    "portal.web.staff.settings",
    "portal.web.staff.entrances",
    "portal.web.staff.blocklist",
    "portal.web.kiosk.pages",
    "portal.web.staff.cancellation_policies",
    "portal.web.staff.lodging_tax",
    "portal.web.staff.tickets",
    "portal.web.staff.ticket_offers",
    "portal.web.staff.registers",
    "portal.web.guest.stay",
    "portal.web.guest.cancel",
    "portal.web.guest.payment",
    "portal.web.guest.receipts",
    "portal.web.guest.register",
    "portal.web.guest.membership_receipts",
    "portal.web.guest.join",
    "portal.web.guest.membership",
    "portal.web.guest.membership_payment",
)

# The menu of staff pages: endpoint and words. Each person's is what their role may open.
SECTIONS = (
    ("today.index", _l("Today")),
    ("stays.index", _l("Stays")),
    ("members.index", _l("Members")),
    ("payments.index", _l("Payments")),
    ("day_closes.index", _l("Day close")),
    ("doors.index", _l("Doors")),
    ("attention.index", _l("Attention")),
    ("settings.index", _l("Settings")),
    ("plans.index", _l("Plans")),
)

LARGEST_REQUEST = 256 * 1024
MOST_FIELDS = 200
CSRF_SECONDS = 3600


class Portal(Flask):
    """Flask whose log never holds a path: a guest's link is in it. A machine proves itself, has no
    session and reads no page: the frame of pages, and the limit on how often, are not for it."""

    def preprocess_request(self) -> ResponseReturnValue | None:
        g.began = time.perf_counter()
        return None if access.is_machine() else super().preprocess_request()

    def process_response(self, response: Response) -> Response:
        done = headers.guard if access.is_machine() else super().process_response
        return health.count(done(response))

    def do_teardown_request(self, exc: BaseException | None = None) -> None:
        if not access.is_machine():
            super().do_teardown_request(exc)

    def log_exception(
        self,
        exc_info: tuple[type, BaseException, TracebackType] | tuple[None, None, None],
        *args: Any,
        **kwargs: Any,
    ) -> None:
        log.get("portal.web").error(
            "unhandled", endpoint=request.endpoint, method=request.method, exc_info=exc_info
        )


class Sessions(SecureCookieSessionInterface):
    """Who brings no cookie has an empty session: there is no signature to look at."""

    def open_session(self, app: Flask, request: Request) -> SecureCookieSession | None:
        if "HTTP_COOKIE" in request.environ:
            return super().open_session(app, request)
        return self.session_class()


class RequestIds:
    """A new id for every request, made here and never taken from outside."""

    def __init__(self, inside: Any) -> None:
        self.inside = inside

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        identifier = log.new_request_id()

        def start(status: str, headers: list[tuple[str, str]], *rest: Any) -> Any:
            return start_response(status, [*headers, ("X-Request-Id", identifier)], *rest)

        with log.request(identifier):
            answered: Iterable[bytes] = self.inside(environ, start)
            return answered


def create_app(config: Config) -> Flask:
    log.configure(config.log_level)
    seal.configure(config.seal_keys)
    doorbell.configure(config.redis_url)
    app = Portal(
        "portal.web",
        root_path=str(ROOT / "portal/web"),
        template_folder=str(ROOT / "templates"),
        static_folder=str(ROOT / "portal/web/static"),
    )
    # An address is as it is written: to mend `//`, a post would be sent on before it is looked at.
    app.url_map.merge_slashes = False
    app.session_interface = Sessions()
    app.config.from_mapping(settings(config))
    app.extensions["monban.config"] = config
    app.extensions["monban.providers"] = providers(config)
    _bind_extensions(app)
    _bind_frame(app)
    for name in BLUEPRINTS:
        app.register_blueprint(import_module(name).blueprint)
    if config.https:
        # Something in front of us ends TLS; its last hop tells who asks.
        app.wsgi_app = ProxyFix(app.wsgi_app, x_for=1, x_proto=1)  # type: ignore[method-assign]
    app.wsgi_app = RequestIds(app.wsgi_app)  # type: ignore[method-assign]
    return app


def settings(config: Config) -> dict[str, Any]:
    """Flask's and its extensions' settings, all of them from ours."""
    connections = {
        "pool_size": config.pool_size,
        "max_overflow": 0,
        "pool_timeout": 10,
        "pool_events": [(require_alive, "checkout")],
        "connect_args": {"options": "-c timezone=utc", "connect_timeout": 5},
    }
    return {
        "SECRET_KEY": config.secret_key,
        "MAX_CONTENT_LENGTH": LARGEST_REQUEST,
        "MAX_FORM_MEMORY_SIZE": LARGEST_REQUEST,
        "MAX_FORM_PARTS": MOST_FIELDS,
        "SESSION_COOKIE_NAME": "monban",
        "SESSION_COOKIE_HTTPONLY": True,
        "SESSION_COOKIE_SAMESITE": "Lax",
        "SESSION_COOKIE_SECURE": config.https,
        "PERMANENT_SESSION_LIFETIME": timedelta(hours=12),
        "PREFERRED_URL_SCHEME": "https" if config.https else "http",
        "SQLALCHEMY_DATABASE_URI": config.database_url,
        "SQLALCHEMY_ENGINE_OPTIONS": connections,
        # Connections whose statements commit themselves, for `db.transaction`.
        "SQLALCHEMY_BINDS": {
            ALONE: {
                **connections,
                "url": config.database_url,
                "isolation_level": "AUTOCOMMIT",
                "pool_reset_on_return": None,
            }
        },
        "BABEL_DEFAULT_LOCALE": locale.DEFAULT,
        "BABEL_TRANSLATION_DIRECTORIES": str(ROOT / "translations"),
        # `forms.check` is the one mechanism; see there.
        "WTF_CSRF_CHECK_DEFAULT": False,
        "WTF_CSRF_TIME_LIMIT": CSRF_SECONDS,
        "RATELIMIT_STORAGE_URI": config.redis_url,
        "RATELIMIT_STORAGE_OPTIONS": {"socket_connect_timeout": 1, "socket_timeout": 1},
        # Without Redis each process counts for itself: staff can sign in, guessing stays slow.
        "RATELIMIT_IN_MEMORY_FALLBACK_ENABLED": True,
        "RATELIMIT_KEY_PREFIX": "monban",
    }


def _bind_extensions(app: Flask) -> None:
    db.init_app(app)
    extensions.migrate.init_app(app, db, directory=str(ROOT / "migrations"))
    extensions.babel.init_app(app, locale_selector=locale.select_locale)
    extensions.csrf.init_app(app)
    extensions.limiter.init_app(app)
    # Its template variable would look the person up even on a page about a database that is away.
    extensions.login.init_app(app, add_context_processor=False)
    extensions.login.session_protection = None  # type: ignore[assignment]
    extensions.login.user_loader(people.load_person)


def _bind_frame(app: Flask) -> None:
    app.jinja_env.trim_blocks = True
    app.jinja_env.lstrip_blocks = True
    app.jinja_env.globals.update(
        notices_now=answer.notices,
        state_name=wording.state_name,
        event_name=wording.event_name,
        role_name=wording.role_name,
    )
    app.context_processor(_people)
    access.init_app(app)
    forms.init_app(app)
    app.before_request(locale.remember_choice)
    health.init_app(app)
    headers.init_app(app)
    locale.init_app(app)
    errors.init_app(app)
    cli.init_app(app)


def _people() -> dict[str, Any]:
    """`person`, `visit` and `facility` in every template, and the menu of a person's sections."""
    person = None if g.get("bare") else people.person()
    return {
        "person": person,
        "visit": people.visit(),
        "facility": people.facility(),
        "sections": [
            section for section in SECTIONS if person and person.may(access.role_for(section[0]))
        ],
        "here": _here(),
        "here_in": _here_in,
    }


def _here() -> str:
    """Path and query of this page, to come back to; after a post, of the page that sent it."""
    if request.method == "GET":
        # Bytes that a client did not escape are escaped here: no page could hold them.
        query = quote(request.query_string, safe="%/:?@!$&'()*+,;=-._~")
        return request.path + (f"?{query}" if query else "")
    sender = urlsplit(request.referrer or "")
    query = f"?{sender.query}" if sender.query else ""
    return access.local_path(f"{sender.path}{query}", url_for("session.home"))


def _here_in(lang: str) -> str:
    """This page in another language, for a person who is not signed in; after an act, the page that
    it is answered with."""
    asked = {name: value for name, value in request.args.items() if name != "lang"}
    return f"{g.get('shown_path', request.path)}?{urlencode({**asked, 'lang': lang})}"
