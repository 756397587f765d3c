"""Reads histories for subscribes at other shards, and answers in parts that these ask for."""

from collections.abc import Container, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any, Final, NamedTuple

from orjson import loads

from holdfast.bayeux.state.backlog import Step
from holdfast.bayeux.state.server_state import ServerState
from holdfast.bayeux.subscribe.catching_up import HistoryReading
from holdfast.bayeux.subscribe.history_letter import answer_with, starts_in
from holdfast.bayeux.wire.starts import Starts
from holdfast.delivery.basics.channels import Channel
from holdfast.delivery.messages.shard_letter import ShardLetter
from holdfast.delivery.messages.storing import PersistOutcome
from holdfast.delivery.ports.homes import NO_ANSWER, HomesPort

# How long the next part may be asked for. No subscribe waits for longer.
_PATIENCE_S: Final = 10.0


class _Read(NamedTuple):
    """What was read for a letter: the ids of the messages in order."""

    reading: HistoryReading
    ids: Sequence[int]
    until: float


class HistoriesAtHome:
    """Does letters about the histories of this shard."""

    def __init__(self, state: ServerState, homes: HomesPort) -> None:
        self._state = state
        self._homes = homes
        # By shard and letter, what has parts that were not asked for.
        self._read: dict[tuple[int, int], _Read] = {}

    def carry_out(self, letter: ShardLetter, now: float) -> None:
        """Read what a letter asks for, or go on with it. Answer the letter later."""
        asked = loads(letter.data)
        late = [key for key, read in self._read.items() if read.until <= now]
        for key in late:
            del self._read[key]
        if "letter" in asked:
            self._go_on(letter, (letter.sender, asked["letter"]), asked["taken"], now)
            return
        patterns = {name: self._state.channels.named(name) for name in asked["patterns"]}
        # What was published before is in the histories then. The other shard gets what is
        # published later by the log, behind the place where it has asked.
        begin = partial(self._begin, letter, starts_in(asked), patterns)
        self._state.when_kept(partial(self._when_shown, patterns, begin))

    def _when_shown(self, patterns: Container[str], begin: Step, now: float) -> None:
        """Begin when what is stored is shown. It may have to wait until replicas have it."""
        waiting = self._state.hub.publish_order.coming_to_histories(patterns)
        newest = {publish.channel.name: publish for publish in waiting}
        left = {*newest}

        def shown(channel: str, _: PersistOutcome) -> None:
            left.discard(channel)
            if not left:
                self._state.backlog.at_turn_end(begin)

        for channel, publish in newest.items():
            publish.add_callback(partial(shown, channel))
        if not newest:
            begin(now)

    def _begin(
        self, letter: ShardLetter, starts: Starts, patterns: dict[str, Channel], now: float
    ) -> None:
        is_here = partial(_is_here, self._homes)
        reading = HistoryReading(self._state, starts, patterns, is_here=is_here)
        steps = chain(reading.find_named(), reading.read())
        self._state.backlog.add(partial(self._read_on, letter, reading, steps))

    def _read_on(
        self, letter: ShardLetter, reading: HistoryReading, steps: Iterator[Any], now: float
    ) -> bool:
        """Read the histories until the turn is over. Returns whether any is left."""
        try:
            for _ in steps:
                if self._state.is_turn_over():
                    return True
        except Exception:
            self._state.log.exception("a history could not be read for another shard")
            self._homes.answer(letter, NO_ANSWER)
            return False
        for publish in self._state.hub.publish_order.unknown_to_histories(reading.patterns):
            # That shard may have passed its place in the log, and nothing tells it later.
            reading.doubt(publish.message)
        key = letter.sender, letter.id
        self._read[key] = _Read(reading, sorted(reading.found), now + _PATIENCE_S)
        self._go_on(letter, key, 0, now)
        return False

    def _go_on(self, letter: ShardLetter, key: tuple[int, int], count: int, now: float) -> None:
        read = self._read.pop(key, None)
        if read is None:
            # It was asked for too late, or read by an earlier process.
            self._homes.answer(letter, NO_ANSWER)
            return
        answer, count = answer_with(read.reading, read.ids, key[1], count)
        if count < len(read.ids):
            self._read[key] = read._replace(until=now + _PATIENCE_S)
        self._homes.answer_behind(letter, answer)


def _is_here(homes: HomesPort, channel: str) -> bool:
    return homes.home_of(channel) is None
