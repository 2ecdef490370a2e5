"""A member's visits of the month, on the member's page and on staff's."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from flask.testing import FlaskClient

from sandbox.watch import statements
from tests.cast import Cast, Joined
from tests.web.audit import audit, form_data, main_of, words
from tests.web.staff.desk import at, look, text

NOW = datetime(2026, 11, 10, 3, tzinfo=UTC)


@pytest.fixture
def member(cast: Cast) -> Joined:
    with at(NOW):
        return cast.join(cast.offer("twice", "月二回", "Twice a month", quota=2))


def page_of(client: FlaskClient, member: Joined, lang: str) -> Any:
    return audit(client.get(f"/m/{member.token}?lang={lang}"), client, lang)


def test_the_figures_open_into_their_lines_on_both_pages(
    cast: Cast, client: FlaskClient, member: Joined, lang: str
) -> None:
    plan = cast.for_members()
    desk = cast.signed_in(cast.sato, locale=lang)
    with at(NOW):
        stay = cast.book(member=member, plan=plan, price=0, starts_at=NOW + timedelta(days=1))
        theirs, ours = page_of(client, member, lang), look(desk, f"/staff/members/{member.id}")
    for page in (theirs, ours):
        said = words(main_of(page))
        left = ("残り1回（全2回）", "残り2回（全2回）")
        if lang == "en":
            left = ("1 of 2 visits left", "2 of 2 visits left")
        assert left[0] in said
        assert left[1] in said, "the next month"
        assert "+2" in said
        assert "-1" in said
        assert ("2026年11月" if lang == "ja" else "November 2026") in said
    links = [link.get("href") for link in main_of(ours).iter("a")]
    assert links.count(f"/staff/stays/{stay.id}") >= 2
    assert cast.sato.name in text(ours)
    assert cast.sato.name not in words(main_of(theirs)), "a colleague's name is the house's"


def test_without_a_quota_nothing_is_counted_out(cast: Cast, client: FlaskClient, lang: str) -> None:
    joined = cast.join()
    said = words(main_of(page_of(client, joined, lang)))
    assert "利用回数" not in said
    assert "visits left" not in said


def test_what_a_cancellation_does_to_the_visit_is_told_before(
    cast: Cast, client: FlaskClient, member: Joined, lang: str
) -> None:
    plan = cast.for_members()
    cast.policy((24, 0, False), plan=plan)
    desk = cast.signed_in(cast.sato, locale=lang)
    with at(NOW):
        stay = cast.book(member=member, plan=plan, price=0, starts_at=NOW + timedelta(days=3))
    returns = "2026年11月の利用回数が1回戻ります" if lang == "ja" else "comes back to November 2026"
    stays_used = "1回使用済みになります" if lang == "ja" else "of November 2026 counts as used"
    for moment, told in ((NOW, returns), (NOW + timedelta(days=2), stays_used)):
        with at(moment):
            guest = audit(client.get(f"/g/{stay.token}/cancel?lang={lang}"), client, lang)
            assert told in words(main_of(guest))
            assert told in text(look(desk, f"/staff/stays/{stay.id}/cancel", lang))


def test_all_visits_taken_is_told_at_the_desks_form(cast: Cast, member: Joined, lang: str) -> None:
    plan = cast.for_members()
    desk = cast.signed_in(cast.sato, locale=lang)
    with at(NOW):
        for days in (1, 2):
            cast.book(member=member, plan=plan, price=0, starts_at=NOW + timedelta(days=days))
        asked = (
            f"/staff/stays/new?membership_id={member.id}&plan_id={cast.tokyo.plans[plan]}"
            "&arrive_day=2026-11-20&arrive_time=12:00&leave_day=2026-11-20&leave_time=15:00"
            f"&space_id={cast.tokyo.spaces['A03']}"
        )
        page = look(desk, asked, lang)
        sent = desk.post("/staff/stays", data=form_data(page, "/staff/stays"))
        assert sent.status_code == 422
        codes = [one.get("data-code") for one in audit(sent, desk, lang).iter()]
    assert "QUOTA_EXHAUSTED" in codes


def test_the_member_page_needs_few_statements(
    cast: Cast, client: FlaskClient, member: Joined
) -> None:
    with statements() as said:
        client.get(f"/m/{member.token}")
    assert 0 < len(said) <= 14, said
