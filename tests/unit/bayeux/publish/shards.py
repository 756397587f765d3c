"""Several servers that pass messages on to each other by logs in memory."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

from holdfast.bayeux.publish.from_others import Arrived, FromOthers
from holdfast.cluster.messages import entry_of, message_of
from holdfast.delivery.messages.crossing import crossing_of
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.storing import NO_FIELDS, PersistOutcome, RequestFields
from tests.unit.bayeux.harness import Client, Installed, Server, server_of
from tests.unit.delivery.fake_keeper import FakeKeeper

if TYPE_CHECKING:
    from holdfast.cluster.frames import Entry


class LoggingKeeper(FakeKeeper):
    """A store that appends what it keeps to a log, in the same step."""

    def __init__(self) -> None:
        super().__init__()
        self.log: list[Entry] = []

    def keep(
        self,
        message: Message,
        receivers: Sequence[str],
        done: Callable[[PersistOutcome], None],
        fields: RequestFields = NO_FIELDS,
    ) -> None:
        if self.outcome is PersistOutcome.KEPT and crossing_of(message) is not None:
            self.log.append(entry_of(message))
        super().keep(message, receivers, done, fields)


class Shard:
    """One server, its log, and how far it has read the logs of others."""

    def __init__(
        self, world: "World", number: int, stamps: Iterator[int], extensions: Sequence[Installed]
    ) -> None:
        self._world = world
        self.keeper = LoggingKeeper()
        self.server: Server = server_of(*extensions, keeper=self.keeper, node=f"n{number}")
        self.server._stamps = stamps
        self.server.bayeux.state.hub.others = self
        self.from_others = FromOthers(self.server.bayeux.state)
        self.places: dict[int, int] = {}
        # Channels for whose messages the log has no room; durable subscriptions by pattern.
        self.refused: set[str] = set()
        self.interest: Counter[str] = Counter()
        # Whether others know of subscriptions at once, and what is to be called when they do.
        self.is_agreeing = True
        self.unknown: list[Callable[[bool], None]] = []

    def has_durable(self, channel: str) -> bool:
        others = [each for each in self._world.shards if each is not self]
        return any(each.has_durable_here(channel) for each in others)

    def has_durable_here(self, channel: str) -> bool:
        state = self.server.bayeux.state
        found = state.channels.get(channel)
        return found is not None and any(each.is_durable for each in state.routes.receivers(found))

    def refuses(self, channel: str) -> bool:
        return channel in self.refused

    def add_interest(self, pattern: str) -> None:
        self.interest[pattern] += 1

    def remove_interest(self, pattern: str) -> None:
        self.interest[pattern] -= 1

    def when_known(self, patterns: Sequence[str], done: Callable[[bool], None]) -> None:
        if self.is_agreeing:
            done(True)
        else:
            self.unknown.append(done)

    def pass_on(self, message: Message) -> None:
        self.keeper.log.append(entry_of(message))

    def read(self, number: int, most: int) -> None:
        """Take this many entries of another shard's log."""
        place = self.places.get(number, 0)
        entries = self._world.shards[number].keeper.log[place : place + most]
        self.places[number] = place + len(entries)
        for entry in entries:
            arrived = self.from_others.arrived(message_of(entry), is_durable=bool(entry.flags & 1))
            if arrived is not None:
                self._take(arrived)
        self.server.turn()

    def _take(self, arrived: Arrived) -> None:
        if arrived.keys:
            self.keeper.keep(arrived.message, arrived.keys, lambda _: None)
        self.from_others.show(arrived)


class World:
    """The shards of a deployment."""

    def __init__(self, number: int, *extensions: Installed) -> None:
        stamps = count(1_700_000_000_000_000_000, 1000)
        self.shards: list[Shard] = []
        for each in range(number):
            self.shards.append(Shard(self, each, stamps, extensions))

    def client(self, shard: int, **fields: Any) -> Client:
        return self.shards[shard].server.connected(**fields)

    def read_all(self) -> None:
        """Let every shard read every log to its end."""
        for number, shard in enumerate(self.shards):
            for other in range(len(self.shards)):
                if other != number:
                    shard.read(other, 1 << 30)
