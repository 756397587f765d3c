"""Restores sessions and their queues after a restart, from what `store/writing/loading.py` read."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from holdfast.bayeux.expiry.unconnected import note_seen_earlier
from holdfast.bayeux.session import Session
from holdfast.bayeux.sessions.life import SessionLife
from holdfast.bayeux.state.cursors import Cursors, set_cursors
from holdfast.bayeux.state.former_client import remember_former_client
from holdfast.bayeux.state.server_state import ServerState
from holdfast.bayeux.wire.identity import SERVER
from holdfast.bayeux.wire.known_options import QosInvalid
from holdfast.bayeux.wire.login import Login
from holdfast.bayeux.wire.subscribe_qos import SubscribeQos
from holdfast.bayeux.wire.terms import Terms
from holdfast.bayeux.wire.transports import ConnectionType
from holdfast.delivery.basics.channels import PRESENCE, SYSTEM
from holdfast.delivery.basics.error_codes import DELIVERY_ENDED
from holdfast.delivery.basics.session_states import SessionInput
from holdfast.delivery.basics.steps import Reason
from holdfast.delivery.messages.entries import Entry, SettledBy
from holdfast.delivery.messages.former_attempts import FormerAttempts, tried
from holdfast.delivery.messages.marks import Mark
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.session_record import SessionRecord
from holdfast.delivery.queues.dispatcher import Dispatcher, QueueHold
from holdfast.delivery.queues.in_flight import by_seq
from holdfast.delivery.queues.queue import CallbackQueue
from holdfast.delivery.queues.receivers import WEBHOOKS
from holdfast.delivery.requests.reply_channels import ReplyChannel, give_reply_channel
from holdfast.delivery.shared_queues.unclaimed_names import leave_unclaimed

_NS_PER_US = 1000
# For messages without marks: the marks of an ended session are gone before the last of very many
# messages has returned.
_UNKNOWN = FormerAttempts(attempts=1, redelivered=1, trail=())


def restore(
    life: SessionLife,
    record: SessionRecord,
    entries: list[tuple[Mark, Message]],
    now: float,
) -> Session:
    """Restore the session, its queue and its subscriptions. Its deadlines start again."""
    fill = partial(_refill, life, record, entries, now=now)
    session = begin_again(life, record, now, fill=fill, is_durable=True)
    _await_client(life, session, record, now)
    if record.replay_ids is not None:
        form = life.state.cursor_form(has_replay_ids=record.replay_ids)
        set_cursors(session, Cursors(form, life.state.hub.complete_cursor()))
    finish(life, session, now)
    return session


def begin_again(
    life: SessionLife,
    record: SessionRecord,
    now: float,
    *,
    fill: Callable[[Session], list[Message]],
    is_durable: bool,
) -> Session:
    """Restore a session with its identity, its terms and its subscriptions.

    The caller says next how its client stands, then calls `finish`.

    Args:
        fill: Restores the queue. Returns the messages that the session may not have.
    """
    state = life.state
    queue = CallbackQueue(state.queue_limits, state.counters)
    session = state.sessions.draft(queue)
    session.client_id = record.client_id or session.client_id
    session.created = record.created_ms * 1_000_000
    session.timeout_s = state.options.timeout_s
    session.interval_s = session.rest_interval_s = state.options.interval_s
    terms = _terms_of(record, state.options.max_session_timeout_s)
    life.agree(session, terms, acks=record.acks)
    session.go_by(record.key)
    if record.is_unclaimed:
        leave_unclaimed(session)
    if record.ret:
        give_reply_channel(session, ReplyChannel.restored(record.ret))
    _identify(session, record, state)
    _remember_former_client(session, record, state)
    _stop(session, record)
    withheld = fill(session)
    state.sessions.add(session)
    if terms is not None and terms.is_named:
        state.sessions.name(session, record.key)
    session.is_resumed = True
    if is_durable:
        state.hub.make_durable(session)
    state.subjects.join(session)
    _withhold(life, session, withheld)
    _subscribe(life, session, record)
    for extension in state.installed.of(session):
        try:
            agreed = extension.resume(session, now)
        except Exception as error:
            error.add_note(f"{type(extension).__module__} cannot resume session {record.key}")
            raise
        if agreed is not None:
            session.extensions += (agreed,)
    return session


def finish(life: SessionLife, session: Session, now: float) -> None:
    """Start what waits for moments: the end of a hold, and lifetimes."""
    life.clock.schedule_hold_end(session, now)
    life.message_expiry.begin(session)
    if not session.takes_messages:
        # The earlier process was killed before it could dead-letter late messages.
        life.undelivered.dead_letter_all(session, DELIVERY_ENDED, "", now)


def _await_client(life: SessionLife, session: Session, record: SessionRecord, now: float) -> None:
    if record.client_id:
        session.advance(SessionInput.CONNECT)
        session.transport = ConnectionType.LONG_POLLING.value
        life.clock.await_return(session, now)
    else:
        # Only if the client had left. Other records contain the time at which they were written.
        note_seen_earlier(session, record.seen_ms)
        session.advance(SessionInput.LEAVE)
        life.clock.detach(session, now)


def _identify(session: Session, record: SessionRecord, state: ServerState) -> None:
    """Restore the identity of the session's client."""
    identity = session.identity
    identity.browser = record.browser
    if record.browser:
        state.client_ids.keep(record.browser)
    identity.needs_cookie, identity.is_of_page = record.needs_cookie, record.is_of_page
    identity.role = state.rights.role_of(record.warrant)
    identity.warrant = record.warrant if identity.has_role else ""
    if record.key.startswith(WEBHOOKS):
        identity.role = SERVER
    identity.login = None if record.login is None else Login.of_json(record.login)


def _remember_former_client(session: Session, record: SessionRecord, state: ServerState) -> None:
    if record.taken_from:
        client_id, *browsers = record.taken_from
        remember_former_client(session, (client_id, *browsers))
        state.sessions.know_replaced({client_id: browsers})


def _terms_of(record: SessionRecord, longest_s: float) -> Terms | None:
    if not record.delivery:
        return None
    terms = Terms.of(record.delivery, is_kept=True)
    if record.is_granted:
        return replace(terms, is_granted=True)
    return terms.waiting_at_most(longest_s)


def _subscribe(life: SessionLife, session: Session, record: SessionRecord) -> None:
    state = life.state
    lost = [*record.lost_subscriptions]
    for name in record.subscriptions:
        pattern = state.channels.get(name)
        if pattern is None or not may_have(session, pattern.name):
            lost.append(name)
            continue
        try:
            qos = SubscribeQos.of(_qos_of(record, name), is_kept=True)
        except QosInvalid as invalid:
            # Without its filter, the subscription would deliver unwanted messages.
            state.log.warning("%s has lost its subscription to %s: %s", session.name, name, invalid)
            lost.append(name)
        else:
            state.subscriptions.add(session, pattern, qos)
            if state.presence.is_visible(pattern) and session.identity.role != SERVER:
                state.presence.restore(pattern.name, session)
    for name in lost:
        state.subscriptions.note_lost(session, name)


def _qos_of(record: SessionRecord, subscription: str) -> Mapping[str, Any]:
    qos: Mapping[str, Any] = record.subscription_qos.get(subscription, {})
    return {**qos, "responds": False} if subscription in record.silent_on else qos


def restore_without_session(life: SessionLife, key: str, messages: Sequence[Message]) -> None:
    """Restore a shared queue or a channel's history; settle the rest of ended sessions.

    Messages to the subject of an ended session return to the subject's queue, work to its work
    queue.
    """
    state = life.state
    if key.startswith("/"):
        restore_history(life, key, messages)
        return
    name, _, number = key.rpartition("/")
    if number == "0":
        state.waiting_places.restore(name, messages)
        return
    session = state.sessions.draft(CallbackQueue(state.queue_limits, state.counters))
    session.go_by(key)
    session.is_durable = True
    state.counters.restored += len(messages)
    requeues = state.waiting_places.requeue_late
    left = [message for message in messages if not requeues(session, tried(message, _UNKNOWN))]
    if left:
        life.undelivered.discard(session, left, Reason.SESSION_ENDED)


def restore_history(
    life: SessionLife,
    name: str,
    messages: Sequence[Message],
    left: Mapping[str, Any] | None = None,
) -> None:
    """Restore a channel's history: as it was `left` by an earlier process, or what is stored."""
    state = life.state
    rule = state.rules.named(name)
    depth = life.topics.depth(name, rule)
    if depth is None:
        for message in messages:
            if message.is_durable:
                state.store.leave_history(name, message.id)
        state.histories.lack(name, messages, 0 if left is None else left["floor"])
    elif left is None:
        is_whole = rule.durable is True
        state.histories.restore(name, messages, depth, is_whole=is_whole)
    else:
        state.histories.put_back(name, messages, depth, left)


def may_have(session: Session, channel: str) -> bool:
    """Return whether the session may receive the channel: system events need a valid warrant.

    Presence channels depend on rights instead.
    """
    return (
        session.identity.has_role or not channel.startswith(SYSTEM) or channel.startswith(PRESENCE)
    )


def _withhold(life: SessionLife, session: Session, withheld: list[Message]) -> None:
    """Discard messages that the session may no longer receive, before a client takes it over."""
    if withheld:
        life.state.counters.restored += len(withheld)
        life.undelivered.discard(session, withheld, Reason.NOT_ALLOWED)


def _stop(session: Session, record: SessionRecord) -> None:
    """Restore a queue hold, and the state of a session whose delivery has stopped."""
    held = record.hold
    if not held.is_active:
        if session.dispatcher is None:
            session.dispatcher = Dispatcher()
        session.dispatcher.hold_back(QueueHold(held.reason, held.who, held.since_ms, held.until_ms))
    if record.is_given_up:
        if session.dispatcher is None:
            session.dispatcher = Dispatcher()
        session.advance(SessionInput.STOP)


def _refill(
    life: SessionLife,
    record: SessionRecord,
    entries: list[tuple[Mark, Message]],
    session: Session,
    *,
    now: float,
) -> list[Message]:
    """Restore the queue: entries in flight, returned and new. Returns withheld messages."""
    queue = session.queue
    queue.batch = record.batch
    # Hand-overs after the last record used higher numbers, but none above the clock's.
    queue.seq = max(record.seq, life.state.node.stamp() // _NS_PER_US)
    queue.is_restored = True
    withheld = [message for _, message in entries if not may_have(session, message.channel)]
    if withheld:
        entries = [each for each in entries if may_have(session, each[1].channel)]
    queue.is_mixed = bool(entries)
    due = now + queue.response_timeout_s if queue.response_timeout_s else 0.0
    in_flight: list[Entry] = []
    for mark, message in entries:
        if not mark.position:
            queue.insert(mark.with_former(message))
            continue
        queue.count += 1
        queue.size += len(message.wire)
        # Older marks of returned entries have no last number. Their position replaces it.
        entry = Entry(message, abs(mark.seq) or mark.position, batch=mark.batch)
        entry.place = mark.position
        entry.attempts, entry.redelivered = mark.attempts, mark.redelivered
        entry.trail = mark.trail
        if mark.seq <= 0 or queue.settling is SettledBy.WRITTEN:
            # It is unknown whether this batch, which was being written, was sent.
            entry.is_in_flight = False
            queue.returned[entry.seq] = entry
            if message.expires_ms:
                queue.track_lifetime(message)
        else:
            entry.due = due
            in_flight.append(entry)
        queue.batch = max(queue.batch, mark.batch)
        queue.seq = max(queue.seq, entry.seq)
    life.state.ledger.rankings.restored(session.number, queue.seq)
    queue.in_flight().update((entry.seq, entry) for entry in sorted(in_flight, key=by_seq))
    if len(in_flight) == 1:
        in_flight[0].was_alone = True
    if queue.returned:
        queue.narrow()
    life.state.counters.restored += len(entries)
    return withheld
