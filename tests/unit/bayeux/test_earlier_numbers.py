"""What clients say of numbers that no entry has any more.

A connect that a client has given up may reach the server after its next one: the server hands over
everything once more, under new numbers, and writes to a connection that is closed.
"""

import pytest

from tests.unit.bayeux.harness import Asked, Client
from tests.unit.bayeux.second_lives import (
    RestartableServer,
    batch,
    codes,
    connect,
    drain,
    named,
    no,
    publish,
    seqs,
)


def handed_over_again(*numbers: int, often: int = 1) -> tuple[RestartableServer, Client, Asked]:
    """A client that knows the first hand-over only. The first message alone comes again."""
    server = RestartableServer()
    client = named(server)
    publish(server, *numbers)
    answer = connect(client, 0)
    assert answer.data == [*numbers]
    for _ in range(often):
        assert connect(client, 0).data == [numbers[0]]
    return server, client, answer


@pytest.mark.parametrize("often", [1, 2, 5])
def test_an_ack_does_not_settle_what_was_refused_under_an_earlier_number(often: int) -> None:
    server, client, answer = handed_over_again(1, 2, often=often)
    first, _ = seqs(answer)
    answer = connect(client, batch(answer), no(first, "user.update.error"))
    assert answer.data == [1]
    (number,) = seqs(answer)
    connect(client, batch(answer), no(number, "user.update.error"))
    assert codes(server) == ["user.update.error"]
    assert client.session.queue.count == 0
    assert server.balances()


def test_an_entry_refused_for_now_under_an_earlier_number_comes_again_with_what_follows() -> None:
    server, client, answer = handed_over_again(1, 2)
    first, _ = seqs(answer)
    answer = connect(client, batch(answer), no(first, "communication.busy", delay=0))
    assert answer.data == [1]
    assert drain(client, batch(answer))[0] == [2]
    assert server.balances()


def test_what_is_behind_an_expired_message_refused_for_now_comes_again() -> None:
    server = RestartableServer()
    client = named(server)
    publish(server, 1)
    expiration = {"lifeTime": 50, "forceDestroy": True}
    server.connected().publish("/a", 2, ext={"delivery": {"expiration": expiration}})
    publish(server, 3)
    answer = connect(client, 0)
    assert answer.data == [1, 2, 3]
    assert connect(client, 0).data == [1]
    server.advance(0.3)
    assert client.session.queue.count == 2
    _, second, _ = seqs(answer)
    # Which number the first one had is not kept, so it comes again as well.
    answer = connect(client, batch(answer), no(second, "communication.busy", delay=0))
    assert answer.data == [1]
    assert drain(client, batch(answer))[0] == [3]
    assert server.balances()


def test_an_ack_does_not_settle_what_is_pending_under_an_earlier_number() -> None:
    server, client, answer = handed_over_again(1, 2)
    first, _ = seqs(answer)
    assert connect(client, batch(answer), pending=[first]).data == []
    assert client.session.queue.count == 1
    answer = connect(client, batch(answer), no(first, "user.update.error"))
    assert answer.data == [1]
    assert server.balances()


def test_a_number_of_a_settled_message_leaves_nothing_open() -> None:
    server = RestartableServer()
    client = named(server)
    publish(server, 1)
    first = connect(client, 0)
    publish(server, 2, 3)
    second = connect(client, batch(first))
    assert second.data == [2, 3]
    (number,) = seqs(first)
    assert connect(client, batch(second), no(number, "user.update.error")).data == []
    assert client.session.queue.count == 0
    assert server.balances()
