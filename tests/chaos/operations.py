"""Everything that the portal does at an edge: who asks for it, what they are told, how it ends.

An operation is named as the adapter's method, with the asker where there is more than one. `told`
holds the word for each fate: a verb's code, or what a person sees of the row that a job works on.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from portal.jobs import catch_up
from portal.jobs.reconcile import reconcile
from portal.outcome import Applied, Code
from portal.verbs import (
    disputes,
    doors,
    payment_answers,
    payments,
    refunds,
    refunds_owed,
    stay_changes,
    stays,
)
from sandbox.seam.running import eventually
from tests.chaos.faults import REFUSED, TIMES, Edge, Fate, Fault
from tests.chaos.scene import Scene
from tests.outside import work

Step = Callable[[Scene], None]


@dataclass(frozen=True, eq=False)
class Operation:
    """`at`: method and path of the call that goes wrong. `after` is what a person does once the
    edge is back, before the last look."""

    name: str
    at: tuple[str, str]
    before: Step
    act: Callable[[Scene], str]
    told: dict[Fate, str]
    after: Step = lambda scene: None
    never: tuple[Fault, ...] = ()
    """Faults that cannot strike this call alone."""

    @property
    def edge(self) -> Edge:
        edge: Any = self.name.partition(".")[0]
        return edge

    @property
    def method(self) -> str:
        """`payments.create_refund by the worker` → `create_refund`."""
        return self.name.partition(".")[2].partition(" ")[0]

    def __str__(self) -> str:
        return self.name.replace(" ", "_")


def read(failing: str, right: str) -> dict[Fate, str]:
    """Who only asked has changed nothing, whatever went wrong."""
    return {"undone": failing, "lost": failing, "right": right}


# Payments ---------------------------------------------------------------------------------------


def _open(scene: Scene) -> str:
    return scene.open_payment().code


def _until_opened(scene: Scene) -> None:
    """The guest comes to the page again until it can be paid, pays, and is told so."""
    for _ in range(5):
        if scene.open_payment().code in (Code.PAYMENT_OPENED, Code.PAYMENT_ATTEMPT_OPEN):
            break
        scene.minutes_pass()
        scene.quiet()
    scene.pay()
    scene.quiet()
    assert scene.open_payment().code == Code.NOTHING_DUE


def _the_payment(scene: Scene) -> Any:
    return scene.owner.one("select id from payments order by attempt desc limit 1")


def _ask_about_payment(scene: Scene) -> str:
    return payment_answers.resolve(scene.desk, scene.cast.sato.actor, _the_payment(scene)).code


def _paid_unheard(scene: Scene) -> None:
    """The guest has paid, and we have not heard of it."""
    scene.book()
    scene.opened()
    scene.pay()


def _answer_lost(scene: Scene) -> None:
    scene.book()
    scene.stripe.fault("do_then_drop", "^/v1/payment_intents$")
    assert scene.open_payment().code == Code.PAYMENT_UNKNOWN


def _cancel(scene: Scene) -> str:
    return payments.cancel_attempt(scene.desk, scene.cast.sato.actor, _the_payment(scene)).code


def _cancelled_in_the_end(scene: Scene) -> None:
    for _ in range(5):
        if scene.owner.one("select state from payments") == "canceled":
            return
        _cancel(scene)
        scene.quiet()
    raise AssertionError("the attempt cannot be cancelled")


def _opened(scene: Scene) -> None:
    scene.book()
    scene.opened()


def _refund(scene: Scene) -> str:
    return scene.refund().code


def _refunded_once(scene: Scene) -> None:
    """A refusal was the end of it, and the person asks anew; anything else is one refund."""
    for _ in range(5):
        if scene.owner.one("select count(*) from refunds where state = 'succeeded'"):
            break
        assert scene.refund().code in (Code.REFUND_SENT, Code.REFUND_UNAVAILABLE)
        scene.quiet()
    scene.quiet()
    assert scene.owner.rows("select state, amount from refunds where state <> 'failed'") == [
        ("succeeded", 3000)
    ]


def _money_owed(scene: Scene) -> None:
    """The house owes a paid stay's money back; the worker is to send it."""
    scene.paid()
    payment = _the_payment(scene)
    with scene.cast.transaction(scene.cast.tokyo.id) as tx:
        refunds_owed.owe(tx, scene.cast.sato.actor, payment, 3000, reason="surplus")


def _worker_refunds(scene: Scene) -> str:
    scene.owner.make_due()
    work(scene.house, "refunds")
    return _refund_state(scene)


def _refund_state(scene: Scene) -> str:
    return str(scene.owner.one("select state from refunds"))


def _refund_lost(scene: Scene) -> None:
    scene.paid()
    scene.stripe.fault("do_then_drop", "^/v1/refunds$")
    assert scene.refund().code == Code.REFUND_UNKNOWN


def _refund_pending(scene: Scene) -> None:
    """The provider has taken the refund, and its bank has not yet carried it out."""
    scene.paid()
    scene.stripe.post("refunds/next", statuses=["pending"])
    scene.refund()
    assert _refund_state(scene) == "pending"
    made = scene.owner.one("select provider_refund_id from refunds")
    scene.stripe.post(f"refunds/{made}", status="succeeded")


def _ask_about_refund(scene: Scene) -> str:
    refund = scene.owner.one("select id from refunds")
    return refunds.send(scene.desk, scene.cast.sato.actor, refund).code


def _refund_at_the_provider(scene: Scene) -> None:
    """Somebody refunded in the provider's own pages; the payment is due to be asked about."""
    scene.paid()
    scene.refund()
    scene.quiet()
    scene.owner.run("update payments set next_read_at = now()")


def _disputed(scene: Scene) -> None:
    """The guest's bank has taken the payment back, and we have not heard of it."""
    scene.paid()
    intent = scene.owner.one("select intent_id from payments")
    scene.stripe.post("disputes", payment_intent=intent)


def _ask_about_disputes(scene: Scene) -> str:
    payment = scene.owner.one("select id from payments")
    return disputes.ask(scene.desk, scene.cast.sato.actor, payment).code


def _until_decided(scene: Scene) -> None:
    """It waits for a person as long as the bank has not decided."""
    ((dispute,),) = [scene.stripe.get("objects")["dispute"]]
    scene.stripe.post(f"disputes/{dispute['id']}/close", status="lost")
    assert _ask_about_disputes(scene) == Code.DISPUTE_RECORDED


def _worker_reads(scene: Scene) -> str:
    work(scene.house, "payments")
    due = scene.owner.one("select next_read_at is not null from payments")
    return "still to be read" if due else "read"


def _catch_up(scene: Scene) -> str:
    catch_up.fetch_missed(scene.house)
    return "heard" if scene.owner.one("select count(*) from webhook_events") else "nothing"


def _compare(scene: Scene) -> str:
    """The comparison of the books says of what it could not read that it could not."""
    told = reconcile(scene.house.providers, settle=0.05)
    assert (told.open, told.new) == (0, {})
    return "unread" if told.unread else "read"


def _compared_in_the_end(scene: Scene) -> None:
    """The next hours' comparisons."""
    for _ in range(TIMES + 1):
        if _compare(scene) == "read":
            return
    raise AssertionError("the books cannot be compared")


# Locks ------------------------------------------------------------------------------------------


def _lock_works(scene: Scene) -> str:
    """The key's state and what the house knows of its last command."""
    work(scene.house, "locks")
    return str(
        scene.owner.one(
            """
            select k.state || ', ' || case when c.done_at is not null then 'done'
                when c.unknown_at is not null then 'unknown' else 'waiting' end
            from lock_commands c join entry_keys k on k.id = c.key_id order by c.no desc limit 1
            """
        )
    )


def _admitted(scene: Scene) -> None:
    scene.admitted()


def _later_end(scene: Scene) -> None:
    """A guest in house stays two days longer."""
    stay = scene.issued()
    starts, ends, version = scene.owner.row("select starts_at, ends_at, version from stays")
    said = scene.do(
        stay_changes.change_times, stay.id, version, starts, ends + timedelta(days=2), 0
    )
    assert isinstance(said, Applied)


def _departed(scene: Scene) -> None:
    stay = scene.issued()
    version = scene.owner.one("select version from stays")
    assert isinstance(scene.do(stays.depart, stay.id, version), Applied)


def _on_the_lock(scene: Scene) -> None:
    """The lock has the code by now, and has not been asked about it."""
    scene.admitted()
    work(scene.house, "locks")
    assert scene.owner.one("select state from entry_keys") == "requested"
    assert eventually(lambda: scene.seam.control("codes")[0]["status"] == "set", 30)


def _poll(scene: Scene) -> str:
    scene.owner.make_due()
    work(scene.house, "keys")
    return str(scene.owner.one("select state from entry_keys"))


def _issued(scene: Scene) -> None:
    scene.issued()


def _ask_door(scene: Scene) -> str:
    door = scene.owner.one("select door_id from entry_keys")
    return doors.ask(scene.desk, scene.cast.sato.actor, door).code


# Words ------------------------------------------------------------------------------------------


def _message_to(**guest: Any) -> Step:
    def booked(scene: Scene) -> None:
        scene.book(guest={**scene.cast.hanako, **guest})

    return booked


def _sends(scene: Scene) -> str:
    work(scene.house, "outbox")
    return str(
        scene.owner.one(
            """
            select case when sent_at is not null then 'sent' when unknown_at is not null
                then 'unknown' when dead_at is not null then 'dead' else 'waiting' end
            from outbox
            """
        )
    )


def _person_decides(scene: Scene) -> None:
    """Of a mail nobody can ask a server: the page shows it, and a person says what to do."""
    lost = scene.owner.one("select count(*) from outbox where unknown_at is not null")
    assert [row.state for row in scene.waiting_for_a_person().messages] == ["unknown"] * lost
    scene.decide_about_mail()
    scene.quiet()


POST, GET = "POST", "GET"
INTENTS, INTENT = "^/v1/payment_intents$", "^/v1/payment_intents/pi_[^/]+$"
DISPUTES = "^/v1/disputes$"
REFUNDS, REFUND = "^/v1/refunds$", "^/v1/refunds/re_[^/]+$"

OPERATIONS = (
    Operation(
        "payments.create_intent",
        (POST, INTENTS),
        lambda scene: scene.book() and None,
        _open,
        {
            "undone": Code.BILLING_UNAVAILABLE,
            "lost": Code.PAYMENT_UNKNOWN,
            "right": Code.PAYMENT_OPENED,
        },
        _until_opened,
    ),
    Operation(
        "payments.retrieve_intent",
        (GET, INTENT),
        _paid_unheard,
        _ask_about_payment,
        read(Code.BILLING_UNAVAILABLE, Code.PAYMENT_RECORDED),
    ),
    Operation(
        "payments.find_intent",
        (GET, INTENTS),
        _answer_lost,
        _ask_about_payment,
        read(Code.BILLING_UNAVAILABLE, Code.PAYMENT_RECORDED),
        _until_opened,
    ),
    Operation(
        "payments.cancel_intent",
        (POST, "^/v1/payment_intents/[^/]+/cancel$"),
        _opened,
        _cancel,
        {
            "undone": Code.BILLING_UNAVAILABLE,
            "lost": Code.PAYMENT_UNKNOWN,
            "right": Code.PAYMENT_RECORDED,
        },
        _cancelled_in_the_end,
    ),
    Operation(
        "payments.create_refund by a person",
        (POST, REFUNDS),
        Scene.paid,
        _refund,
        {
            "undone": Code.REFUND_UNAVAILABLE,
            "lost": Code.REFUND_UNKNOWN,
            "right": Code.REFUND_SENT,
        },
        _refunded_once,
    ),
    Operation(
        "payments.create_refund by the worker",
        (POST, REFUNDS),
        _money_owed,
        _worker_refunds,
        {"undone": "asked", "lost": "unknown", "right": "succeeded"},
        _refunded_once,
    ),
    Operation(
        "payments.refunds_of for a person",
        (GET, REFUNDS),
        _refund_lost,
        _ask_about_refund,
        read(Code.REFUND_UNKNOWN, Code.REFUND_SENT),
        _refunded_once,
    ),
    Operation(
        "payments.refunds_of for the worker",
        (GET, REFUNDS),
        _refund_at_the_provider,
        _worker_reads,
        read("still to be read", "read"),
    ),
    Operation(
        "payments.retrieve_refund",
        (GET, REFUND),
        _refund_pending,
        _ask_about_refund,
        read(Code.REFUND_PENDING, Code.REFUND_SENT),
        _refunded_once,
    ),
    Operation(
        "payments.events_since",
        (GET, "^/v1/events$"),
        _paid_unheard,
        _catch_up,
        read("nothing", "heard"),
    ),
    Operation(
        "payments.intents_since",
        (GET, INTENTS),
        Scene.paid,
        _compare,
        read("unread", "read"),
        _compared_in_the_end,
    ),
    Operation(
        "payments.disputes_of",
        (GET, DISPUTES),
        _disputed,
        _ask_about_disputes,
        read(Code.BILLING_UNAVAILABLE, Code.DISPUTE_RECORDED),
        _until_decided,
    ),
    Operation(
        "payments.disputes_since",
        (GET, DISPUTES),
        Scene.paid,
        _compare,
        read("unread", "read"),
        _compared_in_the_end,
    ),
    Operation(
        "payments.refunds_since",
        (GET, REFUNDS),
        Scene.paid,
        _compare,
        read("unread", "read"),
        _compared_in_the_end,
    ),
    Operation(
        "locks.find_code",
        (".*", "/access_codes/list"),
        _admitted,
        _lock_works,
        read("requested, waiting", "requested, done"),
    ),
    Operation(
        "locks.create_code",
        (".*", "/access_codes/create"),
        _admitted,
        _lock_works,
        {"undone": "requested, waiting", "lost": "requested, unknown", "right": "requested, done"},
    ),
    Operation(
        "locks.update_code",
        (".*", "/access_codes/update"),
        _later_end,
        _lock_works,
        {"undone": "issued, waiting", "lost": "issued, unknown", "right": "issued, done"},
    ),
    Operation(
        "locks.get_code after an update",
        (".*", "/access_codes/get"),
        _later_end,
        _lock_works,
        read("issued, unknown", "issued, done"),
        never=(REFUSED,),
    ),
    Operation(
        "locks.delete_code",
        (".*", "/access_codes/delete"),
        _departed,
        _lock_works,
        {"undone": "revoking, waiting", "lost": "revoking, unknown", "right": "revoking, done"},
    ),
    Operation(
        "locks.get_code by the poll",
        (".*", "/access_codes/get"),
        _on_the_lock,
        _poll,
        read("requested", "issued"),
    ),
    Operation(
        "locks.list_codes",
        (".*", "/access_codes/list"),
        _issued,
        _compare,
        read("unread", "read"),
        _compared_in_the_end,
    ),
    Operation(
        "locks.device",
        (".*", "/devices/get"),
        _issued,
        _ask_door,
        read(Code.LOCK_UNAVAILABLE, Code.LOCK_ANSWERED),
    ),
    Operation(
        "mail.send",
        ("", ""),
        _message_to(),
        _sends,
        {"undone": "waiting", "lost": "unknown", "right": "sent"},
        _person_decides,
    ),
    Operation(
        "line.push",
        (POST, "/v2/bot/message/push"),
        _message_to(line_user_id="Uhanako"),
        _sends,
        {"undone": "waiting", "lost": "waiting", "right": "sent"},
    ),
)
