"""Operators hold channels back, and release them."""

import pytest

from holdfast.bayeux.sessions.channel_holds import TOO_MANY
from holdfast.bayeux.wire.command_refused import ILLEGAL, CommandRefused
from tests.unit.bayeux.harness import Server, server_of
from tests.unit.bayeux.operated_server import connect, receiver

ANN = "operator/ann"


def hold(server: Server, channel: str = "/a", until_ms: int | None = None) -> None:
    server.bayeux.life.channel_holds.hold(channel, "stock-taking", ANN, until_ms)


def test_messages_of_a_held_channel_wait_until_it_is_released() -> None:
    server = server_of()
    joe = receiver(server)
    hold(server)
    joe.publish("/a", 1)
    server.turn()
    assert connect(joe) == []
    holds = server.bayeux.life.channel_holds
    assert holds.release("/a", "operator", ANN)
    assert not holds.release("/a", "operator", ANN)
    assert connect(joe) == [1]


def test_a_hold_ends_when_its_time_has_come() -> None:
    server = server_of()
    hold(server, until_ms=server.bayeux.state.node.now_ms() + 2000)
    server.advance(1)
    assert server.bayeux.state.guard.is_held("/a")
    server.advance(2)
    assert not server.bayeux.state.guard.is_held("/a")


def test_a_release_of_a_channel_that_is_not_held_has_no_effect() -> None:
    server = server_of()
    server.bayeux.life.channel_holds.release_by_server("/a", "guard", "it was taken")
    assert not server.bayeux.state.guard.held


@pytest.mark.parametrize("channel", ["/a/*", "/a/**", "/service/ptp", "/meta/connect", "a", ""])
def test_a_pattern_or_a_channel_that_is_not_for_publishes_cannot_be_held(channel: str) -> None:
    server = server_of()
    with pytest.raises(CommandRefused) as refused:
        hold(server, channel)
    assert refused.value.code == ILLEGAL
    assert not server.bayeux.state.guard.held


def test_a_hold_cannot_end_before_it_begins() -> None:
    server = server_of()
    with pytest.raises(CommandRefused) as refused:
        hold(server, until_ms=1)
    assert refused.value.code == ILLEGAL


def test_the_number_of_held_channels_is_limited() -> None:
    server = server_of()
    for number in range(1000):
        hold(server, f"/held/{number}")
    with pytest.raises(CommandRefused) as refused:
        hold(server)
    assert refused.value.code == TOO_MANY
    hold(server, "/held/0")


@pytest.mark.parametrize("name", ["constructor", "__proto__", "__class__"])
def test_a_channel_with_the_name_of_a_built_in_attribute_can_be_held(name: str) -> None:
    server = server_of()
    hold(server, f"/{name}")
    assert list(server.bayeux.state.guard.held) == [f"/{name}"]
