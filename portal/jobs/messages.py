"""The outbox's dispatch: the only place that speaks to a channel."""

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import Row
from sqlalchemy.exc import DBAPIError

from portal import letters, log, outbox, seal
from portal.db import Tx, transaction
from portal.edges.errors import EdgeError, Rejected, Unknown, Unreachable
from portal.edges.mail.port import MailMessage
from portal.jobs.house import House
from portal.policies import backoff


def dispatch_due(house: House) -> int:
    """Claim one batch and send it. Returns how many were claimed."""
    token = uuid4()
    with transaction(None) as tx:
        claimed = outbox.claim(tx, token)
    for message_id, facility_id in claimed:
        dispatch(house, facility_id, message_id, token)
    return len(claimed)


def dispatch(house: House, facility_id: UUID, message_id: UUID, token: UUID) -> None:
    """One message. A poison row is put off or buried alone; it never holds up another."""
    try:
        with transaction(facility_id) as tx:
            row = _load(tx, message_id)
    except DBAPIError as fault:
        _unreadable(facility_id, message_id, token, fault)
        return
    if row is None:
        return
    with log.request(row.request_id or log.new_request_id()):
        try:
            letter = _prepare(house, facility_id, row, token)
        except Exception as fault:  # noqa: BLE001 (whatever cannot be written stays this row's own)
            _put_off(facility_id, row, token, fault, None)
            return
        if letter is not None:
            _send(house, facility_id, row, token, letter)


def _prepare(house: House, facility_id: UUID, row: Row[Any], token: UUID) -> letters.Letter | None:
    """The words to send, with `sending_at` committed; None where nothing may be sent."""
    with transaction(facility_id) as tx:
        if row.already_heard:
            outbox.suppress(tx, row.id, token)
            return None
        if not row.still_true:
            outbox.withdraw(tx, row.id, token)
            return None
        if row.sending_at is not None and row.channel == "email":
            outbox.lose(tx, row.id, token, "a sender died while it transmitted")
            return None
        letter = letters.write(_facts(house, row))
        return letter if outbox.begin_sending(tx, row.id, token) else None


def _send(
    house: House, facility_id: UUID, row: Row[Any], token: UUID, letter: letters.Letter
) -> None:
    try:
        _transmit(house, row, letter)
    except Unreachable as fault:
        _put_off(facility_id, row, token, fault, fault.retry_after)
    except Unknown as fault:
        _lost(facility_id, row, token, fault)
    except Rejected as fault:
        _rejected(facility_id, row, token, fault)
    else:
        with transaction(facility_id) as tx:
            outbox.sent(tx, row.id, token)


def _transmit(house: House, row: Row[Any], letter: letters.Letter) -> None:
    if row.channel == "email":
        house.channels.mail.send(
            MailMessage(
                to=row.recipient,
                subject=letter.subject,
                text=letter.text,
                html=None,
                sender_name=letter.house,
                message_id=f"<{row.id}@monban>",
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
    facility_id: UUID, row: Row[Any], token: UUID, fault: Exception, after: float | None
) -> None:
    """Nothing was sent: the claim is released, or the row is dead past its limit."""
    said = _said(fault)
    with transaction(facility_id) as tx:
        if row.attempts >= backoff.WORDS_LIMIT:
            outbox.bury(tx, row.id, token, said)
            return
        pause = backoff.wait(backoff.WORDS, row.attempts)
        if after is not None:
            pause = max(pause, timedelta(seconds=after))
        outbox.release(tx, row.id, token, pause, said)


def _unreadable(facility_id: UUID, message_id: UUID, token: UUID, fault: DBAPIError) -> None:
    """Its own row cannot be read as a message: to the database it is a payload that is none."""
    with transaction(facility_id) as tx:
        row = tx.row("select id, attempts from outbox where id = :id", id=message_id)
    if row is not None:
        _put_off(facility_id, row, token, fault, None)


def _lost(facility_id: UUID, row: Row[Any], token: UUID, fault: EdgeError) -> None:
    """LINE may be asked again under the same key. E-mail may not: a person decides."""
    if row.channel == "line":
        _put_off(facility_id, row, token, fault, None)
        return
    with transaction(facility_id) as tx:
        outbox.lose(tx, row.id, token, _said(fault))


def _rejected(facility_id: UUID, row: Row[Any], token: UUID, fault: EdgeError) -> None:
    """Refused for good. A blocked LINE account falls back to e-mail in the same transaction."""
    with transaction(facility_id) as tx:
        if row.channel != "line" or not row.email:
            outbox.bury(tx, row.id, token, _said(fault))
        elif outbox.replace(tx, row.id, token, _said(fault)):
            event_type, _, fact = row.dedupe_key.partition(":")
            outbox.enqueue(
                tx,
                row.stay_id,
                event_type,
                f"{fact}:email",
                row.payload,
                consumer_key=row.consumer_key,
                by_mail_in=row.locale,
            )
    logger.warning("message_rejected", message=str(row.id), channel=row.channel)


def _load(tx: Tx, message_id: UUID) -> Row[Any] | None:
    """The message with what its words need, and whether its fact still holds."""
    return tx.row(
        """
        select o.id, o.event_type, o.channel, o.recipient, o.locale, o.payload, o.dedupe_key,
               o.consumer_key, o.attempts, o.sending_at, o.request_id, o.stay_id,
               g.name as guest_name, g.email, s.code, s.starts_at, s.ends_at, s.currency,
               s.token_sealed, f.name_ja, f.name_en, f.time_zone,
               p.name_ja as space_ja, p.name_en as space_en, y.amount as payment_amount,
               exists (select 1 from consumed_effects c
                       where c.consumer_key = o.consumer_key) as already_heard,
               case o.event_type
                   when 'entry_key_issued' then k.state = 'issued'
                   when 'entry_key_changed' then k.state = 'issued'
                   when 'payment_received' then y.state in ('succeeded', 'refund_owed')
                   when 'stay_created' then s.state in ('reserved', 'admitted')
                   when 'stay_changed' then s.state in ('reserved', 'admitted')
                   when 'stay_cancelled' then s.state = 'cancelled'
                   else true
               end as still_true
        from outbox o
        join stays s on s.id = o.stay_id
        join guests g on g.id = s.guest_id
        join spaces p on p.id = s.space_id
        join facilities f on f.id = o.facility_id
        left join entry_keys k on k.id = (o.payload ->> 'key_id')::uuid
        left join payments y on y.id = (o.payload ->> 'payment_id')::uuid
        where o.id = :id
        """,
        id=message_id,
    )


def _facts(house: House, row: Row[Any]) -> letters.Facts:
    japanese = row.locale == "ja"
    return letters.Facts(
        event_type=row.event_type,
        locale=row.locale,
        house=row.name_ja if japanese else row.name_en,
        guest=row.guest_name,
        stay_code=row.code,
        space=row.space_ja if japanese else row.space_en,
        starts_at=row.starts_at,
        ends_at=row.ends_at,
        zone=row.time_zone,
        currency=row.currency,
        amount=row.payment_amount or row.payload.get("amount"),
        fee=row.payload.get("fee"),
        link=f"{house.config.public_url}/g/{seal.unseal(row.token_sealed)}",
    )


def _said(fault: Exception) -> str:
    return f"{type(fault).__name__}: {fault}"[:500]


logger = log.get(__name__)
