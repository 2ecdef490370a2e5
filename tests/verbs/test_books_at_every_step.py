"""The books at every step of any life of a stay: what came and went by card, by cash and by the
bank's word, what the stay costs, what was sold beside it, what its receipts state, the visits of a
membership's month and of a ticket book all add up, to the yen and to the visit."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from portal import clock
from portal.jobs import deposits
from portal.jobs.house import House
from portal.models import Payment
from portal.outcome import Applied, Noop
from portal.queries import day_closes
from portal.verbs import (
    cash,
    day_close,
    documents,
    payments,
    refunds,
    refunds_owed,
    stay_changes,
    stays,
)
from sandbox.stripe.testing import StandIn
from tests.cast import Booked, Cast, HouseOf
from tests.outside import Owner, deliver, pay, work
from tests.verbs import visits
from tests.verbs.visits import Visits

PRICE, DEPOSIT = 9_000, 2_000
WITH_BANK = ("needs_response", "under_review", "lost")
AMOUNTS = st.sampled_from((1, 1000, 2500, PRICE))
ALWAYS = ("cash", "cash_back", "dearer", "cheaper", "receipt", "close")
WITHOUT_MONEY = (
    *("visit_with_ticket", "visit_with_ticket", "visit_of_month", "visit_of_month"),
    *("cancel_visits", "cancel_visits", "cancel_visits_late", "take_book_back", "sell_book"),
)
BEFORE = ("card", "card_deposit", "no_show", "cancel", "deadline", "deadline")
PAID = ("refund", "concede", "dispute", "dispute", "cancel", "deadline")
WITH_THE_BANK = ("win", "win", "lose", "cancel", "cash", "cheaper", "deadline")
LONGEST = 6


@dataclass
class Life:
    """One stay in a house of its own, and what a clerk with a pencil would have written down."""

    cast: Cast
    worker: House
    stripe: StandIn
    owner: Owner
    house: HouseOf
    stay: Booked
    price: int = PRICE
    beside: int = 0
    """What was sold on its account, which no change of its price touches."""
    cash_in: int = 0
    cash_out: int = 0
    stated: int = 0
    visits: Visits = field(init=False)

    def __post_init__(self) -> None:
        self.visits = visits.opened(self.cast, self.owner, self.house)

    def do(self, verb: Callable[..., Any], *args: Any, **more: Any) -> Any:
        with self.cast.transaction(self.house.id) as tx:
            return verb(tx, self.cast.sato.actor, *args, **more)

    def version(self) -> int:
        return int(self.owner.one("select version from stays where id = %s", self.stay.id))

    def intents(self, *states: str) -> list[tuple[UUID, str]]:
        return self.owner.rows(
            "select id, intent_id from payments where stay_id = %s and state = any(%s)"
            " order by created_at",
            self.stay.id,
            list(states),
        )

    # Steps ---------------------------------------------------------------------------------------

    def step(self, name: str, amount: int) -> None:
        getattr(self, name)(amount)

    def possible(self) -> list[str]:
        """What somebody might well do now; each may still be refused."""
        disputed = any(one["status"] == "needs_response" for one in self._theirs("dispute"))
        paid = bool(self.intents("succeeded"))
        return [*ALWAYS, *(WITH_THE_BANK if disputed else PAID if paid else BEFORE)]

    def card_deposit(self, amount: int) -> Any:
        return self._by_card("deposit")

    def card(self, amount: int) -> Any:
        return self._by_card("balance")

    def _by_card(self, part: Any) -> Any:
        desk = self.worker.desk(self.house.id)
        said = payments.open_payment(desk, self.cast.sato.actor, self.stay.id, part)
        if isinstance(said, Applied | Noop):
            for _, intent in self.intents("open"):
                pay(self.stripe, intent)
        return said

    def cash(self, amount: int) -> Any:
        said = self.do(cash.take, self.stay.id, amount, uuid4())
        self.cash_in += amount if isinstance(said, Applied) else 0
        return said

    def cash_back(self, amount: int) -> Any:
        said = self.do(cash.hand_back, self.stay.id, amount, uuid4())
        self.cash_out += amount if isinstance(said, Applied) else 0
        return said

    def refund(self, amount: int) -> Any:
        return self._returned(amount, lowers_price=False)

    def concede(self, amount: int) -> Any:
        said = self._returned(amount, lowers_price=True)
        self.price -= amount if isinstance(said, Applied) else 0
        return said

    def _returned(self, amount: int, *, lowers_price: bool) -> Any:
        for payment, _ in self.intents("succeeded"):
            desk = self.worker.desk(self.house.id)
            return refunds.ask(
                desk, self.cast.sato.actor, payment, amount, uuid4(), lowers_price=lowers_price
            )
        return None

    def dispute(self, amount: int) -> Any:
        for _, intent in self.intents("succeeded"):
            if not self._disputed(intent):
                return self.stripe.post("disputes", payment_intent=intent)
        return None

    def win(self, amount: int) -> Any:
        return self._decided("won")

    def lose(self, amount: int) -> Any:
        return self._decided("lost")

    def _decided(self, status: str) -> Any:
        for dispute in self._theirs("dispute"):
            if dispute["status"] == "needs_response":
                return self.stripe.post(f"disputes/{dispute['id']}/close", status=status)
        return None

    def _disputed(self, intent: str) -> bool:
        return any(one["payment_intent"] == intent for one in self._theirs("dispute"))

    def dearer(self, amount: int) -> Any:
        return self._repriced(amount)

    def cheaper(self, amount: int) -> Any:
        return self._repriced(-amount)

    def _repriced(self, change: int) -> Any:
        starts, ends = self.owner.row(
            "select starts_at, ends_at from stays where id = %s", self.stay.id
        )
        later = ends + timedelta(minutes=1)
        args = (self.stay.id, self.version(), starts, later, change)
        said = self.do(stay_changes.change_times, *args)
        self.price += change if isinstance(said, Applied) else 0
        return said

    def cancel(self, amount: int) -> Any:
        said = self.do(stays.cancel, self.stay.id, self.version(), amount)
        self.price = amount if isinstance(said, Applied) else self.price
        return said

    def deadline(self, amount: int) -> Any:
        """The time for the deposit passes, and the sweep looks. It ends what is not covered."""
        self.owner.run(
            "update stays set deposit_by = least(now(), starts_at) where id = %s", self.stay.id
        )
        was = self.state()
        ends = was == "reserved" and self._is_short()
        deposits.end_missed(self.worker)
        assert self.state() == ("cancelled" if ends else was)
        self.price = 0 if ends else self.price

    def state(self) -> str:
        return str(self.owner.one("select state from stays where id = %s", self.stay.id))

    def _is_short(self) -> bool:
        """As a clerk reckons it: less has ever come than was asked for, and it is owed still."""
        came = -self.lines("deposit", "payment", "cash")
        return min(self.price + self.beside - self.received(), DEPOSIT - came) > 0

    def no_show(self, amount: int) -> Any:
        return self.do(stays.mark_no_show, self.stay.id, self.version())

    def receipt(self, amount: int) -> Any:
        said = self.do(documents.issue, documents.Folio(stay_id=self.stay.id), "山田", uuid4())
        if isinstance(said, Applied):
            self.stated = self.received()
        return said

    def close(self, amount: int) -> Any:
        with self.cast.transaction(self.house.id) as tx:
            now = day_closes.to_close(tx, clock.now())
        today = clock.local_day(clock.now(), self.house.zone)
        count = day_close.Count(
            form_key=uuid4(),
            day=today,
            opening=0,
            counted=max(0, now.figures.expected),
            taken=0,
            cash_moved=now.figures.cash_moved,
            left_open=len(now.matters),
            reason="counted at every step",
        )
        return self.do(day_close.close, count)

    def sell_book(self, amount: int) -> None:
        self.beside += self.visits.sell(self.stay)

    def take_book_back(self, amount: int) -> None:
        self.beside -= self.visits.take_back()
        self.quiet()

    def visit_with_ticket(self, amount: int) -> None:
        self.visits.with_ticket(paid=self.balance() <= 0)

    def visit_of_month(self, amount: int) -> None:
        self.visits.of_the_month()

    def cancel_visits(self, amount: int) -> None:
        self.visits.cancel(late=False)

    def cancel_visits_late(self, amount: int) -> None:
        self.visits.cancel(late=True)

    # What must hold ------------------------------------------------------------------------------

    def quiet(self) -> None:
        """The provider's events are heard and what is owed is sent, until nothing more happens."""
        for _ in range(2):
            deliver(self.worker)
            self.owner.make_due()
            work(self.worker, "refunds", "payments")
        deliver(self.worker)

    def _theirs(self, kind: str) -> list[dict[str, Any]]:
        mine = {intent for _, intent in self.intents(
            "open", "processing", "succeeded", "refund_owed", "refunded", "canceled", "unknown"
        )}  # fmt: skip
        found = self.stripe.get("objects").get(kind, [])
        return [one for one in found if one.get("payment_intent", one["id"]) in mine]

    def lines(self, *kinds: str) -> int:
        return int(
            self.owner.one(
                "select coalesce(sum(amount), 0) from ledger_lines"
                " where stay_id = %s and kind = any(%s)",
                self.stay.id,
                list(kinds),
            )
        )

    def balance(self) -> int:
        return int(
            self.owner.one(
                "select coalesce(sum(amount), 0) from ledger_lines where stay_id = %s",
                self.stay.id,
            )
        )

    def received(self) -> int:
        return -self.lines(
            *("deposit", "payment", "cash", "cash_returned"),
            *("refund", "refund_reversed", "chargeback", "chargeback_reversed"),
        )

    def check(self) -> None:
        paid = sum(one["amount_received"] for one in self._theirs("payment_intent"))
        back = sum(one["amount"] for one in self._theirs("refund") if one["status"] == "succeeded")
        bank = sum(one["amount"] for one in self._theirs("dispute") if one["status"] in WITH_BANK)
        assert -self.lines("deposit", "payment") == paid
        assert self.lines("refund", "refund_reversed") == back
        assert self.lines("chargeback", "chargeback_reversed") == bank
        assert -self.lines("cash") == self.cash_in
        assert self.lines("cash_returned") == self.cash_out
        assert back + bank <= paid
        assert self.lines("charge", "charge_reversed", "fee") == self.price + self.beside
        assert min(self.price, self.beside) >= 0
        self.visits.check()
        balance = self.balance()
        in_hand = paid - back - bank + self.cash_in - self.cash_out
        assert balance == self.price + self.beside - in_hand
        assert in_hand >= 0
        if balance < 0:
            assert -balance <= self.cash_in - self.cash_out, "what was paid by card went back"
        for payment, _ in self.intents("succeeded", "refund_owed", "refunded"):
            self._no_more_than_it_was(payment)
        self._stated()

    def _no_more_than_it_was(self, payment: UUID) -> None:
        with self.cast.transaction(self.house.id) as tx:
            row = tx.get(Payment, payment)
            assert row is not None
            assert 0 <= refunds_owed.refundable(tx, row) <= row.amount

    def _stated(self) -> None:
        """Receipts less returns are what was received when the last of them was issued."""
        stated = self.owner.one(
            "select coalesce(sum(case kind when 'receipt' then amount else -amount end), 0)"
            " from documents where stay_id = %s",
            self.stay.id,
        )
        assert int(stated) == self.stated
        numbers = self.owner.rows(
            "select number from documents where facility_id = %s order by number", self.house.id
        )
        assert [number for (number,) in numbers] == list(range(1, len(numbers) + 1))


@settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    # A life that is not even is told as it was found: each step of a shorter one costs as much.
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_books_are_even_at_every_step(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner, data: st.DataObject
) -> None:
    house = cast.open_house(f"house-{uuid4().hex[:8]}", "宿", "Inn", spaces=visits.SPACES)
    stay = cast.book(house, price=PRICE, deposit_due=DEPOSIT, actor=cast.sato.actor)
    life = Life(cast, worker, stripe, owner, house, stay)
    life.step(data.draw(st.sampled_from(("card", "card_deposit", "cash"))), PRICE)
    life.quiet()
    life.check()
    if data.draw(st.sampled_from((True, True, False))):
        life.step("sell_book", 0)
        life.step(data.draw(st.sampled_from(("cash", "card"))), visits.PRICE)
        life.quiet()
    for _ in range(LONGEST):
        life.step(data.draw(st.sampled_from(life.possible())), data.draw(AMOUNTS))
        life.quiet()
        life.check()
        for name in data.draw(st.lists(st.sampled_from(WITHOUT_MONEY), min_size=2, max_size=3)):
            life.step(name, 0)
            life.check()
