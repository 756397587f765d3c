"""What a message costs in memory while it waits, or is in flight, besides its bytes."""

import gc
import tracemalloc
from collections.abc import Sequence

import pytest

from holdfast.bayeux.session import Exchange
from holdfast.delivery.messages.message import Event
from tests.unit.bayeux.harness import Json, Wire, server_of
from tests.unit.bayeux.second_lives import RestartableServer, named, publish

pytestmark = pytest.mark.untraced

COUNT = 1000
# In bytes; 260 were measured.
MOST = 500
# In bytes, for each receiver; the event that it gets would be 400 alone.
MOST_IN_FLIGHT = 200
# By a held connect, with the objects of the client in this test; 9 cost a twentieth of a fan-out.
MOST_OBJECTS = 7


@pytest.mark.slow
def test_a_waiting_message_does_not_keep_its_request_in_memory() -> None:
    server = server_of()
    client = server.connected(ext={"ack": True})
    client.subscribe("/a")
    sender = server.connected()
    # Some objects are made for the first message alone.
    sender.publish("/a", 0)
    queue = client.session.queue
    padding = {"channel": "/nobody", "data": "x" * 20_000}
    tracemalloc.start()
    try:
        gc.collect()
        before, _ = tracemalloc.get_traced_memory()
        for number in range(COUNT):
            sender.send(padding, {"channel": "/a", "data": {"number": number}})
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(queue.new) == COUNT + 1
    each = (after - before - sum(len(message.wire) for message in queue.new)) / COUNT
    assert each < MOST


class Unread(Wire):
    """The connection of a client that does not read."""

    def answer(self, exchange: Exchange, messages: Sequence[Event]) -> bool:
        self.elements = []
        return True


@pytest.mark.parametrize("is_prompt", [True, False])
def test_a_hand_over_takes_little_memory_besides_the_message_that_all_receivers_share(
    *, is_prompt: bool
) -> None:
    server = RestartableServer()
    clients = [named(server, name=f"joe{number}/1") for number in range(20)]
    publish(server, *range(50))
    server.keeper.is_prompt = is_prompt
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for client in clients:
            client.connect(ext={"ack": 1}, wire=Unread())
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sum(client.session.queue.in_flight_count for client in clients) == 1000
    assert (after - before) / 1000 < MOST_IN_FLIGHT


def test_a_held_connect_keeps_few_objects_for_the_garbage_collector() -> None:
    server = server_of()
    clients = [server.connected() for _ in range(21)]
    clients.pop().connect()
    gc.disable()
    try:
        gc.collect()
        for client in clients:
            client.connect()
        made, _, _ = gc.get_count()
    finally:
        gc.enable()
    assert all(client.session.held_connect is not None for client in clients)
    assert made / len(clients) <= MOST_OBJECTS


@pytest.mark.parametrize(
    "options", [{}, {"persistent": True}, {"persistent": False}, {"key": "k"}, {"priority": 9}]
)
def test_a_publish_leaves_nothing_to_the_garbage_collector(options: Json) -> None:
    server = RestartableServer()
    joe, sender = named(server), server.connected()

    def say(number: int) -> None:
        own = {**options, "key": f"k{number}"} if "key" in options else options
        sender.send({"channel": "/a", "data": number, "ext": {"delivery": own}})
        server.turn()

    # Some objects are made for the first message alone.
    say(0)
    gc.disable()
    try:
        gc.collect()
        for number in range(1, 11):
            say(number)
        left = gc.collect()
    finally:
        gc.enable()
    assert len(joe.session.queue.new) == 11
    assert left == 0
