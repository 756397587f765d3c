"""Requests and their replies, as clients send and receive them."""

from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from holdfast.bayeux.publish.event import EventPublish
from holdfast.bayeux.session import Session
from holdfast.bayeux.state.server_state import ServerState
from holdfast.bayeux.wire.codec import Json
from holdfast.bayeux.wire.errors import ErrorReply, Refused
from holdfast.delivery.basics.channels import Channel
from holdfast.delivery.basics.error_codes import LATE_REPLY
from holdfast.delivery.basics.json_text import to_json, whole
from holdfast.delivery.messages.entries import Entry
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.storing import PersistOutcome, RequestStep
from holdfast.delivery.requests.reply_channels import ReplyChannel
from holdfast.delivery.requests.request import ReplyFault, ReplyMode, Request, RequestEnd
from holdfast.delivery.routing.publishes import Publish
from holdfast.delivery.settling.undelivered import Undelivered

# The keys of `ext` in a message that asks for replies.
REPLY_TO: Final = "replyTo"
TIMEOUT: Final = "timeout"
MODE: Final = "request"
# What an event to the requester is: an error, or the end of the replies, which only the server
# knows.
STATUS: Final = "status"
_ERROR: Final = "ERROR"
END: Final = "END"
_MODES: Final = {mode.value: mode for mode in ReplyMode}
_FAULTS: Final = {
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
        self._requests = state.requests
        # Requests end with their sessions, so they are created before the parts that inform
        # requesters.
        state.requests.notify, state.requests.save = self._notify, state.store.save_requests

    # Requests

    def give_channel(self, session: Session, resumes: str = "") -> ReplyChannel:
        """Give the session a reply channel, which replaces the current one."""
        secret = urlsafe_b64encode(bytes.fromhex(self._state.new_id())).decode().rstrip("=")
        session.reply_channel = ReplyChannel(secret, resumes=resumes)
        return session.reply_channel

    def request_of(
        self, session: Session, channel: Channel, ext: Mapping[str, Any], now: float
    ) -> Request[Session]:
        """Return the request described by these keys of a message. Raises `Refused`."""
        reply_to, own = ext[REPLY_TO], session.reply_channel
        if own is None or not own.covers(reply_to):
            # Otherwise the client could make a responder write to another client's channel.
            raise Refused(ErrorReply.REPLY_DENIED, REPLY_TO)
        mode = _MODES[ext.get(MODE) or ReplyMode.FIRST.value]
        timeout_ms = whole(ext.get(TIMEOUT)) or self._state.options.reply_timeout_ms
        request = self._request(session, channel, reply_to, now, mode, timeout_ms)
        request.address = own.address(reply_to, self._state.node.stamp())
        return request

    def call_of(
        self, session: Session, channel: Channel, call: tuple[str, str], now: float
    ) -> Request[Session]:
        """Return the request for a remote call, by its channel and id. Raises `Refused`."""
        own = session.reply_channel or self.give_channel(session)
        timeout_ms = self._state.options.reply_timeout_ms
        request = self._request(session, channel, own.next_call(), now, ReplyMode.FIRST, timeout_ms)
        request.address = f"{request.reply_to}/{self._state.node.stamp()}"
        request.call = call
        return request

    def _request(
        self,
        session: Session,
        channel: Channel,
        reply_to: str,
        now: float,
        mode: ReplyMode,
        timeout_ms: int,
    ) -> Request[Session]:
        self._check_room(session)
        return Request(
            self._requests,
            session,
            channel.name,
            reply_to,
            mode,
            timeout_ms,
            now=now,
            now_ms=self._state.node.now_ms(),
        )

    def _check_room(self, session: Session) -> None:
        """Raise `Refused` if the session may not have another request."""
        state, requests = self._state, self._requests
        if requests.count_of(session) >= state.options.max_outstanding:
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
        publish.then(done)
        if publish.qos is None or publish.qos.request is None:
            return broadcast(publish)
        request, store = publish.qos.request, self._state.store
        is_kept = request.requester.is_durable
        publish.then(partial(self._settle, request))
        own = request.requester.reply_channel
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
        self._settle(request, outcome)
        if not is_kept or outcome is not PersistOutcome.KEPT:
            return outcome
        # The store does not have the message, but must have the request before it is accepted.
        self._requests.keep_by_itself(request)
        store.after(partial(done, outcome))
        return None

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
        done: Callable[[PersistOutcome], None],
    ) -> PersistOutcome | None:
        """Deliver a reply to its requester. Raises `Refused`.

        Returns None if `done` is called with the outcome later.
        """
        request, fault = self._requests.accept(channel.name, session)
        if request is not None and fault is ReplyFault.LATE:
            self._bury(request, session, event)
        if fault is not None or request is None:
            raise Refused(_FAULTS[fault or ReplyFault.DENIED], channel.name)
        step = RequestStep(
            self._requests.fields_of_reply(request, session),
            partial(self._answered, request, session),
        )
        try:
            wire = self._wire(request, event, session)
            outcome = self._bring(request, channel, wire, session.name, step, done)
        except BaseException:
            # For example, the reply may be too large.
            self._requests.unanswered(request, session)
            raise
        if outcome is not None:
            step.known(outcome)
        return outcome

    def _answered(
        self, request: Request[Session], session: Session, outcome: PersistOutcome
    ) -> None:
        if outcome is PersistOutcome.REFUSED:
            self._requests.unanswered(request, session)
        else:
            self._requests.answered(request, session)

    def _wire(self, request: Request[Session], event: Json, sender: Session) -> bytes:
        """Return the event of a reply as its requester receives it."""
        if request.call is None:
            event["channel"] = request.reply_to
        else:
            is_error = (event.get("ext") or {}).get(STATUS) == _ERROR
            event |= _call_fields(request.call, successful=not is_error)
        return self._encoded(event, sender)

    def _bury(self, request: Request[Session], session: Session, event: Json) -> None:
        """Create a dead letter for a reply that came too late."""
        message = self._message(request, self._wire(request, event, session), session.name)
        self._state.counters.accepted += 1
        self._state.ledger.published(message, 1)
        self._undelivered.dead_letter(request.requester, (Entry(message),), LATE_REPLY, "")

    def _message(self, request: Request[Session], wire: bytes, sender: str) -> Message:
        stamp = self._state.node.stamp()
        message = Message(wire, id=stamp, channel=request.reply_to, sender=sender)
        message.is_direct = True
        message.addressed = (request.requester.key,)
        return message

    def _bring(
        self,
        request: Request[Session],
        channel: Channel,
        wire: bytes,
        sender: str,
        step: RequestStep,
        done: Callable[[PersistOutcome], None] | None = None,
    ) -> PersistOutcome | None:
        publish: Publish[Session] = Publish(channel)
        publish.message = self._message(request, wire, sender)
        publish.addressed, publish.is_subscribable = (request.requester,), False
        publish.done, publish.step = done, step
        return self._state.hub.publish(publish)

    def _notify(self, request: Request[Session]) -> None:
        """Inform the requester how its request ended, once the store can keep the event."""
        if request.requester.is_durable and not self._state.store.takes_messages:
            self._requests.tell_later(request)
            return
        event: Json = {"channel": request.reply_to}
        if request.end is RequestEnd.ANSWERED:
            event["data"] = {"replies": request.replies, "missing": len(request.responders)}
            event["ext"] = {STATUS: END}
        else:
            error = _error(request)
            event |= {"data": {"error": error, **_reason(request)}, "error": error}
            event["ext"] = {STATUS: _ERROR}
        if request.call is not None:
            event |= _call_fields(request.call, successful=False)
        self._state.installed.complete(event)
        channel = self._state.channels.named(request.reply_to)
        step = RequestStep(self._requests.fields_of_end(request), partial(self._told, request))
        outcome = self._bring(request, channel, to_json(event), "", step)
        if outcome is not None:
            step.known(outcome)

    def _told(self, request: Request[Session], outcome: PersistOutcome) -> None:
        if outcome is PersistOutcome.REFUSED:
            self._requests.tell_later(request)
        else:
            self._requests.told(request)


def _call_fields(call: tuple[str, str], *, successful: bool) -> Json:
    """Return the fields by which cometd.js finds its remote call."""
    channel, id = call
    return {"channel": channel, "id": id, "successful": successful}


def _error(request: Request[Session]) -> str:
    """Return the error that ended a request."""
    if request.end is RequestEnd.REFUSED and request.refusal is not None:
        return ErrorReply.RESPONDER_ERROR.wire(request.channel, request.refusal[0])
    is_over = request.end is RequestEnd.TIMEOUT
    return (ErrorReply.TIMEOUT if is_over else ErrorReply.NO_RESPONDERS).wire(request.channel)


def _reason(request: Request[Session]) -> Json:
    """Return the known facts about the refusal that ended a request."""
    if request.end is not RequestEnd.REFUSED or request.refusal is None:
        return {}
    code, text = request.refusal
    return {"code": code, "message": text}
