"""Messages beside the mail archive, and the verb that ends each difference. Only an archive that
can be asked is ever compared, so both ask it anew."""

from uuid import UUID

from portal import clock, outbox
from portal.db import Actor
from portal.edges.errors import Unreachable
from portal.models import Divergence, Message
from portal.outcome import Applied, Code, Noop, Outcome, Refused
from portal.policies.divergences import LOOK_BACK_MAIL, message_of
from portal.verbs.desk import Desk
from portal.verbs.healing import AGREEMENT, heal


def record_sent(desk: Desk, actor: Actor, row: Divergence) -> Outcome:
    """unknown, dead → sent, by the archive's word: the guest has it, so it is not sent again."""
    message = _message(desk, row)
    if message is None:
        return Refused(Code.NOT_FOUND)
    if not _has(desk, message.id):
        return _agreed(desk, row)
    with desk.transaction() as tx:
        recorded = outbox.recorded(tx, message.id)
    if not recorded:
        return _agreed(desk, row)
    return Applied(Code.MESSAGE_RECORDED, to="sent", subject=message.id)


def send_again(desk: Desk, actor: Actor, row: Divergence) -> Outcome:
    """sent → waiting: the archive never had it. It is written anew, and withdrawn if what it says
    is no longer true."""
    message = _message(desk, row)
    if message is None:
        return Refused(Code.NOT_FOUND)
    if _has(desk, message.id):
        return _agreed(desk, row)
    with desk.transaction() as tx:
        again = tx.run(
            """
            update outbox
            set sent_at = null, sending_at = null, claimed_at = null, claim_token = null,
                attempts = 0, next_attempt_at = now(),
                consumer_key = 'again:' || cast(:difference as text)
            where id = :id and sent_at is not null
            """,
            id=message.id,
            difference=str(row.id),
        )
        if again.rowcount == 0:
            return Noop(Code.MESSAGE_NOT_WAITING, subject=message.id)
        tx.ring("outbox")
    return Applied(Code.MESSAGE_REQUEUED, to="waiting", subject=message.id)


def _message(desk: Desk, row: Divergence) -> Message | None:
    with desk.transaction() as tx:
        return tx.get(Message, row.message_id)


def _has(desk: Desk, message_id: UUID) -> bool:
    if desk.mail_archive is None:
        raise Unreachable("there is no mail archive to ask")
    taken = desk.mail_archive.taken_since(clock.now() - LOOK_BACK_MAIL)
    return message_id in {message_of(one) for one in taken.message_ids}


def _agreed(desk: Desk, row: Divergence) -> Outcome:
    with desk.transaction() as tx:
        heal(tx, row.id, AGREEMENT)
    return Noop(Code.MESSAGE_NOT_WAITING, subject=row.message_id)
