"""A loaded queue is in the order in which its messages were shown, whichever shards sent them."""

from itertools import count
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast.bayeux.wire.options import ChannelRule
from holdfast.cluster.messages import message_of
from tests.effort import TIMES
from tests.unit.bayeux.publish.addressing import heard, subscribed
from tests.unit.bayeux.publish.shards import World

SHARDS, CHANNEL, WHO = 3, "/news", "carl/1"
# The receiver is at home at the first of them.
PUBLISH = st.tuples(st.just("publish"), st.integers(0, SHARDS - 1), st.integers(4, 5))
READ = st.tuples(st.just("read"), st.integers(1, SHARDS - 1), st.integers(1, 4))
STEPS = st.one_of(
    PUBLISH,
    PUBLISH,
    READ,
    READ,
    st.tuples(st.just("read_half"), st.integers(1, SHARDS - 1), st.integers(1, 4)),
    st.sampled_from([("kill",), ("save",), ("go_back",)]),
)


# What is done, and with which numbers.
Step = tuple[Any, ...]


class Play:
    """Shards with different clocks, one receiver, and the order in which it should hear."""

    def __init__(self, behind_s: list[int]) -> None:
        self.world = World(SHARDS, channels={"/**": ChannelRule(durable=True)})
        self.home = self.world.shards[0]
        assert self.world.home_of(WHO) == self.home.number
        for shard, seconds in zip(self.world.shards, behind_s, strict=True):
            shard.server.set_clock_back(float(seconds))
        self.carl = subscribed(self.world, WHO, CHANNEL)
        self._numbers = count()
        # By number, the priority; by shard, what its log has for others.
        self._priorities: dict[int, int] = {}
        self._logs: list[list[int]] = [[] for _ in self.world.shards]
        self.shown: list[int] = []
        self.save()

    def publish(self, number: int, priority: int) -> None:
        what, shard = next(self._numbers), self.world.shards[number]
        client = shard.server.connected()
        client.publish(CHANNEL, what, ext={"delivery": {"priority": priority}})
        client.server.turn()
        self._priorities[what] = priority
        self._logs[number].append(what)
        if shard is self.home:
            self.shown.append(what)

    def read(self, number: int, most: int) -> None:
        """Take up to so many messages of another shard."""
        place = self.home.places.get(number, 0)
        self.home.read(number, most)
        self.shown += self._logs[number][place : self.home.places[number]]

    def read_half(self, number: int, most: int) -> None:
        """Take messages in one frame, and be killed when the store has them."""
        place = self.home.places.get(number, 0)
        entries = self.world.shards[number].keeper.log[place : place + most]
        from_others = self.home.from_others
        found = [from_others.arrived(message_of(entry), is_durable=True) for entry, _ in entries]
        frame = [each for each in found if each is not None]
        from_others.expect(frame)
        for each in frame:
            self.home.keeper.keep(each.message, each.keys, lambda _: None)
        self.home.places[number] = place + len(entries)
        self.shown += self._logs[number][place : place + len(entries)]
        self.kill()

    def kill(self) -> None:
        self.home.kill()

    def save(self) -> None:
        """Let the store write to its disk what it has."""
        keeper = self.home.keeper
        queues = {receiver: dict(marks) for receiver, marks in keeper.queues.items()}
        self._saved = queues, dict(keeper.bodies), dict(self.home.places), [*self.shown]

    def go_back(self) -> None:
        """Kill the store and its server: what it had not saved comes again, or is lost."""
        queues, bodies, places, shown = self._saved
        keeper = self.home.keeper
        keeper.queues = {receiver: dict(marks) for receiver, marks in queues.items()}
        keeper.bodies, self.home.places, self.shown = dict(bodies), dict(places), [*shown]
        self.home.kill()

    def expected(self) -> list[int]:
        """What the receiver is to hear: by priority, and in the order in which it was shown."""
        return sorted(self.shown, key=lambda what: -self._priorities[what])


def played(steps: list[Step], behind_s: list[int]) -> Play:
    play = Play(behind_s)
    for name, *arguments in steps:
        getattr(play, name)(*arguments)
    return play


@settings(max_examples=50 * TIMES, deadline=None)
@example([("publish", 0, 5), ("publish", 1, 5), ("read", 1, 1)], [0, 5, 0])
@example([("publish", 1, 5), ("publish", 1, 5), ("read", 1, 1), ("read", 1, 1)], [0, 0, 0])
@example([("publish", 0, 5), ("publish", 1, 5), ("read_half", 1, 1)], [0, 5, 0])
@given(
    st.lists(STEPS, min_size=4, max_size=20),
    st.lists(st.integers(0, 5), min_size=SHARDS, max_size=SHARDS),
)
def test_a_queue_that_is_loaded_again_is_in_the_order_in_which_it_was(
    steps: list[Step], behind_s: list[int]
) -> None:
    play = played(steps, behind_s)
    play.kill()
    carl = subscribed(play.world, WHO, CHANNEL)
    assert heard(carl) == play.expected()
