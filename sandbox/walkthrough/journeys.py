"""The journeys of guests: the main job in English and in Japanese, then what goes wrong."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from sandbox.stripe.cards import CARDS
from sandbox.walkthrough.house import OpenHouse
from sandbox.walkthrough.told import Teller
from sandbox.walkthrough.visitor import Page, Visitor

GOOD_CARD = CARDS[0].number
DEVICES = {"M": "haneda-men", "W": "haneda-women", "L": "haneda-lounge"}
TOKYO = ZoneInfo("Asia/Tokyo")
QUARANTINE = "前のお客様の鍵"
"""How the desk is told so; `SPACE_QUARANTINED` in Japanese."""


class Journeys:
    def __init__(self, house: OpenHouse, teller: Teller) -> None:
        self.house, self.teller = house, teller
        self.desk = house.staff("front desk")
        self.space = self.device = ""
        self.known: set[str] = set()

    # The main job -----------------------------------------------------------------------------

    def in_english(self) -> None:
        proof, soon = self.teller.proof, self.teller.soon
        mail = "emma.walkthrough@example.com"
        stay = self.book("Emma Walker", "en", price=6000, deposit=2000, email=mail)
        guest, link = self.house.guest("en"), guest_link(stay)
        page = guest.open(link)
        proof("the guest's page is in English", page.language == "en", page.language)
        proof("it asks for the deposit", "2,000" in page.words)

        self.house.stripe.post("webhooks", paused=True)
        back = self.pay(guest, page, "deposit")
        proof("the return page holds: no event has come", "Confirming" in back.words, back.url)
        self.house.stripe.post("webhooks", paused=False)
        soon("the webhook settles the deposit", lambda: "received" in guest.open(back.url).words)

        page = guest.open(link)
        proof("4,000 are left to pay", "4,000" in page.words)
        refused = self.desk.submit(self.desk.open(stay.url), "/check-in")
        proof("the gate refuses while money is due", "4,000" in refused.words, refused.status)
        back = self.pay(guest, page, "balance")
        soon(
            "the webhook settles the stay",
            lambda: "Everything is paid" in guest.open(back.url).words,
        )

        self.house.seam.post("hold", stage="setting", held=True)
        self.known = {code["access_code_id"] for code in self.house.all_codes(self.device)}
        self.desk.submit(self.desk.open(stay.url), "/check-in")
        soon("the code has reached the lock", lambda: self.fresh_codes())
        proof(
            "but it is not set, so the page does not show it",
            "being prepared" in guest.open(link).words,
        )
        self.house.seam.post("hold", stage="setting", held=False)
        code = self.shown_code(guest, link)
        proof("the page shows the code that is on the lock", self.on_lock(code), "6 digits")
        subjects = self.mails(mail, "door code")
        soon("one mail in English says so", lambda: len(self.mails(mail, "door code")) == 1)
        proof("and does not hold the code", not any(code in str(m) for m in subjects))

        self.house.seam.post("hold", stage="removing", held=True)
        self.desk.submit(self.desk.open(stay.url), "/check-out")
        proof("the page no longer shows the code", code not in digits(guest.open(link)))
        next_stay = self.book("Next Guest", "en", price=0, space_id=self.space)
        said = self.desk.submit(self.desk.open(next_stay.url), "/check-in")
        resting = QUARANTINE in said.words and "/check-in" in forms_of(said)
        proof("the space is in quarantine for the next guest", resting)
        self.house.seam.post("hold", stage="removing", held=False)
        soon("the code is gone from the lock", lambda: not self.on_lock(code))
        soon("the quarantine is lifted", lambda: self.admitted(next_stay))
        self.leave(next_stay)

    def in_japanese(self) -> None:
        proof, soon = self.teller.proof, self.teller.soon
        mail = "hanako.walkthrough@example.com"
        stay = self.book("山田 花子", "ja", price=3000, source="walk_in", email=mail)
        paid = self.desk.submit(stay, "/cash", amount=3000)
        proof("the desk books 3,000 in cash", "3,000" in paid.words)
        self.desk.submit(self.desk.open(stay.url), "/check-in")
        guest, link = self.house.guest("ja"), guest_link(stay)
        code = self.shown_code(guest, link)
        proof("the page is in Japanese", guest.open(link).language == "ja")
        proof("the page shows the code that is on the lock", self.on_lock(code), "6 digits")
        soon("one mail in Japanese says so", lambda: len(self.mails(mail, "暗証番号")) == 1)
        self.leave(stay)
        soon("the code is gone from the lock", lambda: not self.on_lock(code))

    # What goes wrong --------------------------------------------------------------------------

    def forged_return(self) -> None:
        stay = self.book("Mallory Forger", "en", price=5000)
        guest, link = self.house.guest("en"), guest_link(stay)
        forged = guest.open(f"{link}/return?redirect_status=succeeded&payment_intent=pi_forged")
        self.teller.proof(
            "a forged return URL changes nothing",
            "Not paid yet" in forged.words and "5,000" in guest.open(link).words,
            forged.status,
        )
        said = self.desk.submit(self.desk.open(stay.url), "/check-in")
        self.teller.proof("and opens no door", "5,000" in said.words and not self.admitted(stay))
        self.cancel(stay)

    def repeated_events(self) -> None:
        stay = self.book("Rhea Peat", "en", price=4000)
        guest, link = self.house.guest("en"), guest_link(stay)
        self.house.stripe.post("webhooks", paused=True)
        self.pay(guest, guest.open(link), "balance")
        self.house.stripe.post("webhooks/reverse")
        self.house.stripe.post("webhooks", paused=False, duplicate=3)
        soon = self.teller.soon
        soon("events three times and backwards settle it", lambda: self.settled(guest, link))
        self.house.stripe.post("webhooks", duplicate=1)
        paid = re.search(r"Paid so far (\S+)", guest.open(link).words)
        seen = paid.group(1) if paid else "nothing"
        self.teller.proof("the folio has the money once", seen == "¥4,000", seen)
        self.refund(stay)
        soon("the refund is back at the provider once", lambda: self.refunded(stay))
        self.cancel(stay)

    def provider_down(self) -> None:
        proof, soon = self.teller.proof, self.teller.soon
        stay = self.book("Down Time", "en", price=7000)
        guest, link = self.house.guest("en"), guest_link(stay)
        self.pay(guest, guest.open(link), "balance")
        soon("the stay is paid", lambda: self.settled(guest, link))
        before = self.provider_refunds()
        self.house.stripe.post("listening", open=False)
        said = self.refund(stay)
        self.house.stripe.post("listening", open=True)
        proof("the refund is refused while the provider is down", "返金" in said.words, said.status)
        after = self.provider_refunds()
        proof("and no money has moved", before == after, f"{after} refunds at the provider")
        self.refund(stay)
        soon("asked again it goes back", lambda: self.refunded(stay))
        now = self.provider_refunds()
        proof("once", now == before + 1, f"{now} refunds at the provider")
        self.cancel(stay)

    def controller_down(self) -> None:
        proof, soon = self.teller.proof, self.teller.soon
        stay = self.book("Locke Down", "en", price=0)
        guest, link = self.house.guest("en"), guest_link(stay)
        self.house.seam.post("down", down=True)
        self.desk.submit(self.desk.open(stay.url), "/check-in")
        proof("the page says that it is being prepared", "being prepared" in guest.open(link).words)
        self.house.seam.post("down", down=False)
        code = self.shown_code(guest, link, seconds=60)
        proof("once the controller is back, one code is set", self.on_lock(code) == 1)
        self.leave(stay)
        soon("and it is removed after check-out", lambda: not self.on_lock(code))

    # What people do ---------------------------------------------------------------------------

    def book(self, name: str, language: str, *, price: int, days: int = 0, **more: Any) -> Page:
        """A stay from five minutes ago until tomorrow, in a free space; returns its page. Not for
        now but in so many `days`, a space that is taken tonight will do."""
        begins = datetime.now(TOKYO) - timedelta(minutes=5) + timedelta(days=days)
        ends = begins + timedelta(days=1)
        page = self.desk.open("/staff/stays/new")
        if "space_id" not in more:
            self.space, self.device = self.free_space(page, tonight=not days)
        usual = {"deposit": 0, "source": "desk", "email": "", "space_id": self.space}
        made = self.desk.submit(
            page,
            "/stays",
            name=name,
            price=price,
            locale=language,
            plan_id="",
            arrive_day=begins.date(),
            arrive_time=begins.strftime("%H:%M"),
            leave_day=ends.date(),
            leave_time=ends.strftime("%H:%M"),
            **{**usual, **more},
        )
        self.teller.proof(f"{name} has a stay", "/g/" in made.text, made.url.rsplit("/", 1)[-1])
        return made

    def free_space(self, page: Page, *, tonight: bool = True) -> tuple[str, str]:
        """The last one on offer that is neither taken nor resting, and the lock of its door."""
        for value, label in reversed(page.form("/stays").choices["space_id"]):
            code = re.search(r"\b([MWL])\d\d\b", label)
            if code and not (tonight and ("（" in label or "(" in label)):
                return value, DEVICES[code.group(1)]
        raise LookupError("no space is free")

    def pay(self, guest: Visitor, page: Page, part: str) -> Page:
        """From our page over the provider's to our return page."""
        ours = guest.submit(page, "/pay", part=part)
        theirs = guest.open(ours.link("/pay/pi_"))
        return guest.submit(theirs, theirs.forms[0].action.rsplit("/", 1)[-1], number=GOOD_CARD)

    def shown_code(self, guest: Visitor, link: str, seconds: float = 30) -> str:
        found: list[str] = []

        def look() -> bool:
            found[:] = code_on(guest.open(link))
            return bool(found)

        self.teller.soon("the guest's page shows a door code", look, seconds)
        return found[0]

    def refund(self, stay: Page) -> Page:
        page = self.desk.open(stay.url)
        asked = self.desk.open(page.link("/refund"))
        return self.desk.submit(asked, "/refund")

    def leave(self, stay: Page) -> None:
        self.desk.submit(self.desk.open(stay.url), "/check-out")

    def cancel(self, stay: Page) -> None:
        """For nothing: the policy's fee is a suggestion to the desk."""
        page = self.desk.open(stay.url)
        self.desk.submit(self.desk.open(page.link("/cancel")), "/cancel", fee=0)

    # What can be seen -------------------------------------------------------------------------

    def admitted(self, stay: Page) -> bool:
        """Tried anew: the gate decides."""
        page = self.desk.open(stay.url)
        if "/check-in" in forms_of(page):
            page = self.desk.submit(page, "/check-in")
        return "/check-out" in forms_of(page)

    def settled(self, guest: Visitor, link: str) -> bool:
        return "/pay" not in forms_of(guest.open(link))

    def refunded(self, stay: Page) -> bool:
        page = self.desk.open(stay.url)
        return "返金済" in page.words

    def provider_refunds(self) -> int:
        objects: dict[str, list[Any]] = self.house.stripe.get("objects")
        return len(objects.get("refund", []))

    def on_lock(self, code: str) -> int:
        return len([c for c in self.house.all_codes(self.device) if c.get("code") == code])

    def fresh_codes(self) -> list[dict[str, Any]]:
        codes = self.house.all_codes(self.device)
        return [code for code in codes if code["access_code_id"] not in self.known]

    def mails(self, address: str, about: str) -> list[dict[str, Any]]:
        return [mail for mail in self.house.mail.to(address) if about in mail["subject"]]


def guest_link(stay: Page) -> str:
    found = re.search(r'value="(http[^"]*/g/[^"]+)"', stay.text)
    if found is None:
        raise LookupError(f"{stay.url} shows no guest link")
    return found.group(1)


def code_on(page: Page) -> list[str]:
    """The digits of the door code, as the page groups them."""
    found = re.search(r'id="door-code"[^>]*>((?:<span>\d+</span>)+)', page.text)
    return [re.sub(r"\D", "", found.group(1))] if found else []


def digits(page: Page) -> str:
    return re.sub(r"\D", "", page.words)


def forms_of(page: Page) -> str:
    return " ".join(form.action for form in page.forms)
