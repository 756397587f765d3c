"""Reads a history of this shard for a request, and waits until there is something to read."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Final

import orjson

from holdfast.bayeux.server import Bayeux
from holdfast.bayeux.streams.history_parts import (
    HistoryLost,
    HistoryMissing,
    HistoryPart,
    PlaceInvalid,
)
from holdfast.bayeux.wire.errors import ErrorReply
from holdfast.delivery.basics.channels import Channel
from holdfast.delivery.basics.json_text import to_json
from holdfast.delivery.messages.message import Message

# Offsets that every history has: its begin, and its end at the moment.
BEGIN: Final = "-1"
END: Final = "now"
# How many readers run before others do.
_AT_ONCE: Final = 50


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
    """Answers questions about histories of this shard.

    Args:
        next_turn: Waits until there is time for a reader.
    """

    def __init__(self, bayeux: Bayeux, next_turn: Callable[[], Awaitable[None]]) -> None:
        self._state = bayeux.state
        self._streams = bayeux.streams
        self._next_turn = next_turn
        self._woken = _Woken()
        # The newest body, and what it has. Readers that are woken together get the same.
        self._newest: tuple[tuple[int, int, int, bool], str] = (0, 0, 0, False), "[]"

    async def answer(self, question: Question) -> Answer:
        """Return the answer, which may be a refusal."""
        channel = self._state.channels.named(question.channel)
        try:
            if question.is_head or question.offset == END:
                end = self._streams.end_of(channel)
                if question.is_head or not question.wait_s:
                    return Answer(begin=END, end=self._offset(end))
                after: int | None = end
            else:
                after = self._place_in(question.offset)
            return await self._read(channel, after, question)
        except HistoryMissing:
            return Answer(error=ErrorReply.HISTORY_MISSING.name)
        except PlaceInvalid:
            return Answer(error=ErrorReply.OFFSET_INVALID.name)
        except _OtherEpoch:
            return Answer(error=ErrorReply.HISTORY_LOST.name)
        except HistoryLost as lost:
            goes_on_at = self._offset(lost.last)
            cursors = (lost.first, lost.last)
            return Answer(error=ErrorReply.HISTORY_LOST.name, end=goes_on_at, lost=cursors)

    async def answer_json(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Do the same for another shard, which may ask for many readers at once."""
        await self._next_turn()
        return asdict(await self.answer(Question(**asked)))

    async def _read(self, channel: Channel, after: int | None, question: Question) -> Answer:
        part = self._streams.read(channel, after)
        if question.wait_s and not part.messages:
            part = await self._wait(channel, part, question.wait_s)
        messages = part.messages
        return Answer(
            self._body(messages, has_envelope=question.has_envelope),
            len(messages),
            BEGIN if after is None else self._offset(after),
            self._offset(part.until),
            is_last=part.is_last,
            ends_ms=part.ends_ms,
        )

    async def _wait(self, channel: Channel, part: HistoryPart, wait_s: float) -> HistoryPart:
        """Wait until the history has more, or the time is over."""
        loop, after = asyncio.get_running_loop(), part.until
        ends_at = loop.time() + wait_s
        while not part.messages and self._streams.may_wait and loop.time() < ends_at:
            await self.until_woken(channel, ends_at - loop.time())
            await self._next_turn()
            part = self._streams.read(channel, after)
        return part

    def _body(self, messages: Sequence[Message], *, has_envelope: bool) -> str:
        if not messages:
            return "[]"
        made_of = messages[0].id, messages[-1].id, len(messages), has_envelope
        if made_of != self._newest[0]:
            parts = [each.wire if has_envelope else data_in(each.wire) for each in messages]
            self._newest = made_of, (b"[%b]" % b",".join(parts)).decode()
        return self._newest[1]

    async def until_woken(self, channel: Channel | None, most_s: float) -> None:
        """Wait for a message of the channel's history, as long as readers may wait, and this long.

        Without a channel, no message ends the wait.
        """
        woken = asyncio.get_running_loop().create_future()
        wake = partial(self._woken.add, woken)
        timer = asyncio.get_running_loop().call_later(most_s, wake)
        self._streams.wait(channel, wake)
        try:
            await woken
        finally:
            timer.cancel()
            self._streams.wait_no_more(wake)

    def _offset(self, cursor: int) -> str:
        """Return a place as clients see it. Later ones are greater, byte by byte."""
        return f"{self._state.epoch}_{cursor:016d}"

    def _place_in(self, offset: str | None) -> int | None:
        if offset is None or offset == BEGIN:
            return None
        epoch, _, cursor = offset.rpartition("_")
        if not (epoch.isalnum() and cursor.isdecimal() and offset.isascii()):
            raise PlaceInvalid
        if epoch != self._state.epoch:
            raise _OtherEpoch
        return int(cursor)


class _Woken:
    """Lets readers that are woken run, not all of them before anything else."""

    def __init__(self) -> None:
        self._readers: deque[asyncio.Future[None]] = deque()

    def add(self, reader: asyncio.Future[None]) -> None:
        """Let a reader run soon."""
        if not self._readers:
            asyncio.get_running_loop().call_soon(self._go_on)
        self._readers.append(reader)

    def _go_on(self) -> None:
        for _ in range(min(_AT_ONCE, len(self._readers))):
            reader = self._readers.popleft()
            if not reader.done():
                reader.set_result(None)
        if self._readers:
            asyncio.get_running_loop().call_soon(self._go_on)


class _OtherEpoch(Exception):
    """The offset is of another store."""


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
