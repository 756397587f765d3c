"""Verdicts: what a receiver says of each message, and what it is told of each message.

The handshake asks with `ext.delivery: true`, or with options. From then on events travel on
connect replies alone and carry `ext.delivery`; verdicts come in `ext.delivery.verdicts` of any
message of the client, or as the data of a publish to `/service/delivery`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, ClassVar

import orjson

from app.bayeux.codec import Json
from app.bayeux.errors import BayeuxError, Refused
from app.bayeux.extension import ServerExtension, SessionExtension
from app.bayeux.reading import most_verdicts, verdicts_of
from app.bayeux.server import Bayeux
from app.bayeux.services import Call
from app.bayeux.sessions import Session
from app.bayeux.terms import Terms, TermsInvalid, check_names
from app.bayeux.unfinished import Unfinished
from app.delivery.entries import Entry, Settling
from app.delivery.json_text import to_json
from app.delivery.messages import Event, Message
from app.delivery.node import Node
from app.delivery.verdicts import SILENT, Unreadable, Verdict, read_said

SERVICE = "/service/delivery"
_HANDSHAKE = "/meta/handshake"
_MANY = 1000
# What all receivers are told, then what is this one's own: in every event, and in some.
_EVENT = b'%b"seq":%d,"queue":{"index":%d,"size":%d}%b}}}'
_LIFE = b',"expiration":{"lifeTime":%d,"remainingLife":%d}'


class Delivery(ServerExtension):
    """Agrees on verdicts, and on whose session it is."""

    owns: ClassVar[frozenset[str]] = frozenset({"delivery"})

    def __init__(self, bayeux: Bayeux) -> None:
        self._bayeux = bayeux
        self._session_extension = _DeliveryOfSession(bayeux)
        self._dress = Dress(bayeux.node)
        bayeux.services.add(SERVICE, self._take_verdicts)

    def check(self, message: Json) -> None:
        name = message["channel"]
        if name.startswith(SERVICE) and self._bayeux.channels.named(name).name == SERVICE:
            # What stands in `ext` has no effect either if the verdicts here cannot be read.
            verdicts_of(self._bayeux, _listed(message.get("data", [])))

    def negotiate(
        self, session: Session, handshake: Json, reply: Json, now: float
    ) -> SessionExtension | None:
        ext = handshake.get("ext") or {}
        asked = ext.get("delivery")
        if asked is None or asked is False or asked == "false":
            return None
        try:
            check_names(asked)
            terms = Terms.of(True if asked == "true" else asked)
            said = read_said(asked, most_verdicts(self._bayeux)) if type(asked) is dict else SILENT
        except (TermsInvalid, Unreadable) as invalid:
            error = BayeuxError.DELIVERY_INVALID
            raise Refused(error, "user.illegalArgument", str(invalid)) from invalid
        # Its session has nothing in hands yet.
        self._bayeux.hub.counters.verdicts_unknown += len(said.verdicts)
        most = self._bayeux.options.max_sessions_per_subject
        terms = replace(terms, max_sessions=min(terms.max_sessions, most))
        if terms.subject is not None:
            self._check_name(session, terms, handshake)
        terms = self._with_timeout(session, terms, handshake)
        self._bayeux.agree(session, terms, acks=session.queue.settling is Settling.BATCH)
        session.dress = self._dress
        return self._session_extension

    def resume(self, session: Session, now: float) -> SessionExtension | None:
        if session.terms is None:
            return None
        session.dress = self._dress
        return self._session_extension

    def _with_timeout(self, session: Session, terms: Terms, handshake: Json) -> Terms:
        """Nobody keeps a place for longer than the server, or its policy, lets it."""
        rights, granted_s = self._bayeux.rights, None
        if terms.subject is not None:
            granted_s = rights.longest_timeout_s(session, terms.subject, terms.number, handshake)
        if granted_s is None:
            return terms.waiting_at_most(self._bayeux.options.max_session_timeout_s)
        return replace(terms.waiting_at_most(granted_s), is_granted=True)

    def _check_name(self, session: Session, terms: Terms, handshake: Json) -> None:
        bayeux, subject = self._bayeux, terms.subject or ""
        bayeux.rights.check_name(session, subject, terms.number, handshake)
        is_named = terms.is_named
        session.go_by(terms.key if is_named else f"{subject}/-{session.number}")

    def _take_verdicts(self, call: Call) -> None:
        if call.session.terms is None:
            # Nobody told it what to give verdicts on.
            raise Refused(BayeuxError.DELIVERY_INVALID, "user.illegalArgument", "verdicts")
        present = self._bayeux.present
        is_new = present is None or present.progress is None
        verdicts = verdicts_of(self._bayeux, _listed(call.data)) if is_new else ()
        self._bayeux.budgets.spend_letters(call.session, verdicts)
        call.is_kept = call.session.is_durable
        _judge(self._bayeux, call.session, verdicts, self._bayeux.now)


class _DeliveryOfSession(SessionExtension):
    """Keeps nothing itself: the entries are in the session's queue."""

    def __init__(self, bayeux: Bayeux) -> None:
        self._bayeux = bayeux

    def incoming(self, session: Session, message: Json, now: float) -> bool:
        present = self._bayeux.present
        said = SILENT if present is None else present.said
        if said.verdicts:
            _judge(self._bayeux, session, said.verdicts, now)
        if message["channel"] == "/meta/connect" and (said.pending or session.queue.has_pending):
            session.queue.keep_pending(said.pending)
        return True

    def outgoing(self, session: Session, reply: Json, asked: Mapping[str, Any], now: float) -> None:
        if reply.get("channel") == _HANDSHAKE and session.terms is not None:
            told = session.terms.to_json()
            told["session"] = {**told.get("session", {}), "name": session.name}
            told["dispatcherActive"] = session.dispatcher is None or session.dispatcher.is_active
            told["resumed"] = session.is_resumed
            told["waiting"] = session.queue.count
            reply.setdefault("ext", {})["delivery"] = told


def _listed(said: object) -> object:
    """One verdict alone need not stand in a list."""
    return [said] if isinstance(said, dict) else said


def _judge(bayeux: Bayeux, session: Session, verdicts: Sequence[Verdict], now: float) -> None:
    present = bayeux.present
    trial = None if present is None else present.take_progress()
    settlement, is_new = bayeux.settlement, trial is None
    if trial is None:
        trial = settlement.judge(session, verdicts, now)
    # To read very many takes a turn, and to give back very many takes another.
    has_time = trial.is_over or not (is_new and len(verdicts) > _MANY)
    if not (has_time and settlement.carry_out(session, trial, now, bayeux.is_turn_over)):
        if present is not None:
            present.progress = trial
        raise Unfinished
    if trial.refused_any and session.is_durable and present is not None:
        present.wait_for_store()
        bayeux.hub.keeper.after(present.store_has_it)
    if session.held is not None and session.queue.count:
        # What was judged may have been all that the rest was waiting for.
        bayeux.hub.make_ready(session)


# What events say of their delivery


class Dress:
    """Events as their receiver reads them; what all receivers read is made once."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def first(self, session: Session, messages: Sequence[Message], seq: int) -> Sequence[Event]:
        subscriptions, size = session.subscriptions, session.queue.count
        has_secret = session.terms is not None and session.terms.secret is not None
        events = []
        for place, message in enumerate(messages):
            channel = message.channel
            if channel not in subscriptions or message.life_ms is not None or has_secret:
                own = self._own(session, message, 0)
            else:
                own = _subscription(channel)
            stem = message.stem or self._stem(message)
            events.append(Event(_EVENT % (stem, seq + place, place, size, own)))
        return events

    def again(self, session: Session, entries: Iterable[Entry]) -> Sequence[Event]:
        size = session.queue.count
        events = []
        for place, entry in enumerate(entries):
            message = entry.message
            own = self._own(session, message, entry.redelivered)
            stem = message.stem or self._stem(message)
            events.append(Event(_EVENT % (stem, entry.seq, place, size, own)))
        return events

    def _own(self, session: Session, message: Message, redelivered: int) -> bytes:
        """What is this receiver's alone."""
        own = _subscription(session.subscription(message.channel))
        has_secret = session.terms is not None and session.terms.secret is not None
        if redelivered or message.life_ms is not None or has_secret:
            own += self._rarely(session, message, redelivered)
        return own

    def _rarely(self, session: Session, message: Message, redelivered: int) -> bytes:
        """What is said of few events."""
        own = b',"redelivered":%d' % redelivered if redelivered else b""
        if session.terms is not None and session.terms.secret is not None:
            own += b',"cbSessionId":' + orjson.dumps(session.terms.secret)
        if message.life_ms is not None:
            left = message.life_ms - (self._node.now_ms() - message.id // 1_000_000)
            own += _LIFE % (message.life_ms, max(left, 0))
        return own

    def _stem(self, message: Message) -> bytes:
        """The event up to what is the receiver's own, kept with the message."""
        if message.stem is None:
            event = orjson.loads(message.wire)
            ext = event.pop("ext", {})
            shared = ext.pop("delivery", {}) | {
                "id": f"{self._node.name}-{message.id}",
                "state": "OK",
                "sender": message.sender,
                "rcvTimestamp": str(message.id),
                "priority": message.priority,
            }
            if message.properties is not None:
                shared["properties"] = message.properties
            if message.generation:
                shared["generation"] = message.generation
            others = b"".join(
                (orjson.dumps(key) + b":" + to_json(value) + b"," for key, value in ext.items())
            )
            message.stem = b"".join(
                (
                    to_json(event)[:-1],
                    b',"ext":{',
                    others,
                    b'"delivery":',
                    to_json(shared)[:-1],
                    b",",
                )
            )
        return message.stem


@lru_cache(maxsize=1000)
def _subscription(pattern: str | None) -> bytes:
    """Which subscription brings an event, said often of the same ones."""
    return b"" if pattern is None else b',"subscription":' + orjson.dumps(pattern)
