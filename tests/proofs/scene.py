"""A paid stay, the ways its event can reach us, and what must be true at the far side."""

import json
import urllib.error
import urllib.request
from concurrent.futures import Future, ThreadPoolExecutor
from http.client import HTTPException
from typing import Any, NamedTuple
from uuid import UUID, uuid4

from portal.edges.payments.port import ProviderEvent
from portal.jobs.house import House
from portal.outcome import Applied
from portal.verbs import payments
from sandbox.mail import MailSink
from sandbox.stripe.testing import StandIn
from tests.cast import Cast
from tests.outside import Owner, events, pay, recorded
from tests.proofs.processes import PATIENCE, Child, Nursery
from tests.web.test_hooks_stripe import header

PRICE = 6000
LEASE = "interval '61 seconds'"

# Points: statements that only one step says.
CLAIM = "update webhook_events e set claimed_at"
RECEIPT = "insert into webhook_events"
READING = "from payment_by_intent("
BOOKING = "insert into ledger_lines"
WRITING = "insert into outbox"
COMPLETION = "update webhook_events subject"

_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Answer(NamedTuple):
    """What the provider hears. Status 0: the connection broke."""

    status: int
    words: str = ""
    retry_after: str | None = None


RECEIVED, DUPLICATE, BROKEN = Answer(200, "received"), Answer(200, "duplicate"), Answer(0)
IN_FLIGHT = Answer(503, "claimed", "10")


def post(url: str, raw: bytes) -> Answer:
    """Deliver an event as the provider does: the bytes, and a signature over them."""
    request = urllib.request.Request(
        f"{url}/webhooks/stripe",
        data=raw,
        headers={"Content-Type": "application/json", "Stripe-Signature": header(raw)},
    )
    try:
        with _DIRECT.open(request, timeout=PATIENCE) as answer:
            return Answer(answer.status, answer.read().decode())
    except urllib.error.HTTPError as answer:
        return Answer(answer.code, answer.read().decode(), answer.headers["Retry-After"])
    except (OSError, HTTPException):
        return BROKEN


def twin(event: ProviderEvent) -> bytes:
    """Another event about the same fact."""
    return json.dumps({**json.loads(event.raw), "id": f"evt_{uuid4().hex}"}).encode()


class Scene:
    def __init__(
        self,
        cast: Cast,
        worker: House,
        owner: Owner,
        stripe: StandIn,
        mail: MailSink,
        nursery: Nursery,
    ) -> None:
        self.cast, self.worker, self.owner = cast, worker, owner
        self.stripe, self.mail, self.nursery = stripe, mail, nursery
        self.stay = cast.book(price=PRICE)
        desk = worker.desk(self.stay.facility_id)
        said = payments.open_payment(desk, cast.sato.actor, self.stay.id, "balance")
        assert isinstance(said, Applied), said
        assert said.subject is not None
        self.payment: UUID = said.subject
        self.intent = str(owner.one("select intent_id from payments"))
        pay(stripe, self.intent)
        self.event = self.event_of("payment_intent.succeeded")

    def event_of(self, kind: str) -> ProviderEvent:
        (found,) = [one for one in events(self.worker) if one.type == kind]
        return found

    def expire_claims(self) -> None:
        """Move the hand of the clock past the lease of every claim."""
        self.owner.run(f"update webhook_events set claimed_at = claimed_at - {LEASE}")

    def inbox(self) -> list[tuple[Any, ...]]:
        """(state, outcome) of every event, in the order of receipt."""
        return self.owner.rows("select state, outcome from webhook_events order by received_at")

    def nothing_applied(self) -> None:
        """No trace of the payment: not in its row, the folio, the records or the outbox."""
        assert self.owner.one("select state from payments") == "open"
        assert recorded(self.owner, self.payment) == [("created", None, "open")]
        assert self._booked() == []
        assert self._receipts() == []
        assert self._completions() == 0
        assert {state for state, _ in self.inbox()} <= {"processing"}

    def granted_once(self) -> None:
        """Every effect once, here; and our word equals the provider's."""
        assert self.owner.one("select state from payments") == "succeeded"
        assert self.stripe.get(f"objects/{self.intent}")["status"] == "succeeded"
        assert recorded(self.owner, self.payment) == [
            ("created", None, "open"),
            ("provider_succeeded", "open", "succeeded"),
        ]
        assert self._booked() == [("payment", -PRICE)]
        assert len(self._receipts()) == 1
        assert self.owner.one("select count(*) from refunds") == 0
        assert self.stripe.creates("refund") == 0
        assert {state for state, _ in self.inbox()} == {"completed"}
        assert self._completions() == len(self.inbox())
        assert self.owner.one("select count(*) from dead_letters") == 0

    def told_once(self) -> None:
        """Two senders look for work, and the guest has one receipt."""
        for _ in range(2):
            self.nursery.child().work("outbox")
        (receipt,) = self._receipts()
        kept = [got.message["Message-ID"] for got in self.mail.kept]
        assert kept.count(f"<{receipt}@monban>") == 1
        assert len(kept) == len(set(kept))
        unsent = "select count(*) from outbox where sent_at is null"
        assert self.owner.one(unsent) == 0

    def written_by(self) -> set[str]:
        """The transactions that wrote what stands of the grant and of its completion."""
        wrote = self.owner.rows(
            """
            select xmin::text from webhook_events where state = 'completed'
            union all select xmin::text from payments where state = 'succeeded'
            union all select xmin::text from ledger_lines where kind = 'payment'
            union all select xmin::text from outbox where event_type = 'payment_received'
            union all select xmin::text from transitions
                where event in ('provider_succeeded', 'completed')
            """
        )
        assert len(wrote) == 6
        return {str(one) for (one,) in wrote}

    def _booked(self) -> list[tuple[Any, ...]]:
        return self.owner.rows("select kind, amount from ledger_lines where payment_id is not null")

    def _receipts(self) -> list[str]:
        found = self.owner.rows("select id from outbox where event_type = 'payment_received'")
        return [str(one) for (one,) in found]

    def _completions(self) -> int:
        """Records of events that were completed."""
        return int(
            self.owner.one(
                "select count(*) from transitions where machine = 'webhook_event'"
                " and to_state = 'completed'"
            )
        )


class Mode:
    """How an event is applied. Both modes stop at the same points and pass the same proofs."""

    name = "queued"

    def __init__(self, nursery: Nursery) -> None:
        self.nursery = nursery
        self._posting = ThreadPoolExecutor(4)

    def close(self) -> None:
        self._posting.shutdown(cancel_futures=True)

    def portal(self) -> Child:
        """A portal of this mode that can be stopped and killed; see `url_of`."""
        return self.nursery.child(self.name)

    def posting(self, url: str, raw: bytes) -> "Future[Answer]":
        """A delivery whose answer comes later."""
        return self._posting.submit(post, url, raw)

    def apply_until(self, raw: bytes, point: str) -> "Attempt":
        """Deliver, and have it applied by a process that now stands at `point`."""
        raise NotImplementedError

    def deliver(self, raw: bytes) -> Answer:
        """Deliver to a portal that works, and say what it answers."""
        raise NotImplementedError

    def sweep(self) -> None:
        """What a worker does when nothing rings; an installation without one does nothing."""


class Attempt:
    """One process in the middle of its work."""

    def __init__(self, child: Child, answer: "Future[Answer] | None") -> None:
        self.child, self._answer = child, answer

    def kill(self) -> None:
        """In the request, the provider hears nothing."""
        self.child.kill()
        if self._answer is not None:
            assert self._answer.result(PATIENCE) == BROKEN

    def next_stop(self) -> None:
        """On, to the same point again."""
        self.child.go(again=True)
        self.child.stopped()

    def finish(self, answer: Answer = RECEIVED) -> None:
        """On, to the end. In the request, the provider hears `answer`."""
        self.child.go()
        if self._answer is not None:
            assert self._answer.result(PATIENCE) == answer
        else:
            self.child.done()


class Queued(Mode):
    def __init__(self, nursery: Nursery, url: str) -> None:
        super().__init__(nursery)
        self._url = url

    def apply_until(self, raw: bytes, point: str) -> Attempt:
        assert post(self._url, raw) == RECEIVED
        child = self.nursery.child()
        child.stand(point)
        child.begin("inbox")
        child.stopped()
        return Attempt(child, None)

    def deliver(self, raw: bytes) -> Answer:
        return post(self._url, raw)

    def sweep(self) -> None:
        self.nursery.child().work("inbox")


class Inline(Mode):
    name = "inline"

    def __init__(self, nursery: Nursery) -> None:
        super().__init__(nursery)
        self._url = ""

    def apply_until(self, raw: bytes, point: str) -> Attempt:
        child = self.portal()
        url = child.serve()
        child.stand(point)
        answer = self.posting(url, raw)
        child.stopped()
        return Attempt(child, answer)

    def deliver(self, raw: bytes) -> Answer:
        if not self._url:
            self._url = self.portal().serve()
        return post(self._url, raw)
