"""The tablet at an entrance."""

from dataclasses import replace
from uuid import uuid4

from portal.jobs import sweeps
from portal.verbs import kiosk
from tests.matrix import scenes
from tests.matrix.act import Act, form, job

ACTS = (
    Act(
        "kiosk.open_by_code",
        scenes.a_stay_at_a_tablet,
        lambda do: do.form(
            kiosk.open_by_code, do["entrance"], uuid4().hex, do["code"], do["proof"]
        ),
    ),
    Act(
        "kiosk.walk_in",
        scenes.a_tablet,
        lambda do: do.form(kiosk.walk_in, do["entrance"], uuid4().hex, do["walk_in"]),
        lambda do: do.form(
            kiosk.walk_in,
            do["entrance"],
            uuid4().hex,
            replace(do["walk_in"], form_key=uuid4()),
        ),
    ),
    form("kiosk.close", scenes.a_session, kiosk.close, "session"),
    job("sweeps.let_walk_ins_go", scenes.a_walk_in_left_unpaid, sweeps.let_walk_ins_go),
)
