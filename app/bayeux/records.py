"""Sessions as the store remembers them, and back."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from app.bayeux.exchange import ConnectionType
from app.bayeux.life import Input, State
from app.bayeux.sessions import Session
from app.bayeux.terms import Terms
from app.delivery.channels import SYSTEM
from app.delivery.counters import Reason
from app.delivery.dispatcher import Dispatcher, Hold
from app.delivery.entries import Entry, Settling
from app.delivery.hands import by_seq
from app.delivery.keeper import Mark
from app.delivery.messages import Message
from app.delivery.node import Node
from app.delivery.queue import CallbackQueue
from app.delivery.session_record import HoldRecord, SessionRecord

if TYPE_CHECKING:
    from app.bayeux.server import Bayeux

_NS_PER_US = 1000


class Noted:
    """A session that has changed, and may change more in this turn."""

    __slots__ = ("_node", "_session", "key")

    def __init__(self, session: Session, node: Node) -> None:
        self.key = session.key
        self._session = session
        self._node = node

    def record(self) -> SessionRecord:
        return record_of(self._session, self._node.now_ms())


def record_of(session: Session, now_ms: int) -> SessionRecord:
    """What is remembered of a session."""
    terms = session.terms
    hold = None if session.dispatcher is None else session.dispatcher.hold_record
    return SessionRecord(
        key=session.key,
        client_id=session.client_id if session.state is not State.AWAY else "",
        browser=session.browser or "",
        needs_cookie=session.needs_cookie,
        is_of_page=session.is_of_page,
        subject=session.subject,
        number=0 if terms is None else terms.number,
        name=session.name,
        delivery={} if terms is None else terms.to_json(),
        acks=session.queue.settling is Settling.BATCH,
        warrant=session.warrant,
        subscriptions=sorted(session.subscriptions),
        oneway=sorted(session.oneway or ()),
        batch=session.queue.batch,
        seq=session.queue.seq,
        hold=HoldRecord()
        if hold is None
        else HoldRecord(
            is_active=False,
            reason=hold.reason,
            until_ms=hold.until,
            who=hold.who,
            since_ms=hold.since,
        ),
        is_given_up=session.is_given_up,
        timeout_s=0.0 if terms is None else terms.timeout / 1000,
        is_granted=terms is not None and terms.is_granted,
        created_ms=session.created // 1_000_000,
        seen_ms=now_ms,
    )


def restore(
    bayeux: "Bayeux",
    record: SessionRecord,
    entries: list[tuple[Mark, Message]],
) -> Session:
    """The session again, with its queue and its subscriptions; its clocks begin anew."""
    queue = CallbackQueue(bayeux.options.queue_limits, bayeux.hub.counters)
    session = bayeux.sessions.draft(queue)
    session.client_id = record.client_id or session.client_id
    session.created = record.created_ms * 1_000_000
    session.timeout_s = bayeux.options.timeout_s
    session.interval_s = session.rest_interval_s = bayeux.options.interval_s
    terms = _terms_of(record, bayeux.options.max_session_timeout_s)
    bayeux.agree(session, terms, acks=record.acks)
    session.go_by(record.key)
    session.role = bayeux.rights.role_of(record.warrant)
    session.warrant = record.warrant if session.is_operator else ""
    _stop(session, record)
    queue.batch = record.batch
    # Hand-overs since the record was written have numbers too: the clock is above them all.
    queue.seq = max(record.seq, bayeux.node.stamp() // _NS_PER_US)
    queue.is_restored = True
    _refill(bayeux, session, [each for each in entries if _may_have(session, each[1].channel)])
    bayeux.sessions.add(session, record.browser)
    session.needs_cookie, session.is_of_page = record.needs_cookie, record.is_of_page
    if terms is not None and terms.is_named:
        bayeux.sessions.name(session, record.key)
    session.is_durable = session.is_resumed = True
    bayeux.hub.durables += 1
    _withhold(bayeux, session, [each[1] for each in entries])
    _subscribe(bayeux, session, record)
    for extension in bayeux.extensions:
        agreed = extension.resume(session, bayeux.now)
        if agreed is not None:
            session.extensions += (agreed,)
    if record.client_id:
        session.advance(Input.CONNECT)
        session.connection_type = ConnectionType.LONG_POLLING
        bayeux.clock.rest(session)
    else:
        # Of who had not left the record says only that it was there at some time before.
        session.seen_ms = record.seen_ms
        session.advance(Input.LEAVE)
        bayeux.clock.lie(session)
    bayeux.clock.wind_hold(session)
    bayeux.expiry.begin(session)
    return session


def _terms_of(record: SessionRecord, longest_s: float) -> Terms | None:
    if not record.delivery:
        return None
    terms = Terms.of(record.delivery)
    if record.is_granted:
        return replace(terms, is_granted=True)
    return terms.waiting_at_most(longest_s)


def _subscribe(bayeux: "Bayeux", session: Session, record: SessionRecord) -> None:
    session.oneway = set(record.oneway) or None
    for name in record.subscriptions:
        pattern = bayeux.channels.get(name)
        if pattern is not None and _may_have(session, pattern.name):
            bayeux.hub.routes.add(pattern, session)
            session.subscriptions.add(pattern.name)


def discard_orphans(bayeux: "Bayeux", key: str, messages: Sequence[Message]) -> None:
    """What is kept for a session that is gone goes as it would have gone if it had come in time."""
    session = bayeux.sessions.draft(CallbackQueue(bayeux.options.queue_limits, bayeux.hub.counters))
    session.go_by(key)
    session.is_durable = True
    bayeux.hub.counters.restored += len(messages)
    bayeux.exits.discarded(session, messages, Reason.SESSION_ENDED)


def _may_have(session: Session, channel: str) -> bool:
    """Whose token is no more hears no longer what the system tells."""
    return session.is_operator or not channel.startswith(SYSTEM)


def _withhold(bayeux: "Bayeux", session: Session, messages: list[Message]) -> None:
    """What it must not get any more goes; whoever takes the session over must not get it either."""
    withheld = [message for message in messages if not _may_have(session, message.channel)]
    if withheld:
        bayeux.hub.counters.restored += len(withheld)
        bayeux.exits.discarded(session, withheld, Reason.NOT_ALLOWED)


def _stop(session: Session, record: SessionRecord) -> None:
    """Whose queue did not flow gets nothing now either."""
    held = record.hold
    if not held.is_active:
        if session.dispatcher is None:
            session.dispatcher = Dispatcher()
        session.dispatcher.hold(Hold(held.reason, held.who, held.since_ms, held.until_ms))
    if record.is_given_up and session.dispatcher is not None:
        session.dispatcher.end()
        session.is_closed = session.is_given_up = True


def _refill(bayeux: "Bayeux", session: Session, entries: list[tuple[Mark, Message]]) -> None:
    """The queue as it was: in hands, returned, waiting."""
    queue = session.queue
    queue.is_mixed = bool(entries)
    due = bayeux.now + queue.response_timeout_s if queue.response_timeout_s else 0.0
    in_hands: list[Entry] = []
    for mark, message in entries:
        queue.count += 1
        queue.size += len(message.wire)
        if not mark.position:
            queue.waiting.append(message)
            if message.expires_ms:
                queue.add_mortal(message)
            continue
        # What was returned before marks told the last number has the first one.
        entry = Entry(message, abs(mark.seq) or mark.position, mark.batch)
        entry.place = mark.position
        entry.attempts, entry.redelivered = mark.attempts, mark.redelivered
        entry.trail = mark.trail
        if mark.seq <= 0 or queue.settling is Settling.WRITTEN:
            # Nobody knows whether what was being written has left.
            queue.returned[entry.seq] = entry
            if message.expires_ms:
                queue.add_mortal(message)
        else:
            entry.due = due
            in_hands.append(entry)
        queue.batch = max(queue.batch, mark.batch)
        queue.seq = max(queue.seq, entry.seq)
    queue.handed.update((entry.seq, entry) for entry in sorted(in_hands, key=by_seq))
    if len(in_hands) == 1:
        in_hands[0].was_alone = True
    if queue.returned:
        queue.narrow()
    bayeux.hub.counters.restored += len(entries)
