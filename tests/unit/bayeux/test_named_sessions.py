"""Named sessions: how they are taken over, left, resumed and ended, and how many there may be."""

import pytest

from holdfast.delivery.basics.session_states import SessionState
from tests.unit.bayeux.harness import server_of
from tests.unit.bayeux.second_lives import (
    batch,
    connect,
    named,
    publish,
    take,
)


def test_a_handshake_with_the_name_of_a_living_session_takes_it_over() -> None:
    server = server_of()
    old = named(server)
    publish(server, 1)
    assert connect(old, 1).data == [1]
    publish(server, 2)
    new = server.guest()
    told = take(new).elements[0]["ext"]["delivery"]
    assert (told["resumed"], told["waiting"]) == (True, 2)
    reply = connect(old, 2).elements[-1]
    assert reply["error"].startswith("402")
    assert reply["advice"]["reconnect"] == "none"
    answer = connect(new, 0)
    assert (answer.data, batch(answer)) == ([1], 1)
    assert connect(new, 1).data == [2]
    assert len(server.bayeux.state.sessions.names.of_subject("joe")) == 1
    assert server.balances()


@pytest.mark.slow
def test_a_client_that_returns_to_a_named_session_gets_what_came_while_it_was_away() -> None:
    server = server_of()
    old = named(server)
    old.disconnect()
    server.advance(600.0)
    publish(server, 1)
    assert old.session.state is SessionState.AWAY
    new = server.guest()
    take(new)
    assert connect(new, 0).data == [1]


def test_a_client_can_end_a_named_session() -> None:
    server = server_of()
    client = named(server)
    publish(server, 1)
    session = client.session
    client.send({"channel": "/meta/disconnect", "ext": {"delivery": {"end": True}}})
    server.turn()
    assert session.is_gone
    assert server.keeper.sessions == {}
    assert server.keeper.queues == {}
    assert server.balances()


def test_a_named_session_whose_client_does_not_return_ends_with_dead_letters() -> None:
    server = server_of()
    client = server.client(
        ext={"ack": True, "delivery": {"session": {"name": "joe/1", "timeout": 60000}}}
    )
    client.subscribe("/a")
    server.turn()
    publish(server, 1)
    server.advance(30.0)
    assert not client.session.is_gone
    server.advance(80.0)
    assert client.session.is_gone
    assert [letter.code for letter in server.keeper.letters] == ["communication.noConnection"]
    assert server.keeper.sessions == {}
    assert server.balances()


def test_a_handshake_beyond_max_sessions_is_refused_unless_it_clears_the_others() -> None:
    server = server_of()
    for number in (1, 2):
        name = {"name": f"joe/{number}", "maxSessions": 2}
        assert server.guest().handshake(ext={"delivery": {"session": name}}).reply["successful"]
    reply = (
        server.guest()
        .handshake(ext={"delivery": {"session": {"name": "joe/3", "maxSessions": 2}}})
        .reply
    )
    assert reply["error"] == "403:user.configuration.maxSession:sessions_exceeded"
    cleared = {"name": "joe/3", "clearSessions": True}
    assert server.guest().handshake(ext={"delivery": {"session": cleared}}).reply["successful"]
    assert [s.key for s in server.bayeux.state.sessions.names.of_subject("joe")] == ["joe/3"]
