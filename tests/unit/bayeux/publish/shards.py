"""Several servers that pass messages and calls on to each other by logs in memory."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import count
from math import inf
from typing import Any

from holdfast.bayeux.far_parts import FarParts
from holdfast.bayeux.leaving.giving import given
from holdfast.bayeux.leaving.settling import settle, take_back, unsettled
from holdfast.bayeux.publish.among_shards import AmongShards
from holdfast.bayeux.publish.tap import Arrived
from holdfast.bayeux.server import far_parts_of
from holdfast.bayeux.sessions.restoring import restore, restore_without_session
from holdfast.bayeux.state.kept_requests import rejoin, reopen_all
from holdfast.bayeux.wire.client_ids import ClientIds
from holdfast.cluster.calls import (
    Done,
    Received,
    SentCalls,
    UndoneCalls,
    call,
    done_with,
)
from holdfast.cluster.frames import ANSWER, CALL, LogEntry
from holdfast.cluster.messages import answered, entry_of, framed, message_of, size_of
from holdfast.delivery.basics.channels import lookups
from holdfast.delivery.messages.marks import NO_HAND_OVERS, BatchMark
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.shard_call import ShardCall, effect_of
from holdfast.delivery.messages.storing import NO_FIELDS, PersistOutcome, RequestFields
from holdfast.delivery.ports.homes import HomesPort
from holdfast.delivery.ports.neighbours import Neighbours
from holdfast.delivery.ports.other_shards import LogFigures
from holdfast.store.format.given_records import slices
from tests.unit.bayeux.harness import Client, Installed, Server, server_of
from tests.unit.bayeux.leaving.successors import load
from tests.unit.delivery.fake_keeper import FakeKeeper

# Subjects that clients may belong to.
SUBJECTS = ("ann", "bob", "carl", "dan", "dora", "eve", "fay", "joe")


class LoggingKeeper(FakeKeeper):
    """A store that appends what it keeps to a log, and answers calls, in the same step."""

    def __init__(self) -> None:
        super().__init__()
        # Entries, each with the shard that it is for; None for all.
        self.log: list[tuple[LogEntry, int | None]] = []
        self.inbox: dict[str, Received] = {}

    def keep(
        self,
        message: Message,
        receivers: Sequence[str],
        done: Callable[[PersistOutcome], None],
        fields: RequestFields = NO_FIELDS,
        *,
        hand_overs: Mapping[str, BatchMark] = NO_HAND_OVERS,
    ) -> None:
        is_known = message.id in self.bodies
        super().keep(message, receivers, done, fields, hand_overs=hand_overs)
        if is_known or message.id not in self.bodies:
            return
        self.log += [(entry, None) for entry in framed([message])]
        for done_call in answered((message,), waits=False):
            assert size_of(message) == 0
            self.finish(done_call)

    def finish(self, done: Done) -> None:
        """Append an answer, and forget its call."""
        del self.inbox[done.name]
        self.log.append((done.answer, done.shard))


class Shard:
    """One server, its log, and how far it has read the logs of others."""

    def __init__(
        self,
        world: "World",
        number: int,
        stamps: Iterator[int],
        extensions: Sequence[Installed],
        **options: Any,
    ) -> None:
        self._world = world
        self.number = number
        self.keeper = LoggingKeeper()
        buckets = [each for each in range(1000) if world.home_of_bucket(each) == number]
        # Clients of any subject may come to any shard, but new ids are in the buckets of this one.
        buckets = [*buckets * 100, *range(1000)]
        self._served = partial(
            server_of,
            *extensions,
            keeper=self.keeper,
            node=f"n{number}",
            buckets=buckets,
            neighbours=Neighbours(number, self, self),
            **options,
        )
        self.server: Server = self._served()
        # The last three digits say which shard has given an id.
        self.server._stamps = (stamp + number for stamp in stamps)
        self.places: dict[int, int] = {}
        # By shard whose log was read to its end, up to which cursor all its messages were in there.
        self.complete: dict[int, int] = {}
        # By shard that this one has not read on for a while, since when.
        self.heard: dict[int, float] = {}
        # Shards that cannot be reached.
        self.away: set[int] = set()
        # Channels for whose messages the log has no room; durable subscriptions by pattern.
        self.refused: set[str] = set()
        # By shard, how many entries of its log are missing.
        self.missing: dict[int, int] = {}
        self.rows: Counter[str] = Counter()
        # Topics that an earlier process told.
        self._told: list[str] = []
        # Whether others know of subscriptions at once, and what is to be called when they do.
        self.is_agreeing = True
        self.unknown: list[Callable[[bool], None]] = []
        # What was subscribed to, and what waits until others leave nothing out; None if none does.
        self.joined: list[str] = []
        self.is_joining: list[Callable[[], None]] | None = None
        self._begin()

    def _begin(self) -> None:
        self.from_others = self.far.from_others
        self.sent = SentCalls(lambda entry, shard: self.keeper.log.append((entry, shard)))
        self.inbox = UndoneCalls(self._do)

    def give_up(self) -> None:
        """Wait no longer for answers to calls."""
        self.sent.tick(inf)

    def kill(self) -> None:
        """Let another process go on with the store."""
        self.keeper.forget_answers()
        self._told = [*self._told_topics()]
        self.rows.clear()
        self.complete.clear()
        self.server = self._served(after=self.server)
        self._begin()
        life = self.server.bayeux.life
        life.topics.expect(dict(self.keeper.topics))
        for record, entries in self.keeper.load(partial(restore_without_session, life)):
            restore(life, record, entries, self.server.now)
        life.topics.restore()
        state = self.server.bayeux.state
        reopen_all(state, dict(self.keeper.requests), self.server.now)
        rejoin(state.requests, [*state.sessions, *state.waiting_places.queues()])
        self._go_on()

    def _go_on(self) -> None:
        told, self._told = self._told, []
        self.among.made.begin(told)
        for received in [*self.keeper.inbox.values()]:
            self.inbox.take(received.sender, received.entry)
        self.far.go_on()
        self.server.turn()
        for other in self._world.shards:
            if other is not self:
                other.far.requests.asking.ask_again(self.number)

    def restart(self) -> None:
        """Let another process go on with everything that this one has, unless a request waits."""
        bayeux = self.server.bayeux
        settle(bayeux, self.server.now)
        for _ in range(2):
            self.server.turn()
            bayeux.tick(self.server.now)
        self.server.turn()
        if unsettled(bayeux) is not None:
            take_back(bayeux, self.server.now)
            return
        left = [*slices(given(bayeux, self.server.now, {}))]
        self.keeper.forget_answers()
        self._told = [*self._told_topics()]
        self.rows.clear()
        self.complete.clear()
        self.server = self._served(after=self.server)
        self._begin()
        load(self.server, left)
        self._go_on()

    def restart_in_vain(self) -> None:
        """Give everything to another process, and take it back."""
        bayeux = self.server.bayeux
        settle(bayeux, self.server.now)
        self.server.turn()
        take_back(bayeux, self.server.now)
        self._go_on()

    # As other shards

    def has_durable(self, channel: str) -> bool:
        others = [each for each in self._world.shards if each is not self]
        return any(each.has_durable_here(channel) for each in others)

    def has_durable_here(self, channel: str) -> bool:
        state = self.server.bayeux.state
        found = state.channels.get(channel)
        return found is not None and any(each.is_durable for each in state.routes.receivers(found))

    def refuses(self, channel: str) -> bool:
        return channel in self.refused

    def is_away(self, shard: int) -> bool:
        return shard in self.away

    def join(self, channel: str, is_pattern: bool) -> None:
        self.joined.append(channel)

    @property
    def has_joined(self) -> bool:
        return self.is_joining is None

    def when_joined(self, done: Callable[[], None]) -> None:
        if self.is_joining is None:
            done()
        else:
            self.is_joining.append(done)

    def add_row(self, row: str) -> None:
        self.rows[row] += 1

    def remove_row(self, row: str) -> None:
        self.rows[row] -= 1

    def has_row(self, row: str) -> bool | None:
        others = [each for each in self._world.shards if each is not self]
        return any(each.rows[row] for each in others) or (None if self.away else False)

    def may_have_rows(self, row: str) -> bool:
        return any(self.has_row(each) for each in lookups(row))

    def complete_cursor(self) -> int:
        others = [each for each in self._world.shards if each is not self]
        cursors = [self.complete.get(each.number, 0) for each in others]
        return min(self.complete_here(), *cursors)

    def complete_here(self) -> int:
        return self.among.complete_cursor()

    def tell_topic(self, channel: str, is_topic: bool) -> None:
        is_new = is_topic and not self.is_topic(channel)
        self.rows[f"topic{channel}"] += 1 if is_topic else -1
        for other in self._world.shards if is_new else ():
            if other is not self:
                other.among.made.learned([channel])

    def when_topic_known(self, channel: str, done: Callable[[bool], None]) -> None:
        self.when_known([channel], done)

    def find_key(self, digest: str, done: Callable[[int | None], None]) -> None:
        self.keeper.find_key(digest, done)

    @property
    def topics(self) -> Collection[str]:
        others = [each for each in self._world.shards if each is not self]
        return {name for other in others for name in other._told_topics()}

    def _told_topics(self) -> Iterator[str]:
        for name, times in self.rows.items():
            if times and name.startswith("topic"):
                yield name.removeprefix("topic")

    @property
    def among(self) -> AmongShards:
        return self.far.publishing

    @property
    def far(self) -> FarParts:
        return far_parts_of(self.server.bayeux)

    def figures(self) -> LogFigures:
        return LogFigures(self.number, len(self.keeper.log), 0, {}, {}, self.missing, {})

    def when_known(self, patterns: Sequence[str], done: Callable[[bool], None]) -> None:
        if self.is_agreeing:
            done(True)
        else:
            self.unknown.append(done)

    def pass_on(self, message: Message, *, is_early: bool = False) -> None:
        self.keeper.log.append((entry_of(message), None))

    # As homes

    def home_of_subject(self, subject: str) -> int | None:
        home = self._world.home_of(subject)
        return None if home == self.number else home

    def is_topic(self, channel: str) -> bool:
        return any(each.rows[f"topic{channel}"] for each in self._world.shards)

    def home_of(self, channel: str) -> int | None:
        home = self._world.home_of_channel(channel)
        if home is None and self.is_topic(channel):
            home = self._world.home_of(channel[1:])
        return None if home == self.number else home

    def homes_of(self, pattern: str) -> Sequence[int | None]:
        if not pattern.endswith("*"):
            return (self.home_of(pattern),)
        return [None, *[each for each in range(len(self._world.shards)) if each != self.number]]

    def home_of_guest(self, shard: int) -> int | None:
        return shard if shard < len(self._world.shards) and shard != self.number else None

    def home_of_bucket(self, bucket: int) -> int | None:
        home = self._world.home_of_bucket(bucket)
        return None if home == self.number else home

    @property
    def others(self) -> Sequence[int]:
        return [each for each in range(self._world.count) if each != self.number]

    def may_send(self, shard: int) -> bool:
        return self.keeper.is_available

    def steady_s(self) -> float:
        return self.server.now + self.server.slept_s

    def heard_at(self, shard: int) -> float:
        return self.heard.get(shard, inf)

    def send(
        self, shard: int, what: str, data: bytes, done: Callable[[bytes | None], None]
    ) -> None:
        asked = call(what, self.server.bayeux.state.node.stamp(), data)
        self.sent.send(asked, shard, self.server.now, done)

    def answer(self, call: ShardCall, answer: bytes) -> None:
        self.inbox.forget(call.name)
        self.keeper.finish(done_with(call, answer))

    def answer_behind(self, call: ShardCall, answer: bytes) -> None:
        self.answer(call, answer)

    def has_answered(self, message: Message) -> None:
        effect = effect_of(message)
        assert effect is not None
        self.inbox.forget(effect.call.name)

    def _do(self, received: Received) -> None:
        self.server.bayeux.state.calls.do(received.for_core, self.server.now)

    # The logs of others

    def read(self, number: int, most: int) -> None:
        """Take this many entries of another shard's log."""
        place = self.places.get(number, 0)
        entries = self._world.shards[number].keeper.log[place : place + most]
        self.places[number] = place + len(entries)
        if self.places[number] == len(self._world.shards[number].keeper.log):
            self.complete[number] = self._world.shards[number].complete_here()
        for entry, shard in entries:
            self.server.bayeux.state.node.hear(entry.id)
            if shard is None:
                self._read_message(entry)
            elif shard == self.number:
                self._read_own(number, entry)
        self.server.turn()

    def _read_message(self, entry: LogEntry) -> None:
        arrived = self.from_others.arrived(message_of(entry), is_durable=bool(entry.flags & 1))
        if arrived is not None:
            self._take(arrived)

    def _read_own(self, sender: int, entry: LogEntry) -> None:
        if entry.kind == ANSWER:
            self.sent.answered(entry)
        else:
            assert entry.kind == CALL
            received = Received(sender, entry)
            self.keeper.inbox[received.name] = received
            self.inbox.take(sender, entry)

    def _take(self, arrived: Arrived) -> None:
        self.from_others.expect([arrived])
        if arrived.keys:
            self.keeper.keep(arrived.message, arrived.keys, lambda _: None)
        self.from_others.show(arrived)


class World:
    """The shards of a deployment."""

    def __init__(self, number: int, *extensions: Installed, **options: Any) -> None:
        stamps = count(1_700_000_000_000_000_000, 1000)
        self.count = number
        # The buckets of subjects have homes by first letters, others do not.
        bucket_of = ClientIds(bytes(32), bytes).bucket_of
        self._of_subjects = {bucket_of(each): self.home_of(each) for each in SUBJECTS}
        self.shards: list[Shard] = []
        for each in range(number):
            self.shards.append(Shard(self, each, stamps, extensions, **options))

    def __len__(self) -> int:
        return self.count

    def home_of(self, subject: str) -> int:
        """Subjects have homes by their first letters."""
        return ord(subject[0]) % len(self)

    def home_of_bucket(self, bucket: int) -> int:
        return self._of_subjects.get(bucket, bucket % len(self))

    def home_of_channel(self, channel: str) -> int | None:
        """Channels below `/home` have homes by the next letter."""
        return self.home_of(channel[6:]) if channel.startswith("/home/") else None

    def client(self, shard: int, **fields: Any) -> Client:
        return self.shards[shard].server.connected(**fields)

    def read_all(self) -> None:
        """Let every shard read every log to its end, also of answers to what it finds."""
        for _ in range(3):
            self._read_each()
        while self._is_unread():
            self._read_each()

    def _read_each(self) -> None:
        for number, shard in enumerate(self.shards):
            for other in range(len(self.shards)):
                if other != number:
                    shard.read(other, 1 << 30)

    def _is_unread(self) -> bool:
        return any(
            reader.places.get(writer.number, 0) < len(writer.keeper.log)
            for reader in self.shards
            for writer in self.shards
            if reader is not writer
        )


_homes: type[HomesPort] = Shard
