"""What operators can do to sessions."""

import logging

import pytest

from holdfast.delivery.basics.steps import Reason
from tests.unit.bayeux.harness import server_of
from tests.unit.bayeux.operated_server import ask, connect, letters, publish, receiver


def test_the_log_says_at_info_level_who_ended_a_session(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = server_of()
    session = receiver(server).session
    with caplog.at_level(logging.INFO):
        ask(server, "client/joe/1/?killSession")
    (line,) = caplog.records
    assert line.levelno == logging.INFO
    assert line.getMessage() == f"session {session.key} was ended by operator"


def test_a_killed_session_leaves_dead_letters_and_its_client_is_told() -> None:
    server = server_of()
    client = receiver(server)
    publish(server, 1)
    ask(server, "client/joe/1/?killSession")
    assert letters(server) == [1]
    reason = "Delivery to the receiver has ended: its session was ended by operator"
    assert server.keeper.letters[0].reason == reason
    assert "joe/1" not in server.keeper.sessions
    assert client.connect().reply["error"].startswith("402")
    assert server.balances()


def test_answers_of_services_do_not_become_dead_letters() -> None:
    server = server_of()
    client = receiver(server)
    server.for_extensions.deliver_event(
        client.session, {"channel": "/service/echo", "data": "hello"}
    )
    publish(server, 1)
    ask(server, "client/joe/1/?killSession")
    assert letters(server) == [1]
    assert server.bayeux.state.hub.counters.discarded[Reason.NO_LETTER] == 1
    assert server.balances()


def test_a_cleared_queue_is_empty_here_and_in_the_store() -> None:
    server = server_of()
    client = receiver(server)
    publish(server, 1, 2)
    assert server.bayeux.life.clear(client.session) == 2
    assert server.keeper.queues["joe/1"] == {}
    assert connect(client) == []
    assert server.balances()


def test_many_sessions_of_a_subject_end_over_several_turns() -> None:
    is_over: list[bool] = []
    server = server_of(is_turn_over=lambda: bool(is_over))
    for number in range(1, 7):
        receiver(server, f"joe/{number}")
    receiver(server, "ann/1")
    publish(server, 1)
    is_over.append(True)
    ask(server, "client/joe/?killClient")
    assert len(server.bayeux.state.sessions) == 6
    server.turn()
    assert [session.key for session in server.bayeux.state.sessions] == ["ann/1"]
    assert letters(server) == [1] * 6
    assert server.balances()
