"""A new link, made at the desk."""

from tests.cast import Cast
from tests.web.audit import form_data
from tests.web.staff.desk import HTMX, code, look, press, read, text


def test_a_new_link_to_a_stay(cast: Cast, lang: str) -> None:
    client = cast.signed_in(cast.sato, cast.tokyo, locale=lang)
    stay = cast.book()
    page = look(client, f"/staff/stays/{stay.id}", lang)
    done = press(client, page, f"/staff/stays/{stay.id}/link")
    assert done.status_code == 303
    after = look(client, done.location, lang)
    assert code(after) == "LINK_RENEWED"
    assert {"ja": "新しいリンクを発行", "en": "A new link"}[lang] in text(after)
    again = press(client, page, f"/staff/stays/{stay.id}/link")
    assert code(look(client, again.location, lang)) == "STALE_PAGE"


def test_a_new_link_to_a_membership(cast: Cast, lang: str) -> None:
    client = cast.signed_in(cast.sato, cast.tokyo, locale=lang)
    joined = cast.join()
    there = f"/staff/members/{joined.id}"
    page = look(client, there, lang)
    assert press(client, page, f"{there}/link").status_code == 303
    assert joined.token not in client.get(there).text
    stale = client.post(f"{there}/link", data=form_data(page, f"{there}/link"), headers=HTMX)
    assert code(read(client, stale, 409)) == "STALE_PAGE"
