"""A time reads the same on the page and in the letter, whatever either process thinks of zones."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.cast import Cast
from tests.web.audit import audit, main_of, words

ROOT = Path(__file__).parent.parent.parent
PROCESS_ZONES = ("America/Los_Angeles", "Asia/Kathmandu")

# The nights on which Europe's and America's clocks go back: one hour comes twice.
NIGHTS = (
    ("Europe/Berlin", datetime(2026, 10, 25, 0, 30, tzinfo=UTC)),
    ("Europe/Berlin", datetime(2026, 10, 25, 1, 30, tzinfo=UTC)),
    ("Europe/London", datetime(2026, 10, 25, 0, 59, tzinfo=UTC)),
    ("America/New_York", datetime(2026, 11, 1, 5, 30, tzinfo=UTC)),
    ("America/New_York", datetime(2026, 11, 1, 6, 30, tzinfo=UTC)),
    ("Asia/Tokyo", datetime(2026, 10, 25, 0, 30, tzinfo=UTC)),
    ("Asia/Tokyo", datetime(2026, 11, 1, 5, 30, tzinfo=UTC)),
)

LETTER = """
import json, sys
from datetime import datetime
from portal import letters
for zone, locale, starts, ends in json.loads(sys.stdin.read()):
    facts = letters.Facts(
        "stay_created", locale, "H", "G", "C", "S", None, datetime.fromisoformat(starts),
        datetime.fromisoformat(ends), zone, "JPY", 6000, None, "http://127.0.0.1/"
    )
    words = letters._words(facts)
    text = letters.write(facts).text
    assert words["begins"] in text and words["ends"] in text, text
    print(json.dumps([words["begins"], words["ends"]]))
"""


@pytest.fixture(params=PROCESS_ZONES)
def process_zone(request: pytest.FixtureRequest) -> Iterator[str]:
    """This process, the web's, believes to be somewhere else."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", request.param)
        time.tzset()
        yield request.param
    time.tzset()


def in_the_letter(asked: list[tuple[str, str, datetime, datetime]], zone: str) -> list[list[str]]:
    """As another process, with another zone, writes them."""
    said = json.dumps([[z, lang, a.isoformat(), b.isoformat()] for z, lang, a, b in asked])
    done = subprocess.run(
        [sys.executable, "-c", LETTER],
        input=said,
        env={**os.environ, "TZ": zone},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_e11_page_and_letter_are_byte_equal_as_the_clocks_go_back(
    cast: Cast, process_zone: str
) -> None:
    stays = [
        (zone, lang, starts, starts + timedelta(hours=26))
        for zone, starts in NIGHTS
        for lang in ("ja", "en")
    ]
    elsewhere = next(zone for zone in PROCESS_ZONES if zone != process_zone)
    letters = in_the_letter(stays, elsewhere)
    assert len(letters) == len(stays)
    for number, ((zone, lang, starts, ends), told) in enumerate(zip(stays, letters, strict=True)):
        house = cast.open_house(f"house-{number}", "家", "House", zone=zone)
        guest = {**cast.emma, "locale": lang}
        stay = cast.book(house, guest, starts_at=starts, ends_at=ends)
        client = cast.app.test_client()
        page = words(main_of(audit(client.get(f"/g/{stay.token}"), client, lang)))
        for moment in told:
            assert moment in page, (zone, lang, moment, page)
