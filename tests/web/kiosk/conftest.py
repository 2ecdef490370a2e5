"""The tablet's portal, with its stand-ins behind it."""

from tests.web.staff.houses import desk_app, front  # noqa: F401
