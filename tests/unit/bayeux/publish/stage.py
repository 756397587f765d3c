"""Three people at three shards, which may be killed: what tests of letters in any order share."""

from typing import Any

from hypothesis import strategies as st

from holdfast.delivery.messages.storing import PersistOutcome
from tests.unit.bayeux.harness import Asked, Client
from tests.unit.bayeux.publish.addressing import heard, named
from tests.unit.bayeux.publish.shards import World

# Each of them is at another shard.
PEOPLE = ["ann/1", "bob/1", "carl/1"]
ANYBODY = st.sampled_from(PEOPLE)
# What happens whatever the people do. Each step is the name of a method, with its arguments.
EVENTS = [
    st.tuples(st.just("read"), st.integers(0, 2), st.integers(0, 2), st.integers(1, 3)),
    st.tuples(st.just("listen"), ANYBODY),
    st.tuples(st.just("give_up"), st.integers(0, 2)),
    st.tuples(st.just("kill"), st.integers(0, 2)),
    st.tuples(st.just("pause"), st.integers(0, 2)),
]


class Stage:
    """The people, and what each of them has heard."""

    def __init__(self, **options: Any) -> None:
        self.world = World(3, **options)
        self.clients: dict[str, Client] = {name: self.arrive(name) for name in PEOPLE}
        self.heard: dict[str, list[Any]] = {name: [] for name in PEOPLE}
        # Requests that are not answered.
        self.asked: list[tuple[str, Asked]] = []

    def arrive(self, name: str) -> Client:
        """Return the client of a person who comes for the first time."""
        return named(self.world, name)

    def play(self, steps: list[Any]) -> None:
        """Take these steps, and check everything at the end."""
        for kind, *args in steps:
            getattr(self, kind)(*args)
            self.hear_replies()
        for shard in self.world.shards:
            shard.keeper.outcome = PersistOutcome.KEPT
        self.world.read_all()
        self.repeat()
        self.world.read_all()
        for name in PEOPLE:
            self.listen(name)
        self.check()
        for shard in self.world.shards:
            assert shard.server.balances()
            assert shard.keeper.inbox == {}
            assert len(shard.inbox) == len(shard.sent) == 0

    def repeat(self) -> None:
        """Repeat what has no outcome."""

    def check(self) -> None:
        """Check what everybody has heard."""
        raise NotImplementedError

    def wait_for(self, name: str, asked: Asked) -> Asked:
        """Let the person hear what comes with the answer."""
        self.asked.append((name, asked))
        return asked

    def hear_replies(self) -> None:
        """Events travel with any reply."""
        late = []
        for name, asked in self.asked:
            if asked.is_held:
                late.append((name, asked))
            else:
                self.heard[name] += asked.data
        self.asked = late

    def read(self, reader: int, writer: int, most: int) -> None:
        if reader != writer:
            self.world.shards[reader].read(writer, most)

    def listen(self, name: str) -> None:
        self.hear_replies()
        self.heard[name] += heard(self.clients[name])
        self.hear_replies()

    def give_up(self, shard: int) -> None:
        self.world.shards[shard].give_up()
        self.world.shards[shard].server.turn()

    def kill(self, shard: int) -> None:
        there = [name for name in PEOPLE if self.world.home_of(name) == shard]
        for name in there:
            # All that was heard is acked.
            self.listen(name)
        self.world.shards[shard].kill()
        for name in there:
            self.clients[name] = named(self.world, name)

    def pause(self, shard: int) -> None:
        """Let the store of a shard refuse messages until the next pause."""
        keeper = self.world.shards[shard].keeper
        is_open = keeper.outcome is PersistOutcome.KEPT
        keeper.outcome = PersistOutcome.REFUSED if is_open else PersistOutcome.KEPT
