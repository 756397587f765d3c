"""The id of an event is the same whenever a client sees it, and no other event has it."""

from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.delivery.basics.node import TimestampSource
from holdfast.settings import ChannelSettings
from tests.unit.bayeux.harness import Asked, Client, Json
from tests.unit.bayeux.second_lives import RestartableServer, batch, connect, take

pytestmark = pytest.mark.untraced

HOUR_NS = 3_600_000_000_000
RULES = {"/a": ChannelSettings(history=1000, durable=True)}
# What may happen, in any order.
STEPS = ("publish", "ack", "take_over", "restart", "rename", "replay", "set_back", "set_forward")


class Clock:
    """The wall clock, which moves on slowly unless somebody sets it."""

    def __init__(self) -> None:
        self.ns = 1_763_000_000_123_456_789
        # The newest message that the store has had.
        self.newest = 0

    def read(self) -> int:
        self.ns += 77
        return self.ns


class ClockedServer(RestartableServer):
    """A server whose stamps come from the real source."""

    def __init__(
        self, *, clock: Clock, after: RestartableServer | None = None, **options: Any
    ) -> None:
        self._source = TimestampSource(clock.newest, clock.read)
        super().__init__(after=after, **options)
        self._options["clock"] = clock

    def _stamp(self) -> int:
        return self._source()


class Deployment:
    """One server after the other with the same store, and a receiver that outlives them."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.nodes = (f"node-{n}" for n in count())
        self.server = ClockedServer(clock=self.clock, channels=RULES)
        self.published = 0
        # The ids that each message was seen with.
        self.seen: dict[int, set[str]] = {}
        self.take_over()

    def look(self, asked: Asked) -> None:
        for event in asked.events:
            self.note(event["data"], event["ext"]["delivery"])

    def note(self, number: int, delivery: Json) -> None:
        self.seen.setdefault(number, set()).add(delivery["id"])
        assert delivery["id"].endswith(delivery["rcvTimestamp"])

    def publish(self) -> None:
        client = self.server.client()
        asked = client.publish("/a", self.published, ext={"delivery": {}})
        self.server.turn()
        told = asked.reply["ext"]["delivery"]
        self.note(self.published, told)
        self.clock.newest = max(self.clock.newest, int(told["rcvTimestamp"]))
        self.published += 1
        self.look(connect(self.receiver, 0))

    def ack(self) -> None:
        asked = connect(self.receiver, 0)
        self.look(asked)
        self.look(connect(self.receiver, batch(asked)))

    def take_over(self) -> None:
        self.receiver = Client(self.server)
        take(self.receiver)
        self.look(connect(self.receiver, 0))
        self.receiver.subscribe("/a")
        self.server.turn()

    def restart(self, **options: Any) -> None:
        self.server = self.server.reborn(**options)
        self.take_over()

    def rename(self) -> None:
        self.restart(node=next(self.nodes))

    def replay(self) -> None:
        """Another client gets the whole history."""
        client = self.server.client(ext={"delivery": True, "ack": True})
        ext = {"delivery": {"history": {"numEntries": -1}}}
        client.send({"channel": "/meta/subscribe", "subscription": "/a", "ext": ext})
        before = sum(map(len, self.seen.values()))
        asked = connect(client, 0)
        assert len(asked.events) == self.published
        self.look(asked)
        assert sum(map(len, self.seen.values())) == before

    def set_back(self) -> None:
        self.clock.ns -= HOUR_NS

    def set_forward(self) -> None:
        self.clock.ns += HOUR_NS


@given(st.lists(st.sampled_from(STEPS), min_size=4, max_size=25))
def test_ids_never_change_and_never_collide(steps: list[str]) -> None:
    deployment = Deployment()
    for step in (*steps, "publish", "rename", "ack", "replay"):
        getattr(deployment, step)()
    ids = list(deployment.seen.values())
    assert [len(each) for each in ids] == [1] * deployment.published
    assert len(set().union(*ids)) == deployment.published
    assert all(id.startswith("test-") and id.endswith("000") for id in set().union(*ids))
