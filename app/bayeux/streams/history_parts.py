"""Reads the histories of channels for requests that have no session.

A request names a place in a history, a cursor, and gets the messages after it, in the order of
their ids. A message that may still enter the history holds back those after it, so no message ever
comes behind a place that was given.
"""

from collections.abc import Callable, Sequence
from typing import Final

from holdfast.bayeux.publish.topic_effects import depth_of
from holdfast.bayeux.state.server_state import ServerState
from holdfast.delivery.basics.channels import Channel
from holdfast.delivery.messages.message import Message
from holdfast.delivery.routing.kept_messages import cursor_of, end_of

# How many messages one part has, and how many bytes unless a single message has more.
MOST_MESSAGES: Final = 1000
MOST_BYTES: Final = 256 * 1024

Wake = Callable[[], None]


class HistoryMissing(Exception):
    """The channel keeps no messages."""


class PlaceInvalid(Exception):
    """No history has reached this place."""


class HistoryLost(Exception):
    """Messages after the first cursor and up to the last one may be missing."""

    def __init__(self, first: int, last: int) -> None:
        super().__init__()
        self.first, self.last = first, last


class HistoryPart:
    """Messages that follow a place in a history.

    Args:
        until: The place behind the last of them.
        is_last: Whether the history has no more now.
        ends_ms: When the first of them expires, in ms since 1970; zero if none does.
    """

    def __init__(
        self, messages: Sequence[Message], until: int, *, is_last: bool, ends_ms: int
    ) -> None:
        self.messages = messages
        self.until = until
        self.is_last = is_last
        self.ends_ms = ends_ms


class Streams:
    """Reads histories of this shard, and tells readers when there is more."""

    def __init__(self, state: ServerState) -> None:
        self._state = state
        self._histories = state.histories
        # The channels and patterns for whose messages readers wait; none if they wait elsewhere.
        self._waiting: dict[Wake, Sequence[str]] = {}
        # How many messages readers have got.
        self.messages_read = 0
        # Whether readers may wait.
        self.may_wait = True

    def read(self, channel: Channel, after: int | None) -> HistoryPart:
        """Return messages of the channel's history after this place; None stands for its begin.

        Raises `HistoryMissing`, `PlaceInvalid`, or `HistoryLost` if a message behind the place may
        have left the history before it expired.
        """
        self._check_kept(channel)
        floor = self._histories.floor_of(channel.name)
        if after is None:
            after = self._begin_of(channel, floor)
        elif after > cursor_of(self._state.node.stamp()):
            raise PlaceInvalid
        elif after < floor:
            raise HistoryLost(after, floor)
        kept, now_ms = self._histories.get(channel.name), self._state.node.now_ms()
        # One more than a part has shows that there is more.
        found = [] if kept is None else kept.since(after, now_ms, MOST_MESSAGES + 1)
        messages = self._known(channel, found)
        part = fitting(messages)
        until = cursor_of(part[-1].id) if part else after
        self.messages_read += len(part)
        ends = [end for each in part if (end := end_of(each))]
        return HistoryPart(
            part, until, is_last=len(part) == len(messages), ends_ms=min(ends, default=0)
        )

    def end_of(self, channel: Channel) -> int:
        """Return the place behind all messages that the history has. Raises `HistoryMissing`."""
        self._check_kept(channel)
        kept = self._histories.get(channel.name)
        known = [] if kept is None else self._known(channel, list(kept))
        begin = self._begin_of(channel, self._histories.floor_of(channel.name))
        return max(begin, cursor_of(known[-1].id)) if known else begin

    def wait(self, patterns: Sequence[str], wake: Wake) -> None:
        """Call `wake` when such a history gets a message, and when readers may wait no longer.

        Without channels or patterns, call it only then.
        """
        self._waiting[wake] = patterns
        for each in patterns:
            self._histories.follow(each, wake)

    def wait_no_more(self, wake: Wake) -> None:
        """Undo `wait`."""
        for each in self._waiting.pop(wake, ()):
            self._histories.unfollow(each, wake)

    def end_waits(self) -> None:
        """Wake all readers, and let none wait: the server leaves or stops."""
        self.may_wait = False
        for wake in list(self._waiting):
            wake()

    def _check_kept(self, channel: Channel) -> None:
        if not is_kept(self._state, channel):
            raise HistoryMissing

    def _begin_of(self, channel: Channel, floor: int) -> int:
        """Return the place before everything that the history has, or may still get."""
        coming = self._state.hub.publish_order.first_to_history(channel.name)
        return floor if coming is None else min(floor, cursor_of(coming.id) - 1)

    def _known(self, channel: Channel, messages: Sequence[Message]) -> Sequence[Message]:
        """Return the messages before which no other may enter the history any more."""
        coming = self._state.hub.publish_order.first_to_history(channel.name)
        if coming is None:
            return messages
        return [each for each in messages if each.id < coming.id]


def is_kept(state: ServerState, channel: Channel) -> bool:
    """Return whether the channel keeps messages."""
    topic, rule = state.topics.get(channel.name), state.rules.of(channel)
    depth = rule.history if topic is None else depth_of(rule, topic.config)
    return depth is not None or state.histories.get(channel.name) is not None


def fitting(messages: Sequence[Message]) -> Sequence[Message]:
    """Return the first messages, as many as one part may have."""
    size = 0
    for place, message in enumerate(messages):
        size += len(message.wire)
        if place == MOST_MESSAGES or (place and size > MOST_BYTES):
            return messages[:place]
    return messages
