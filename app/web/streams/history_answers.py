"""Reads a history of this shard for a request."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import orjson

from holdfast.bayeux.server import Bayeux
from holdfast.bayeux.streams.history_parts import (
    HistoryLost,
    HistoryMissing,
    PlaceInvalid,
)
from holdfast.bayeux.wire.errors import ErrorReply
from holdfast.delivery.basics.channels import Channel
from holdfast.delivery.basics.json_text import to_json
from holdfast.delivery.messages.message import Message
from holdfast.web.streams.readers_here import BEGIN, END, OtherEpoch, ReadersHere


@dataclass(frozen=True, slots=True)
class Question:
    """What a request wants to read. Its sender may read the channel."""

    channel: str
    # None means from the begin.
    offset: str | None = None
    # How long to wait if there is nothing.
    wait_s: float = 0.0
    # Whether to return whole events, not only their data.
    has_envelope: bool = False
    # Whether to return only the end of the history.
    is_head: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """What was read, or why nothing was."""

    # A JSON array, and how many messages it has.
    body: str = "[]"
    count: int = 0
    # Where it begins and ends.
    begin: str = BEGIN
    end: str = BEGIN
    # Whether the history has no more now.
    is_last: bool = True
    # When the first message expires, in ms since 1970; zero if none does.
    ends_ms: int = 0
    # The name of an error, if it is one; and the cursors between which messages may be missing.
    error: str = ""
    lost: Sequence[int] = ()


class StreamsHere:
    """Answers questions about histories of this shard."""

    def __init__(self, bayeux: Bayeux, readers: ReadersHere) -> None:
        self._channels = bayeux.state.channels
        self._streams = bayeux.streams
        self._readers = readers
        # The newest body, and what it has. Readers that are woken together get the same.
        self._newest: tuple[tuple[int, int, int, bool], str] = (0, 0, 0, False), "[]"

    async def answer(self, question: Question) -> Answer:
        """Return the answer, which may be a refusal."""
        if not question.wait_s:
            # A reader of a deep history asks for the next part at once.
            await self._readers.next_turn()
        channel = self._channels.named(question.channel)
        try:
            if question.is_head or question.offset == END:
                end = self._streams.end_of(channel)
                if question.is_head or not question.wait_s:
                    return Answer(begin=END, end=self._readers.offset(end))
                after: int | None = end
            else:
                after = self._readers.place_in(question.offset)
            return await self._read(channel, after, question)
        except HistoryMissing:
            return Answer(error=ErrorReply.HISTORY_MISSING.name)
        except PlaceInvalid:
            return Answer(error=ErrorReply.OFFSET_INVALID.name)
        except OtherEpoch:
            return Answer(error=ErrorReply.HISTORY_LOST.name)
        except HistoryLost as lost:
            goes_on_at = self._readers.offset(lost.last)
            cursors = (lost.first, lost.last)
            return Answer(error=ErrorReply.HISTORY_LOST.name, end=goes_on_at, lost=cursors)

    async def _read(self, channel: Channel, after: int | None, question: Question) -> Answer:
        part = self._streams.read(channel, after)
        if question.wait_s and not part.messages:
            again = partial(self._streams.read, channel, part.until)
            part = await self._readers.more(again, [channel.name], question.wait_s)
        messages = part.messages
        return Answer(
            self._body(messages, has_envelope=question.has_envelope),
            len(messages),
            BEGIN if after is None else self._readers.offset(after),
            self._readers.offset(part.until),
            is_last=part.is_last,
            ends_ms=part.ends_ms,
        )

    def _body(self, messages: Sequence[Message], *, has_envelope: bool) -> str:
        if not messages:
            return "[]"
        made_of = messages[0].id, messages[-1].id, len(messages), has_envelope
        if made_of != self._newest[0]:
            parts = [each.wire if has_envelope else data_in(each.wire) for each in messages]
            self._newest = made_of, (b"[%b]" % b",".join(parts)).decode()
        return self._newest[1]


def data_in(wire: bytes) -> bytes:
    """Return the data of an event as it is written there.

    To write large data again would take several times as long as to read it.
    """
    event = orjson.loads(wire)
    place = [*event].index("data")
    members = [*event.items()]
    before, after = to_json(dict(members[:place])), to_json(dict(members[place + 1 :]))
    head = before[:-1] + (b',"data":' if place else b'"data":')
    tail = b"," + after[1:] if members[place + 1 :] else b"}"
    if wire.startswith(head) and wire.endswith(tail):
        return wire[len(head) : -len(tail)]
    return to_json(event["data"])
