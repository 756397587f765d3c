"""What becomes of a request: its messages, each checked, handled, answered in order."""

from collections.abc import Sequence
from typing import Protocol

from app.bayeux.advice import milliseconds, session_advice
from app.bayeux.codec import Json, decode, encode_reply
from app.bayeux.connect import connect, unknown_session
from app.bayeux.disconnect import disconnect
from app.bayeux.errors import BayeuxError, Refused, RequestRefused
from app.bayeux.exchange import Exchange, Pipe, Source
from app.bayeux.extension_chain import run_incoming
from app.bayeux.handshake import Handshake, check_capacity
from app.bayeux.life import State
from app.bayeux.owing import finish, owe
from app.bayeux.publish import publish
from app.bayeux.reading import read_ext
from app.bayeux.server import Bayeux
from app.bayeux.sessions import Session
from app.bayeux.subscribe import subscribe, unsubscribe
from app.bayeux.unfinished import Unfinished
from app.bayeux.unfit import Unfit
from app.delivery.channels import Channel, Kind
from app.delivery.error_codes import NO_CONNECTION
from app.delivery.verdicts import SILENT

_HANDSHAKE = "/meta/handshake"
_CONNECT = "/meta/connect"
_GONE, _META = State.GONE, Kind.META
_LEFT = (State.GONE, State.AWAY)
_UNKNOWN = Source.UNKNOWN
_NUMBER = (int, float)
# Bytes; reading fewer takes a small part of a turn.
_LONG = 65_536
_OBJECT_OR_NULL = (dict, type(None))
# Instead of the extension that goes on with a message: none, it has been handled.
_DONE = -1


class MetaHandler(Protocol):
    """Carries out a meta message of a living session, or raises `Refused` and changes nothing.

    Whether the reply is complete is returned.
    """

    def __call__(
        self, bayeux: Bayeux, exchange: Exchange, session: Session, message: Json, reply: Json, /
    ) -> bool: ...


# An explicit list: a handler is never found by a name that a client made up.
_HANDLERS: dict[str, MetaHandler] = {
    _CONNECT: connect,
    "/meta/subscribe": subscribe,
    "/meta/unsubscribe": unsubscribe,
    "/meta/disconnect": disconnect,
}


class Rest:
    """Messages of a request that are handled in order, in as many turns as that takes.

    Requests of one session are handled one after the other, in the order in which they came: so
    receivers get what it publishes in order, however many requests it is in.
    """

    __slots__ = ("_begin", "_exchange", "_follows_handshake", "_messages", "_place", "_session")

    def __init__(self, messages: Sequence[Json], exchange: Exchange, begin: int = 0) -> None:
        self._exchange = exchange
        self._messages = messages
        self._follows_handshake = messages[0].get("channel") == _HANDSHAKE
        # The next message, and the first of its session's extensions that is to see it.
        self._place, self._begin = 0, begin
        # Whose later requests wait for this one.
        self._session: Session | None = None

    def wait(self) -> "Rest":
        """There is more to do in a later turn: until then a reply is owed."""
        exchange = self._exchange
        exchange.owed += 1
        self._session = session = exchange.session
        if session is not None:
            exchange.client_id = session.client_id
            session.unfinished = (*session.unfinished, exchange)
        return self

    def go_on(self, bayeux: Bayeux, now: float) -> bool:
        """Handle what this turn has time for; whether that was all."""
        exchange = self._exchange
        bayeux.now, bayeux.present = now, exchange
        is_done = True
        try:
            is_done = self.handle_some(bayeux)
        finally:
            bayeux.present = None
            if is_done:
                self._let_others_go_on(bayeux)
        if is_done:
            exchange.owed -= 1
            _end(bayeux, exchange)
        return is_done

    def _let_others_go_on(self, bayeux: Bayeux) -> None:
        session = self._session
        if session is not None:
            session.unfinished = tuple(
                [each for each in session.unfinished if each is not self._exchange]
            )
            if session.queue.count:
                # What came meanwhile was not handed over.
                bayeux.hub.make_ready(session)

    def handle_some(self, bayeux: Bayeux) -> bool:
        """At least one message, unless its session is busy; whether none is left."""
        messages, exchange = self._messages, self._exchange
        while self._place < len(messages):
            if _is_busy(exchange):
                return False
            message = messages[self._place]
            if self._place and self._follows_handshake:
                _refuse_companion(message, exchange)
            else:
                self._begin = _handle(bayeux, message, exchange, self._begin)
                if self._begin != _DONE:
                    return False
                self._begin = 0
            self._place += 1
            if self._place < len(messages) and bayeux.is_turn_over():
                return False
        return True


def _is_busy(exchange: Exchange) -> bool:
    """Whether another request of its session has come before and not been handled to its end."""
    session = exchange.session
    return (
        session is not None and bool(session.unfinished) and session.unfinished[0] is not exchange
    )


def receive(bayeux: Bayeux, body: bytes, exchange: Exchange, now: float) -> Rest | None:
    """Do what a request asks for; its exchange is answered now or later.

    What this turn has no time for is returned: it is to go on in the next one.
    Raises `RequestRefused`, before anything is done, if the bytes are no messages, or if nobody
    knows whose they are.
    """
    messages: Sequence[Json] = decode(body, bayeux.options.request_limits)
    if exchange.source is _UNKNOWN:
        _check_source(bayeux, messages)
    # To write what took a turn to read takes nearly as long: that has a turn of its own.
    is_late = len(body) > _LONG and bayeux.is_turn_over()
    bayeux.now, bayeux.present = now, exchange
    if len(messages) > 1:
        exchange.is_alone = False
        if any(message.get("channel") == _HANDSHAKE for message in messages):
            messages = _handshake_first(messages)
    exchange.session = _find_session(bayeux, messages[0], exchange)
    rest = None
    if not exchange.caller.network or _is_within_budget(bayeux, messages, exchange, len(body)):
        rest = _begin(bayeux, messages, exchange, is_late)
    bayeux.present = None
    if rest is not None:
        return rest.wait()
    _end(bayeux, exchange)
    return None


def _check_source(bayeux: Bayeux, messages: Sequence[Json]) -> None:
    """Where nobody knows what page sent a request, it is for a session that a known page made.

    Another page cannot know the id of that session, and a handshake needs none.
    """
    session = bayeux.identities.said(messages[0].get("clientId"))
    is_vouched_for = session is not None and session.is_of_page
    if not is_vouched_for or any(message.get("channel") == _HANDSHAKE for message in messages):
        raise RequestRefused(BayeuxError.ORIGIN_DENIED)


def _begin(
    bayeux: Bayeux, messages: Sequence[Json], exchange: Exchange, is_late: bool
) -> Rest | None:
    if len(messages) > 1:
        rest = Rest(messages, exchange)
        return None if not is_late and rest.handle_some(bayeux) else rest
    begin = 0
    if not is_late and not _is_busy(exchange):
        begin = _handle(bayeux, messages[0], exchange, 0)
        if begin == _DONE:
            return None
    return Rest(messages, exchange, begin)


def _is_within_budget(
    bayeux: Bayeux, messages: Sequence[Json], exchange: Exchange, size: int
) -> bool:
    """Whether the request costs its client no more than is left; else all messages are refused."""
    refused = bayeux.budgets.spend_request(exchange, size)
    if refused is None:
        return True
    for message in messages:
        reply = _skeleton(message)
        _refuse(bayeux, refused, exchange, reply)
        exchange.replies.append(encode_reply(reply))
    return False


def _end(bayeux: Bayeux, exchange: Exchange) -> None:
    """All messages were handled: what is not owed is answered, unless it is held."""
    session = exchange.session
    if session is not None and session.held is exchange:
        return
    if session is not None and (exchange.connect is None or exchange.owed):
        # After a connect its time runs from the answer on.
        bayeux.clock.touch(session)
    if not exchange.owed:
        bayeux.answers.complete(exchange)


def _find_session(bayeux: Bayeux, first: Json, exchange: Exchange) -> Session | None:
    """Whose request this is: asked once, of its first message."""
    if first.get("channel") == _HANDSHAKE:
        return None
    if exchange.pipe is not None:
        return _find_session_of_pipe(bayeux, first, exchange, exchange.pipe)
    return bayeux.identities.find(first.get("clientId"), exchange)


def _find_session_of_pipe(
    bayeux: Bayeux, first: Json, exchange: Exchange, pipe: Pipe
) -> Session | None:
    """A connection stays with its session, until that is gone or a connect names another."""
    bound, client_id = pipe.session, first.get("clientId")
    if bound is not None and bound.state is not _GONE:
        if client_id == bound.client_id:
            # A late message on an old connection does not take the session back from a new one.
            if bound.pipe is None:
                bayeux.attach(pipe, bound)
            return bound
        if first.get("channel") != _CONNECT:
            return None
    if bayeux.options.ws_require_handshake_per_connection:
        return None
    session = bayeux.identities.find(client_id, exchange)
    if session is not None:
        bayeux.attach(pipe, session)
    return session


def _handshake_first(messages: Sequence[Json]) -> Sequence[Json]:
    """A handshake is answered, first of all; what came along with it has no effect."""
    handshake = next(message for message in messages if message.get("channel") == _HANDSHAKE)
    return [handshake, *(message for message in messages if message is not handshake)]


def _refuse_companion(message: Json, exchange: Exchange) -> None:
    reply = _skeleton(message)
    Refused(BayeuxError.HANDSHAKE_BATCHED).fill(reply)
    exchange.replies.append(encode_reply(reply))


def _handle(bayeux: Bayeux, message: Json, exchange: Exchange, begin: int) -> int:
    """Answer a message; if there was no time for all of it, say which extension goes on with it."""
    reply = _skeleton(message)
    try:
        channel = _validate(bayeux, message)
        if message["channel"] == _HANDSHAKE:
            is_complete = _handshake(bayeux, message, exchange, reply)
        else:
            is_complete = _carry_out(bayeux, channel, message, exchange, reply, begin)
    except Unfinished as unfinished:
        return _resumes_at(exchange, unfinished)
    except Refused as refused:
        _refuse(bayeux, refused, exchange, reply)
        is_complete = True
    except BaseException:
        # A service or a policy of the operator's failed, or tried to end the program, which is not
        # its to end: nobody else must suffer for it.
        bayeux.log.exception("a message could not be handled")
        Refused(BayeuxError.SERVER_FAULT).fill(reply)
        is_complete = True
    exchange.progress = None
    if is_complete:
        exchange.replies.append(finish(bayeux, message, exchange, reply))
    return _DONE


def _refuse(bayeux: Bayeux, refused: Refused, exchange: Exchange, reply: Json) -> None:
    refused.fill(reply)
    session = exchange.session
    if refused.advice and session is not None:
        reply["advice"] = {**session_advice(session, bayeux.options), **refused.advice}
        # It holds for this time: the next connect tells the usual one again.
        session.is_advised = False


def _resumes_at(exchange: Exchange, unfinished: Unfinished) -> int:
    """Which of its session's extensions goes on with the message; past the last, its handler."""
    session = exchange.session
    if session is None:
        return 0
    place = unfinished.extension
    return len(session.extensions) if place is None else place


def _validate(bayeux: Bayeux, message: Json) -> Channel:
    """What is wrong with a message by itself; comes before the question who sent it."""
    if isinstance(message, Unfit):
        raise Refused(message.fault)
    name = message.get("channel")
    channel = bayeux.channels.get(name) if type(name) is str else None
    if channel is None:
        missing = name is None
        raise Refused(BayeuxError.CHANNEL_MISSING if missing else BayeuxError.CHANNEL_INVALID)
    message_id = message.get("id")
    if type(message_id) is str:
        if not (message_id.isalnum() and message_id.isascii()):
            raise Refused(BayeuxError.MESSAGE_ID_INVALID)
    elif message_id is not None and (type(message_id) is not int or message_id < 0):
        raise Refused(BayeuxError.MESSAGE_ID_INVALID)
    if "ext" in message and type(message["ext"]) not in _OBJECT_OR_NULL:
        raise Refused(BayeuxError.EXT_INVALID)
    if "advice" in message and type(message["advice"]) not in _OBJECT_OR_NULL:
        raise Refused(BayeuxError.ADVICE_INVALID)
    return channel


def _handshake(bayeux: Bayeux, message: Json, exchange: Exchange, reply: Json) -> bool:
    """Whether the reply is complete; if not, it is owed until an extension has taken its time."""
    # What is refused to one must not use up what all may have.
    bayeux.budgets.spend_handshake(exchange.caller)
    check_capacity(bayeux, message)
    handshake = Handshake(bayeux, exchange, message, reply)
    if handshake.start():
        return True
    handshake.fulfil = owe(bayeux, message, exchange, reply)
    return False


def _carry_out(
    bayeux: Bayeux,
    channel: Channel,
    message: Json,
    exchange: Exchange,
    reply: Json,
    begin: int,
) -> bool:
    """Whether the reply is complete; a connect's is when it is known what travels with it."""
    session = exchange.session
    if session is None or message.get("clientId") != session.client_id or session.state in _LEFT:
        raise _unknown(bayeux, message, exchange)
    caller = session.caller = exchange.caller
    if exchange.progress is None:
        if caller.network and channel.kind is not _META:
            bayeux.budgets.spend_publish(session)
        if (session.terms is not None or session.is_durable) and bayeux.exits.is_crowded:
            raise _crowded(bayeux)
        ext = message.get("ext")
        exchange.said = read_ext(bayeux, session, channel, message) if ext else SILENT
    if session.extensions:
        run_incoming(session, message, bayeux.now, begin, notices=bayeux.notices)
        if session.state in _LEFT:
            raise _unknown(bayeux, message, exchange)
    if channel.kind is not _META:
        return publish(bayeux, exchange, session, channel, message, reply)
    handler = _HANDLERS.get(message["channel"])
    if handler is None:
        raise Refused(BayeuxError.CHANNEL_CREATE_DENIED, "denied_by_security_policy")
    return handler(bayeux, exchange, session, message, reply)


def _crowded(bayeux: Bayeux) -> Refused:
    """What cannot be written down must not happen: nothing is settled, the client comes back."""
    advice = {"reconnect": "retry", "interval": milliseconds(bayeux.admission.delay_s())}
    return Refused(BayeuxError.STORE_UNAVAILABLE, NO_CONNECTION.text, advice=advice)


def _unknown(bayeux: Bayeux, message: Json, exchange: Exchange) -> Refused:
    # A newcomer whose socket came too late may have a connect held over HTTP: nothing else would
    # tell it soon that only a new handshake helps.
    is_late = bayeux.identities.is_missed_by(exchange, message.get("clientId"))
    if message["channel"] == _CONNECT or is_late:
        return unknown_session(bayeux, exchange, message)
    return Refused(BayeuxError.SESSION_UNKNOWN)


def _skeleton(message: Json) -> Json:
    """What every reply repeats of its message."""
    channel, message_id = message.get("channel"), message.get("id")
    reply: Json = {"channel": channel} if type(channel) is str else {}
    if type(message_id) is str:
        reply["id"] = message_id
    elif type(message_id) in _NUMBER:
        reply["id"] = str(message_id)
    if "subscription" in message and message["subscription"] is not None:
        reply["subscription"] = message["subscription"]
    return reply
