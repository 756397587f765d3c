"""Reads histories for subscribes at other shards, and answers in parts that these ask for."""

from collections.abc import Container, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any, Final, NamedTuple

from holdfast.bayeux.state.backlog import Step
from holdfast.bayeux.state.calls import Asker, Asking
from holdfast.bayeux.state.server_state import ServerState
from holdfast.bayeux.subscribe.catching_up import HistoryReading
from holdfast.bayeux.subscribe.history_calls import HISTORIES, part_with, starts_in
from holdfast.bayeux.wire.starts import Starts
from holdfast.delivery.basics.channels import Channel
from holdfast.delivery.codec.attributes import Way
from holdfast.delivery.messages.storing import PersistOutcome
from holdfast.delivery.ports.homes import HomesPort

# How long the next part may be asked for. No subscribe waits for longer.
_PATIENCE_S: Final = 10.0


class _Read(NamedTuple):
    """What was read for a subscribe: the ids of the messages in order."""

    reading: HistoryReading
    ids: Sequence[int]
    until: float


class HistoriesAtHome:
    """Reads the histories of this shard."""

    def __init__(self, state: ServerState, homes: HomesPort) -> None:
        self._state = state
        self._homes = homes
        # By number, what has parts that were not asked for.
        self._read: dict[int, _Read] = {}
        state.calls.handle(HISTORIES, self._carry_out, Way.HISTORY)

    def _carry_out(self, asked: Asking, asker: Asker, now: float) -> None:
        """Read what another shard asks for, or go on with it. Answer later."""
        late = [number for number, read in self._read.items() if read.until <= now]
        for number in late:
            del self._read[number]
        if "reading" in asked:
            self._go_on(asker, asked["reading"], asked["taken"], now)
            return
        patterns = {name: self._state.channels.named(name) for name in asked["patterns"]}
        # What was published before is in the histories then. The other shard gets what is
        # published later by the log, behind the place where it has asked.
        begin = partial(self._begin, asker, starts_in(asked), patterns)
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
        self, asker: Asker, starts: Starts, patterns: dict[str, Channel], now: float
    ) -> None:
        is_here = partial(_is_here, self._homes)
        reading = HistoryReading(self._state, starts, patterns, is_here=is_here)
        steps = chain(reading.find_named(), reading.read())
        self._state.backlog.add(partial(self._read_on, asker, reading, steps))

    def _read_on(
        self, asker: Asker, reading: HistoryReading, steps: Iterator[Any], now: float
    ) -> bool:
        """Read the histories until the turn is over. Returns whether any is left."""
        try:
            for _ in steps:
                if self._state.is_turn_over():
                    return True
        except Exception:
            self._state.log.exception("a history could not be read for another shard")
            asker.answer({})
            return False
        for publish in self._state.hub.publish_order.unknown_to_histories(reading.patterns):
            # That shard may have passed its place in the log, and nothing tells it later.
            reading.doubt(publish.message)
        number = self._state.node.stamp()
        self._read[number] = _Read(reading, sorted(reading.found), now + _PATIENCE_S)
        self._go_on(asker, number, 0, now)
        return False

    def _go_on(self, asker: Asker, number: int, count: int, now: float) -> None:
        read = self._read.pop(number, None)
        if read is None:
            # It was asked for too late, or read by an earlier process.
            asker.answer({})
            return
        part = part_with(read.reading, read.ids, number, count)
        if not part["is_last"]:
            self._read[number] = read._replace(until=now + _PATIENCE_S)
        asker.answer_behind(part)


def _is_here(homes: HomesPort, channel: str) -> bool:
    return homes.home_of(channel) is None
