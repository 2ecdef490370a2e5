"""What every answer tells the browser about safety and keeping."""

from flask import Flask, Response, current_app, g, request

from portal.config import Config
from portal.web import access

YEAR = 365 * 24 * 3600
STRIPE_SCRIPTS = "https://js.stripe.com"
STRIPE_FRAMES = "https://js.stripe.com https://hooks.stripe.com"
STRIPE_API = "https://api.stripe.com"


def allow_payment() -> None:
    """This page holds the payment provider's form: let its script, frames and API in."""
    g.payment_page = True


def init_app(app: Flask) -> None:
    app.after_request(guard_page)


def guard(response: Response) -> Response:
    """What a machine is told: no page is made of this, and nobody keeps it."""
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Cache-Control"] = "no-store"
    return response


def guard_page(response: Response) -> Response:
    declared = access.declared(request.endpoint)
    headers = response.headers
    headers["X-Content-Type-Options"] = "nosniff"
    headers["Content-Security-Policy"] = policy(_config())
    headers["Referrer-Policy"] = (
        "no-referrer" if declared and declared.kind == "guest" else "same-origin"
    )
    headers["Cross-Origin-Opener-Policy"] = "same-origin"
    headers["Permissions-Policy"] = "camera=(), microphone=(), geolocation=()"
    if _config().https:
        headers["Strict-Transport-Security"] = f"max-age={YEAR}; includeSubDomains"
    if request.endpoint != "static":
        headers["Cache-Control"] = "no-store"
    return response


def policy(config: Config) -> str:
    """Only what is ours; the payment provider on the pay page alone."""
    rules = {
        "default-src": "'self'",
        "img-src": "'self' data:",
        "object-src": "'none'",
        "base-uri": "'none'",
        "frame-ancestors": "'none'",
        "form-action": "'self'",
    }
    if g.get("payment_page"):
        if config.stripe_api_base:
            # The stand-in's hosted page, reached by a form's redirect.
            rules["form-action"] += f" {config.stripe_api_base}"
        else:
            rules["script-src"] = f"'self' {STRIPE_SCRIPTS}"
            rules["frame-src"] = STRIPE_FRAMES
            rules["connect-src"] = f"'self' {STRIPE_API}"
            # Stripe.js sizes its own frames by style attributes.
            rules["style-src"] = "'self' 'unsafe-inline'"
    return "; ".join(f"{name} {value}" for name, value in rules.items())


def _config() -> Config:
    config: Config = current_app.extensions["monban.config"]
    return config
