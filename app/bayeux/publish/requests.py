"""Requests and their replies, as clients send and receive them."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from orjson import loads

from holdfast.bayeux.publish.event import EventPublish
from holdfast.bayeux.publish.results import Result, State, refusal
from holdfast.bayeux.session import Session
from holdfast.bayeux.state.calls import Answer, Asker, Asking, said_by
from holdfast.bayeux.state.request_events import ERROR, STATUS, call_fields
from holdfast.bayeux.state.server_state import ServerState
from holdfast.bayeux.wire.codec import Json
from holdfast.bayeux.wire.errors import ErrorReply, Refused
from holdfast.delivery.basics.channels import REPLIES, Channel
from holdfast.delivery.basics.error_codes import LATE_REPLY
from holdfast.delivery.basics.ignoring import ignore
from holdfast.delivery.basics.json_text import whole
from holdfast.delivery.messages.entries import Entry
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.storing import PersistOutcome, RequestStep
from holdfast.delivery.requests.outstanding import Requests
from holdfast.delivery.requests.reply_channels import (
    ReplyChannel,
    give_reply_channel,
    reply_channel_of,
)
from holdfast.delivery.requests.request import ReplyFault, ReplyMode, Request
from holdfast.delivery.settling.undelivered import Undelivered

# What the operation of the requester's shard is called.
REPLIED: Final = "replied"
# The keys of `ext` in a message that asks for replies.
REPLY_TO: Final = "replyTo"
TIMEOUT: Final = "timeout"
MODE: Final = "request"
_MODES: Final = {mode.value: mode for mode in ReplyMode}
_FAULTS: Final = {
    ReplyFault.DENIED: ErrorReply.REPLY_DENIED,
    ReplyFault.DUPLICATE: ErrorReply.DUPLICATE_REPLY,
    ReplyFault.LATE: ErrorReply.LATE_REPLY,
}
# What is answered to a reply that counts, and who answers within this shard.
_KEPT: Final = Result(State.KEPT).to_answer()
_HERE: Final = Asker(ignore)


class RequestHandler:
    """Sends requests for clients, and delivers replies to them."""

    def __init__(
        self,
        state: ServerState,
        encoded: Callable[[Json, Session | None], bytes],
        undelivered: Undelivered[Session],
    ) -> None:
        self._state = state
        self._encoded = encoded
        self._undelivered = undelivered
        # For requests that ask for no time.
        self._timeout_ms = min(state.options.reply_timeout, state.options.max_reply_timeout)
        self._requests = state.requests
        self._events = state.request_events
        state.calls.handle(REPLIED, self._hear)

    # Requests

    def give_channel(self, session: Session, resumes: str = "") -> ReplyChannel:
        """Give the session a reply channel, which replaces the current one."""
        secret = self._state.client_ids.new(self._state.sessions.bucket_of(session))
        channel = ReplyChannel(secret, resumes=resumes)
        give_reply_channel(session, channel)
        return channel

    def request_of(
        self, session: Session, channel: Channel, ext: Mapping[str, Any], now: float
    ) -> Request[Session]:
        """Return the request described by these keys of a message. Raises `Refused`."""
        reply_to, own = ext[REPLY_TO], reply_channel_of(session)
        if own is None or not own.covers(reply_to):
            self._check_id(reply_to, session, now)
            # Otherwise the client could make a responder write to another client's channel.
            raise Refused(ErrorReply.REPLY_DENIED, REPLY_TO)
        mode = _MODES[ext.get(MODE) or ReplyMode.FIRST.value]
        timeout_ms = whole(ext.get(TIMEOUT)) or self._timeout_ms
        request = self._request(
            session, channel, reply_to=reply_to, now=now, mode=mode, timeout_ms=timeout_ms
        )
        request.address = own.address(reply_to, self._state.node.stamp())
        return request

    def call_of(
        self, session: Session, channel: Channel, call: tuple[str, str], now: float
    ) -> Request[Session]:
        """Return the request for a remote call, by its channel and id. Raises `Refused`."""
        own = reply_channel_of(session) or self.give_channel(session)
        request = self._request(
            session,
            channel,
            reply_to=own.next_call(),
            now=now,
            mode=ReplyMode.FIRST,
            timeout_ms=self._timeout_ms,
        )
        request.address = f"{request.reply_to}/{self._state.node.stamp()}"
        request.call = call
        return request

    def _request(
        self,
        session: Session,
        channel: Channel,
        *,
        reply_to: str,
        now: float,
        mode: ReplyMode,
        timeout_ms: int,
    ) -> Request[Session]:
        self._check_room(session)
        return Request(
            self._requests,
            session,
            channel=channel.name,
            reply_to=reply_to,
            mode=mode,
            timeout_ms=timeout_ms,
            now=now,
            now_ms=self._state.node.now_ms(),
        )

    def _check_room(self, session: Session) -> None:
        """Raise `Refused` if the session may not have another request."""
        state, requests = self._state, self._requests
        if len(requests.outstanding_of(session)) >= state.options.max_outstanding:
            raise Refused(ErrorReply.REQUESTS_EXCEEDED, str(state.options.max_outstanding))
        if requests.outstanding + requests.grants >= state.options.max_total_outstanding:
            raise Refused(ErrorReply.REQUESTS_USED_UP)

    def publish(
        self,
        publish: EventPublish,
        broadcast: Callable[[EventPublish], PersistOutcome | None],
        done: Callable[[PersistOutcome], None],
    ) -> PersistOutcome | None:
        """Publish an event, which may carry a request.

        Returns None if `done` is called with the outcome later.
        """
        if publish.qos is None or publish.qos.request is None:
            publish.then(done)
            return broadcast(publish)
        request, store = publish.qos.request, self._state.store
        is_kept = request.requester.is_durable
        publish.then(partial(self._over, request, done))
        own = reply_channel_of(request.requester)
        if own is not None and request.call is None:
            own.use(request.reply_to)
        self._requests.open(request)
        try:
            is_possible = store.is_available or not is_kept
            outcome = broadcast(publish) if is_possible else PersistOutcome.REFUSED
        except BaseException:
            self._requests.drop(request)
            raise
        if outcome is None:
            return None
        if is_kept and outcome is PersistOutcome.KEPT:
            self._keep(request, partial(done, outcome))
            return None
        self._settle(request, outcome)
        return outcome

    def _over(
        self,
        request: Request[Session],
        done: Callable[[PersistOutcome], None],
        outcome: PersistOutcome,
    ) -> None:
        """Tell the publisher the outcome, which was not known at once."""
        self._settle(request, outcome)
        is_stored = request.is_kept or not request.requester.is_durable
        if outcome is not PersistOutcome.KEPT or is_stored or request.end is not None:
            done(outcome)
        else:
            # It has waited for others on its channel only.
            self._keep(request, partial(done, outcome))

    def _keep(self, request: Request[Session], then: Callable[[], None]) -> None:
        """Store a request without its message: the store must have it before it is accepted."""
        self._requests.keep_by_itself(request)
        self._state.store.after(then)

    def _settle(self, request: Request[Session], outcome: PersistOutcome) -> None:
        """Drop a request that no receiver will get."""
        if outcome in (PersistOutcome.REFUSED, PersistOutcome.REPEATED):
            self._requests.drop(request)

    # Replies

    def answer(self, publish: EventPublish, session: Session) -> PersistOutcome | None:
        """Deliver a reply of the session to its requester, wherever that is. Raises `Refused`.

        Returns None if the publish is told later.
        """
        address = publish.channel.name
        request, fault = self._requests.accept(address, session)
        if request is None:
            self._check_id(address, session, publish.now)
        if request is not None and fault is None and request.shard is not None:
            return self._send(publish, session, request, request.shard)
        reply = _Reply(address, session.key, session.name, publish.event, session)
        return self._take(reply, (request, fault), _HERE, publish.done)

    def _check_id(self, address: str, session: Session, now: float) -> None:
        """Charge an address that this deployment never gave. Raises `Refused` if too many."""
        id = address.removeprefix(REPLIES).partition("/")[0]
        if not self._state.client_ids.fits(id):
            self._state.budgets.spend_invented(session.caller, now)

    def _hear(self, asked: Asking, asker: Asker, _: float) -> None:
        """Deliver a reply that a session of another shard has sent."""
        reply = _Reply(**asked)
        accepted = self._requests.accept_from(reply.address, reply.key)
        try:
            self._take(reply, accepted, asker)
        except Refused as refused:
            asker.answer(refusal(refused).to_answer())

    def _take(
        self,
        reply: "_Reply",
        accepted: tuple[Request[Session] | None, ReplyFault | None],
        asker: Asker,
        done: Callable[[PersistOutcome], None] | None = None,
    ) -> PersistOutcome | None:
        """Deliver a reply, if it counts. Raises `Refused`."""
        request, fault = accepted
        if request is not None and fault is ReplyFault.LATE:
            self._bury(request, reply)
        if request is None or fault is not None:
            raise Refused(_FAULTS[fault or ReplyFault.DENIED], reply.address)
        try:
            message = self._message(request, reply)
            asker.answer_with(message, _KEPT)
            known = partial(self._known, _Coming(request, reply.key, asker, message))
            step = RequestStep(self._requests.fields_of_reply(request, reply.key), known)
            channel = self._state.channels.named(reply.address)
            outcome = self._events.deliver(request, channel, message=message, step=step, done=done)
        except BaseException:
            # For example, the reply may be too large.
            self._requests.unanswered(request, reply.key)
            raise
        if outcome is not None:
            known(outcome)
        return outcome

    def _known(self, coming: "_Coming", outcome: PersistOutcome) -> None:
        request, key, asker, message = coming
        if outcome is PersistOutcome.REFUSED:
            self._requests.unanswered(request, key)
            asker.answer(Result(State.NOT_STORED).to_answer())
        else:
            self._requests.answered(request, key)
            asker.answer_kept(message, _KEPT)

    def _message(self, request: Request[Session], reply: "_Reply") -> Message:
        """Return the reply as its requester receives it."""
        event = reply.event
        if self._state.installed.eventful:
            self._state.installed.complete(event)
        if request.call is None:
            event["channel"] = request.reply_to
        else:
            is_error = (event.get("ext") or {}).get(STATUS) == ERROR
            event |= call_fields(request.call, successful=not is_error)
        return self._events.message(request, self._encoded(event, reply.session), reply.name)

    def _bury(self, request: Request[Session], reply: "_Reply") -> None:
        """Create a dead letter for a reply that came too late."""
        message = self._message(request, reply)
        self._state.counters.accepted += 1
        self._state.ledger.published(message, 1)
        self._undelivered.dead_letter(request.requester, (Entry(message),), LATE_REPLY, "")

    def _send(
        self, publish: EventPublish, session: Session, request: Request[Session], shard: int
    ) -> PersistOutcome | None:
        """Let the shard of the requester decide whether a reply counts."""
        calls, key = self._state.calls, session.key
        try:
            event = loads(self._encoded(publish.event, session))
        except BaseException:
            self._requests.unanswered(request, key)
            raise
        if not calls.may_ask(shard):
            self._requests.unanswered(request, key)
            return PersistOutcome.REFUSED
        reply = {"address": request.address, "key": key, "name": session.name, "event": event}
        calls.send(shard, REPLIED, reply, partial(self._heard, publish, request, key))
        return None

    def _heard(
        self, publish: EventPublish, request: Request[Session], key: str, answer: Answer | None
    ) -> None:
        outcome = PersistOutcome.UNKNOWN
        if answer is not None:
            found = said_by(Result, answer) or refusal(Refused(ErrorReply.SERVER_FAULT))
            outcome = PersistOutcome.REFUSED
            if found.state == State.KEPT:
                outcome = PersistOutcome.KEPT
            elif found.state == State.REFUSED:
                publish.refused = found.refused
        is_fault = publish.refused is not None and publish.refused.error in _FAULTS.values()
        if outcome is PersistOutcome.KEPT or is_fault:
            self._requests.answered(request, key)
        else:
            # It may reply again: the requester's shard knows whether this one counted.
            self._requests.unanswered(request, key)
        if publish.done is not None:
            publish.done(outcome)


class _Reply(NamedTuple):
    """A reply, and who sends it; the session is None if another shard has it."""

    address: str
    key: str
    name: str
    event: Json
    session: Session | None = None


class _Coming(NamedTuple):
    """A reply that is being delivered: to which request, of which session, and its message."""

    request: Request[Session]
    key: str
    asker: Asker
    message: Message


def take_outcome(
    requests: Requests[Session],
    request: Request[Session],
    keys: Iterable[str],
    outcome: PersistOutcome,
) -> None:
    """Take what became of a request at the shards that get it, and which keys may answer it."""
    if outcome is PersistOutcome.UNKNOWN:
        requests.crossed(request)
    elif outcome is PersistOutcome.KEPT:
        request.unheard = ()
        requests.grant(request, keys)
        if request.end is None:
            requests.save_asked(request)
