"""Messages that their receivers get as soon as the store has them, with the hand-over."""

import pytest

from holdfast.delivery.messages.marks import BatchMark
from holdfast.delivery.messages.storing import PersistOutcome
from tests.unit.bayeux.harness import Asked, Client
from tests.unit.bayeux.second_lives import (
    RestartableServer,
    again,
    batch,
    connect,
    named,
    publish,
    take,
)
from tests.unit.extensions.delivering import redelivered


class Counting(RestartableServer):
    """A server that counts the hand-overs which the store hears of by themselves."""

    def watch(self) -> list[BatchMark]:
        marked: list[BatchMark] = []
        mark_batch = self.store.mark_batch

        def count(receiver: str, given: BatchMark) -> None:
            marked.append(given)
            mark_batch(receiver, given)

        self.store.mark_batch = count  # type: ignore[method-assign, assignment]
        return marked


def waiting(server: RestartableServer, name: str = "joe/1") -> tuple[Client, Asked]:
    client = named(server, name=name)
    asked = client.connect(ext={"ack": 1})
    server.turn()
    return client, asked


def test_a_waiting_session_gets_a_message_whose_hand_over_the_store_has_already() -> None:
    server = Counting()
    client, asked = waiting(server)
    marked = server.watch()
    publish(server, 1)
    assert asked.data == [1]
    assert marked == []
    assert server.store.early == {}
    assert connect(client, batch(asked)).data == []
    assert server.balances()


def test_a_kill_between_store_and_reply_shows_the_message_as_handed_over_once() -> None:
    before = RestartableServer()
    client, _ = waiting(before)
    before.store.is_silent = True
    publish(before, 1)
    server = before.reborn()
    client = again(client, server)
    answer = connect(client, 1)
    assert (answer.data, redelivered(answer)) == ([1], [1])
    assert connect(client, batch(answer)).data == []
    assert server.balances()


def test_a_session_that_is_taken_over_meanwhile_gets_the_message_from_the_next_client() -> None:
    server = Counting()
    waiting(server)
    server.store.is_silent = True
    publish(server, 1)
    other = server.guest()
    take(other)
    server.store.is_silent = False
    server.store.answer_late(PersistOutcome.KEPT)
    server.turn()
    answer = connect(other, 0)
    assert answer.data == [1]
    assert connect(other, batch(answer)).data == []
    assert server.balances()


@pytest.mark.parametrize("kind", ["lazy", "keyed", "behind another"])
def test_what_may_not_follow_at_once_brings_none(kind: str) -> None:
    server = RestartableServer()
    waiting(server)
    if kind == "behind another":
        publish(server, 1)
    server.store.is_silent = True
    if kind == "lazy":
        server.for_extensions.publish("/a", 2, lazy_s=2.0)
    else:
        delivery = {"key": "k"} if kind == "keyed" else {}
        server.connected().publish("/a", 2, ext={"delivery": delivery})
    server.turn()
    assert server.store.early == {}
