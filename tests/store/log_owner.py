"""A process of a deployment with other shards, and what it has for them and of them."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from holdfast.cluster.frames import LogEntry, read, write
from holdfast.cluster.log import ForShard, Log, parts_of
from holdfast.cluster.messages import entry_of, framed, size_of
from holdfast.cluster.places import NOWHERE, Place, place_of
from holdfast.delivery.messages.crossing import Crossing
from holdfast.delivery.messages.message import Message
from holdfast.delivery.ports.journal_port import NO_JOURNAL, DeliveryJournal
from holdfast.sharding.latest_frames import LatestFrames, again
from holdfast.store.format.log_scripts import LoggedFrame, Parts
from holdfast.store.framing.log_state import LogState, TakenLog
from holdfast.store.framing.shard_log import Facts, ShardLog, Taken
from tests.store.servers import ValkeyServer
from tests.store.store_process import BASE, KEYS, StoreProcess, message, store_process


class Owner:
    """Has few facts, places and calls; appends passing messages before each turn is sent."""

    def __init__(self, shard_log: ShardLog) -> None:
        self.shard_log = shard_log
        self.log = Log(self)
        self.facts: dict[str, str] = {}
        self.of_others: dict[int, TakenLog] = {}
        self.calls: dict[str, bytes] = {}
        self.appended: list[tuple[int, int, bool]] = []
        self.latest = LatestFrames()
        self.incarnation, self.end = ("", 0), NOWHERE
        self.begun: list[LogState] = []
        self.events: list[str] = []
        # Called when a new incarnation begins.
        self.on_begin: Callable[[], None] = lambda: None

    # As the port of the log

    @property
    def is_available(self) -> bool:
        return self.shard_log.is_available

    def append(self, count: int, parts: Mapping[str, bytes], done: Any) -> None:
        self.shard_log.append(count, parts, done)

    def append_facts(self, facts: Facts, parts: Mapping[str, bytes], done: Any) -> None:
        def stated(text: str | None) -> None:
            done(None if text is None else place_of(text))

        self.shard_log.append_facts(facts, parts, stated)

    # As the owner

    def flush(self) -> None:
        self.log.flush(0.0)

    def size_of(self, message: Message) -> int:
        return size_of(message)

    def frame_of(self, messages: Sequence[Message]) -> Parts | None:
        entries = framed(messages)
        if not entries:
            return None
        parts = parts_of([ForShard(entry) for entry in entries])
        return Parts(len(entries), parts, needed_by=frozenset({1}))

    def on_appended(self, n: int, frame: Parts, has_facts: bool) -> None:
        self.appended.append((n, frame.entries, has_facts))
        before, self.end = self.end, Place(*self.incarnation, n, self.end.total + frame.entries)
        self.latest.add_frame(before, self.end, frame, 0.0)

    def latest_frames(self) -> Sequence[LoggedFrame]:
        return self.latest.all()

    def begin_again(self, begun: LogState) -> tuple[Facts, Mapping[str, bytes]]:
        self.begun.append(begun)
        self.begin(begun)
        self.on_begin()
        self.appended.clear()
        self.log.begin_again()
        gone = dict.fromkeys(begun.facts.keys() - self.facts.keys(), "")
        facts = {**gone, **self.facts}
        return facts, {"all": write((), facts)}

    def again(self, frame: LoggedFrame) -> Parts | None:
        return again(frame)

    def begin(self, begun: LogState) -> None:
        self.incarnation, self.end = (begun.nonce, begun.fence), place_of(begun.end)

    def places(self) -> Mapping[int, TakenLog]:
        return self.of_others

    def inbox(self) -> Mapping[str, bytes]:
        return self.calls

    def on_begun_again(self) -> None:
        self.events.append("begun again" if self.is_available else "too early")


class ShardProcess:
    """It uses the store."""

    def __init__(self, at: StoreProcess) -> None:
        assert at.store.shard_log is not None
        self.at = at
        self.log = at.store.shard_log
        self.owner = Owner(self.log)
        self.log.owner = self.owner
        self.taken: list[Taken] = []
        self.stated: list[str | None] = []

    def publish(self, n: int, *receivers: str, key: str = "", data: object = "hello") -> Message:
        """Accept a durable message, which crosses."""
        kept = crossing(n, key=key, data=data)
        self.at.keep(kept, *receivers)
        return kept

    def state(self, facts: Facts, answered: Sequence[str] = ()) -> None:
        self.log.append_facts(facts, {"all": write((), facts)}, self.stated.append, answered)

    def frames(self) -> list[list[int]]:
        """The numbers of the messages in the log, by frame; facts have none."""
        return [[entry.id - BASE for entry in read(each).all_entries()] for each in self.parts()]

    def facts_told(self) -> list[Facts]:
        return [read(each).facts for each in self.parts()]

    def parts(self) -> list[bytes]:
        found = self.at.server.ask("XRANGE", KEYS.log, "-", "+")
        return [fields[b"all"] for _, fields in found]

    def frame_ids(self) -> list[bytes]:
        return [id for id, _ in self.at.server.ask("XRANGE", KEYS.log, "-", "+")]

    def place(self) -> Place:
        """The end of the log."""
        return place_of(self.at.hash(KEYS.meta)["log"])


def crossing(n: int, *, key: str = "", data: object = "hello") -> Message:
    """The message with this number, which other shards get with the call that stores it."""
    found = message(n, data, key=key)
    Crossing.add_to(found)
    return found


def passing(n: int) -> LogEntry:
    found = message(n)
    found.is_durable = False
    return entry_of(found)


@asynccontextmanager
async def shard_process(
    server: ValkeyServer, *, journal: DeliveryJournal = NO_JOURNAL
) -> AsyncIterator[ShardProcess]:
    async with store_process(server, journal=journal, has_log=True) as at:
        shard = ShardProcess(at)
        shard.owner.begin(await shard.log.read())
        yield shard
