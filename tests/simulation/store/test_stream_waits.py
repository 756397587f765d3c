"""Clients of the fake store that wait for entries of streams."""

import pytest

from tests.simulation.store.node import Node
from tests.simulation.store.test_replication import Client, Clock

READ = ("XREAD", "BLOCK", 50, "STREAMS", "log")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def node(clock: Clock) -> Node:
    return Node(clock.read, clock.later)


def test_a_client_waits_until_a_stream_has_an_entry(clock: Clock, node: Node) -> None:
    writer, reader = Client(node), Client(node)
    reader.send(*READ, "1-0")
    reader.send("PING")
    writer.ask("XADD", "log", "1-0", "a", "b")
    writer.ask("SET", "k", "v")
    assert reader.replies == []
    writer.ask("EVAL", "redis.call('XADD', KEYS[1], '1-1', 'a', 'c')", 1, "log")
    assert reader.replies == [[[b"log", [[b"1-1", [b"a", b"c"]]]]], b"PONG"]
    clock.pass_time(1)
    assert len(reader.replies) == 2


def test_a_client_waits_no_longer_than_it_says(clock: Clock, node: Node) -> None:
    reader = Client(node)
    reader.send(*READ, "0")
    clock.pass_time(0.049)
    assert reader.replies == []
    clock.pass_time(0.002)
    assert reader.replies == [None]


def test_a_frozen_server_answers_who_waits_when_it_thaws(clock: Clock, node: Node) -> None:
    reader = Client(node)
    reader.send(*READ, "0")
    node.freeze()
    clock.pass_time(1)
    assert reader.replies == []
    node.thaw()
    assert reader.replies == [None]
