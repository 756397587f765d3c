"""What waits stands in the order in which it was accepted, at whichever shard, and stays so.

A queue that is loaded, also by another shard after a division, is as it was. Shards know nothing of
each other's clocks but what they read: what one accepts behind a message that it knows waits behind
it.
"""

from itertools import count
from typing import Any

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast.cluster.messages import message_of
from holdfast.settings import ChannelSettings
from tests.effort import TIMES
from tests.unit.bayeux.publish.addressing import heard, subscribed
from tests.unit.bayeux.publish.shards import Shard, World

SHARDS, CHANNEL, WHO = 3, "/news", "carl/1"
ANY = st.integers(0, SHARDS - 1)
PUBLISH = st.tuples(st.just("publish"), ANY, st.integers(4, 5))
READ = st.tuples(st.just("read"), ANY, ANY, st.integers(1, 4))
STEPS = st.one_of(
    PUBLISH,
    PUBLISH,
    READ,
    READ,
    st.tuples(st.just("read_half"), ANY, st.integers(1, 4)),
    st.tuples(st.just("kill"), ANY),
    st.sampled_from([("save",), ("go_back",), ("divide",)]),
)


# What is done, and with which numbers.
Step = tuple[Any, ...]


class Divided(World):
    """Shards of which each may become the home of the receiver."""

    divisions = 0

    def home_of(self, subject: str) -> int:
        return (ord(subject[0]) + self.divisions) % len(self)

    def home_of_bucket(self, bucket: int) -> int:
        home = self._of_subjects.get(bucket)
        return bucket % len(self) if home is None else (home + self.divisions) % len(self)


class Play:
    """Shards with different clocks, one receiver, and what it should hear."""

    def __init__(self, behind_s: list[int]) -> None:
        self.world = Divided(SHARDS, channels={"/**": ChannelSettings(durable=True)})
        self._behind_s = behind_s
        for shard, seconds in zip(self.world.shards, behind_s, strict=True):
            shard.server.set_clock_back(float(seconds))
        self.carl = subscribed(self.world, WHO, CHANNEL)
        self._numbers = count()
        # By number, the priority, and all messages that its shard knew when it accepted this one.
        self.priorities: dict[int, int] = {}
        self.known: dict[int, frozenset[int]] = {}
        # By shard, what its log has for others, and what it knows.
        self._logs: list[list[int]] = [[] for _ in self.world.shards]
        self._knows: list[set[int]] = [set() for _ in self.world.shards]
        # What waits for the receiver.
        self.shown: set[int] = set()
        self.save()

    @property
    def home(self) -> Shard:
        return self.world.shards[self.world.home_of(WHO)]

    def publish(self, number: int, priority: int) -> None:
        for each in self.world.shards:
            # A clock that stands still would give ids in the order of how busy shards were.
            each.server.sleep(0.001)
        what, shard = next(self._numbers), self.world.shards[number]
        client = shard.server.connected()
        client.publish(CHANNEL, what, ext={"delivery": {"priority": priority}})
        client.server.turn()
        self.priorities[what], self.known[what] = priority, frozenset(self._knows[number])
        self._logs[number].append(what)
        self._knows[number].add(what)
        if shard is self.home:
            self.shown.add(what)

    def read(self, reader: int, writer: int, most: int) -> None:
        """Let a shard take up to so many messages of another one."""
        if reader != writer:
            shard = self.world.shards[reader]
            place = shard.places.get(writer, 0)
            shard.read(writer, most)
            self._takes(shard, self._logs[writer][place : shard.places[writer]])

    def _takes(self, shard: Shard, messages: list[int]) -> None:
        for each in messages:
            self._knows[shard.number] |= {each, *self.known[each]}
        if shard is self.home:
            self.shown |= {*messages}

    def read_half(self, writer: int, most: int) -> None:
        """Let the home take messages in one frame, and be killed when the store has them."""
        home = self.home
        if writer == home.number:
            return
        place = home.places.get(writer, 0)
        entries = self.world.shards[writer].keeper.log[place : place + most]
        for entry, _ in entries:
            home.server.bayeux.state.node.hear(entry.id)
        from_others = home.from_others
        found = [from_others.arrived(message_of(entry), is_durable=True) for entry, _ in entries]
        frame = [each for each in found if each is not None]
        from_others.expect(frame)
        for each in frame:
            home.keeper.keep(each.message, each.keys, lambda _: None)
        home.places[writer] = place + len(entries)
        self._takes(home, self._logs[writer][place : place + len(entries)])
        self.kill(home.number)

    def kill(self, number: int) -> None:
        """Let another process go on with the store, which knows what ids were given."""
        shard = self.world.shards[number]
        newest, slept_s = shard.server._newest_stamp, shard.server.slept_s
        shard.kill()
        shard.server.set_clock_back(float(self._behind_s[number]))
        shard.server.sleep(slept_s)
        shard.server.bayeux.state.node.hear(newest)

    def save(self) -> None:
        """Let the store write to its disk what it has."""
        keeper = self.home.keeper
        queues = {receiver: dict(marks) for receiver, marks in keeper.queues.items()}
        self._saved = queues, dict(keeper.bodies), dict(self.home.places), {*self.shown}

    def go_back(self) -> None:
        """Kill the store and its server: what it had not saved comes again, or is lost."""
        queues, bodies, places, shown = self._saved
        keeper = self.home.keeper
        keeper.queues = {receiver: dict(marks) for receiver, marks in queues.items()}
        keeper.bodies, self.home.places, self.shown = dict(bodies), dict(places), {*shown}
        self.kill(self.home.number)

    def divide(self) -> None:
        """Let another shard be the receiver's home, when all shards have taken everything."""
        for reader in range(SHARDS):
            for writer in range(SHARDS):
                self.read(reader, writer, 1 << 30)
        before = self.home.keeper
        self.world.divisions += 1
        after = self.home.keeper
        after.sessions, before.sessions = before.sessions, {}
        after.queues, before.queues = before.queues, {}
        after.bodies = {**after.bodies, **before.bodies}
        newest = max(each.server._newest_stamp for each in self.world.shards)
        everything = set().union(*self._knows)
        for shard in self.world.shards:
            self.kill(shard.number)
            shard.server.bayeux.state.node.hear(newest)
            self._knows[shard.number] = {*everything}
        self.save()

    def waiting(self) -> list[int]:
        """What waits for the receiver, in its order."""
        session = self.home.server.bayeux.state.sessions.named(WHO)
        assert session is not None
        return [orjson.loads(each.wire)["data"] for each in session.queue.messages()]


def played(steps: list[Step], behind_s: list[int]) -> Play:
    play = Play(behind_s)
    for name, *arguments in steps:
        getattr(play, name)(*arguments)
    return play


PLAYS = (
    st.lists(STEPS, min_size=4, max_size=20),
    st.lists(st.integers(0, 5), min_size=SHARDS, max_size=SHARDS),
)


@pytest.mark.slow
@settings(max_examples=50 * TIMES, deadline=None)
@example([("publish", 0, 5), ("publish", 1, 5), ("read", 0, 1, 1)], [0, 5, 0])
@example([("publish", 1, 5), ("publish", 0, 5), ("read", 0, 1, 1)], [0, 0, 0])
@example([("publish", 0, 5), ("read", 1, 0, 1), ("publish", 1, 5), ("read", 0, 1, 1)], [0, 5, 0])
@example([("publish", 0, 5), ("publish", 1, 5), ("read_half", 1, 1)], [0, 5, 0])
@example([("publish", 1, 5), ("publish", 0, 5), ("divide",), ("publish", 2, 5)], [0, 0, 5])
@given(*PLAYS)
def test_what_waits_stays_in_its_order_and_behind_what_its_shard_knew(
    steps: list[Step], behind_s: list[int]
) -> None:
    play = played(steps, behind_s)
    waiting = play.waiting()
    play.kill(play.home.number)
    found = heard(subscribed(play.world, WHO, CHANNEL))
    assert found == waiting
    assert sorted(found) == sorted(play.shown)
    for place, what in enumerate(found):
        for later in found[place + 1 :]:
            assert play.priorities[what] >= play.priorities[later]
            if play.priorities[what] == play.priorities[later]:
                assert later not in play.known[what]


@pytest.mark.slow
@settings(max_examples=50 * TIMES, deadline=None)
@example([("publish", 1, 5), ("publish", 0, 5), ("divide",), ("publish", 2, 5)])
@example([("save",), ("publish", 0, 4), ("publish", 2, 4), ("read_half", 2, 1)])
@given(PLAYS[0])
def test_shards_with_one_clock_have_one_order_for_all_that_follows_each_other(
    steps: list[Step],
) -> None:
    play = played(steps, [0] * SHARDS)
    play.kill(play.home.number)
    found = heard(subscribed(play.world, WHO, CHANNEL))
    assert found == sorted(play.shown, key=lambda what: (-play.priorities[what], what))
