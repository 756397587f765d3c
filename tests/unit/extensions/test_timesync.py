"""Clients learn how far their clock is from the server's."""

from typing import Any

import pytest

from holdfast.extensions.timesync import TimeSync
from tests.unit.bayeux.harness import Asked, Client, Json, Server, Wire


class Clock:
    """A wall clock that a test moves."""

    def __init__(self) -> None:
        self.ms = 1_000_000

    def __call__(self) -> int:
        return self.ms


def synced() -> tuple[Clock, Server, Client]:
    clock = Clock()
    server = Server(TimeSync(clock))
    client = server.client(ext={"timesync": {"tc": clock.ms, "l": 0, "o": 0}})
    return clock, server, client


def ask(client: Client, sync: Any, **fields: Any) -> Asked:
    return client.publish("/a", 1, ext={"timesync": sync}, **fields)


def test_a_handshake_with_timesync_is_answered() -> None:
    clock = Clock()
    sync = {"tc": 999_000, "l": 0, "o": 0}
    reply = Server(TimeSync(clock)).guest().handshake(ext={"timesync": sync}).reply
    assert reply["ext"]["timesync"] == {"tc": 999_000, "ts": 1_000_000, "p": 0, "a": -1000}


@pytest.mark.parametrize("ext", [None, {}, {"other": 5}])
def test_a_client_without_timesync_in_its_handshake_is_never_answered(ext: Json | None) -> None:
    client = Server(TimeSync(Clock())).guest()
    assert "ext" not in client.handshake(ext=ext).reply
    assert "ext" not in ask(client, {"tc": 1, "l": 0, "o": 0}).reply


@pytest.mark.parametrize(
    ("lag", "offset", "is_answered"),
    [
        (0, 0, True),
        (10, -10, False),
        (10, 14, False),
        (10, 15, True),
        (10, -35, True),
        (10, -34, False),
    ],
)
def test_a_client_that_knows_its_offset_well_enough_gets_no_answer(
    lag: int, offset: int, is_answered: bool
) -> None:
    clock, _, client = synced()
    reply = ask(client, {"tc": clock.ms, "l": lag, "o": offset}).reply
    assert ("ext" in reply) is is_answered
    if is_answered:
        assert reply["ext"]["timesync"]["a"] == lag + offset


def test_the_answer_has_the_time_that_the_connect_was_held() -> None:
    clock, server, client = synced()
    client.connect()
    asked = client.connect(ext={"timesync": {"tc": clock.ms, "l": 0, "o": 0}})
    clock.ms += 500
    server.advance(30.1)
    assert asked.reply["ext"]["timesync"] == {"tc": 1_000_000, "ts": 1_000_000, "p": 500, "a": 0}


@pytest.mark.parametrize(
    "sync", [{}, {"tc": None, "l": None, "o": None}, {"tc": 2**53, "l": -0.5}, {"ts": "x"}]
)
def test_a_timesync_with_missing_values_is_answered(sync: Json) -> None:
    _, _, client = synced()
    reply = ask(client, sync).reply
    assert reply["successful"]
    assert reply["ext"]["timesync"]["ts"] == 1_000_000


@pytest.mark.parametrize(
    ("sync", "part"),
    [
        (None, "timesync"),
        (5, "timesync"),
        ([], "timesync"),
        ("x", "timesync"),
        ({"tc": "x"}, "timesync.tc"),
        ({"tc": True}, "timesync.tc"),
        ({"tc": 1e308}, "timesync.tc"),
        ({"tc": 1, "l": []}, "timesync.l"),
        ({"tc": 1, "l": 1, "o": {}}, "timesync.o"),
    ],
)
def test_an_unreadable_timesync_refuses_its_message(sync: Any, part: str) -> None:
    _, server, client = synced()
    error = f"400:user.illegalArgument,{part}:ext_invalid"
    client.subscribe("/a")
    asked = ask(client, sync)
    assert (asked.reply["error"], asked.events) == (error, [])
    assert server.guest().handshake(ext={"timesync": sync}).reply["error"] == error


@pytest.mark.parametrize("ts", ["x", None, 1.5, 7])
def test_a_refused_message_gets_no_timesync_whatever_it_claims(
    ts: Any, caplog: pytest.LogCaptureFixture
) -> None:
    _, _, client = synced()
    wire = Wire()
    message = {"channel": "no channel", "ext": {"timesync": {"tc": 1, "l": 0, "o": 0, "ts": ts}}}
    asked = client.send({"channel": "/a", "data": 1}, message, wire=wire)
    assert "ext" not in asked.elements[1]
    assert caplog.text == ""


def test_timesync_is_not_passed_on_to_receivers() -> None:
    _, _, client = synced()
    client.subscribe("/a")
    assert ask(client, {"tc": 1, "l": 0, "o": 0}).events == [{"channel": "/a", "data": 1}]


def test_a_clock_that_fails_stops_no_messages(caplog: pytest.LogCaptureFixture) -> None:
    server, times = Server(), iter([1_000_000])
    server.bayeux.state.installed.extend(TimeSync(lambda: next(times)))
    client = server.client(ext={"timesync": {"tc": 1, "l": 1, "o": 999_999}})
    reply = ask(client, {"tc": 1, "l": 0, "o": 0}).reply
    assert reply["successful"]
    assert "ext" not in reply
    assert "StopIteration" in caplog.text
