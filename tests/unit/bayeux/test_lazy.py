"""Lazy messages wait for others to go with, but only for a time."""

from functools import partial
from typing import Any

import pytest

from holdfast.extensions.ack import Ack
from holdfast.settings import ChannelSettings
from tests.unit.bayeux.harness import Asked, Client, Server, Socket


def lazy(lazy_timeout_s: float = 5.0, **options: Any) -> tuple[Server, Client]:
    """A server where /lazy is lazy, and a client that is subscribed to it and to /a."""
    channels = {"/lazy": ChannelSettings(lazy_timeout=round(lazy_timeout_s * 1000))}
    server = Server(partial(Ack, announces_batch=False), channels=channels, **options)
    client = server.connected()
    client.subscribe("/lazy", "/a")
    return server, client


def publish(server: Server, channel: str, data: Any = None) -> None:
    server.for_extensions.publish(channel, data)
    server.turn()


def wait(server: Server, asked: Asked) -> float:
    for tenth in range(1, 1000):
        server.advance(0.1)
        if not asked.is_held:
            return tenth / 10
    raise AssertionError("it is held for ever")


def test_a_lazy_message_releases_a_held_connect_only_after_its_lazy_timeout() -> None:
    server, client = lazy(5.0)
    asked = client.connect()
    publish(server, "/lazy", 1)
    assert wait(server, asked) == pytest.approx(5.1)
    assert asked.data == [1]


def test_a_connect_is_held_although_lazy_messages_wait() -> None:
    server, client = lazy(5.0)
    publish(server, "/lazy", 1)
    server.advance(2.0)
    asked = client.connect()
    assert asked.is_held
    assert wait(server, asked) == pytest.approx(3.1)


def test_an_ordinary_message_takes_the_lazy_ones_with_it_in_order() -> None:
    server, client = lazy()
    asked = client.connect()
    publish(server, "/lazy", 1)
    publish(server, "/a", 2)
    assert asked.data == [1, 2]
    again = client.connect()
    publish(server, "/lazy", 3)
    server.advance(0.2)
    assert again.is_held


def test_a_held_connect_that_times_out_takes_lazy_messages_with_it() -> None:
    server, client = lazy(60.0, timeout=3000)
    asked = client.connect()
    publish(server, "/lazy", 1)
    server.advance(3.1)
    assert asked.data == [1]


def test_a_reply_to_another_message_takes_lazy_messages_with_it() -> None:
    server, client = lazy()
    publish(server, "/lazy", 1)
    assert client.publish("/b", 2).data == [1]


def test_the_shortest_lazy_timeout_of_several_messages_counts() -> None:
    channels = {
        "/lazy": ChannelSettings(lazy_timeout=5000),
        "/lazy/*": ChannelSettings(lazy_timeout=2000),
    }
    server = Server(channels=channels)
    client = server.connected()
    client.subscribe("/lazy", "/lazy/x")
    asked = client.connect()
    publish(server, "/lazy", 1)
    publish(server, "/lazy/x", 2)
    assert wait(server, asked) == pytest.approx(2.1)
    asked = client.connect()
    publish(server, "/lazy/x", 1)
    publish(server, "/lazy", 2)
    assert wait(server, asked) == pytest.approx(2.1)


@pytest.mark.parametrize(
    ("pattern", "is_lazy"),
    [
        ("/a/b", True),
        ("/a/*", True),
        ("/a/**", True),
        ("/**", True),
        ("/a", False),
        ("/a/b/c", False),
    ],
)
def test_a_rule_makes_a_channel_lazy_if_its_pattern_covers_the_channel(
    pattern: str, is_lazy: bool
) -> None:
    server = Server(channels={pattern: ChannelSettings(lazy_timeout=5000)})
    client = server.connected()
    client.subscribe("/a/b")
    asked = client.connect()
    publish(server, "/a/b", 1)
    assert asked.is_held is is_lazy


def test_a_lazy_message_that_falls_due_without_a_connect_arrives_with_the_next_one() -> None:
    server, client = lazy(1.0, max_interval=20_000)
    publish(server, "/lazy", 1)
    server.advance(5.0)
    asked = client.connect()
    assert asked.is_held or asked.data == [1]
    if asked.is_held:
        assert wait(server, asked) <= 30.1
    assert asked.data == [1]


def test_lazy_messages_over_a_websocket_wait_for_their_timeout_or_another_message() -> None:
    channels = {"/lazy": ChannelSettings(lazy_timeout=5000)}
    server = Server(channels=channels)
    client = server.connected(socket=Socket(), browser="mine")
    client.subscribe("/lazy", "/a")
    client.connect()
    client.hear()
    publish(server, "/lazy", 1)
    server.advance(4.9)
    assert client.hear() == []
    server.advance(0.2)
    assert [event["data"] for event in client.hear()] == [1]
    publish(server, "/lazy", 2)
    publish(server, "/a", 3)
    assert [event["data"] for event in client.hear()] == [2, 3]


def test_unacked_lazy_messages_do_not_release_the_next_connect() -> None:
    server, _ = lazy(1.0)
    client = server.connected(ext={"ack": True})
    client.subscribe("/lazy")
    asked = client.connect(ext={"ack": 1})
    publish(server, "/lazy", 1)
    server.advance(1.1)
    assert asked.data == [1]
    again = client.connect(ext={"ack": 1})
    assert again.is_held
    server.advance(30.1)
    assert again.data == [1]


def test_a_lazy_message_that_finds_no_room_does_not_release_the_held_connect() -> None:
    server, client = lazy(1.0, max_queue_bytes=1)
    asked = client.connect()
    publish(server, "/lazy", 1)
    server.advance(2.0)
    assert asked.is_held
    assert server.balances()


def test_lazy_messages_that_are_due_go_with_the_next_acking_connect_over_a_websocket() -> None:
    channels = {"/lazy": ChannelSettings(lazy_timeout=1000)}
    server = Server(partial(Ack, announces_batch=False), channels=channels)
    client = server.connected(socket=Socket(), browser="mine", ext={"ack": True})
    client.subscribe("/lazy")
    publish(server, "/lazy", 1)
    server.advance(2.0)
    client.hear()
    client.connect(ext={"ack": 1})
    assert [element.get("data") for element in client.hear()] == [1, None]


def test_lazy_messages_that_cannot_be_written_go_with_the_next_connect() -> None:
    server, client = lazy(1.0)
    asked = client.connect()
    asked.wire.is_cut = True
    publish(server, "/lazy", 1)
    server.advance(2.0)
    assert client.connect().data == [1]


def test_lazy_messages_that_a_closing_websocket_did_not_take_go_with_the_next_connect() -> None:
    server = Server(channels={"/lazy": ChannelSettings(lazy_timeout=1000)})
    socket = Socket()
    client = server.connected(socket=socket, browser="mine")
    client.subscribe("/lazy")
    socket.is_cut = True
    publish(server, "/lazy", 1)
    server.advance(2.0)
    server.close(socket)
    client.socket = None
    assert client.connect().data == [1]


def test_an_ack_of_an_unwritten_lazy_batch_settles_nothing_and_the_next_ack_settles_it() -> None:
    server, _ = lazy(1.0)
    client = server.connected(ext={"ack": True})
    client.subscribe("/lazy")
    asked = client.connect(ext={"ack": 1})
    asked.wire.is_cut = True
    publish(server, "/lazy", 1)
    server.advance(2.0)
    # This batch was never written, so its ack settles nothing.
    assert client.connect(ext={"ack": 2}).data == [1]
    assert client.connect(ext={"ack": 3}).is_held
    server.advance(1.0)
    assert client.session.lazy_due == 0.0
