"""Reads the histories that other shards keep, for subscribes at this one.

The home of a channel answers by its log, which also has what is published meanwhile. So from the
moment when it is asked, all messages are recorded that arrive on the channels of the subscribe.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Final

from holdfast.bayeux.publish.tap import Tap
from holdfast.bayeux.state.calls import Answer, Asking, said_by
from holdfast.bayeux.state.server_state import ServerState
from holdfast.bayeux.subscribe.catching_up import CatchUp
from holdfast.bayeux.subscribe.history_calls import HISTORIES, Part, asked_of
from holdfast.bayeux.wire.errors import ErrorReply, Refused
from holdfast.bayeux.wire.starts import Start
from holdfast.delivery.basics.error_codes import SHARD_UNREACHABLE
from holdfast.delivery.ports.homes import HomesPort
from holdfast.delivery.topics.counting import count_for

# How many subscribes read at a time. Others wait, so that answers do not fill the logs.
_MOST: Final = 16

# By number of a shard, the patterns of the subscribe whose histories it may have.
Homes = Mapping[int, Sequence[str]]
# Hears why histories could not be read, or None.
Done = Callable[[Refused | None], None]


class FarHistories:
    """Reads histories of other shards, for some subscribes at a time."""

    def __init__(self, state: ServerState, homes: HomesPort, tap: Tap) -> None:
        self.state = state
        self.homes = homes
        self.tap = tap
        self._running = 0
        self._waiting: deque[FarReading] = deque()

    def is_here(self, channel: str) -> bool:
        """Return whether no other shard keeps the history of the channel."""
        return self.homes.home_of(channel) is None

    def read_here(self, patterns: Iterable[str]) -> Collection[str]:
        """Return the patterns whose histories may be in this shard."""
        return {each for each in patterns if None in self.homes.homes_of(each)}

    def homes_of(self, catch_up: CatchUp) -> Homes:
        """Return which other shards a subscribe has to ask."""
        reading = catch_up.reading
        starts = reading.starts
        named = {self.homes.home_of(channel.name) for channel, _, _ in reading.named}
        found: dict[int, list[str]] = {}
        for pattern in reading.patterns:
            for shard in self.homes.homes_of(pattern):
                if shard is not None:
                    found.setdefault(shard, []).append(pattern)
        return {
            shard: patterns
            for shard, patterns in found.items()
            if shard in named or any(not starts.of_pattern(each).is_at_end for each in patterns)
        }

    def read(self, catch_up: CatchUp, homes: Homes, done: Done) -> "FarReading":
        """Read the histories of these shards. `done` hears the outcome in a later turn.

        Call the result's `end` when the session has subscribed, or does not.
        """
        reading = FarReading(self, catch_up, homes, done)
        if self._running < _MOST:
            self._running += 1
            reading.begin()
        else:
            self._waiting.append(reading)
        return reading

    def ended(self) -> None:
        """Let the next subscribe read."""
        if self._waiting:
            self._waiting.popleft().begin()
        else:
            self._running -= 1

    def missing(self) -> int:
        """Return how many entries of other shards' logs did not arrive."""
        others = self.state.hub.others
        return 0 if others is None else sum(others.figures().missing.values())


class FarReading:
    """What one subscribe reads in other shards."""

    def __init__(self, far: FarHistories, catch_up: CatchUp, homes: Homes, done: Done) -> None:
        self._far = far
        self._catch_up = catch_up
        self._homes = homes
        self._done: Done | None = done
        # The shards that have not answered completely.
        self._pending = {*homes}
        self._missing = far.missing()
        self._patterns = catch_up.patterns
        self._is_over = False

    def begin(self) -> None:
        """Ask all shards."""
        far, catch_up = self._far, self._catch_up
        catch_up.follow(far.tap.begin(self._patterns))
        if not all(far.homes.may_send(shard) for shard in self._homes):
            far.state.backlog.at_turn_end(self._cannot)
            return
        for shard, patterns in self._homes.items():
            self._ask(shard, asked_of(catch_up.reading.starts, patterns))

    def _ask(self, shard: int, asked: Asking) -> None:
        self._far.state.calls.send(shard, HISTORIES, asked, partial(self._answered, shard))

    def _cannot(self, _: float) -> None:
        self._finish(_unreachable())

    def _answered(self, shard: int, answer: Answer | None) -> None:
        if self._done is None:
            return
        part = said_by(Part, answer)
        if part is None:
            self._finish(_unreachable())
            return
        self._take(part)
        if not part.is_last:
            self._ask(shard, {"reading": part.reading, "taken": part.taken})
            return
        self._pending.discard(shard)
        if not self._pending:
            is_whole = self._far.missing() == self._missing
            self._finish(None if is_whole else _unreachable())

    def _take(self, part: Part) -> None:
        reading = self._catch_up.reading
        reading.has_cursor |= part.has_cursor
        topics = self._far.state.topics
        for message, (pattern, start) in zip(part.enclosed, part.found, strict=True):
            topic = topics.far(message.channel)
            if topic is not None:
                count_for(topic, message)
            reading.add(message, pattern, Start(*start))
        for pattern, cursor in part.gaps.items():
            reading.miss(pattern, cursor)
        for pattern, (first, last) in part.lost.items():
            reading.lose(pattern, first, last)

    def _finish(self, refused: Refused | None) -> None:
        done, self._done = self._done, None
        if done is not None:
            done(refused)

    def include(self) -> None:
        """Add the session to the receivers of what will be shown, now that it has subscribed."""
        catch_up = self._catch_up
        for arrived in self._far.tap.coming(self._patterns):
            if arrived.message.id not in catch_up.reading.found and catch_up.selects_now(
                arrived.message
            ):
                arrived.include(catch_up.session)

    def end(self) -> None:
        """Record what arrives no longer."""
        if not self._is_over:
            self._is_over = True
            self._far.tap.end(self._patterns)
            self._far.ended()


def _unreachable() -> Refused:
    return Refused(ErrorReply.SHARD_UNAVAILABLE, SHARD_UNREACHABLE.text)
