"""Spans of OpenTelemetry: what happens to a message whose publisher sent `ext.traceparent`.

The publish is a span below the publisher's, and what follows is below the publish: for each
receiver, how long the message waited, each attempt to deliver it, its dead letter, a replay.
Receivers get the `traceparent` of the publish, so that their own spans hang below it, too.
"""

import logging
import time
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from typing import TypeVar

import orjson
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from holdfast.bayeux.extending.base import ServerExtension
from holdfast.bayeux.wire.codec import Json
from holdfast.delivery.basics.channels import REPLIES
from holdfast.delivery.basics.error_codes import ErrorCode
from holdfast.delivery.letters.unwritten import UnwrittenLetter
from holdfast.delivery.messages.entries import Entry
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.outcomes import ACKED, Outcome
from holdfast.delivery.queues.receivers import Receiver

log = logging.getLogger(__name__)

TRACEPARENT = "traceparent"
# What events with a context contain. Data may contain it, too.
_MARK = b'"traceparent":"'
# How many messages, attempts and letters are remembered. The oldest of more are forgotten.
_MOST = 10_000
_W3C = TraceContextTextMapPropagator()
_Key = tuple[str, int]
K = TypeVar("K")
V = TypeVar("V")


class Tracing(ServerExtension):
    """Makes a span of each publish with a context, and passes its own context on."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        # The publishes of requests, by the channels of their replies.
        self._requests: OrderedDict[str, SpanContext] = OrderedDict()

    def event(self, event: Json) -> None:
        ext = event.get("ext") or {}
        parent = _context_of(ext.get(TRACEPARENT))
        channel = event["channel"]
        asked = self._requests.pop(channel, None) if channel.startswith(REPLIES) else None
        if parent is None and asked is None:
            return
        links = []
        if asked is not None and parent is not None:
            links.append(Link(asked))
        span = self._tracer.start_span(
            "publish",
            parent or _below(asked),
            SpanKind.PRODUCER,
            attributes={"messaging.system": "holdfast", "messaging.destination.name": channel},
            links=links,
        )
        span.end()
        said: dict[str, str] = {}
        _W3C.inject(said, trace.set_span_in_context(span))
        event["ext"] = {**ext, **said}
        address = ext.get("replyTo")
        if isinstance(address, str):
            _remember(self._requests, address, span.get_span_context())


class TracedLedger:
    """Makes spans of what the ledger tells of messages with a context."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        # When entries were handed over, or began to wait again, in ns since 1970.
        self._handed: OrderedDict[_Key, int] = OrderedDict()
        self._waiting: OrderedDict[_Key, int] = OrderedDict()
        self._letters: OrderedDict[int, SpanContext] = OrderedDict()
        # What messages bring: to read them at each step would cost most.
        self._contexts: OrderedDict[int, Context] = OrderedDict()

    def handed(self, receiver: Receiver, messages: Sequence[Message]) -> None:
        now = time.time_ns()
        for message in messages:
            context = self._context_in(message)
            if context is None:
                continue
            key = (receiver.key, message.id)
            since = self._waiting.pop(key, message.id)
            self._span("wait", context, receiver.key, message, since, now)
            _remember(self._handed, key, now)

    def refused(
        self, receiver: Receiver, entries: Collection[Entry], code: ErrorCode, text: str
    ) -> None:
        said = {"error.type": code.text, "holdfast.reason": code.explained(text)}
        self._end_attempts(receiver, [entry.message for entry in entries], "refused", said)

    def returned(self, receiver: Receiver, entries: Collection[Entry]) -> None:
        self._end_attempts(receiver, [entry.message for entry in entries], "returned", {})

    def left(self, receiver: Receiver, messages: Sequence[Message], outcome: Outcome) -> None:
        said = {} if outcome.reason is None else {"error.type": outcome.reason.value}
        over = self._end_attempts(receiver, messages, outcome.kind, said)
        now = time.time_ns()
        for message, context in over:
            # It was never handed over, or not since its last attempt failed.
            since = self._waiting.get((receiver.key, message.id), message.id)
            ended = {"holdfast.outcome": outcome.kind, **said}
            self._span(
                *("wait", context, receiver.key, message, since, now),
                said=ended,
                is_error=outcome is not ACKED,
            )
        for message in messages:
            self._waiting.pop((receiver.key, message.id), None)

    def dead(
        self, receiver: Receiver, entries: Sequence[Entry], letters: Sequence[UnwrittenLetter]
    ) -> None:
        self._end_attempts(receiver, [entry.message for entry in entries], "dead", {})
        messages = {entry.message.id: entry.message for entry in entries}
        now = time.time_ns()
        for unwritten in letters:
            message = messages.get(unwritten.message)
            context = None if message is None else self._context_in(message)
            if message is None or context is None:
                continue
            self._waiting.pop((receiver.key, message.id), None)
            letter = unwritten.letter()
            said = {"error.type": letter.code, "holdfast.letter": letter.id}
            span = self._span(
                "dead letter", context, receiver.key, message, now, now, said=said, is_error=True
            )
            _remember(self._letters, int(letter.id), span)

    def replayed(self, key: str, message: Message, letter: int) -> None:
        context = self._context_in(message)
        if context is not None:
            now, of_letter = time.time_ns(), self._letters.get(letter)
            links = [] if of_letter is None else [Link(of_letter)]
            self._span("replay", context, key, message, now, now, links=links)
            _remember(self._waiting, (key, message.id), now)

    def _context_in(self, message: Message) -> Context | None:
        """Return the context that the message brings, if there is one that is sampled."""
        if _MARK not in message.wire:
            return None
        known = self._contexts.get(message.id)
        if known is not None:
            return known
        ext = orjson.loads(message.wire).get("ext")
        context = _context_of(ext.get(TRACEPARENT)) if isinstance(ext, dict) else None
        if context is not None:
            _remember(self._contexts, message.id, context)
        return context

    def _end_attempts(
        self, receiver: Receiver, messages: Sequence[Message], how: str, said: Mapping[str, str]
    ) -> list[tuple[Message, Context]]:
        """End the attempts to deliver these messages. Returns those without an open attempt."""
        now, others = time.time_ns(), []
        for message in messages:
            context = self._context_in(message)
            if context is None:
                continue
            key = (receiver.key, message.id)
            handed = self._handed.pop(key, None)
            if handed is None:
                others.append((message, context))
                continue
            self._span(
                *("deliver", context, receiver.key, message, handed, now),
                said={"holdfast.outcome": how, **said},
                is_error=how != ACKED.kind,
            )
            _remember(self._waiting, key, now)
        return others

    def _span(
        self,
        name: str,
        context: Context,
        receiver: str,
        message: Message,
        begin: int,
        end: int,
        *,
        said: Mapping[str, str] | None = None,
        is_error: bool = False,
        links: Sequence[Link] = (),
    ) -> SpanContext:
        span = self._tracer.start_span(
            name,
            context,
            SpanKind.CONSUMER if name == "deliver" else SpanKind.INTERNAL,
            attributes={
                "messaging.system": "holdfast",
                "messaging.destination.name": message.channel,
                "messaging.message.id": str(message.id),
                "holdfast.receiver": receiver,
                **(said or {}),
            },
            links=links,
            start_time=begin,
        )
        made = span.get_span_context()
        if is_error:
            span.set_status(Status(StatusCode.ERROR))
            log.info(
                "a traced message for %s: %s %s",
                *(receiver, name, " ".join((said or {}).values())),
                extra={
                    "trace_id": trace.format_trace_id(made.trace_id),
                    "span_id": trace.format_span_id(made.span_id),
                },
            )
        span.end(end)
        return made


def _remember(known: OrderedDict[K, V], key: K, value: V) -> None:
    known[key] = value
    if len(known) > _MOST:
        known.popitem(last=False)


def _context_of(said: object) -> Context | None:
    """Return the context in a `traceparent`. What is no such text is ignored, as W3C says."""
    if not isinstance(said, str):
        return None
    context = _W3C.extract({TRACEPARENT: said})
    found = trace.get_current_span(context).get_span_context()
    return context if found.is_valid and found.trace_flags.sampled else None


def _below(span: SpanContext | None) -> Context | None:
    return None if span is None else trace.set_span_in_context(trace.NonRecordingSpan(span))
