"""Replies that are lost on the way to receivers with verdicts and without acks."""

from typing import Any

import pytest

from tests.unit.bayeux.harness import Asked, Client, Server, Socket, Wire
from tests.unit.bayeux.second_lives import (
    RestartableServer,
    again,
    codes,
    connect,
    drain,
    named,
    ok,
    publish,
    seqs,
)
from tests.unit.extensions.delivering import redelivered


def receiver_with_verdicts(**options: Any) -> tuple[RestartableServer, Client]:
    server = RestartableServer()
    return server, named(server, ack=False, **options)


def lose(server: Server, client: Client, *numbers: int) -> Asked:
    """Hand these over in a reply whose connection is lost afterwards."""
    publish(server, *numbers)
    wire = Wire()
    asked = connect(client, None, wire=wire)
    server.turn()
    wire.is_dropped = True
    assert asked.data == [*numbers]
    return asked


def test_messages_of_a_lost_reply_come_first_and_count_as_redelivered() -> None:
    server, client = receiver_with_verdicts()
    lose(server, client, 1, 2)
    publish(server, 3)
    assert drain(client, None) == ([1, 2, 3], [1, 1, 0])
    assert server.balances()


def test_messages_in_flight_at_a_restart_come_first_and_count_as_redelivered() -> None:
    before, client = receiver_with_verdicts()
    publish(before, 1, 2)
    assert connect(client, None).data == [1, 2]
    publish(before, 3)
    server = before.reborn()
    client = again(client, server)
    assert drain(client, None) == ([1, 2, 3], [1, 1, 0])
    assert server.balances()


def test_a_lost_reply_uses_up_no_retry_and_is_among_the_attempts_of_the_dead_letter() -> None:
    server, client = receiver_with_verdicts(retries=0)
    lose(server, client, 1)
    (seq,) = seqs(connect(client, None))
    connect(client, None, {"seq": seq, "errorCode": "user.update.error"})
    (letter,) = server.store.letters
    assert [attempt.outcome for attempt in letter.attempts] == ["lost reply", "user.update.error"]


@pytest.mark.parametrize("is_killed", [True, False])
def test_pending_messages_of_a_lost_reply_are_not_handed_over_again(is_killed: bool) -> None:
    server, client = receiver_with_verdicts()
    first, second = seqs(lose(server, client, 1, 2))
    if is_killed:
        server = server.reborn()
        client = again(client, server)
    assert connect(client, None, pending=[first, second]).data == []
    assert connect(client, None, ok(first), pending=[second]).data == []
    connect(client, None, ok(second))
    assert client.session.queue.count == 0
    assert codes(server) == []


def test_a_message_without_a_verdict_is_not_redelivered_while_its_connection_lasts() -> None:
    server, client = receiver_with_verdicts()
    publish(server, 1)
    assert connect(client, None).data == [1]
    assert connect(client, None).data == []


def test_a_verdict_on_one_message_of_a_reply_shows_that_the_whole_reply_has_arrived() -> None:
    server, client = receiver_with_verdicts()
    first, _ = seqs(lose(server, client, 1, 2))
    assert connect(client, None, ok(first)).data == []


def test_messages_after_the_last_verdict_are_redelivered_when_their_websocket_closes() -> None:
    server, client = receiver_with_verdicts()
    socket = Socket()
    client.socket = socket
    publish(server, 1, 2, 3)
    first, _, _ = seqs(connect(client, None))
    server.close(socket)
    client.socket = None
    answer = connect(client, None, ok(first))
    assert (answer.data, redelivered(answer)) == ([2], [1])


def test_a_lost_message_is_redelivered_only_once() -> None:
    server, client = receiver_with_verdicts()
    lose(server, client, 1)
    assert connect(client, None).data == [1]
    assert connect(client, None).data == []


def test_a_client_that_loses_every_reply_must_wait_before_the_next_redelivery() -> None:
    server, client = receiver_with_verdicts()
    publish(server, 1)
    for _ in range(5):
        wire = Wire()
        connect(client, None, wire=wire)
        server.turn()
        wire.is_dropped = True
    asked = client.connect()
    server.turn()
    assert asked.is_held
    server.advance(1.1)
    assert asked.data == [1]
