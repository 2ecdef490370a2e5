"""The far side, as processes."""

from tests.outside import (  # noqa: F401
    line,
    line_process,
    mail,
    mail_server,
    owner,
    seam,
    seam_process,
    stripe,
    stripe_process,
    worker,
)
