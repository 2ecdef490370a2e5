"""What happened in the two houses until now: scenes, each one stay from its booking on.

Times are the houses' own. Scenes of the past are told once; arrivals are told for each day on which
the demo is loaded, so that there is always somebody to check in.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Literal

from portal import clock
from portal.demo.houses import HANEDA, UMEDA

ZONE = "Asia/Tokyo"

End = Literal["reserved", "in_house", "departed", "cancelled", "no_show"]
Paid = Literal["nothing", "deposit_card", "card", "cash"]
Twist = Literal["", "extended", "cut_short", "moved"]

DAYS_OF_HISTORY = 14


@dataclass(frozen=True, slots=True)
class GuestOf:
    name: str
    kana: str = ""
    email: str | None = None
    phone: str | None = None
    locale: str | None = None


@dataclass(frozen=True, slots=True)
class Scene:
    """`name` is unique in its house. `source` as in stays. `twist`: what happened in house."""

    name: str
    guest: GuestOf
    space: str
    plan: str
    starts_at: datetime
    ends_at: datetime
    end: End = "reserved"
    paid: Paid = "nothing"
    source: str = "web"
    note: str = ""
    twist: Twist = ""
    booked_before: timedelta = timedelta(days=5)


@dataclass(frozen=True, slots=True)
class Today:
    """The day on which the story is told, and its hour."""

    now: datetime

    @property
    def day(self) -> date:
        return clock.local_day(self.now, ZONE)

    @property
    def hour(self) -> datetime:
        """The hour that has just begun."""
        return self.now.replace(minute=0, second=0, microsecond=0)

    def at(self, days: int, hour: int, minute: int = 0) -> datetime:
        return clock.instant_at(self.day + timedelta(days=days), time(hour, minute), ZONE)

    @property
    def leaving(self) -> datetime:
        """When today's guests leave: later today where the usual hour is over."""
        late = self.hour + timedelta(hours=3)
        return min(max(self.at(0, 10), late), self.at(0, 23))

    @property
    def arriving(self) -> datetime:
        """When the guest at the door was expected: not later than now."""
        return min(self.at(0, 15), self.hour)


EMMA = GuestOf("Emma Smith", "", "emma.smith@guest.example", "+447700900123", "en")
HANAKO = GuestOf("山田 花子", "ヤマダ ハナコ", "hanako@guest.example", "+819012345678", "ja")

HISTORY_GUESTS = (
    GuestOf("木村 直樹", "キムラ ナオキ", phone="+819011110001"),
    GuestOf("林 さやか", "ハヤシ サヤカ", phone="+819011110002"),
    GuestOf("Daniel Kim", phone="+821012345678", locale="en"),
    GuestOf("清水 翔", "シミズ ショウ", phone="+819011110003"),
    GuestOf("山﨑 陽子", "ヤマザキ ヨウコ", phone="+819011110004"),
    GuestOf("Sofia Rossi", phone="+393331234567", locale="en"),
    GuestOf("森 大地", "モリ ダイチ", phone="+819011110005"),
    GuestOf("阿部 真理", "アベ マリ", phone="+819011110006"),
    GuestOf("王 芳", "オウ ホウ", phone="+8613812345678", locale="en"),
    GuestOf("池田 光", "イケダ ヒカル", phone="+819011110007"),
    GuestOf("橋本 涼", "ハシモト リョウ", phone="+819011110008"),
)


def scenes(slug: str, now: datetime) -> Iterator[Scene]:
    today = Today(now)
    tell = {HANEDA.slug: (_haneda_past, _haneda_today), UMEDA.slug: (_umeda_past, _umeda_today)}
    for part in tell[slug]:
        yield from part(today)


def _haneda_today(t: Today) -> Iterator[Scene]:
    day = t.day.isoformat()
    yield Scene(
        f"emma:{day}",
        EMMA,
        "W01",
        "night",
        t.arriving,
        t.at(2, 10),
        note="Arrives from London; asked for a quiet capsule.",
    )
    yield Scene(
        f"hanako:{day}", HANAKO, "W02", "night", t.at(0, 15), t.at(1, 10), paid="deposit_card"
    )
    yield Scene(
        f"li:{day}",
        GuestOf("李 明", "リ ミン", "li.ming@guest.example", "+8613900001234", "en"),
        "M01",
        "night",
        t.at(0, 15),
        t.at(1, 10),
        paid="card",
    )
    yield Scene(
        f"takahashi:{day}",
        GuestOf("髙橋 大輔", "タカハシ ダイスケ", None, "+819023456789", "ja"),
        "M02",
        "night",
        t.at(0, 18),
        t.at(2, 10),
        source="desk",
        note="現地払い。領収書希望。",
    )
    yield Scene(
        f"mueller:{day}",
        GuestOf("Lucas Müller", "", "lucas@guest.example", "+4915112345678", "en"),
        "M03",
        "night",
        t.at(0, 22, 30),
        t.at(1, 10),
        paid="card",
        note="Flight lands at 21:40.",
    )
    yield Scene(
        f"ueda:{day}",
        GuestOf("上田 美咲", "ウエダ ミサキ", "misaki@guest.example", "+819034567890", "ja"),
        "W06",
        "premium",
        t.at(3, 15),
        t.at(5, 10),
        note="前金待ち。期限を過ぎると自動で取り消し。",
        booked_before=timedelta(days=3),
    )


def _haneda_past(t: Today) -> Iterator[Scene]:
    yield from _nights(t)
    yield Scene(
        "no-show",
        GuestOf("加藤 浩", "カトウ ヒロシ", None, "+819034567890", "ja"),
        "M02",
        "night",
        t.at(-1, 15),
        t.at(0, 10),
        "no_show",
        source="desk",
    )
    yield Scene(
        "cancelled",
        GuestOf("吉田 さくら", "ヨシダ サクラ", "sakura@guest.example", None, "ja"),
        "W05",
        "night",
        t.at(1, 15),
        t.at(3, 10),
        "cancelled",
        "deposit_card",
    )
    yield Scene(
        "leaving-1",
        GuestOf("伊藤 健一", "イトウ ケンイチ", None, "+819045678901", "ja"),
        "M04",
        "night",
        t.at(-1, 15),
        t.leaving,
        "in_house",
        "cash",
        "desk",
    )
    yield Scene(
        "leaving-2",
        GuestOf("渡辺 由美", "ワタナベ ユミ", None, "+819056789012", "ja"),
        "W04",
        "night",
        t.at(-1, 15),
        t.leaving,
        "in_house",
        "card",
    )
    yield Scene(
        "chloe",
        GuestOf("Chloé Dubois", "", "chloe@guest.example", "+33612345678", "en"),
        "W03",
        "night",
        t.at(-2, 15),
        t.at(1, 10),
        "in_house",
        "card",
        twist="extended",
    )
    yield Scene(
        "nakamura",
        GuestOf("中村 隆", "ナカムラ タカシ", None, "+819067890123", "ja"),
        "M05",
        "night",
        t.at(-1, 15),
        t.at(2, 10),
        "in_house",
        "cash",
        "desk",
        twist="cut_short",
    )
    yield Scene(
        "kobayashi",
        GuestOf("小林 誠", "コバヤシ マコト", "makoto@guest.example", None, "ja"),
        "M03",
        "night",
        t.at(-1, 15),
        t.at(1, 10),
        "in_house",
        "cash",
        twist="moved",
    )
    yield Scene(
        "next-week",
        GuestOf("Noah Williams", "", "noah@guest.example", "+12025550123", "en"),
        "M06",
        "night",
        t.at(7, 15),
        t.at(10, 10),
        paid="deposit_card",
    )


def _nights(t: Today) -> Iterator[Scene]:
    """Three or so a night, paid at the desk or by card."""
    for back in range(DAYS_OF_HISTORY + 1, 1, -1):
        for place, space in enumerate(("M01", "W01", "M03")[: 2 + back % 2]):
            number = back * 3 + place
            yield Scene(
                f"night:{back}:{place}",
                HISTORY_GUESTS[number % len(HISTORY_GUESTS)],
                space,
                "night",
                t.at(-back, 15),
                t.at(1 - back, 10),
                "departed",
                "card" if number % 5 == 0 else "cash",
                "walk_in" if number % 3 == 0 else "desk",
                booked_before=timedelta(minutes=20) if number % 3 == 0 else timedelta(days=2),
            )


def _umeda_today(t: Today) -> Iterator[Scene]:
    day = t.day.isoformat()
    hours = timedelta(hours=1)
    yield Scene(
        f"sasaki:{day}",
        GuestOf("佐々木 亮", "ササキ リョウ", "sasaki@guest.example", "+819078901234", "ja"),
        "S1",
        "sauna",
        t.hour,
        t.hour + 3 * hours,
    )
    yield Scene(
        f"olivia:{day}",
        GuestOf("Olivia Brown", "", "olivia@guest.example", "+61412345678", "en"),
        "D1",
        "desk",
        t.hour + hours,
        t.hour + 4 * hours,
        paid="card",
    )
    yield Scene(
        f"saito:{day}",
        GuestOf("齋藤 恵", "サイトウ メグミ", None, "+819089012345", "ja"),
        "S2",
        "sauna",
        t.hour + 2 * hours,
        t.hour + 5 * hours,
        source="desk",
    )


def _umeda_past(t: Today) -> Iterator[Scene]:
    hours = timedelta(hours=1)
    for back in range(DAYS_OF_HISTORY, 0, -1):
        number = back * 2
        yield Scene(
            f"visit:{back}",
            HISTORY_GUESTS[number % len(HISTORY_GUESTS)],
            "S1" if back % 2 else "D1",
            "sauna" if back % 2 else "desk",
            t.at(-back, 17),
            t.at(-back, 20),
            "departed",
            "cash",
            "walk_in",
            booked_before=timedelta(minutes=5),
        )
    yield Scene(
        "no-show",
        GuestOf("岡田 純", "オカダ ジュン", None, "+819090123456", "ja"),
        "D4",
        "desk",
        t.at(-1, 13),
        t.at(-1, 15),
        "no_show",
    )
    yield Scene(
        "cancelled",
        GuestOf("藤田 舞", "フジタ マイ", "mai@guest.example", None, "ja"),
        "S4",
        "sauna",
        t.at(1, 18),
        t.at(1, 21),
        "cancelled",
    )
    yield Scene(
        "in-sauna",
        GuestOf("松本 美咲", "マツモト ミサキ", "misaki@guest.example", None, "ja"),
        "S3",
        "sauna",
        t.hour - hours,
        t.hour + 2 * hours,
        "in_house",
        "card",
    )
    yield Scene(
        "at-desk",
        GuestOf("井上 拓也", "イノウエ タクヤ", None, "+819001234567", "ja"),
        "D2",
        "desk",
        t.hour - 2 * hours,
        t.hour + 4 * hours,
        "in_house",
        "cash",
        "walk_in",
        booked_before=timedelta(minutes=3),
    )
