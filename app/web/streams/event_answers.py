"""Reads several histories of this shard for a request."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from holdfast.bayeux.server import Bayeux
from holdfast.bayeux.streams.history_parts import PlaceInvalid
from holdfast.bayeux.streams.several_histories import (
    SeveralHistories,
    SeveralPart,
    TooManyHistories,
)
from holdfast.bayeux.wire.errors import ErrorReply
from holdfast.delivery.routing.kept_messages import cursor_of
from holdfast.web.streams.readers_here import BEGIN, END, OtherEpoch, ReadersHere


@dataclass(frozen=True, slots=True)
class EventQuestion:
    """What a request wants to read of one shard. Its sender may read the channels."""

    channels: Sequence[str]
    offset: str = END
    # How long to wait if there is nothing.
    wait_s: float = 0.0


@dataclass(frozen=True, slots=True)
class EventAnswer:
    """What was read."""

    # The events, and the place of each.
    events: Sequence[str] = ()
    offsets: Sequence[str] = ()
    # Where it ends.
    end: str = BEGIN
    # Whether the histories have no more now.
    is_last: bool = True
    # Channels of which messages may be missing, each with the cursors between which they were; both
    # are zero if the place is of another store.
    lost: Sequence[tuple[str, int, int]] = ()
    # The channels that keep no messages.
    missing: Sequence[str] = ()
    # The name of an error, if it is one.
    error: str = ""


class EventsHere:
    """Answers questions about several histories of this shard."""

    def __init__(self, bayeux: Bayeux, readers: ReadersHere) -> None:
        self._channels = bayeux.state.channels
        self._streams = bayeux.streams
        self._histories = SeveralHistories(bayeux.state)
        self._readers = readers

    async def answer(self, question: EventQuestion) -> EventAnswer:
        """Return the answer, which may be a refusal."""
        # A reader of deep histories asks for the next part at once.
        await self._readers.next_turn()
        try:
            return await self._answer(question)
        except TooManyHistories:
            return self._skipped(question)

    def _skipped(self, question: EventQuestion) -> EventAnswer:
        """Answer a reader that would have to look at too many histories."""
        if question.offset == BEGIN:
            return EventAnswer(error=ErrorReply.SUBSCRIPTIONS_EXCEEDED.name)
        end = self._histories.end([self._channels.named(each) for each in question.channels])
        try:
            lost = self._readers.place_in(question.offset) or 0, end
        except (OtherEpoch, PlaceInvalid):
            lost = 0, 0
        said = [(each, *lost) for each in question.channels]
        return EventAnswer(end=self._readers.offset(end), lost=said)

    async def _answer(self, question: EventQuestion) -> EventAnswer:
        names = question.channels
        channels = [self._channels.named(each) for each in names]
        lost: list[tuple[str, int, int]] = []
        after: int | None = None
        try:
            if question.offset == END:
                after = self._histories.end(channels)
            else:
                after = self._readers.place_in(question.offset)
            part = self._histories.read(channels, after)
        except (OtherEpoch, PlaceInvalid):
            # The store is another one, or has gone back.
            lost = [(each, 0, 0) for each in names]
            part = self._histories.read(channels, None)
        lost += part.lost
        if question.wait_s and not (part.messages or lost):
            again = partial(self._histories.read, channels, part.until)
            part = await self._readers.more(again, names, question.wait_s)
            lost += part.lost
            if not (part.messages or lost):
                # What others lose meanwhile is then no doubt of this reader.
                part = part._replace(until=max(part.until, self._histories.end(channels)))
        return self._answered(part, lost)

    def _answered(self, part: SeveralPart, lost: Sequence[tuple[str, int, int]]) -> EventAnswer:
        self._streams.messages_read += len(part.messages)
        offset = self._readers.offset
        return EventAnswer(
            [each.wire.decode() for each in part.messages],
            [offset(cursor_of(each.id)) for each in part.messages],
            offset(part.until),
            is_last=part.is_last,
            # Plain tuples can be sent to other shards.
            lost=[(*each,) for each in lost],
            missing=part.missing,
        )
