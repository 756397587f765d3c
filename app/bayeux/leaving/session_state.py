"""How far a session is, beyond its record: what `state_of` writes, `prepare` and `go_on` read.

Moments are written as seconds from the leave, because no two processes have the same clock.
"""

from collections.abc import Mapping
from math import inf
from typing import Any, Final

import orjson

from holdfast.bayeux.advice import remember_told_timeout, told_timeout_s
from holdfast.bayeux.expiry.unconnected import note_seen_earlier
from holdfast.bayeux.leaving.lost_connection import LostConnection
from holdfast.bayeux.session import Session
from holdfast.bayeux.sessions.life import SessionLife
from holdfast.bayeux.sessions.status import last_seen_ms
from holdfast.bayeux.state.cursors import Cursors, cursors_of, set_cursors
from holdfast.bayeux.state.subscription_details import known_details, lost_subscriptions
from holdfast.bayeux.wire.identity import SERVER, Identity
from holdfast.bayeux.wire.transports import ConnectionType
from holdfast.delivery.basics.feature_records import record_of, with_record
from holdfast.delivery.basics.session_states import SessionInput, SessionState
from holdfast.delivery.messages.entries import SettledBy
from holdfast.delivery.queues.dispatcher import Dispatcher
from holdfast.delivery.requests.reply_channels import reply_channel_of
from holdfast.delivery.settling.hand_overs import last_attempt_of

# Extensions of this project, all of which resume their sessions.
_OWN: Final = "holdfast."
# What leads a new session to a state.
_INPUTS: Final = {
    SessionState.HANDSHAKEN: (),
    SessionState.CONNECTED: (SessionInput.CONNECT,),
    SessionState.AWAY: (SessionInput.LEAVE,),
    SessionState.STOPPED: (SessionInput.STOP,),
    SessionState.STOPPED_AWAY: (SessionInput.STOP, SessionInput.LEAVE),
}


# How long a client may read a reply before its connection can be handed over. The connection is
# closed then.
READING_S: Final = 75.0


class _LacksMessages:
    """The record of a session that was not stored when it got its first messages."""

    __slots__ = ()


def state_of(life: SessionLife, session: Session, now: float) -> dict[str, Any]:
    """Return how far the session is."""
    queue = session.queue
    flags = {
        "mixed": queue.is_mixed,
        "pending": queue.has_pending,
        "restored": queue.is_restored,
        "resumed": session.is_resumed,
        "unadvised": not session.is_advised,
        "deliverOnly": session.deliver_only,
        "silentToItself": not session.broadcast_to_publisher,
        "unstored": is_unstored(session),
        "new": session in life.unconnected.handshaken,
        "takenOver": session in life.unconnected.absent and not session.is_absent,
    }
    return {
        "client": session.client_id,
        "state": session.state.value,
        "numbers": queue.numbers(),
        "created": session.created,
        "transport": session.transport,
        "times": [told_timeout_s(session), session.interval_s, session.rest_interval_s],
        "identity": _identity(session.identity, now),
        **{name: True for name, is_set in flags.items() if is_set},
        **_seldom(life, session, now),
        **({"absent": _absence(life, session, now)} if session.is_absent else {}),
    }


def _absence(life: SessionLife, session: Session, now: float) -> list[float | None]:
    """Return how long the session waits for a client that is away, and since when in ms."""
    left_s = max(session.ends_at - now, 0.0) if session.ends_at else None
    return [left_s, last_seen_ms(life.state.options, life.state.node, session, now)]


def _seldom(life: SessionLife, session: Session, now: float) -> dict[str, Any]:
    """Return what few sessions have."""
    queue, cursors, carrier = session.queue, cursors_of(session), session.carrier
    replies, dispatcher = reply_channel_of(session), session.dispatcher
    found: dict[str, Any] = {
        "dispatcher": None if dispatcher is None else dispatcher.left(now),
        "lazy": session.lazy_due - now if session.lazy_due else None,
        "serials": None if replies is None else replies.serials(),
        "promised": None if cursors is None else cursors.promised,
        "told": [name for name, is_told in lost_subscriptions(session).items() if is_told] or None,
        "last": last_attempt_of(queue) or None,
        "patience": _patience(life, session, now),
        "extensions": _others_of(session) or None,
        "attributes": _as_json(session.attributes) or None,
    }
    if queue.settling is SettledBy.VERDICT and carrier is not None and carrier.is_lost():
        found["lostReply"] = carrier.connection_type.value
    return {name: value for name, value in found.items() if value is not None}


def _patience(life: SessionLife, session: Session, now: float) -> float | None:
    """Return how much longer than usual its client, which reads a long reply, may be silent."""
    for carrier in (session.pipe, session.carrier):
        if carrier is not None and carrier.is_draining():
            return READING_S
    if session.is_absent:
        return None
    # It may read what the server before this one wrote.
    usual_s = session.rest_interval_s + life.state.options.max_interval_s
    more_s = session.deadline - now - usual_s
    return more_s if more_s > 0 else None


def _others_of(session: Session) -> list[str]:
    """Return the modules of its extensions that are not of this project."""
    modules = {type(each).__module__ for each in session.extensions}
    return sorted(each for each in modules if not each.startswith(_OWN))


def _identity(identity: Identity, now: float) -> dict[str, Any]:
    """Return what the record of a session does not say of its client."""
    found: dict[str, Any] = {}
    if identity.browser_of_socket is not None:
        found["socket"] = identity.browser_of_socket
    if identity.newcomer_since > -inf:
        found["newcomer"] = identity.newcomer_since - now
    if identity.first_connect < inf:
        found["connected"] = identity.first_connect - now
    if identity.role and not identity.warrant:
        found["role"] = identity.role
    return found


def _as_json(attributes: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the attributes that are JSON values and come back as they are."""
    found = {}
    for name, value in (attributes or {}).items():
        try:
            if orjson.loads(orjson.dumps(value)) == value:
                found[name] = value
        except (TypeError, ValueError):
            # An object of an extension, which its `resume` must make again.
            continue
    return found


def prepare(life: SessionLife, session: Session, left: Mapping[str, Any], now: float) -> None:
    """Restore what the queue, the subscriptions and the extensions of the session depend on."""
    queue, identity, said = session.queue, session.identity, left["identity"]
    session.client_id = left["client"]
    session.created = left["created"]
    queue.go_on(left["numbers"])
    life.state.ledger.rankings.restored(session.number, queue.seq)
    queue.is_mixed, queue.has_pending = "mixed" in left, "pending" in left
    queue.is_restored = "restored" in left
    identity.browser_of_socket = said.get("socket")
    if identity.browser_of_socket is not None:
        life.state.client_ids.keep(identity.browser_of_socket)
    identity.newcomer_since = now + said.get("newcomer", -inf)
    identity.first_connect = now + said.get("connected", inf)
    if identity.login is not None and "role" in said:
        # The extension that knows the login decides again, in its `resume`.
        identity.role = said["role"]
    session.attributes = left.get("attributes")


def go_on(life: SessionLife, session: Session, left: Mapping[str, Any], now: float) -> None:
    """Let a restored session stand as it stood. Its client has the usual time to come back."""
    session.transport = left["transport"]
    session.is_resumed = "resumed" in left
    session.deliver_only = "deliverOnly" in left
    session.broadcast_to_publisher = "silentToItself" not in left
    timeout_s, interval_s, rest_interval_s = left["times"]
    has_same_times = (timeout_s, interval_s) == (session.timeout_s, session.interval_s)
    session.is_advised = "unadvised" not in left and has_same_times
    if timeout_s < session.timeout_s:
        remember_told_timeout(session, timeout_s)
    if rest_interval_s != interval_s:
        session.rest_interval_s = rest_interval_s
    identity = session.identity
    if identity.grants is None and not identity.warrant and identity.role != SERVER:
        # No extension answers for the role.
        session.identity.role = ""
    _enter_state(session, SessionState(left["state"]))
    _restore_records(session, left)
    if "unstored" in left:
        note_unstored(session)
    if "dispatcher" in left:
        if session.dispatcher is None:
            session.dispatcher = Dispatcher()
        session.dispatcher.go_on(left["dispatcher"], now)
    if "lazy" in left:
        session.lazy_due = now + left["lazy"]
    if "lostReply" in left:
        session.carrier = LostConnection(ConnectionType(left["lostReply"]))
    _await_client(life, session, left, now)


def _await_client(life: SessionLife, session: Session, left: Mapping[str, Any], now: float) -> None:
    """Start what waits for the client."""
    if "absent" in left:
        left_s, seen_ms = left["absent"]
        note_seen_earlier(session, seen_ms)
        life.clock.detach(session, now)
        session.ends_at = 0.0 if left_s is None else now + left_s
        life.clock.schedule(session)
        return
    if "new" in left:
        life.unconnected.add(session)
    elif "takenOver" in left:
        life.unconnected.note_absent(session)
    life.clock.await_return(session, now + left.get("patience", 0.0))
    if session.lazy_due or session.dispatcher is not None:
        life.clock.schedule(session)


def _enter_state(session: Session, state: SessionState) -> None:
    for seen in _INPUTS[state]:
        # A given-up session was stopped with its record.
        if seen is not SessionInput.STOP or session.takes_messages:
            session.advance(seen)


def _restore_records(session: Session, left: Mapping[str, Any]) -> None:
    replies, details = reply_channel_of(session), known_details(session)
    if replies is not None and "serials" in left:
        replies.go_on(left["serials"])
    if details is not None:
        for name in left.get("told", ()):
            if name in details.lost:
                details.lost[name] = True


def give_cursors_back(
    life: SessionLife, session: Session, left: Mapping[str, Any], *, has_replay_ids: bool | None
) -> None:
    """Restore the cursors of a session whose client has some."""
    if has_replay_ids is not None:
        form = life.state.cursor_form(has_replay_ids=has_replay_ids)
        promised = left.get("promised", life.state.hub.complete_cursor())
        set_cursors(session, Cursors(form, promised))


def note_unstored(session: Session) -> None:
    """Record that the store may lack durable messages of the session, although it is stored."""
    session.records = with_record(session.records, _LacksMessages())


def is_unstored(session: Session) -> bool:
    """Whether that is so."""
    return record_of(session.records, _LacksMessages) is not None


def lacks_extension(session: Session, left: Mapping[str, Any]) -> str:
    """Return the module of an extension that the session had and did not get again, or "".

    It may have checked each message of the client, so the session cannot go on without it.
    """
    resumed = {type(each).__module__ for each in session.extensions}
    return next((each for each in left.get("extensions", ()) if each not in resumed), "")
