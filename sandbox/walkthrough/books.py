"""The books beside the far side: nothing differs; then one of each kind does, planted from outside,
found, shown, and ended by its own verb on the page."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from uuid import uuid4

from stripe import StripeClient

from sandbox.walkthrough.journeys import TOKYO, Journeys, code_on, guest_link
from sandbox.walkthrough.visitor import Page, Visitor

# What each is called on the page.
NAMES = {
    "payment_not_here": (
        "A payment at the provider that is not in our books",
        "決済会社にあり、こちらの記録にない支払い",
    ),
    "payment_not_there": (
        "A payment in our books that the provider does not have",
        "こちらの記録にあり、決済会社にない支払い",
    ),
    "payment_differs": (
        "A payment that the provider tells differently",
        "決済会社の内容と異なる支払い",
    ),
    "refund_not_here": (
        "A refund at the provider that is not in our books",
        "決済会社にあり、こちらの記録にない返金",
    ),
    "refund_not_there": (
        "A refund in our books that the provider does not have",
        "こちらの記録にあり、決済会社にない返金",
    ),
    "refund_differs": (
        "A refund that the provider tells differently",
        "決済会社の内容と異なる返金",
    ),
    "dispute_differs": (
        "A dispute that the provider tells differently",
        "決済会社の内容と異なる異議申立て",
    ),
    "code_stray": (
        "A code on the lock that belongs to nobody now",
        "錠に残っている、今は誰のものでもない暗証番号",
    ),
    "code_missing": (
        "A key whose code is not on the lock",
        "暗証番号が錠に入っていない鍵",
    ),
    "code_differs": (
        "A code that ends at another time on the lock",
        "錠での有効期限が異なる暗証番号",
    ),
    "code_pin_differs": (
        "A code whose digits are others on the lock",
        "錠での番号が異なる暗証番号",
    ),
    "message_not_here": (
        "A message that was delivered, and that we do not call sent",
        "届いているのに、送信済みになっていないお知らせ",
    ),
    "message_not_there": (
        "A message that we call sent, and that the mail server does not have",
        "送信済みなのに、メールサーバーにないお知らせ",
    ),
    "subscription_not_here": (
        "A membership that the provider bills, and that we know nothing of",
        "決済会社が請求していて、こちらの帳簿にない会員契約",
    ),
    "subscription_not_there": (
        "A membership that we believe billed, and the provider does not",
        "こちらでは請求中で、決済会社にはない会員契約",
    ),
    "subscription_differs": (
        "A membership whose billing the provider tells differently",
        "請求の内容が決済会社と食い違う会員契約",
    ),
}

ONLY_A_PERSON = ("payment_not_here", "subscription_not_here")
OPEN = "select id, kind from divergences where healed_at is null order by kind"
LOST, FORGOTTEN = "lost.walkthrough@example.com", "forgotten.walkthrough@example.com"
OTHER_DIGITS, STRAY_DIGITS = "135792", "907531"


@dataclass
class InHouse:
    """A guest with a key."""

    stay: Page
    guest: Visitor
    link: str
    device: str
    digits: str
    code: str
    """The lock controller's own id of the code."""


class Books:
    def __init__(self, day: Journeys) -> None:
        self.day, self.house, self.teller = day, day.house, day.teller

    def compared(self) -> None:
        proof, soon = self.teller.proof, self.teller.soon
        soon("after all of this nothing differs", self.agrees, 90)
        inside = [self.moved_in(name) for name in ("Connie Pare", "Dee Ferrer")]
        members = [self.joined(name) for name in ("Mem Berone", "Mem Bertwo")]

        self.listen(False)
        self.plant_money()
        self.plant_codes(*inside)
        self.plant_messages()
        self.plant_billing(*members)
        told = self.house.reconcile()
        wanted = dict.fromkeys(NAMES, 1) | {"payment_differs": 2}
        proof("one of each kind is planted and found", told["new"] == wanted, told["new"])
        proof("the command ends with 1", told["exit"] == 1)
        self.shown(self.owner(), "en", 0)
        self.shown(self.day.desk, "ja", 1)
        self.heal()
        self.listen(True)
        self.order_anew(inside)
        soon("once more nothing differs", self.agrees, 90)
        self.ended(inside)

    def agrees(self) -> bool:
        told = self.house.reconcile()
        return told["open"] == told["unread"] == told["exit"] == 0 and bool(told["doors"])

    def listen(self, on: bool) -> None:
        """Whether the portal hears of what happens: of a difference it does not. Nor does it ask
        after a key until it hears again; what it has missed in between it asks for at once."""
        self.house.stripe.post("webhooks", paused=not on)
        self.house.seam.post("webhooks", mode="deliver" if on else "drop")
        pause = "0 minutes" if on else "15 minutes"
        self.house.as_owner(f"update entry_keys set next_poll_at = now() + interval '{pause}'")

    # What is planted ---------------------------------------------------------------------------

    def moved_in(self, name: str) -> InHouse:
        stay = self.day.book(name, "en", price=0)
        device = self.day.device
        self.day.desk.submit(self.day.desk.open(stay.url), "/check-in")
        guest, link = self.house.guest("en"), guest_link(stay)
        digits = self.day.shown_code(guest, link)
        codes = self.house.all_codes(device)
        (code,) = [one["access_code_id"] for one in codes if one["code"] == digits]
        return InHouse(stay, guest, link, device, digits, code)

    def joined(self, name: str) -> str:
        """A member who pays by card, from the application on. Returns the membership's id."""
        guest, day = self.house.guest("en"), self.day
        mail = f"{name.split()[1].lower()}.walkthrough@example.com"
        page = guest.open("/join/haneda-capsule/card")
        last = guest.submit(page, "/card", name=name, email=mail, terms="y", step="next")
        page = guest.submit(last, "/card", step="apply")
        link, listed = page.url, day.desk.open("/staff/members?state=applying")
        ((membership,),) = self.house.as_owner(
            "select m.id from memberships m join members r on r.id = m.member_id"
            " where r.email_key = %s",
            mail,
        )
        shown = day.desk.open(listed.link(f"/members/{membership}"))
        day.desk.submit(shown, "/approve")
        back = day.pay(guest, guest.open(link), "")
        self.teller.soon(
            f"{name} has paid and is a member",
            lambda: "Your membership runs" in guest.open(back.url).words,
        )
        return str(membership)

    def plant_billing(self, differs: str, lost: str) -> None:
        """An end that somebody set in the provider's own pages, and a subscription that our books
        know by an id that never was."""
        ((subscription,),) = self.house.as_owner(
            "select subscription_id from subscription_mirror where membership_id = %s", differs
        )
        self.provider().v1.subscriptions.update(subscription, {"cancel_at_period_end": True})
        self.house.as_owner(
            "update subscription_mirror set subscription_id = 'sub_never_was',"
            " created_at = created_at - interval '10 minutes' where membership_id = %s",
            lost,
        )

    def provider(self) -> StripeClient:
        return StripeClient(
            self.house.env["STRIPE_SECRET_KEY"],
            base_addresses={"api": self.house.env["STRIPE_API_BASE"]},
        )

    def plant_money(self) -> None:
        """Payments of which no event tells; and what an owner of the database can spoil."""
        for days, name, mail in ((40, "Lois Event", LOST), (43, "Hugh Later", FORGOTTEN)):
            stay = self.day.book(name, "en", price=3000, days=days, email=mail)
            guest = self.house.guest("en")
            self.day.pay(guest, guest.open(guest_link(stay)), "balance")
        stay = self.day.book("Una Paid", "en", price=5000, days=46)
        guest = self.house.guest("en")
        guest.submit(guest.open(guest_link(stay)), "/pay", part="balance")
        self.house.as_owner(
            "update payments set intent_id = 'pi_never_was',"
            " created_at = created_at - interval '10 minutes' where stay_id = %s",
            stay.url.rsplit("/", 1)[-1],
        )
        ((intent,),) = self.house.as_owner(
            "select intent_id from payments p where state = 'succeeded' and stay_id is not null"
            " and not exists (select 1 from refunds r where r.payment_id = p.id)"
            " order by created_at desc limit 1"
        )
        self.house.stripe.post("refunds", payment_intent=intent, amount=500)
        ((disputed,),) = self.house.as_owner(
            "select intent_id from payments p where state = 'succeeded' and stay_id is not null"
            " and intent_id <> %s and not exists ("
            " select 1 from refunds r where r.payment_id = p.id)"
            " order by created_at limit 1",
            intent,
        )
        self.house.stripe.post("disputes", payment_intent=disputed)
        self.charge_elsewhere(intent)
        (lost,), (failed,) = self.house.as_owner(
            "select provider_refund_id from refunds where state = 'succeeded' and reason = 'staff'"
            " order by created_at desc limit 2"
        )
        self.house.as_owner(
            "update refunds set provider_refund_id = 're_never_was',"
            " created_at = created_at - interval '10 minutes' where provider_refund_id = %s",
            lost,
        )
        self.house.stripe.post(f"refunds/{failed}", status="failed")

    def charge_elsewhere(self, like: str) -> None:
        """Money with our house's name on it that the house never asked for."""
        house = self.house.stripe.get(f"objects/{like}")["metadata"]["facility"]
        self.provider().v1.payment_intents.create(
            {
                "amount": 700,
                "currency": "jpy",
                "payment_method": "pm_card_visa",
                "confirm": True,
                "return_url": "https://example.com/",
                "metadata": {"payment_id": str(uuid4()), "facility": house},
            }
        )

    def plant_codes(self, changed: InHouse, gone: InHouse) -> None:
        """In the lock's own app."""
        begins = datetime.now(TOKYO)
        later = (begins + timedelta(days=30)).isoformat(timespec="seconds")
        self.house.seam.post(f"codes/{changed.code}/modify", ends_at=later, code=OTHER_DIGITS)
        self.house.seam.post(f"codes/{gone.code}/remove", gone=True)
        self.house.ask_lock(
            "/access_codes/create",
            device_id=changed.device,
            name=f"monban {uuid4()}",
            code=STRAY_DIGITS,
            starts_at=begins.isoformat(timespec="seconds"),
            ends_at=later,
        )

    def plant_messages(self) -> None:
        """One mail is lost by the mail server, of another we forget that it was sent."""
        inbox = self.house.mail
        self.teller.soon("both have mail", lambda: inbox.to(LOST) and inbox.to(FORGOTTEN))
        self.teller.soon("and it is marked as sent", lambda: self.sent_to(LOST, FORGOTTEN) == 2)
        (mail,) = inbox.to(LOST)
        inbox.remove(mail["id"])
        self.house.as_owner(
            "update outbox set sent_at = sent_at - interval '15 seconds' where recipient = %s", LOST
        )
        self.house.as_owner(
            "update outbox set sent_at = null, unknown_at = now() where recipient = %s", FORGOTTEN
        )

    def sent_to(self, *addresses: str) -> int:
        ((count,),) = self.house.as_owner(
            "select count(*) from outbox where recipient = any(%s) and sent_at is not null"
            " and event_type = 'stay_created'",
            list(addresses),
        )
        return int(count)

    # What becomes of it ------------------------------------------------------------------------

    def owner(self) -> Visitor:
        """She reads English, and has two houses to choose from."""
        owner = self.house.staff("owner of both")
        ((house,),) = self.house.as_owner("select distinct facility_id from divergences")
        owner.submit(owner.open("/staff/facility"), "/staff/facility", facility=house)
        return owner

    def shown(self, reader: Visitor, language: str, place: int) -> None:
        page = reader.open("/staff/attention")
        missing = [kind for kind, names in NAMES.items() if names[place] not in page.words]
        self.teller.proof(
            f"each is on the page, in its own words ({language})",
            page.language == language and not missing,
            missing or f"{len(NAMES)} kinds",
        )

    def heal(self) -> None:
        """Each by the one verb beside it; the second payment is left to its event."""
        left_alone = ""
        for row, kind in self.house.as_owner(OPEN):
            if kind == "payment_differs" and not left_alone:
                left_alone = str(row)
                continue
            verb = "let-be" if kind in ONLY_A_PERSON else "resolve"
            page = self.day.desk.open("/staff/attention")
            said = self.day.desk.submit(page, f"/divergences/{row}/{verb}")
            there = any(f"/divergences/{row}/" in form.action for form in said.forms)
            self.teller.proof(f"{kind} is ended by its verb", not there, said.status)

    def order_anew(self, inside: list[InHouse]) -> None:
        """The code that was gone waits as a key without a code; the page has the verb for that."""
        page = self.day.desk.open("/staff/attention")
        stay = inside[1].stay.url.rsplit("/", 1)[-1]
        self.day.desk.submit(page, f"/stays/{stay}/new-code")

    def ended(self, inside: list[InHouse]) -> None:
        proof, soon = self.teller.proof, self.teller.soon
        alone = self.house.as_owner("select kind from divergences where healed_by = 'agreement'")
        itself = [kind for (kind,) in alone]
        proof("one healed by itself once its event had come", itself == ["payment_differs"], itself)
        soon("the lost mail is there again, once", lambda: self.booked_mails(LOST) == 1)
        twice = self.booked_mails(FORGOTTEN) > 1 or self.sent_to(LOST, FORGOTTEN) != 2
        proof("nobody was written to twice", not twice)
        for one in inside:
            soon("the guest has a new code", partial(self.new_code, one))
        codes = [code["code"] for one in inside for code in self.house.all_codes(one.device)]
        proof("no digits of a stranger open a door", not {OTHER_DIGITS, STRAY_DIGITS} & set(codes))
        for one in inside:
            self.day.leave(one.stay)

    def booked_mails(self, address: str) -> int:
        """How often this guest was told of the booking; the payment has a mail of its own."""
        mails = self.house.mail.to(address)
        return sum("Your reservation" in mail["subject"] for mail in mails)

    def new_code(self, one: InHouse) -> bool:
        shown = code_on(one.guest.open(one.link))
        on_lock = [code["code"] for code in self.house.all_codes(one.device)]
        return bool(shown) and shown[0] != one.digits and on_lock.count(shown[0]) == 1
