"""Several shards with people at each, and what fails. The seed decides what happens next."""

import random
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import count, permutations
from typing import TYPE_CHECKING, Any
from zlib import crc32

from holdfast.bayeux.sessions.restoring import restore, restore_without_session
from holdfast.cluster.places import place_of
from holdfast.cluster.shards import Homes, Shards, first_map
from holdfast.delivery.ports.journal_port import NO_JOURNAL
from holdfast.delivery.ports.neighbours import Neighbours
from holdfast.sharding.member import Member
from holdfast.sharding.other_shards import OtherShards
from tests.unit.bayeux.harness import Asked, Client, Server, server_of
from tests.unit.sharding.store_model import StoreModel

if TYPE_CHECKING:
    from holdfast.sharding.passing import Passage

CHANNELS = ["/a", "/b", "/c/d"]
# Readers cut links for which a log waits in vain for two seconds; without faults none is so slow.
_SLOW_S = 0.9
PATTERNS = ["/a", "/b", "/*", "/**", "/c/*"]
# What a reader asks for on a link besides channels.
_HOLD, _GO = "hold", "go"
# Few people subscribe to these, and late.
RARE = ["/rare/a", "/rare/b", "/rare/c"]


def _matches(pattern: str, channel: str) -> bool:
    stem = channel.rpartition("/")[0]
    return pattern in (channel, f"{stem}/*", "/**")


class Shard:
    """The process of a shard.

    Args:
        shown: What the process before it had shown, if this one goes on from there.
    """

    def __init__(
        self,
        world: "World",
        number: int,
        before: "Shard | None" = None,
        shown: Mapping[int, str] | None = None,
    ) -> None:
        self.world = world
        self.number = number
        self.store = world.stores[number]
        self.may_speak = True
        shards = OtherShards(
            *(number, world.homes, self.store),
            stamp=lambda: self.server._stamp(),
            came_early=NO_JOURNAL.came_early,
            clock=lambda: world.now,
            core_clock=lambda: world.now,
            steady=lambda: world.now,
            may_speak=lambda: self.may_speak,
            wake=self._wake,
        )
        self.server: Server = server_of(
            keeper=self.store,
            node=f"n{number}",
            after=None if before is None else before.server,
            neighbours=Neighbours(number, shards.homes, shards),
        )
        self.server._stamps = world.stamps(number)
        self.is_woken = False
        self.links: set[int] = set()
        others = [each for each in world.stores if each != number]
        self.member = Member(shards, self.server.bayeux)
        self.store.owner = self.member
        found = self.store.open()
        self.member.begin(found, shown)
        # How far the processes before this one have taken the logs of others.
        self.began_at = {
            other: place_of(found.taken[other].place if other in found.taken else "")
            for other in others
        }
        self._load()
        # What a process does before it serves: it reads the facts of all.
        for other in others:
            if world.stores[other].is_readable:
                self.member.learn_all(other, world.stores[other].told())
        self.member.serve()
        self.turn()
        self.publisher = self.server.client(ext={"delivery": {}})
        # What it published last with a key, and may publish again: the channel, data and options.
        self.keyed: tuple[str, Any, dict[str, Any]] | None = None
        self.publisher_name = next(world.names)

    def _wake(self) -> None:
        self.is_woken = True

    def _load(self) -> None:
        life = self.server.bayeux.life
        life.topics.expect({})
        for record, entries in self.store.load(partial(restore_without_session, life)):
            restore(life, record, entries, self.server.now)

    def turn(self) -> None:
        """The turn ends, and the store answers."""
        self.server.turn()
        while self.is_woken:
            self.is_woken = False
            self.member.end_turn()
            self.server.turn()

    def end_turn(self) -> None:
        """The turn ends; the answers of the store are on their way."""
        self.is_woken = False
        self.member.end_turn()

    def tick(self) -> None:
        self.member.tick()
        for other in self.member.others.agreements.holders_to_read(self.world.now):
            # An embedded store has no lease.
            self.member.others.agreements.read(other, None, self.world.now)

    def check_books(self) -> None:
        """Whatever others have appended is taken, skipped or missing."""
        figures = self.member.others.figures()
        for other, store in self.world.stores.items():
            if other != self.number:
                own = figures.taken[other] + figures.skipped[other] + figures.missing[other]
                assert self.began_at[other].total + own == store.end.total
                assert figures.missing[other] == 0

    def read(self, other: int, most: int) -> None:
        member, store = self.member, self.world.stores[other]
        if not store.is_readable:
            return
        if other in member.others.known.wanted:
            member.learn_all(other, store.told())
        reader = member.readers[other]
        if reader.is_looking:
            incarnations, link = store.looked_at(reader.looks_at)
            reader.looked(incarnations, self.world.now, link)
            return
        after = reader.next_read(self.world.now)
        if after is not None:
            member.heard(other, after, store.read(after, most))


class ReadableStore(StoreModel):
    """A store that may be away for all others."""

    is_readable = True


class Person:
    """A client, what it must hear, and what it has heard."""

    def __init__(self, world: "World", number: int, *, is_named: bool) -> None:
        self.world = world
        self.number = number
        self.is_named = is_named
        self.at = number % len(world.stores)
        self.arrive()

    def arrive(self) -> None:
        """Come to the shard, for the first time or after its process was killed."""
        self.shard = self.world.shards[self.at]
        delivery: dict[str, Any] = {}
        if self.is_named:
            delivery["session"] = {"name": f"p{self.number}/1", "timeout": 600_000}
        if not (self.is_named and hasattr(self, "due")):
            self.patterns: set[str] = set()
            self.asked: list[tuple[str, Asked]] = []
            # By publisher and channel: numbers of messages that it must hear, and the heard ones.
            self.due: dict[tuple[int, str], list[int]] = defaultdict(list)
            self.heard: dict[tuple[int, str], list[int]] = defaultdict(list)
        # What it has heard from this process.
        self.of_process: set[int] = set()
        self.client: Client = self.shard.server.guest()
        self.client.handshake(ext={"delivery": delivery, "ack": True})
        self.ack = 0
        self.asked = []
        # Its connect that the server holds.
        self.held: Asked | None = None

    def subscribe(self, pattern: str) -> None:
        if pattern not in self.patterns:
            self.asked.append((pattern, self.client.subscribe(pattern)))

    def look(self) -> None:
        """See which subscribes have been answered."""
        for pattern, asked in [each for each in self.asked if not each[1].is_held]:
            self.asked.remove((pattern, asked))
            self.hear(asked)
            if asked.reply["successful"]:
                self.patterns.add(pattern)
                self.world.agreed += self.is_named
            else:
                self.world.refused += 1
        if self.held is not None and not self.held.is_held:
            held, self.held = self.held, None
            self.hear(held)

    def wait(self) -> None:
        """Connect, and get what comes later."""
        if not self.asked and self.held is None:
            self.held = self.client.connect(ext={"ack": self.ack})
            self.world.waited += 1

    def listen(self) -> None:
        if self.asked:
            # The reply to a subscribe brings messages, too: their order would be unknown.
            return
        if self.held is not None:
            # Its connection is lost.
            self.shard.server.abort(self.held)
            self.held = None
        asked = self.client.connect(advice={"timeout": 0}, ext={"ack": self.ack})
        self.shard.server.turn()
        self.hear(asked)

    def hear(self, asked: Asked) -> None:
        for publisher, channel, number in asked.data:
            assert number not in self.of_process, f"{number} twice"
            self.of_process.add(number)
            heard = self.heard[publisher, channel]
            if number not in heard:
                heard.append(number)
        for reply in asked.replies:
            self.ack = reply.get("ext", {}).get("ack", self.ack)

    def check(self) -> None:
        for key in {*self.due, *self.heard}:
            due, heard = self.due[key], self.heard[key]
            assert heard == sorted(heard), f"{key} out of order"
            missing = {*due} - {*heard}
            assert not missing, f"person {self.number} lacks {missing} of {key}"


class Line:
    """The link by which one shard sends messages to another one."""

    def __init__(self, world: "World", sender: int, reader: int) -> None:
        self.world = world
        self.sender, self.reader = sender, reader
        self.sent = (0, 0)
        self.is_open = False
        # With the time at which each was sent. Confirmations of grafts have no bytes.
        self.frames: deque[tuple[int, int, bytes | None, float]] = deque()
        # What the reader asks for: channels, with the numbers of grafts; 0 to prune.
        self.asked: deque[tuple[str, int, float]] = deque()
        self.pruned: set[str] = set()
        self.is_cut = self.is_held = False

    def begin(self) -> None:
        """One of its ends has another process."""
        sender, reader = (self.world.shards.get(each) for each in (self.sender, self.reader))
        if reader is not None and self.sent[0] and self.sent[0] in reader.links:
            # What a killed process has sent arrives.
            self.deliver(len(self.frames))
            reader.member.inlet.lose_link(self.sender, self.sent[0])
        self.frames.clear()
        self.asked.clear()
        self.pruned.clear()
        self.is_cut = self.is_held = False
        self.is_open = sender is not None and reader is not None
        self.sent = (0, 0)
        if sender is not None and reader is not None:
            self.sent = (reader.member.inlet.open_link(self.sender, self), 0)
            reader.links.add(self.sent[0])
            passages: dict[int, Passage] = {**sender.member.others.own.passing.passages}
            sender.member.others.own.passing.passages = {**passages, self.reader: self}

    def send(self, frame: bytes) -> None:
        link, count = self.sent
        self.sent = (link, count + 1)
        self.frames.append((link, count + 1, frame, self.world.now))
        self.world.passed += 1

    def cut(self) -> None:
        self.is_cut = True

    def hold(self) -> None:
        """The reader lets no more come for a while."""
        if self.is_open and not self.is_held:
            self.is_held = True
            self.asked.append((_HOLD, -1, self.world.now))

    def prune(self, channels: Sequence[str]) -> None:
        self.world.pruned += len(channels)
        self.asked += [(channel, 0, self.world.now) for channel in channels]

    def graft(self, channel: str, number: int) -> None:
        self.world.grafted += 1
        self.asked.append((channel, number, self.world.now))

    @property
    def is_slow(self) -> bool:
        """Whether a frame is on its way for so long that the link is not in order."""
        since = [each[0][-1] for each in (self.frames, self.asked) if each]
        return bool(since) and self.world.now - min(since) > _SLOW_S

    def deliver(self, most: int) -> None:
        inlet = self.world.shards[self.reader].member.inlet
        for _ in range(min(most, len(self.asked))):
            channel, number, _ = self.asked.popleft()
            if channel == _HOLD:
                self.is_open = False
                self.frames.append((self.sent[0], 0, None, self.world.now))
                continue
            if channel == _GO:
                self.is_open, self.sent = True, (number, 0)
                self.pruned.clear()
                continue
            if not number:
                self.pruned.add(channel)
                continue
            self.pruned.difference_update([channel] if channel else [*self.pruned])
            self.frames.append((self.sent[0], number, None, self.world.now))
        for _ in range(min(most, len(self.frames))):
            link, n, frame, _ = self.frames.popleft()
            if frame is not None:
                inlet.take_messages(self.sender, link, n, frame)
            elif not n:
                # Nothing comes before the way is opened again.
                self.is_held = False
                begun = inlet.open_link(self.sender, self)
                self.world.shards[self.reader].links.add(begun)
                self.asked.append((_GO, begun, self.world.now))
            else:
                inlet.grafted(self.sender, n)


class World:
    """The shards of a deployment."""

    def __init__(
        self,
        seed: int,
        *,
        has_faults: bool = True,
        makes_topics: bool = False,
        is_rare: bool = False,
        rules: Mapping[str, int] | None = None,
    ) -> None:
        self.random = random.Random(seed)
        self.makes_topics = makes_topics
        self.is_rare = is_rare
        self.channels, self.patterns = (RARE, RARE) if is_rare else (CHANNELS, PATTERNS)
        self.now = 0.0
        self.has_faults = has_faults
        self.names = count(1)
        self.published = self.agreed = self.refused = self.killed = self.accepted = self.waited = 0
        self.stores: dict[int, ReadableStore] = {}
        for number in range(self.random.randint(2, 3)):
            self.stores[number] = ReadableStore(number)
        shards = first_map(len(self.stores))
        self.homes = Shards(shards, Homes(rules or {}), lambda name: crc32(name.encode()) % 1000)
        self._stamps = count(1_700_000_000_000_000_000, 1000)
        self.passed = self.pruned = self.grafted = 0
        self.lines = [Line(self, *pair) for pair in permutations(self.stores, 2)]
        self.shards: dict[int, Shard] = {}
        for number in self.stores:
            self.shards[number] = Shard(self, number)
        for line in self.lines:
            line.begin()
        self.people = [Person(self, number, is_named=number % 2 == 0) for number in range(7)]
        # Publishes without a reply: who must hear them if they are accepted.
        self.waiting: list[tuple[Shard, Asked, int, str, list[Person]]] = []

    def stamps(self, number: int) -> Any:
        return (stamp + number for stamp in self._stamps)

    def lines_of(self, number: int) -> list[Line]:
        return [each for each in self.lines if number in (each.sender, each.reader)]

    # What happens

    def run(self, steps: int = 400) -> None:
        for _ in range(steps):
            self.now += self.random.random() * 0.02
            self._step()
        self.rest()

    def _step(self) -> None:
        pick = self.random.choice
        shard, person = pick([*self.shards.values()]), pick(self.people)
        for line in self.lines:
            if line.is_cut:
                line.begin()
        if not self.has_faults:
            for line in self.lines:
                if line.is_slow:
                    line.deliver(len(line.frames))
        if self.has_faults and self.random.random() < 0.02:
            pick([self._kill, self._kill, self._leave])(shard)
            return
        pick(
            [
                lambda: self._subscribe(person),
                lambda: self._publish(shard),
                lambda: self._publish(shard),
                lambda: self._publish(shard),
                lambda: self._repeat(shard),
                lambda: self._read(shard),
                lambda: self._read(shard),
                lambda: self._read(shard),
                lambda: pick(self.lines).deliver(self.random.randint(1, 3)),
                lambda: pick(self.lines).deliver(self.random.randint(1, 3)),
                lambda: self._hold(pick(self.lines)),
                shard.tick,
                shard.end_turn,
                shard.turn,
                shard.turn,
                person.listen,
                person.wait,
            ]
        )()
        self._look()

    def _hold(self, line: Line) -> None:
        """A process is about to leave, and stays."""
        if self.random.random() < 0.1:
            line.hold()

    def _subscribe(self, person: Person) -> None:
        if not self.is_rare or self.random.random() < 0.3:
            person.subscribe(self.random.choice(self.patterns))

    def _publish(self, shard: Shard) -> None:
        self.published += 1
        channel, number = self.random.choice(self.channels), self.published
        persistent = self.random.choice([None, True, False])
        options: dict[str, Any] = {} if persistent is None else {"persistent": persistent}
        if self.makes_topics and self.random.random() < 0.05:
            options["topic"] = {"destroyDelay": -1}
        if persistent and self.random.random() < 0.5:
            options["key"] = str(number)
        # Whatever is not stored may get lost when something fails.
        receivers = [
            person
            for person in self.people
            if any(_matches(pattern, channel) for pattern in person.patterns)
            and (not self.has_faults or (person.is_named and persistent is not False))
        ]
        data = [shard.publisher_name, channel, number]
        asked = shard.publisher.publish(channel, data, ext={"delivery": options})
        self.waiting.append((shard, asked, number, channel, receivers))
        if "key" in options:
            shard.keyed = channel, data, options

    def _repeat(self, shard: Shard) -> None:
        """Publish again what has a key, as a client does that has had no answer."""
        if shard.keyed is not None:
            channel, data, options = shard.keyed
            asked = shard.publisher.publish(channel, data, ext={"delivery": options})
            self.waiting.append((shard, asked, data[-1], channel, []))

    def _read(self, shard: Shard) -> None:
        other = self.random.choice([each for each in self.stores if each != shard.number])
        shard.read(other, self.random.randint(1, 4))

    def _kill(self, shard: Shard) -> None:
        self.killed += 1
        self.waiting = [each for each in self.waiting if each[0] is not shard]
        self.shards[shard.number] = Shard(self, shard.number, shard)
        for line in self.lines_of(shard.number):
            line.begin()
        for person in self.people:
            if person.shard is shard:
                person.arrive()

    def _leave(self, shard: Shard) -> None:
        """The store of a shard is away for the others, or back."""
        shard.store.is_readable = not shard.store.is_readable

    def _look(self) -> None:
        """See what was answered."""
        for each in [each for each in self.waiting if not each[1].is_held]:
            self.waiting.remove(each)
            shard, asked, number, channel, receivers = each
            assert asked.data == []
            if asked.reply["successful"]:
                self.accepted += 1
                for person in receivers:
                    person.due[shard.publisher_name, channel].append(number)
        for person in self.people:
            person.look()

    def rest(self) -> None:
        """Everything works for a while: then everybody must have heard everything."""
        for store in self.stores.values():
            store.is_readable = True
        for _ in range(60):
            self.now += 0.2
            for line in self.lines:
                line.deliver(max(len(line.frames), len(line.asked)))
            for shard in self.shards.values():
                for other in {*self.stores} - {shard.number}:
                    shard.read(other, 100)
                shard.tick()
                shard.turn()
            self._look()
        assert self.waiting == []
        for shard in self.shards.values():
            shard.check_books()
        for person in self.people:
            assert person.asked == []
            for _ in range(30):
                person.listen()
            person.check()
        assert all(shard.server.balances() for shard in self.shards.values())
