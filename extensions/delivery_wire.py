"""`ext.delivery` on the wire: verdicts of receivers, their terms, and the delivery data of events.

A client asks for this at handshake with `ext.delivery: true` or with options. From then on the
server sends events only with connect replies, with `ext.delivery` in each. Verdicts come in
`ext.delivery.verdicts` of any message, or in the data of a publish to `/service/delivery`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, ClassVar

import orjson

from holdfast.bayeux.api import ServerApi
from holdfast.bayeux.extending.base import ServerExtension, SessionExtension
from holdfast.bayeux.meta.reading import most_verdicts, verdicts_of
from holdfast.bayeux.session import Session
from holdfast.bayeux.state.subscription_details import known_details
from holdfast.bayeux.wire.codec import Json
from holdfast.bayeux.wire.errors import PAGE, ErrorReply, Refused, anchor_of
from holdfast.bayeux.wire.terms import Terms, TermsInvalid, asks_for_terms, check_names
from holdfast.delivery.basics.channels import canonical
from holdfast.delivery.basics.json_text import to_json
from holdfast.delivery.basics.node import Node
from holdfast.delivery.messages.batch import Batch
from holdfast.delivery.messages.entries import SettledBy
from holdfast.delivery.messages.message import Event, Message
from holdfast.delivery.messages.verdicts import SILENT, Unreadable, read_client_verdicts

SERVICE = "/service/delivery"
_HANDSHAKE = "/meta/handshake"
# An event is what all receivers share (its start), then what differs. `_LIFE` is in few events.
_EVENT = b'%b"seq":%d,"queue":{"index":%d,"size":%d}%b}}}'
_LIFE = b',"expiration":{"lifeTime":%d,"remainingLife":%d}'
# An event without this has no `ext`.
_EXT = b'"ext"'
_START = (
    b'%b,"ext":{"delivery":{"id":%b-%d","state":"OK","sender":%b,"rcvTimestamp":"%d","priority":%d,'
)


class DeliveryWire(ServerExtension):
    """Negotiates verdicts and terms.

    Args:
        docs: The URL of the documentation, in which replies name the page of their error, as
            `ext.see`. Empty if there is none.
    """

    owns: ClassVar[frozenset[str]] = frozenset({"delivery"})

    def __init__(self, server: ServerApi, docs: str = "") -> None:
        self._server = server
        self._session_extension = _DeliveryWireOfSession(docs and docs + PAGE)
        self._decorators = (DeliveryDecorator(server.node),)
        server.services.add(SERVICE, server.judge_by_call)

    def check(self, message: Json) -> None:
        if canonical(message["channel"]) == SERVICE:
            # Unreadable verdicts refuse the whole message, so its `ext` must have no effect either.
            verdicts_of(self._server.options, message.get("data", []))

    def negotiate(
        self, session: Session, handshake: Json, reply: Json, now: float
    ) -> SessionExtension | None:
        ext = handshake.get("ext") or {}
        if not asks_for_terms(ext):
            return None
        asked = ext["delivery"]
        try:
            check_names(asked)
            terms = Terms.of(True if asked == "true" else asked)
            most = most_verdicts(self._server.options)
            said = read_client_verdicts(asked, most) if type(asked) is dict else SILENT
        except (TermsInvalid, Unreadable) as invalid:
            error = ErrorReply.DELIVERY_INVALID
            raise Refused(error, "user.illegalArgument", str(invalid)) from invalid
        # The session is new, so nothing is in flight.
        self._server.ignore_verdicts(len(said.verdicts))
        most = self._server.options.max_sessions_per_subject
        terms = replace(terms, max_sessions=min(terms.max_sessions, most))
        if terms.subject is not None:
            self._check_name(session, terms, handshake)
        terms = self._with_timeout(session, terms, handshake)
        self._server.agree(session, terms, acks=session.queue.settling is SettledBy.BATCH)
        session.decorators = self._decorators
        return self._session_extension

    def resume(self, session: Session, now: float) -> SessionExtension | None:
        if session.terms is None:
            return None
        session.decorators = self._decorators
        return self._session_extension

    def _with_timeout(self, session: Session, terms: Terms, handshake: Json) -> Terms:
        """Limit the requested session timeout to the server's, or the policy's."""
        rights, granted_s = self._server.rights, None
        if terms.subject is not None:
            granted_s = rights.longest_timeout_s(session, terms.subject, terms.number, handshake)
        if granted_s is None:
            return terms.waiting_at_most(self._server.options.max_session_timeout_s)
        return replace(terms.waiting_at_most(granted_s), is_granted=True)

    def _check_name(self, session: Session, terms: Terms, handshake: Json) -> None:
        server, subject = self._server, terms.subject or ""
        server.rights.check_name(session, subject, terms.number, handshake)
        is_named = terms.is_named
        session.go_by(terms.key if is_named else f"{subject}/-{session.number}")


class _DeliveryWireOfSession(SessionExtension):
    """Sends a new client its terms, and the pages of errors. The core applies verdicts first."""

    def __init__(self, errors: str) -> None:
        self._errors = errors

    def outgoing(
        self,
        session: Session,
        reply: Json,
        asked: Mapping[str, Any],
        now: float,
        *,
        batch: Batch | None,
    ) -> None:
        if reply.get("channel") == _HANDSHAKE and session.terms is not None:
            agreed = session.terms.to_json()
            agreed["session"] = {**agreed.get("session", {}), "name": session.name}
            agreed["dispatcherActive"] = session.dispatcher is None or session.dispatcher.is_active
            agreed["resumed"] = session.is_resumed
            agreed["waiting"] = session.queue.count
            details = known_details(session)
            if details is not None and details.lost:
                agreed["lostSubscriptions"] = list(details.lost)
                details.lost = dict.fromkeys(details.lost, True)
            reply.setdefault("ext", {})["delivery"] = agreed
        elif self._errors and "error" in reply:
            see = self._errors + anchor_of(reply["error"])
            reply["ext"] = {**reply.get("ext", {}), "see": see}


# The delivery data of events


class DeliveryDecorator:
    """Adds delivery data to events; the part that all receivers share is made once per message."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def decorate(self, session: Session, batch: Batch, events: Sequence[Event]) -> Sequence[Event]:
        subscriptions, size, counts = session.subscriptions, batch.size, batch.redelivered
        has_secret = session.terms is not None and session.terms.secret is not None
        decorated = []
        for place, message in enumerate(batch.messages):
            channel = message.channel
            redelivered = 0 if counts is None else counts[place]
            is_usual = not (redelivered or has_secret) and message.life_ms is None
            if is_usual and channel in subscriptions:
                own = _subscription(channel)
            else:
                own = self._own(session, message, redelivered)
            start = message.event_start or self._start(message)
            decorated.append(Event(_EVENT % (start, batch.seq + place, place, size, own)))
        return decorated

    def _own(self, session: Session, message: Message, redelivered: int) -> bytes:
        """Return the fields that differ from receiver to receiver."""
        own = _subscription(session.subscription(message.channel))
        has_secret = session.terms is not None and session.terms.secret is not None
        if redelivered or message.life_ms is not None or has_secret:
            own += self._rarely(session, message, redelivered)
        return own

    def _rarely(self, session: Session, message: Message, redelivered: int) -> bytes:
        """Return the receiver's fields that few events have."""
        own = b',"redelivered":%d' % redelivered if redelivered else b""
        if session.terms is not None and session.terms.secret is not None:
            own += b',"cbSessionId":' + orjson.dumps(session.terms.secret)
        if message.life_ms is not None:
            left = message.life_ms - (self._node.now_ms() - message.id // 1_000_000)
            own += _LIFE % (message.life_ms, max(left, 0))
        return own

    def _start(self, message: Message) -> bytes:
        """Return the part of the event that all receivers share, cached in the message."""
        if message.event_start is None:
            is_plain = _EXT not in message.wire and message.properties is None
            if is_plain and not (message.generation or message.is_initial):
                message.event_start = self._plain_start(message)
            else:
                message.event_start = self._parsed_start(message)
        return message.event_start

    def _plain_start(self, message: Message) -> bytes:
        """Return the start of the usual event, unparsed: a queue may hold ten thousand events."""
        sender, number = _json_of(message.sender), message.id
        fields = (message.wire[:-1], _json_of(self._node.deployment)[:-1], number, sender, number)
        return _START % (*fields, message.priority)

    def _parsed_start(self, message: Message) -> bytes:
        """Return the start of an event that may already have an `ext`."""
        event = orjson.loads(message.wire)
        ext = event.pop("ext", {})
        # The server's own events may have another state.
        shared = {"state": "OK"} | ext.pop("delivery", {})
        shared |= {
            "id": self._node.id_of(message.id),
            "sender": message.sender,
            "rcvTimestamp": str(message.id),
            "priority": message.priority,
        }
        if message.properties is not None:
            shared["properties"] = message.properties
        if message.generation:
            shared["generation"] = message.generation
        if message.is_initial:
            shared["initial"] = True
        others = b"".join(
            (orjson.dumps(key) + b":" + to_json(value) + b"," for key, value in ext.items())
        )
        head, tail = to_json(event)[:-1], to_json(shared)[:-1]
        return b"".join((head, b',"ext":{', others, b'"delivery":', tail, b","))


@lru_cache(maxsize=1000)
def _json_of(name: str) -> bytes:
    """Return the name in JSON; cached because names repeat."""
    return orjson.dumps(name)


@lru_cache(maxsize=1000)
def _subscription(pattern: str | None) -> bytes:
    """Return the field that names the matching subscription; cached because patterns repeat."""
    return b"" if pattern is None else b',"subscription":' + orjson.dumps(pattern)
