"""Requests and their replies, as clients send and receive them."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final

from holdfast.bayeux.publish.event import EventPublish
from holdfast.bayeux.session import Session
from holdfast.bayeux.state.request_events import ERROR, STATUS, call_fields
from holdfast.bayeux.state.server_state import ServerState
from holdfast.bayeux.wire.codec import Json
from holdfast.bayeux.wire.errors import ErrorReply, Refused
from holdfast.delivery.basics.channels import REPLIES, Channel
from holdfast.delivery.basics.error_codes import LATE_REPLY
from holdfast.delivery.basics.json_text import whole
from holdfast.delivery.messages.entries import Entry
from holdfast.delivery.messages.storing import PersistOutcome, RequestStep
from holdfast.delivery.requests.outstanding import Requests
from holdfast.delivery.requests.reply_channels import (
    ReplyChannel,
    give_reply_channel,
    reply_channel_of,
)
from holdfast.delivery.requests.request import ReplyFault, ReplyMode, Request
from holdfast.delivery.settling.undelivered import Undelivered

# The keys of `ext` in a message that asks for replies.
REPLY_TO: Final = "replyTo"
TIMEOUT: Final = "timeout"
MODE: Final = "request"
_MODES: Final = {mode.value: mode for mode in ReplyMode}
FAULTS: Final = {
    ReplyFault.DENIED: ErrorReply.REPLY_DENIED,
    ReplyFault.DUPLICATE: ErrorReply.DUPLICATE_REPLY,
    ReplyFault.LATE: ErrorReply.LATE_REPLY,
}


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

    def answer(
        self,
        session: Session,
        channel: Channel,
        event: Json,
        *,
        now: float,
        done: Callable[[PersistOutcome], None],
    ) -> PersistOutcome | None:
        """Deliver a reply to its requester. Raises `Refused`.

        Returns None if `done` is called with the outcome later.
        """
        request, fault = self._requests.accept(channel.name, session)
        if request is not None and fault is ReplyFault.LATE:
            self.bury(request, event, session, session.name)
        if request is None:
            self._check_id(channel.name, session, now)
        if fault is not None or request is None:
            raise Refused(FAULTS[fault or ReplyFault.DENIED], channel.name)
        step = RequestStep(
            self._requests.fields_of_reply(request, session.key),
            partial(self._answered, request, session),
        )
        try:
            wire = self.wire(request, event, session)
            message = self._events.message(request, wire, session.name)
            outcome = self._events.deliver(request, channel, message=message, step=step, done=done)
        except BaseException:
            # For example, the reply may be too large.
            self._requests.unanswered(request, session.key)
            raise
        if outcome is not None:
            step.known(outcome)
        return outcome

    def _check_id(self, address: str, session: Session, now: float) -> None:
        """Charge an address that this deployment never gave. Raises `Refused` if too many."""
        id = address.removeprefix(REPLIES).partition("/")[0]
        if not self._state.client_ids.fits(id):
            self._state.budgets.spend_invented(session.caller, now)

    def _answered(
        self, request: Request[Session], session: Session, outcome: PersistOutcome
    ) -> None:
        if outcome is PersistOutcome.REFUSED:
            self._requests.unanswered(request, session.key)
        else:
            self._requests.answered(request, session.key)

    def wire(self, request: Request[Session], event: Json, sender: Session | None) -> bytes:
        """Return the event of a reply as its requester receives it.

        The sender is None if it is a session of another shard.
        """
        if request.call is None:
            event["channel"] = request.reply_to
        else:
            is_error = (event.get("ext") or {}).get(STATUS) == ERROR
            event |= call_fields(request.call, successful=not is_error)
        return self._encoded(event, sender)

    def bury(
        self, request: Request[Session], event: Json, sender: Session | None, name: str
    ) -> None:
        """Create a dead letter for a reply that came too late."""
        wire = self.wire(request, event, sender)
        message = self._events.message(request, wire, name)
        self._state.counters.accepted += 1
        self._state.ledger.published(message, 1)
        self._undelivered.dead_letter(request.requester, (Entry(message),), LATE_REPLY, "")


def asked_elsewhere(
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
