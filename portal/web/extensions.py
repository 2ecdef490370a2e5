"""Flask's extensions, made once and bound to an app by the factory."""

from flask import request
from flask_babel import Babel
from flask_limiter import Limiter
from flask_limiter.util import get_remote_address
from flask_login import LoginManager
from flask_migrate import Migrate
from flask_wtf.csrf import CSRFProtect

babel = Babel()
csrf = CSRFProtect()
limiter = Limiter(get_remote_address)
login = LoginManager()
migrate = Migrate()


def account_named() -> str:
    """The account that a sign-in names, whoever asks: the key of its own limit."""
    return "account:" + request.form.get("email", "").strip().lower()[:254]
