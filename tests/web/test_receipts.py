"""Receipts on pages, on paper and as PDF: the guest's, the desk's; whatever name is typed."""

import re
from datetime import timedelta
from uuid import uuid4

import pypdfium2
import pytest
from flask.testing import FlaskClient

from portal import clock
from portal.db import SYSTEM
from portal.outcome import Code
from portal.verbs import cash, documents, facilities, stays
from portal.verbs.documents import Folio
from portal.web.extensions import limiter
from tests.cast import Booked, Cast
from tests.web.audit import audit, form_data, main_of, words

LONG = "株式会社" + "とても長い名前の会社" * 29 + "御中末尾"
NASTY = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "{{ 7 * 7 }} %s %d {0}",
    "\u202eevil\u202c 山田",
    "=HYPERLINK(1)",
    LONG[:300],
    "w" * 300,
)


def paid(cast: Cast, stay: Booked, amount: int = 6000) -> None:
    with cast.transaction(stay.facility_id) as tx:
        assert cash.take(tx, SYSTEM, stay.id, amount, uuid4()).status == "applied"


def place(stay: Booked, who: str) -> str:
    return f"/g/{stay.token}/receipt" if who == "guest" else f"/staff/stays/{stay.id}/receipts"


@pytest.fixture(params=["guest", "desk"])
def who(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def stay(cast: Cast) -> Booked:
    return cast.book(plan="night")


@pytest.fixture
def client(cast: Cast, who: str) -> FlaskClient:
    return cast.app.test_client() if who == "guest" else cast.signed_in(cast.sato)


def issue(client: FlaskClient, url: str, addressee: str) -> str:
    """The form is sent; returns the paper's address."""
    data = form_data(audit(client.get(url), client), url) | {"addressee": addressee}
    done = client.post(url, data=data)
    assert done.status_code == 303, done.text
    return str(done.location)


def pdf_text(client: FlaskClient, url: str) -> str:
    got = client.get(url)
    assert (got.status_code, got.mimetype) == (200, "application/pdf")
    pages = pypdfium2.PdfDocument(got.data)
    return "".join(page.get_textpage().get_text_range() for page in pages)


def test_from_the_money_to_the_paper(
    cast: Cast, client: FlaskClient, stay: Booked, who: str, lang: str
) -> None:
    if who == "desk":
        cast.speaks(cast.sato, lang)
    with cast.transaction(stay.facility_id) as tx:
        facilities.name_issuer(tx, SYSTEM, "株式会社門番", "T7123456789012")
    client.get(f"{place(stay, who)}?lang={lang}")
    paid(cast, stay)
    shown = issue(client, place(stay, who), "株式会社 山田")
    page = audit(client.get(shown), client, lang)
    told = words(main_of(page))
    wanted = {
        "ja": ("領収書", "株式会社 山田 様", "￥6,000", "10%対象 税込（うち消費税 ￥545）", "現金",
               "登録番号 T7123456789012", "000001", "株式会社門番", "宿泊"),
        "en": ("Receipt", "株式会社 山田", "¥6,000", "At 10%, tax included (of which tax ¥545)",
               "In cash", "Registration number T7123456789012", "000001", "Overnight"),
    }[lang]  # fmt: skip
    for one in wanted:
        assert one in told, one
    written = re.sub(r"\s", "", pdf_text(client, f"{shown}/pdf"))
    for one in wanted:
        assert re.sub(r"\s", "", one) in written, one


def test_the_roll_is_another_sheet_of_the_same(
    cast: Cast, client: FlaskClient, stay: Booked, who: str
) -> None:
    paid(cast, stay)
    shown = issue(client, place(stay, who), "")
    page = client.get(f"{shown}?sheet=roll")
    audit(page, client)
    assert 'class="' in page.text
    assert "printed roll" in page.text
    made = pypdfium2.PdfDocument(client.get(f"{shown}/pdf?sheet=roll").data)
    assert len(made) == 1
    width, height = made[0].get_size()
    assert round(width * 25.4 / 72) == 80
    assert 80 < height * 25.4 / 72 < 400


def test_issued_again_it_says_so(cast: Cast, client: FlaskClient, stay: Booked, who: str) -> None:
    paid(cast, stay)
    shown = issue(client, place(stay, who), "山田")
    assert "再発行（" not in client.get(shown).text
    for count in (1, 2):
        page = audit(client.get(shown), client)
        done = client.post(f"{shown}/again", data=form_data(page, f"{shown}/again"))
        assert done.status_code == 303
        assert f"再発行（{count}回目）" in client.get(shown).text
        assert f"再発行（{count}回目）" in pdf_text(client, f"{shown}/pdf")
    audit(client.get(place(stay, who)), client)


def test_no_receipt_for_money_that_did_not_arrive(
    cast: Cast, client: FlaskClient, stay: Booked, who: str
) -> None:
    url = place(stay, who)
    data = form_data(audit(client.get(url), client), url)
    refused = client.post(url, data=data)
    page = audit(refused, client)
    assert refused.status_code == 422
    assert Code.RECEIPT_NOTHING_RECEIVED in [
        one.get("data-code") for one in page.iter() if one.get("data-code")
    ]


@pytest.mark.parametrize("name", NASTY)
def test_h16_whatever_name_is_typed_stands_there_as_text(
    cast: Cast, stay: Booked, name: str
) -> None:
    client = cast.app.test_client()
    paid(cast, stay)
    shown = issue(client, place(stay, "guest"), name)
    got = client.get(shown)
    page = audit(got, client)
    assert "alert(1)</script>" not in got.text
    assert not list(main_of(page).iter("img"))
    assert words(main_of(page)).count(name.strip("\u202e")[:40].strip()) or "\u202e" in name
    download = client.get(f"{shown}/pdf")
    made = pypdfium2.PdfDocument(download.data)
    assert "\n" not in download.headers["Content-Disposition"]
    assert len(made) == 1, "300 characters leave the rest on the same sheet"
    assert "6,000" in made[0].get_textpage().get_text_range()
    audit(client.get(place(stay, "guest")), client)


@pytest.mark.parametrize("name", ["a\r\nSet-Cookie: x=1", "a\x0bb", "x" * 301])
def test_a_name_that_no_paper_holds_is_told_at_its_field(
    cast: Cast, stay: Booked, name: str
) -> None:
    client, url = cast.app.test_client(), place(stay, "guest")
    paid(cast, stay)
    data = form_data(audit(client.get(url), client), url) | {"addressee": name}
    refused = client.post(url, data=data)
    assert refused.status_code == 422
    assert 'id="addressee-error"' in refused.text
    assert "Set-Cookie: x" not in str(refused.headers)


@pytest.mark.parametrize("registered", [True, False])
def test_a_return_is_shown_as_such(cast: Cast, registered: bool) -> None:
    stay = cast.book(plan="night", starts_at=clock.now() + timedelta(days=2))
    with cast.transaction(stay.facility_id) as tx:
        facilities.name_issuer(tx, SYSTEM, "", "T7123456789012" if registered else None)
    paid(cast, stay)
    client = cast.app.test_client()
    issue(client, place(stay, "guest"), "山田 花子")
    with cast.transaction(stay.facility_id) as tx:
        stays.cancel(tx, SYSTEM, stay.id, 1, fee=1000)
        cash.hand_back(tx, SYSTEM, stay.id, 5000, uuid4())
    shown = issue(client, place(stay, "guest"), "")
    told = words(main_of(audit(client.get(shown), client)))
    title = "適格返還請求書" if registered else "返金明細書"
    for one in (title, "返金方法", "￥5,000", "000001", "￥6,000", "-￥1,000", "キャンセル料"):
        assert one in told, (one, told)


def test_anothers_document_does_not_exist(cast: Cast, stay: Booked) -> None:
    other = cast.book(space="A02", guest=cast.emma)
    paid(cast, other)
    with cast.transaction(other.facility_id) as tx:
        made = documents.issue(tx, SYSTEM, Folio(stay_id=other.id), "秘密の宛名", uuid4())
    document = made.subject  # type: ignore[union-attr]
    guest, desk = cast.app.test_client(), cast.signed_in(cast.tanaka, cast.osaka)
    data = form_data(audit(guest.get(place(stay, "guest")), guest), place(stay, "guest"))
    for url in (f"{place(stay, 'guest')}/{document}", f"{place(stay, 'guest')}/{document}/pdf"):
        assert guest.get(url).status_code == 404
    assert guest.post(f"{place(stay, 'guest')}/{document}/again", data=data).status_code == 404
    assert desk.get(f"{place(other, 'desk')}/{document}").status_code == 404


def test_a_manager_names_the_issuer(cast: Cast) -> None:
    client, page = cast.signed_in(cast.suzuki, cast.tokyo), "/staff/settings"
    url = f"{page}/issuer"
    data = form_data(audit(client.get(page), client), url)
    wrong = client.post(url, data={**data, "tax_number": "T7123456789013"})
    assert wrong.status_code == 422
    assert 'id="tax_number-error"' in wrong.text
    typed = {**data, "issuer_name": "株式会社門番", "tax_number": "Ｔ7123456789012 "}
    assert client.post(url, data=typed).status_code == 303
    with cast.transaction(cast.tokyo.id) as tx:
        kept = tx.row("select issuer_name, tax_number from facilities")
    assert tuple(kept) == ("株式会社門番", "T7123456789012")
    assert cast.signed_in(cast.sato).post(url, data=typed).status_code == 403


def test_whoever_holds_a_link_has_few_pdfs_a_minute_and_the_desk_as_many_as_it_prints(
    cast: Cast, client: FlaskClient, stay: Booked, who: str
) -> None:
    with cast.app.app_context():
        limiter.reset()
    paid(cast, stay)
    paper = issue(client, place(stay, who), "山田")
    said = [client.get(f"{paper}/pdf").status_code for _ in range(32)]
    assert said == [200] * 30 + [429 if who == "guest" else 200] * 2
