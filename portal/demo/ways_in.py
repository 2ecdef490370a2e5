"""The demo's entrances, and who is not let in at them."""

from datetime import time
from typing import Any
from uuid import UUID

from portal.db import Actor, transaction
from portal.demo.houses import HANEDA, UMEDA, made
from portal.policies.opening import Stretch, Week
from portal.verbs import blocklist, entrances
from portal.verbs.blocklist import NewEntry
from portal.verbs.entrances import NewEntrance, Terms

EVENING = Stretch(time(10), time(23))
LATE = Stretch(time(9), time(2))
LOUNGE: Week = (*(EVENING,) * 5, LATE, None)

# By house: the entrance's code, names, week, room, plans and doors.
WAYS: dict[str, tuple[tuple[Any, ...], ...]] = {
    HANEDA.slug: (
        (
            "front",
            "正面玄関",
            "Front entrance",
            None,
            None,
            ("night", "premium", "nap"),
            ("men", "women"),
        ),
        ("lounge", "ラウンジ口", "Lounge", LOUNGE, 1, ("nap", "member-booth"), ("lounge",)),
    ),
    UMEDA.slug: (
        ("sauna", "サウナ口", "Sauna", None, 4, ("sauna", "member-sauna"), ("sauna",)),
        ("desks", "デスクフロア口", "Desk floor", None, None, ("desk",), ("desks",)),
    ),
}

# 旅館業法第5条第1項.
GROUNDS = (
    ("ryokan-5-1-1", "特定感染症の患者等であるとき（旅館業法第5条第1項第1号）",
     "A patient of a specified infectious disease (Hotel Business Act, article 5, 1, i)"),
    ("ryokan-5-1-2", "違法行為又は風紀を乱す行為をするおそれがあるとき（同第2号）",
     "Feared to gamble, act unlawfully or disturb public morals (article 5, 1, ii)"),
    ("ryokan-5-1-3", "過重な負担となる要求を繰り返したとき（同第3号）",
     "Repeated demands that burden the house unduly (article 5, 1, iii)"),
    ("ryokan-5-1-4", "余裕がないとき、その他条例で定める事由があるとき（同第4号）",
     "No room, or another ground that the prefecture's ordinance sets (article 5, 1, iv)"),
)  # fmt: skip


def open_them(slug: str, house_id: UUID, clerk: Actor) -> None:
    """Once: whatever stands already is left as it is."""
    with transaction(house_id) as tx:
        for code, ja, en, week, room, plans, doors in WAYS[slug]:
            terms = Terms(
                ja,
                en,
                "walk_in",
                week,
                room,
                frozenset(made(slug, "plan", plan) for plan in plans),
                frozenset(made(slug, "door", door) for door in doors),
            )
            entrances.create(tx, clerk, NewEntrance(made(slug, "entrance", code), code, terms))
        if slug != HANEDA.slug:
            return
        for code, ja, en in GROUNDS:
            blocklist.add_ground(tx, clerk, code, ja, en)
        wanted = NewEntry(
            form_key=made(slug, "blocked"),
            ground="備品を壊し、弁償を拒んだ",
            name="黒田 次郎",
            kana="クロダ ジロウ",
            phone="+819000000666",
        )
        blocklist.add(tx, clerk, wanted)
