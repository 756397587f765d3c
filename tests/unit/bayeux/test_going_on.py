"""A client that continues behind a cursor misses nothing, or is told what may be missing."""

from dataclasses import dataclass, field
from itertools import count, islice
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.settings import ChannelSettings
from tests.unit.bayeux.harness import Client, Json
from tests.unit.bayeux.second_lives import RestartableServer

CHANNELS = ["/b/x", "/b/y", "/p/x"]
RULES = {
    "/b/**": ChannelSettings(history=4, durable=True),
    "/p/**": ChannelSettings(history=4),
}
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.sampled_from(CHANNELS)),
        st.tuples(st.just("publish"), st.sampled_from(CHANNELS)),
        st.tuples(st.just("flood"), st.sampled_from(CHANNELS)),
        st.tuples(st.just("turn"), st.none()),
        st.tuples(st.just("poll"), st.integers(1, 3)),
        st.tuples(st.just("return"), st.booleans()),
        st.tuples(st.just("restart"), st.none()),
    ),
    max_size=40,
)


@dataclass
class Reader:
    """A client that remembers the cursor of its last connect reply, and what it got."""

    server: RestartableServer
    # Each reply to a client with acks carries one message.
    has_acks: bool
    cursor: int = -1
    got: list[int] = field(default_factory=list)
    # What it must get, from the first time that it subscribed.
    due: set[int] = field(default_factory=set)

    def come(self) -> None:
        ext: Json = {"replay": True}
        if self.has_acks:
            ext |= {"ack": True, "delivery": {"maxEntries": 1}}
        self.client: Client = self.server.client(ext=ext)
        self.batch = 0
        replay: Any = self.cursor if self.cursor >= 0 else -1
        message = {"channel": "/meta/subscribe", "subscription": ["/b/**", "/p/**"]}
        asked = self.client.send({**message, "ext": {"replay": replay}})
        said = asked.elements[0]["ext"]["replay"]
        if said.get("recovered") is False:
            self.due = set()
        self.hear(asked.elements)

    def poll(self) -> None:
        ext = {"ack": self.batch} if self.has_acks else {}
        asked = self.client.connect(ext=ext, advice={"timeout": 0})
        self.hear(asked.elements)
        if self.has_acks:
            self.batch = asked.elements[-1]["ext"]["ack"]
        self.cursor = asked.elements[-1]["ext"]["replay"]["cursor"]

    def hear(self, elements: list[Json]) -> None:
        heard = [each["data"] for each in elements if "data" in each]
        assert len(set(heard)) == len(heard)
        self.got += heard

    def is_served(self) -> None:
        """It has all that it must get."""
        self.server.turn()
        while self.client.session.queue.count:
            self.poll()
        assert self.due <= set(self.got)


@pytest.mark.slow
@given(STEPS, st.booleans(), st.integers(3, 20))
@settings(deadline=None)
def test_a_client_that_catches_up_misses_nothing_or_is_told_of_gaps(
    steps: list[tuple[str, Any]], has_acks: bool, most: int
) -> None:
    server = RestartableServer(channels=RULES, max_history=most)
    reader = Reader(server, has_acks)
    reader.come()
    reader.poll()
    numbers = count(1)
    for what, value in steps:
        if what in ("publish", "flood"):
            for number in islice(numbers, 1 if what == "publish" else 6):
                server.for_extensions.publish(value, number)
                reader.due.add(number)
        elif what == "turn":
            server.turn()
        elif what == "poll":
            for _ in range(value):
                reader.poll()
        elif what == "return":
            if value:
                reader.client.disconnect()
            reader.come()
        else:
            # A restart may lose pending publishes, which no publisher knows to be accepted.
            server.turn()
            server = reader.server = server.reborn()
            reader.come()
    reader.is_served()
    assert server.balances()


def test_the_cursor_advances_although_each_reply_carries_messages() -> None:
    server = RestartableServer(channels=RULES)
    reader = Reader(server, has_acks=True)
    reader.come()
    cursors = []
    for number in range(4):
        server.for_extensions.publish(CHANNELS[0], number)
        server.turn()
        reader.poll()
        cursors.append(reader.cursor)
    assert reader.got == [0, 1, 2, 3]
    assert cursors == sorted(set(cursors))
