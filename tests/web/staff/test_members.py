"""The desk's pages about members: listed, decided, ended, and what an end still owes."""

from uuid import UUID

import pytest

from portal.jobs import house
from portal.policies.membership_end import Reason
from portal.verbs.membership_end import Ending, end_membership
from sandbox.watch import statements
from tests.cast import GUEST, Joined
from tests.outside import Owner
from tests.verbs.billing import Billed, running
from tests.web.audit import audit, form_data
from tests.web.staff.houses import FrontDesk, notice, page, send, shown

LIST = "/staff/members"


def of(membership: UUID, act: str = "") -> str:
    return f"{LIST}/{membership}{act}"


def end(front: FrontDesk, joined: Joined, reason: Reason) -> None:
    with front.app.app_context():
        end_membership(front.desk(), GUEST, joined.id, Ending(reason))


def state(owner: Owner, joined: Joined) -> str:
    return str(owner.one("select state from memberships where id = %s", joined.id))


def test_the_list_in_both_languages(front: FrontDesk, lang: str) -> None:
    front.cast.join()
    front.cast.apply(guest=front.cast.emma)
    client = front.cast.signed_in(front.cast.sato, locale=lang)
    page(client, LIST, lang)
    said = shown(client, LIST)
    for word in {
        "ja": ("山田 花子", "Emma Smith", "月額 ￥9,800", "有効", "申請中"),
        "en": ("山田 花子", "Emma Smith", "¥9,800 a month", "Active"),
    }[lang]:
        assert word in said


def test_the_queue_of_applications(front: FrontDesk) -> None:
    front.cast.join()
    front.cast.apply(guest=front.cast.emma)
    client = front.cast.signed_in(front.cast.sato)
    said = shown(client, f"{LIST}?state=applying")
    assert "Emma Smith" in said
    assert "山田 花子" not in said
    assert "条件に合う会員契約はありません" in shown(client, f"{LIST}?state=past_due")
    assert "山田 花子" in shown(client, f"{LIST}?state=nonsense")


def test_the_list_goes_on_by_the_last_row(front: FrontDesk) -> None:
    guest = front.cast.hanako
    made = [
        front.cast.apply(guest={**guest, "name": f"会員{n:02}", "email": f"{n}@guest.example"})
        for n in range(27)
    ]
    client = front.cast.signed_in(front.cast.sato)
    first = page(client, LIST)
    links = {one.get("rel"): one.get("href") for one in first.iter("a") if one.get("rel")}
    assert set(links) == {"next"}
    second = page(client, str(links["next"]))
    back = {one.get("rel"): one.get("href") for one in second.iter("a") if one.get("rel")}
    assert set(back) == {"prev"}
    assert "会員01" in shown(client, str(links["next"]))
    assert "会員02" not in shown(client, str(links["next"]))
    assert shown(client, str(back["prev"])) == shown(client, LIST)
    assert len(made) == 27


def test_an_application_is_approved(front: FrontDesk, owner: Owner) -> None:
    joined = front.cast.apply()
    client = front.cast.signed_in(front.cast.sato)
    sent = send(client, of(joined.id), of(joined.id, "/approve"))
    assert sent.status_code == 303
    assert notice(client, sent) == "MEMBERSHIP_APPROVED"
    assert state(owner, joined) == "active"


def test_an_application_is_rejected_with_a_reason_for_colleagues(
    front: FrontDesk, owner: Owner
) -> None:
    joined = front.cast.apply()
    client = front.cast.signed_in(front.cast.sato)
    sent = send(client, of(joined.id, "/reject"), of(joined.id, "/reject"), note="二重の申し込み")
    assert sent.status_code == 303
    assert state(owner, joined) == "ended"
    why = owner.one("select reason from transitions order by id desc limit 1")
    assert why == "application_rejected: 二重の申し込み"
    told = "select event_type from outbox order by created_at desc limit 1"
    assert owner.one(told) == "membership_rejected"


def test_decided_meanwhile_the_desk_is_told_by_whom(front: FrontDesk, owner: Owner) -> None:
    joined = front.cast.apply()
    client = front.cast.signed_in(front.cast.sato)
    data = form_data(page(client, of(joined.id)), of(joined.id, "/approve"))
    end(front, joined, "application_rejected")
    headers = {"HX-Request": "true", "HX-Current-URL": of(joined.id)}
    answer = client.post(of(joined.id, "/approve"), data=data, headers=headers)
    assert answer.status_code == 409
    said = audit(answer, client)
    assert "山田 花子" in "".join(said.itertext())
    assert state(owner, joined) == "ended"


@pytest.mark.parametrize(
    ("when", "to"),
    [("month_boundary", "scheduled_to_end"), ("period_end", "scheduled_to_end"), ("now", "ended")],
)
def test_a_membership_is_ended(front: FrontDesk, owner: Owner, when: str, to: str) -> None:
    joined = front.cast.join()
    client = front.cast.signed_in(front.cast.sato)
    form = of(joined.id, "/end")
    sent = send(client, form, form, when=when, note="本人の電話")
    assert sent.status_code == 303
    assert state(owner, joined) == to


@pytest.mark.parametrize("billing", ["desk", "card"])
def test_an_applicant_withdraws_by_telephone(
    front: FrontDesk, owner: Owner, lang: str, billing: str
) -> None:
    """Before or after the approval: a first payment can then no longer be made."""
    plan = front.cast.offer("p", "会員", "Member", billing=billing)
    joined = front.cast.apply(plan)
    client = front.cast.signed_in(front.cast.sato, locale=lang)
    if billing == "card":
        assert send(client, of(joined.id), of(joined.id, "/approve")).status_code == 303
        assert state(owner, joined) == "checkout"
    form = of(joined.id, "/end")
    page(client, form, lang)
    assert send(client, form, form, note="電話").status_code == 303
    ended = owner.row("select state, end_reason from memberships")
    assert ended == ("ended", "self_cancel")


@pytest.mark.parametrize("typed", [{"when": "now", "note": "  "}, {"when": "soon"}])
def test_the_house_says_why_it_ends_one_now(
    front: FrontDesk, owner: Owner, typed: dict[str, str]
) -> None:
    joined = front.cast.join()
    client = front.cast.signed_in(front.cast.sato)
    form = of(joined.id, "/end")
    sent = send(client, form, form, **typed)
    assert sent.status_code == 422
    audit(sent, client)
    assert state(owner, joined) == "active"


def test_an_end_is_taken_back_at_the_desk(front: FrontDesk, owner: Owner) -> None:
    joined = front.cast.join()
    end(front, joined, "self_cancel")
    client = front.cast.signed_in(front.cast.sato)
    assert send(client, of(joined.id), of(joined.id, "/resume")).status_code == 303
    assert state(owner, joined) == "active"


def test_what_an_end_owes_is_named_until_it_is_proven(front: FrontDesk, owner: Owner) -> None:
    joined = front.cast.join()
    end(front, joined, "force_cancel")
    client = front.cast.signed_in(front.cast.sato)
    assert shown(client, of(joined.id)).count("から未確認") == 2
    waiting = shown(client, "/staff/attention")
    assert "終了後の確認が済んでいない会員契約" in waiting
    assert "会員に知らせた" in waiting
    front.work("memberships")
    owner.run("update outbox set sent_at = now() where event_type = 'membership_ended'")
    owner.run("update end_obligations set next_look_at = now()")
    front.work("memberships")
    assert "未確認" not in shown(client, of(joined.id))
    assert "終了後の確認が済んでいない会員契約" not in shown(client, "/staff/attention")


def test_a_message_that_did_not_arrive_waits_with_its_member(
    front: FrontDesk, owner: Owner
) -> None:
    front.cast.join()
    owner.run("update outbox set dead_at = now() where event_type = 'membership_approved'")
    client = front.cast.signed_in(front.cast.sato)
    said = shown(client, "/staff/attention")
    assert "会員承認のお知らせ" in said
    assert "山田 花子" in said


def test_what_happened_is_told_in_order(front: FrontDesk, lang: str) -> None:
    joined = front.cast.join()
    end(front, joined, "self_cancel")
    client = front.cast.signed_in(front.cast.sato, locale=lang)
    said = shown(client, f"/staff/timeline?subject=membership:{joined.id}")
    assert "山田 花子" in said
    assert {"ja": "終了予定のお知らせ", "en": "Notice of the coming end"}[lang] in said


@pytest.mark.parametrize("act", ["", "/reject", "/end"])
def test_another_houses_member_has_no_page(front: FrontDesk, act: str) -> None:
    joined = front.cast.join()
    client = front.cast.signed_in(front.cast.suzuki, front.cast.osaka)
    assert client.get(of(joined.id, act)).status_code == 404


@pytest.mark.parametrize("act", ["approve", "resume", "reject", "end"])
def test_a_crafted_post_reaches_no_other_house(front: FrontDesk, owner: Owner, act: str) -> None:
    joined = front.cast.apply()
    client = front.cast.signed_in(front.cast.suzuki, front.cast.osaka)
    token = form_data(page(client, "/staff/stays/new"), "/staff/stays")["csrf_token"]
    data = {"csrf_token": token, "version": "1", "when": "now", "note": "x"}
    assert client.post(of(joined.id, f"/{act}"), data=data).status_code == 404
    assert state(owner, joined) == "applying"


@pytest.mark.parametrize("act", ["approve", "resume"])
def test_a_form_without_the_version_that_was_seen_is_refused(
    front: FrontDesk, owner: Owner, act: str
) -> None:
    joined = front.cast.apply()
    client = front.cast.signed_in(front.cast.sato)
    token = form_data(page(client, of(joined.id)), of(joined.id, "/approve"))["csrf_token"]
    answer = client.post(of(joined.id, f"/{act}"), data={"csrf_token": token})
    assert answer.status_code == 400
    assert state(owner, joined) == "applying"


def test_pages_need_as_many_statements_for_many_as_for_one(front: FrontDesk) -> None:
    joined = front.cast.join()
    client = front.cast.signed_in(front.cast.sato)

    def counted(url: str) -> int:
        with statements() as said:
            client.get(url)
        return len(said)

    one = counted(LIST)
    for number in range(20):
        guest = {**front.cast.hanako, "email": f"{number}@guest.example"}
        front.cast.apply(guest=guest)
    assert counted(LIST) == one <= 5
    assert counted(of(joined.id)) <= 8


def test_a_receipt_of_what_a_member_paid_is_issued_at_the_desk(
    front: FrontDesk, owner: Owner, lang: str
) -> None:
    joined = front.cast.apply(front.cast.offer("card", "カード会員", "Card member", billing="card"))
    house.open_house(front.house)
    with front.app.app_context():
        running(Billed(front.cast, front.house, front.stripe, owner, joined))
    client = front.cast.signed_in(front.cast.sato, locale=lang)
    (link,) = [
        str(one.get("href"))
        for one in page(client, of(joined.id), lang).iter("a")
        if str(one.get("href")).endswith("/receipts")
    ]
    sent = send(client, link, link, addressee="株式会社 山田")
    assert sent.status_code == 303, sent.text
    told = shown(client, sent.location)
    wanted = {"ja": ("領収書", "株式会社 山田 様", "￥9,800"), "en": ("Receipt", "¥9,800")}
    for one in wanted[lang]:
        assert one in told, one
    assert client.get(f"{sent.location}/pdf").mimetype == "application/pdf"

    other = front.cast.join(guest=front.cast.emma)
    document = sent.location.rpartition("/")[2]
    assert client.get(of(other.id, f"/receipts/{document}")).status_code == 404
    stranger = front.cast.signed_in(front.cast.tanaka, front.cast.osaka)
    assert stranger.get(link).status_code == 404
