"""The far side, as processes, and the desk's portal before it."""

from tests.outside import (  # noqa: F401
    owner,
    seam,
    seam_process,
    stripe,
    stripe_process,
)
from tests.web.staff.houses import desk_app, front  # noqa: F401
