"""Handles exchanges: validates, applies and answers the messages of a request in order."""

from collections.abc import Sequence
from typing import Final

from holdfast.bayeux.advice import milliseconds, session_advice
from holdfast.bayeux.extending.chain import run_incoming
from holdfast.bayeux.meta.client_verdicts import note_never_sent
from holdfast.bayeux.meta.connect import connect, missing_in, unknown_session
from holdfast.bayeux.meta.disconnect import disconnect
from holdfast.bayeux.meta.handshake import Handshake, check_capacity
from holdfast.bayeux.meta.validation import skeleton, validate
from holdfast.bayeux.replies.pending import begin_pending, finish
from holdfast.bayeux.server import Bayeux
from holdfast.bayeux.session import Exchange, Held, Session, TurnOver
from holdfast.bayeux.state.unstored_replies import unstored_replies
from holdfast.bayeux.wire.caller import UNKNOWN as NO_CALLER
from holdfast.bayeux.wire.codec import Json, encode_reply, ext_of, read
from holdfast.bayeux.wire.errors import ErrorReply, Refused, RequestRefused, Undecided
from holdfast.bayeux.wire.transports import ConnectionType, SpeakerKind
from holdfast.bayeux.wire.unfit import Salvage, Unfit
from holdfast.delivery.basics.channels import Channel, Kind
from holdfast.delivery.basics.error_codes import NO_CONNECTION
from holdfast.delivery.messages.verdicts import SILENT

_HANDSHAKE: Final = "/meta/handshake"
_CONNECT: Final = "/meta/connect"
_META: Final = Kind.META
_UNKNOWN: Final = SpeakerKind.UNKNOWN
_CALLBACK_POLLING: Final = ConnectionType.CALLBACK_POLLING
# In bytes. Decoding a shorter body takes a small part of a turn.
_LONG: Final = 16_384
# How many replies of one session may wait for the store. A request may cause half as many.
_MOST_DELAYED: Final = 10_000


class RemainingMessages:
    """The unhandled messages of a request, which are handled in later turns.

    Requests of one session are handled one after the other in order of arrival. So receivers get
    its publishes in order, however many requests carry them.
    """

    __slots__ = ("_begins_with_handshake", "_exchange", "_messages", "_place", "_session")

    def __init__(self, messages: Sequence[Json], exchange: Exchange) -> None:
        self._exchange = exchange
        self._messages = messages
        self._begins_with_handshake = messages[0].get("channel") == _HANDSHAKE
        # The index of the next message, which may be partly handled.
        self._place = 0
        # The session whose later requests wait for this one.
        self._session: Session | None = None

    @property
    def is_read(self) -> bool:
        """Whether the session's queue of requests contains it, if it has a session."""
        return True

    def wait(self) -> "RemainingMessages":
        """Continue in a later turn. Until then, the replies are pending."""
        exchange = self._exchange
        exchange.pending_replies += 1
        self._session = session = exchange.session
        if session is not None:
            exchange.client_id = session.client_id
            session.unfinished = (*session.unfinished, exchange)
        return self

    def go_on(self, bayeux: Bayeux, now: float) -> bool:
        """Handle messages until the turn is over. Returns whether none is left."""
        exchange = self._exchange
        exchange.now = now
        is_done = True
        try:
            is_done = self.handle_some(bayeux)
        finally:
            if is_done:
                self._let_others_go_on(bayeux)
        if is_done:
            exchange.pending_replies -= 1
            _end(bayeux, exchange)
        return is_done

    def _let_others_go_on(self, bayeux: Bayeux) -> None:
        session = self._session
        if session is not None:
            session.unfinished = tuple(
                [each for each in session.unfinished if each is not self._exchange]
            )
            if session.queue.count:
                # Messages that arrived in the meantime were not handed over.
                bayeux.state.hub.make_ready(session)

    def handle_some(self, bayeux: Bayeux) -> bool:
        """Handle at least one message, unless the session is busy. Returns whether none is left."""
        messages, exchange = self._messages, self._exchange
        while self._place < len(messages):
            if _is_busy(exchange):
                return False
            if not _handle(bayeux, messages[self._place], exchange):
                if isinstance(exchange.progress, Held):
                    exchange.progress.look_ahead(messages[self._place + 1 :])
                return False
            self._place += 1
            if self._begins_with_handshake:
                # In the same turn, because the reply to the handshake has counted the messages
                # after it.
                _refuse_companions(bayeux, messages[1:], exchange)
                return True
            if self._place < len(messages) and bayeux.state.is_turn_over():
                return False
        return True


def _is_busy(exchange: Exchange) -> bool:
    """Whether an earlier request of its session is unfinished."""
    session = exchange.session
    return (
        session is not None and bool(session.unfinished) and session.unfinished[0] is not exchange
    )


class SalvagedRequest:
    """A request whose messages are extracted one by one, over as many turns as necessary."""

    __slots__ = ("_exchange", "_rest", "_salvage", "_size")

    def __init__(self, salvage: Salvage, exchange: Exchange, size: int) -> None:
        self._salvage = salvage
        self._exchange = exchange
        self._size = size
        # Set once all messages are extracted.
        self._rest: RemainingMessages | None = None

    @property
    def is_read(self) -> bool:
        """Whether the session's queue of requests contains it, if it has a session."""
        return self._rest is not None

    def go_on(self, bayeux: Bayeux, now: float) -> bool:
        """Continue until the turn is over; return whether that was all. Raises `RequestRefused`."""
        if self._rest is not None:
            return self._rest.go_on(bayeux, now)
        while not self._salvage.go_on():
            if bayeux.state.is_turn_over():
                return False
        messages, self._salvage.messages = self._salvage.messages, []
        self._rest = _carry_out_all(
            bayeux, messages, exchange=self._exchange, size=self._size, now=now
        )
        return self._rest is None


def receive(
    bayeux: Bayeux, body: bytes, exchange: Exchange, now: float
) -> RemainingMessages | SalvagedRequest | None:
    """Handle a request. Its exchange is answered now or later.

    Returns the part that this turn had no time for. Call its `go_on` in later turns until it
    returns True. Raises `RequestRefused`, without effects, if the body does not contain messages,
    or if an unknown page sent it.
    """
    found = read(body, bayeux.state.request_limits)
    if isinstance(found, Salvage):
        salvaged = SalvagedRequest(found, exchange, len(body))
        return None if not bayeux.state.is_turn_over() and salvaged.go_on(bayeux, now) else salvaged
    return _carry_out_all(bayeux, found, exchange=exchange, size=len(body), now=now)


def _carry_out_all(
    bayeux: Bayeux, messages: Sequence[Json], *, exchange: Exchange, size: int, now: float
) -> RemainingMessages | None:
    if exchange.speaker.kind is _UNKNOWN:
        _check_speaker(bayeux, messages)
    if exchange.carrier.connection_type is _CALLBACK_POLLING:
        messages = [_without_credentials(message) for message in messages]
    # Handling takes nearly as long as decoding did, so it gets another turn.
    is_late = size > _LONG and bayeux.state.is_turn_over()
    exchange.now = now
    if len(messages) > 1:
        exchange.is_alone = False
        if any(message.get("channel") == _HANDSHAKE for message in messages):
            messages = _handshake_first(messages)
    exchange.session = bayeux.session_of(messages[0], exchange)
    rest = None
    if not exchange.speaker.caller.network or _is_within_budget(bayeux, messages, exchange, size):
        rest = _begin(bayeux, messages, exchange, is_late)
    if rest is not None:
        return rest.wait()
    _end(bayeux, exchange)
    return None


def _check_speaker(bayeux: Bayeux, messages: Sequence[Json]) -> None:
    """Refuse requests of unknown pages, except for sessions that a known page created.

    Another page cannot know the id of such a session; a handshake would need no id.
    """
    session = bayeux.identities.by_id(messages[0].get("clientId"))
    is_vouched_for = session is not None and session.identity.is_of_page
    if not is_vouched_for or any(message.get("channel") == _HANDSHAKE for message in messages):
        raise RequestRefused(ErrorReply.ORIGIN_DENIED)


def _without_credentials(message: Json) -> Json:
    """Refuse a message with credentials in its URL: proxies and servers log URLs."""
    if "authentication" in ext_of(message):
        return Unfit(message, ErrorReply.CREDENTIALS_IN_URL)
    return message


def _begin(
    bayeux: Bayeux, messages: Sequence[Json], exchange: Exchange, is_late: bool
) -> RemainingMessages | None:
    if len(messages) > 1:
        rest = RemainingMessages(messages, exchange)
        return None if not is_late and rest.handle_some(bayeux) else rest
    if not is_late and not _is_busy(exchange) and _handle(bayeux, messages[0], exchange):
        return None
    return RemainingMessages(messages, exchange)


def _is_within_budget(
    bayeux: Bayeux, messages: Sequence[Json], exchange: Exchange, size: int
) -> bool:
    """Return whether the caller's budgets allow the request. If not, refuse all its messages."""
    refused = bayeux.state.budgets.spend_request(exchange, size)
    if refused is None:
        return True
    for message in messages:
        reply = skeleton(message)
        _refuse(bayeux, refused, exchange=exchange, message=message, reply=reply)
        exchange.replies.append(encode_reply(reply))
    return False


def _end(bayeux: Bayeux, exchange: Exchange) -> None:
    """Answer a handled request, unless replies are pending or the connect is held."""
    session = exchange.session
    is_held = session is not None and session.held_connect is exchange
    if exchange.waits_for_store and (is_held or exchange.pending_replies):
        # The store gets the refusals in the meantime, so they delay the response no longer.
        bayeux.state.store.after(exchange.store_has_it)
    if is_held:
        return
    if session is not None and (not exchange.has_connect or exchange.pending_replies):
        # After a connect, the session's timeout starts with the reply.
        bayeux.life.clock.touch(session, exchange.now)
    if not exchange.pending_replies:
        bayeux.life.answers.complete(exchange, exchange.now)


def _handshake_first(messages: Sequence[Json]) -> Sequence[Json]:
    """Move the handshake to the front. The messages that come with it are refused."""
    handshake = next(message for message in messages if message.get("channel") == _HANDSHAKE)
    return [handshake, *(message for message in messages if message is not handshake)]


def _refuse_companions(bayeux: Bayeux, messages: Sequence[Json], exchange: Exchange) -> None:
    refused = Refused(ErrorReply.HANDSHAKE_BATCHED)
    for message in messages:
        reply = skeleton(message)
        refused.fill(reply, bayeux.state.counters.errors)
        bayeux.state.note_refused(message, refused.error)
        exchange.replies.append(encode_reply(reply))


def _handle(bayeux: Bayeux, message: Json, exchange: Exchange) -> bool:
    """Answer a message. Returns False if the turn is over; then call it again in a later turn."""
    reply = skeleton(message)
    try:
        channel = validate(bayeux.state, message)
        if message["channel"] == _HANDSHAKE:
            is_complete = _handshake(bayeux, message, exchange, reply)
        else:
            is_complete = _carry_out(
                bayeux, channel, message=message, exchange=exchange, reply=reply
            )
    except TurnOver:
        return False
    except Undecided as undecided:
        questions = bayeux.state.questions
        if questions is not None and questions.holds(exchange, undecided, message):
            return False
        _refuse(bayeux, undecided, exchange=exchange, message=message, reply=reply)
        is_complete = True
    except Refused as refused:
        _refuse(bayeux, refused, exchange=exchange, message=message, reply=reply)
        is_complete = True
    except BaseException:
        # Operators' services and policies may fail or try to end the program. Other clients must
        # not be affected.
        bayeux.state.log.exception("a message could not be handled")
        Refused(ErrorReply.SERVER_FAULT).fill(reply, bayeux.state.counters.errors)
        is_complete = True
    exchange.progress = None
    exchange.has_passed = False
    if is_complete:
        place = len(exchange.replies)
        exchange.replies.append(
            finish(message, exchange, reply=reply, now=exchange.now, place=place)
        )
    return True


def _refuse(
    bayeux: Bayeux, refused: Refused, *, exchange: Exchange, message: Json, reply: Json
) -> None:
    refused.fill(reply, bayeux.state.counters.errors)
    bayeux.state.note_refused(message, refused.error)
    session = exchange.session
    if refused.advice and session is not None:
        reply["advice"] = {**session_advice(session, bayeux.state.options), **refused.advice}
        # It applies to one connect. The next one gets the usual advice again.
        session.is_advised = False


def _handshake(bayeux: Bayeux, message: Json, exchange: Exchange, reply: Json) -> bool:
    """Return whether the reply is complete; asynchronous extensions may still work on it."""
    # Before the shared capacity, which one caller must not use up.
    bayeux.state.budgets.spend_handshake(exchange.speaker.caller, exchange.now)
    bayeux.identities.choose_browser(exchange)
    check_capacity(bayeux.state, bayeux.slots, message, exchange.now)
    handshake = Handshake(
        bayeux.life,
        bayeux.slots,
        claims=bayeux.claims,
        exchange=exchange,
        message=message,
        reply=reply,
    )
    if handshake.start(exchange.now):
        return True
    handshake.fulfil = begin_pending(bayeux.life.answers, message, exchange, reply)
    return False


def _carry_out(
    bayeux: Bayeux, channel: Channel, *, message: Json, exchange: Exchange, reply: Json
) -> bool:
    """Return whether the reply is complete. The reply to a connect still waits for messages."""
    session = exchange.session
    if session is None or message.get("clientId") != session.client_id or session.has_left:
        raise _unknown(bayeux, message, exchange)
    before, caller = session.caller, exchange.speaker.caller
    session.caller = caller
    if before is NO_CALLER and caller.network:
        # Until now, a restored session counted for no address.
        bayeux.state.sessions.usages.add(session)
    if not exchange.has_passed:
        if exchange.progress is None:
            if caller.network and channel.kind is not _META:
                bayeux.state.budgets.spend_publish(session, exchange.now)
            if _waits_too_much(bayeux, session, channel):
                raise _congested(bayeux)
            ext = message.get("ext")
            exchange.client_verdicts = (
                bayeux.ext_reader.read(session, channel, message, exchange.now) if ext else SILENT
            )
        if exchange.client_verdicts.verdicts:
            note_never_sent(session, exchange.client_verdicts.verdicts, reply)
        if session.extensions:
            _pass(bayeux, message, exchange, session)
        exchange.has_passed = True
    if channel.kind is not _META:
        return bayeux.publish_handler.publish(
            exchange, session, channel=channel, message=message, reply=reply
        )
    return _carry_out_meta(bayeux, exchange, session=session, message=message, reply=reply)


def _waits_too_much(bayeux: Bayeux, session: Session, channel: Channel) -> bool:
    """Return whether too many replies wait for the store, or for other shards."""
    is_stored = session.terms is not None or session.is_durable
    if is_stored and bayeux.life.undelivered.is_congested:
        return True
    may_wait = is_stored or channel.kind is _META
    return may_wait and unstored_replies(session) >= _MOST_DELAYED


def _pass(bayeux: Bayeux, message: Json, exchange: Exchange, session: Session) -> None:
    """Apply the verdicts in a message, then run the extensions on it. Raises `Refused`."""
    if session.terms is not None:
        # Before acks, because a verdict on one message takes precedence over the ack of its batch.
        bayeux.verdicts.apply_of_message(exchange, session, message)
    run_incoming(session, message, exchange.now, notices=bayeux.state.notices)
    if session.has_left:
        raise _unknown(bayeux, message, exchange)


def _carry_out_meta(
    bayeux: Bayeux, exchange: Exchange, *, session: Session, message: Json, reply: Json
) -> bool:
    """Return whether the reply is complete. A refused message has no effect."""
    # Handlers are never looked up by a name that a client chose.
    match message["channel"]:
        case "/meta/connect":
            return connect(bayeux.life, exchange, session=session, message=message, reply=reply)
        case "/meta/subscribe":
            return bayeux.subscribe_handler.subscribe(exchange, session, message, reply)
        case "/meta/unsubscribe":
            return bayeux.subscribe_handler.unsubscribe(exchange, session, message, reply)
        case "/meta/disconnect":
            return disconnect(bayeux.life, exchange, session=session, message=message, reply=reply)
        case _:
            raise Refused(ErrorReply.NOT_SUPPORTED, message["channel"])


def _congested(bayeux: Bayeux) -> Refused:
    """Return the refusal of a message whose settlements could not be stored now."""
    advice = {"reconnect": "retry", "interval": milliseconds(bayeux.state.admission.delay_s())}
    return Refused(ErrorReply.STORE_UNAVAILABLE, NO_CONNECTION.text, advice=advice)


def _unknown(bayeux: Bayeux, message: Json, exchange: Exchange) -> Refused:
    client_id = message.get("clientId")
    bayeux.identities.check_id(client_id, exchange)
    error = bayeux.identities.why_unknown(client_id, exchange)
    # A new browser may hold a connect over HTTP for a session whose socket came too late. Only this
    # reply tells it soon that it must handshake again.
    is_late = bayeux.identities.is_missed_by(exchange, client_id)
    if message["channel"] == _CONNECT or is_late or error is ErrorReply.SESSION_TAKEN:
        return unknown_session(bayeux.state, exchange, error)
    return Refused(error, *missing_in(error))
