"""The two houses of the demo: their doors, spaces, plans and people."""

from dataclasses import dataclass
from datetime import time
from uuid import UUID, uuid5

from portal.policies.cancellation import Step
from portal.verbs.cancellation_policies import Terms

SPACE = UUID("6f9a3c1e-0d4b-5f2a-9c77-3b8de1a40c52")
"""Every id of the demo is derived from this and a name, so that a second load finds the first."""

PASSWORD = "monban-demo"


def made(*names: str) -> UUID:
    return uuid5(SPACE, ":".join(names))


@dataclass(frozen=True, slots=True)
class DoorOf:
    code: str
    name_ja: str
    name_en: str
    device_id: str


@dataclass(frozen=True, slots=True)
class SpaceOf:
    code: str
    name_ja: str
    name_en: str
    door: str


@dataclass(frozen=True, slots=True)
class PlanOf:
    """Amounts in yen."""

    code: str
    name_ja: str
    name_en: str
    kind: str
    unit: str
    unit_price: int
    deposit: int = 0
    members_only: bool = False


@dataclass(frozen=True, slots=True)
class HouseOf:
    slug: str
    name_ja: str
    name_en: str
    kind: str
    phone: str
    address_ja: str
    address_en: str
    check_in_from: time
    check_out_by: time
    early_minutes: int
    doors: tuple[DoorOf, ...]
    spaces: tuple[SpaceOf, ...]
    plans: tuple[PlanOf, ...]


@dataclass(frozen=True, slots=True)
class PersonOf:
    email: str
    name: str
    locale: str
    roles: tuple[tuple[str, str], ...]
    what_en: str


def _capsules(side: str, name_ja: str, name_en: str, door: str) -> tuple[SpaceOf, ...]:
    return tuple(
        SpaceOf(f"{side}{n:02}", f"{name_ja}{n}番", f"{name_en} capsule {n}", door)
        for n in range(1, 7)
    )


HANEDA = HouseOf(
    slug="haneda-capsule",
    name_ja="羽田カプセル宿",
    name_en="Haneda Capsule Inn",
    kind="lodging",
    phone="+81337001234",
    address_ja="東京都大田区羽田空港0-1-2",
    address_en="0-1-2 Hanedakuko, Ota-ku, Tokyo",
    check_in_from=time(15),
    check_out_by=time(10),
    early_minutes=30,
    doors=(
        DoorOf("men", "男性フロア入口", "Men's floor", "haneda-men"),
        DoorOf("women", "女性フロア入口", "Women's floor", "haneda-women"),
        DoorOf("lounge", "ラウンジ入口", "Lounge", "haneda-lounge"),
    ),
    spaces=(
        *_capsules("M", "男性カプセル", "Men's", "men"),
        *_capsules("W", "女性カプセル", "Women's", "women"),
        SpaceOf("L01", "ラウンジ個室", "Lounge booth", "lounge"),
    ),
    plans=(
        PlanOf("night", "スタンダード宿泊", "Overnight", "lodging", "night", 4800, 1000),
        PlanOf(
            "premium", "プレミアムカプセル", "Premium capsule", "lodging", "night", 13_200, 2000
        ),
        PlanOf("nap", "ショートステイ", "Short stay", "day_use", "hour", 900),
        PlanOf(
            "member-booth",
            "会員ラウンジ",
            "Lounge for members",
            "day_use",
            "visit",
            0,
            members_only=True,
        ),
    ),
)

UMEDA = HouseOf(
    slug="umeda-sauna",
    name_ja="梅田サウナ＆デスク",
    name_en="Umeda Sauna & Desks",
    kind="day_use",
    phone="+81667001234",
    address_ja="大阪府大阪市北区梅田0-3-4",
    address_en="0-3-4 Umeda, Kita-ku, Osaka",
    check_in_from=time(9),
    check_out_by=time(23),
    early_minutes=15,
    doors=(
        DoorOf("sauna", "サウナ入口", "Sauna", "umeda-sauna"),
        DoorOf("desks", "デスクフロア入口", "Desk floor", "umeda-desks"),
    ),
    spaces=(
        *(
            SpaceOf(f"S{n}", f"サウナロッカー{n}番", f"Sauna locker {n}", "sauna")
            for n in range(1, 5)
        ),
        *(SpaceOf(f"D{n}", f"デスク{n}番", f"Desk {n}", "desks") for n in range(1, 5)),
    ),
    plans=(
        PlanOf("sauna", "サウナ入浴", "Sauna visit", "day_use", "visit", 1980),
        PlanOf("desk", "デスク利用", "Desk", "day_use", "hour", 550),
        PlanOf(
            "member-sauna",
            "会員サウナ",
            "Sauna for members",
            "day_use",
            "visit",
            0,
            members_only=True,
        ),
    ),
)

HOUSES = (HANEDA, UMEDA)

CANCELLING = Terms(
    "標準キャンセルポリシー",
    "Standard cancellation",
    (
        Step(48, 30, returns_quota=True),
        Step(24, 50, returns_quota=False),
        Step(0, 100, returns_quota=False),
    ),
)
"""Of every plan of both houses."""

DEPOSIT_HOURS = 48
"""How long both houses wait for a deposit."""

DEVICES = {
    door.device_id: f"{house.name_en}: {door.name_en}" for house in HOUSES for door in house.doors
}
"""The locks that `make run` furnishes the lock controller's stand-in with."""

PEOPLE = (
    PersonOf(
        "sato@monban.example",
        "佐藤 健",
        "ja",
        ((HANEDA.slug, "front_desk"),),
        "front desk, Haneda",
    ),
    PersonOf(
        "suzuki@monban.example",
        "鈴木 愛",
        "ja",
        ((HANEDA.slug, "manager"), (UMEDA.slug, "front_desk")),
        "manager, Haneda; front desk, Umeda",
    ),
    PersonOf(
        "tanaka@monban.example",
        "田中 実",
        "en",
        ((HANEDA.slug, "owner"), (UMEDA.slug, "owner")),
        "owner of both, reads English",
    ),
)
