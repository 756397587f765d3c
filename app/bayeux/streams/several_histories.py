"""Reads the histories of several channels together, in the order of the messages' ids."""

from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from itertools import islice, takewhile
from operator import attrgetter
from typing import Final, NamedTuple

from holdfast.bayeux.state.server_state import ServerState
from holdfast.bayeux.streams.history_parts import MOST_MESSAGES, PlaceInvalid, fitting, is_kept
from holdfast.delivery.basics.channels import Channel, lookups
from holdfast.delivery.messages.message import Message
from holdfast.delivery.routing.histories import MOST_LOOKS
from holdfast.delivery.routing.kept_messages import KeptMessages, cursor_of

_by_id = attrgetter("id")
# For how many patterns the matching histories are remembered.
_MOST_KNOWN: Final = 64


class TooManyHistories(Exception):
    """The patterns match more channels than one reader may read."""


class Lost(NamedTuple):
    """Messages of the channel after the first cursor and up to the last one may be missing."""

    channel: str
    first: int
    last: int


class SeveralPart(NamedTuple):
    """Messages that follow a place in several histories."""

    messages: Sequence[Message]
    # The place behind the last of them.
    until: int
    # Whether the histories have no more now.
    is_last: bool
    lost: Sequence[Lost]
    # The channels that keep no messages.
    missing: Sequence[str]


class SeveralHistories:
    """Reads the histories of this shard that channels and patterns match."""

    def __init__(self, state: ServerState) -> None:
        self._state = state
        self._histories = state.histories
        # By pattern, the histories that it matches, and the number of changes before that.
        self._known: dict[str, tuple[int, Sequence[KeptMessages], int]] = {}

    def read(self, channels: Sequence[Channel], after: int | None) -> SeveralPart:
        """Return their messages after this place; None stands for the begin of each.

        Raises `TooManyHistories`, or `PlaceInvalid` if they have never reached it.
        """
        if after is not None and after > cursor_of(self._state.node.stamp()):
            raise PlaceInvalid
        missing = [each.name for each in channels if not (each.is_wild or self._is_kept(each))]
        channels = [each for each in channels if each.name not in missing]
        histories = self._changed(channels, after)
        if histories is None:
            histories = list(self._matching(channels))
        lost = [] if after is None else list(self._lost(channels, histories, after))
        coming = self._coming(channels)
        found = self._after(histories, -1 if after is None else after, coming)
        part = fitting(found)
        is_last = len(part) == len(found)
        begin = _before(coming, cursor_of(self._histories.newest)) if after is None else after
        until = cursor_of(part[-1].id) if part else begin
        if is_last and lost:
            last = max(each.last for each in lost)
            until = max(until, _before(coming, last))
        # What comes later tells the rest.
        passed = [each._replace(last=min(each.last, until)) for each in lost if after != until]
        return SeveralPart(part, until, is_last, passed, missing)

    def end(self, channels: Sequence[Channel]) -> int:
        """Return the place behind all messages that the histories have."""
        return _before(self._coming(channels), cursor_of(self._histories.newest))

    def _coming(self, channels: Sequence[Channel]) -> Message | None:
        names = {each.name for each in channels}
        return self._state.hub.publish_order.first_to_histories(names)

    def _is_kept(self, channel: Channel) -> bool:
        return is_kept(self._state, channel)

    def _changed(
        self, channels: Sequence[Channel], after: int | None
    ) -> Sequence[KeptMessages] | None:
        """Return those that have changed behind the place, if it is not long ago."""
        changed = None if after is None else self._histories.news.since(after)
        if changed is None:
            return None
        names = {each.name for each in channels}
        found = [
            self._histories.get(channel)
            for channel in changed
            if any(name in names for name in lookups(channel))
        ]
        return [each for each in found if each is not None]

    def _matching(self, channels: Sequence[Channel]) -> Iterable[KeptMessages]:
        """Return the histories. Each is there once, whatever matches it."""
        found: dict[str, KeptMessages] = {}
        left = MOST_LOOKS
        for channel in channels:
            histories, looked = self._covered_by(channel)
            left -= looked
            if left < 0:
                raise TooManyHistories
            if len(channels) == 1:
                return histories
            found.update((each.channel, each) for each in histories)
        return found.values()

    def _covered_by(self, channel: Channel) -> tuple[Sequence[KeptMessages], int]:
        if not channel.is_wild:
            return self._histories.covered_by(channel)
        changes = self._histories.changes
        known = self._known.get(channel.name)
        if known is None or known[0] != changes:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            known = (changes, *self._histories.covered_by(channel))
            self._known[channel.name] = known
        return known[1:]

    def _after(
        self, histories: Sequence[KeptMessages], after: int, coming: Message | None
    ) -> Sequence[Message]:
        """Return messages, in order: one more than a part may have shows that there is more."""
        now_ms, most = self._state.node.now_ms(), MOST_MESSAGES + 1
        parts = [each.since(after, now_ms, most) for each in histories if each.has_after(after)]
        messages: Iterable[Message] = parts[0] if len(parts) == 1 else merge(*parts, key=_by_id)
        if coming is not None:
            messages = takewhile(lambda each: each.id < coming.id, messages)
        return list(islice(messages, most))

    def _lost(
        self, channels: Sequence[Channel], histories: Sequence[KeptMessages], after: int
    ) -> Iterator[Lost]:
        for each in histories:
            if after < each.floor:
                yield Lost(each.channel, after, each.floor)
        floors = self._histories.floors
        for channel in channels if after < floors.highest else ():
            # A pattern may match channels whose histories are empty.
            if self._histories.get(channel.name) is None:
                floor = floors.below(channel)
                if after < floor:
                    yield Lost(channel.name, after, floor)


def _before(coming: Message | None, place: int) -> int:
    """Return the place, or an earlier one: before the first message that may still come."""
    return place if coming is None else min(place, cursor_of(coming.id) - 1)
