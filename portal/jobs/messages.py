"""The outbox's dispatch: the only place that speaks to a channel."""

from collections.abc import Sequence
from datetime import timedelta
from itertools import groupby
from operator import itemgetter
from uuid import UUID, uuid4

from sqlalchemy.exc import DBAPIError

from portal import letters, log, outbox, seal
from portal.db import Row, Tx, transaction
from portal.edges.errors import EdgeError, Rejected, Unknown, Unreachable
from portal.edges.mail.port import MailMessage
from portal.jobs.house import House
from portal.policies import backoff
from portal.policies.divergences import MAILED


def dispatch_due(house: House) -> int:
    """Claim one batch and send it. Returns how many were claimed."""
    token = uuid4()
    with transaction(None) as tx:
        claimed = outbox.claim(tx, token)
    for facility_id, batch in groupby(claimed, key=itemgetter(1)):
        dispatch(house, facility_id, [message_id for message_id, _ in batch], token)
    return len(claimed)


def dispatch(house: House, facility_id: UUID, messages: Sequence[UUID], token: UUID) -> None:
    """One after the other. The transaction that marks one as sent marks the next as being sent. A
    poison row is put off or buried alone; it never holds up another."""
    sent: UUID | None = None
    for message_id in messages:
        row = _begin(facility_id, message_id, token, sent)
        sent = row.id if row is not None and _send(house, facility_id, row, token) else None
    if sent is not None:
        _mark_sent(facility_id, sent, token)


def _begin(facility_id: UUID, message_id: UUID, token: UUID, sent: UUID | None) -> Row | None:
    """The facts of a message that may be sent now, with `sending_at` committed. `sent`, the one
    before it, is marked in any case."""
    try:
        with transaction(facility_id) as tx:
            row = outbox.begin_sending(tx, message_id, token, sent=sent)
            if row is None:
                _end_unsent(tx, message_id, token)
        return row
    except DBAPIError as fault:
        if sent is not None:
            _mark_sent(facility_id, sent, token)
        _unreadable(facility_id, message_id, token, fault)
        return None


def _mark_sent(facility_id: UUID, message_id: UUID, token: UUID) -> None:
    with transaction(facility_id) as tx:
        outbox.sent(tx, message_id, token)


def _end_unsent(tx: Tx, message_id: UUID, token: UUID) -> None:
    """Why it may not be sent: it was heard, it may have arrived, or it is no longer true."""
    row = outbox.load(tx, message_id)
    if row is None or row.claim_token != token:
        return
    if row.already_heard:
        outbox.suppress(tx, row.id, token)
    elif row.sending_at is not None:
        outbox.lose(tx, row.id, token, "what became of an earlier try is not known")
    elif not row.still_true:
        outbox.withdraw(tx, row.id, token)


def _send(house: House, facility_id: UUID, row: Row, token: UUID) -> bool:
    """True when the channel has it. What else became of it is written down here."""
    with log.request(row.request_id or log.new_request_id()):
        try:
            _transmit(house, row, letters.write(_facts(house, row)))
        except Unreachable as fault:
            _put_off(facility_id, row, token, fault, fault.retry_after)
        except Unknown as fault:
            _lost(facility_id, row, token, fault)
        except Rejected as fault:
            _rejected(facility_id, row, token, fault)
        except Exception as fault:  # noqa: BLE001 (whatever cannot be written stays this row's own)
            _put_off(facility_id, row, token, fault)
        else:
            return True
    return False


def _transmit(house: House, row: Row, letter: letters.Letter) -> None:
    if row.channel == "email":
        house.channels.mail.send(
            MailMessage(
                to=row.recipient,
                subject=letter.subject,
                text=letter.text,
                html=None,
                sender_name=letter.house,
                message_id=f"<{row.id}{MAILED}",
                language=row.locale,
            )
        )
    elif house.channels.line is None:
        raise Rejected("LINE is not configured", code="channel_missing")
    else:
        house.channels.line.push(
            to=row.recipient, text=f"{letter.subject}\n\n{letter.text}", retry_key=row.id
        )


def _put_off(
    facility_id: UUID,
    row: Row,
    token: UUID,
    fault: Exception,
    after: float | None = None,
    *,
    lost: bool = False,
) -> None:
    """The claim is released, or the row is given up past its limit. What this try `lost`, or one
    before it, stays in doubt until it is sent: a later try that fails proves nothing about it."""
    in_doubt = lost or row.sending_at is not None
    with transaction(facility_id) as tx:
        if row.attempts >= backoff.WORDS_LIMIT:
            _give_up(tx, row.id, token, fault, in_doubt=in_doubt)
            return
        pause = backoff.wait(backoff.WORDS, row.attempts)
        if after is not None:
            pause = max(pause, timedelta(seconds=after))
        outbox.release(tx, row.id, token, pause, _said(fault), in_doubt=in_doubt)


def _give_up(tx: Tx, message_id: UUID, token: UUID, fault: Exception, *, in_doubt: bool) -> None:
    """It goes to a person: as dead only where no try of it can have arrived."""
    end = outbox.lose if in_doubt else outbox.bury
    end(tx, message_id, token, _said(fault))


def _unreadable(facility_id: UUID, message_id: UUID, token: UUID, fault: DBAPIError) -> None:
    """Its own row cannot be read as a message: to the database it is a payload that is none. Or it
    can, and the reply was lost: then this try has marked what it never began to send."""
    with transaction(facility_id) as tx:
        row = tx.row(
            """
            select id, attempts, case when sending_at < claimed_at then sending_at end as sending_at
            from outbox where id = :id
            """,
            id=message_id,
        )
    if row is not None:
        _put_off(facility_id, row, token, fault)


def _lost(facility_id: UUID, row: Row, token: UUID, fault: EdgeError) -> None:
    """LINE may be asked again under the same key. E-mail may not: a person decides."""
    if row.channel == "line":
        _put_off(facility_id, row, token, fault, lost=True)
        return
    with transaction(facility_id) as tx:
        outbox.lose(tx, row.id, token, _said(fault))


def _rejected(facility_id: UUID, row: Row, token: UUID, fault: EdgeError) -> None:
    """Refused for good. A blocked LINE account falls back to e-mail in the same transaction."""
    with transaction(facility_id) as tx:
        if row.channel != "line" or not row.email:
            _give_up(tx, row.id, token, fault, in_doubt=row.sending_at is not None)
        elif outbox.replace(tx, row.id, token, _said(fault)):
            event_type, _, fact = row.dedupe_key.partition(":")
            outbox.enqueue(
                tx,
                row.stay_id,
                event_type,
                f"{fact}:email",
                row.payload,
                consumer_key=row.consumer_key,
                membership_id=row.membership_id,
                by_mail_in=row.locale,
            )
    logger.warning("message_rejected", message=str(row.id), channel=row.channel)


def _facts(house: House, row: Row) -> letters.Facts:
    japanese = row.locale == "ja"
    return letters.Facts(
        event_type=row.event_type,
        locale=row.locale,
        house=row.name_ja if japanese else row.name_en,
        guest=row.guest_name,
        stay_code=row.code,
        space=row.space_ja if japanese else row.space_en,
        plan=row.plan_ja if japanese else row.plan_en,
        starts_at=row.starts_at,
        ends_at=row.ends_at,
        zone=row.time_zone,
        currency=row.currency,
        amount=row.payment_amount or row.payload.get("amount"),
        fee=row.payload.get("fee"),
        link=_link(house, row),
        deposit=row.deposit_open,
        deposit_by=row.deposit_by,
        deposit_awaited=bool(row.deposit_awaited),
        plan_retired=bool(row.plan_retired),
    )


def _link(house: House, row: Row) -> str:
    place = "m" if row.membership_id is not None else "g"
    return f"{house.config.public_url}/{place}/{seal.unseal(row.token_sealed)}"


def _said(fault: Exception) -> str:
    return f"{type(fault).__name__}: {fault}"[:500]


logger = log.get(__name__)
