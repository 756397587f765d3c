"""The order in which messages are handed over, and how many at a time."""

from tests.unit.bayeux.harness import server_of
from tests.unit.bayeux.operated_server import letters
from tests.unit.extensions.delivering import HOLDBACK, codes, connect, no, publish, receiver


def test_waiting_messages_are_handed_over_by_priority() -> None:
    server = server_of()
    client = receiver(server, dispatcherActive=False)
    sender = server.connected()
    for priority in (1, 5, 9, 5):
        sender.publish("/a", priority, ext={"delivery": {"priority": priority}})
    assert connect(client).events == []
    server.bayeux.life.resume(client.session, server.now)
    answer = connect(client)
    assert answer.data == [9, 5, 5, 1]
    assert [e["ext"]["delivery"]["queue"]["index"] for e in answer.events] == [0, 1, 2, 3]


def test_a_returned_message_precedes_a_waiting_one_of_higher_priority() -> None:
    server = server_of()
    client = receiver(server)
    publish(server, 1)
    connect(client, no(connect(client).events[0], HOLDBACK))
    server.connected().publish("/a", 2, ext={"delivery": {"priority": 9}})
    server.bayeux.life.resume(client.session, server.now)
    assert [connect(client).data, connect(client).data] == [[1], [2]]


def test_a_batch_has_no_more_entries_than_the_agreed_maximum() -> None:
    server = server_of()
    client = receiver(server, maxEntries=2)
    publish(server, 1, 2, 3)
    assert connect(client).data == [1, 2]
    assert connect(client).data == [3]


def test_a_message_beyond_the_queue_limit_is_a_dead_letter_although_its_publish_succeeds() -> None:
    server = server_of()
    client = receiver(server, queue={"maxEntries": 2})
    other = server.connected()
    assert [other.publish("/a", n).reply["successful"] for n in range(3)] == [True] * 3
    assert codes(server) == ["resource.overflow.queue.entries"]
    assert letters(server) == [2]
    assert connect(client).data == [0, 1]
    assert "/a" in client.session.subscriptions


def test_an_expired_message_with_force_destroy_leaves_the_queue() -> None:
    server = server_of()
    client = receiver(server, dispatcherActive=False)
    sender = server.connected()
    expiration = {"lifeTime": 1000, "forceDestroy": True}
    sender.publish("/a", 1, ext={"delivery": {"expiration": expiration}})
    sender.publish("/a", 2, ext={"delivery": {"expiration": {"lifeTime": 1000}}})
    server.advance(2.0)
    server.bayeux.life.resume(client.session, server.now)
    answer = connect(client)
    assert answer.data == [2]
    told = answer.events[0]["ext"]["delivery"]["expiration"]
    assert told == {"lifeTime": 1000, "remainingLife": 0}
    assert server.bayeux.state.hub.counters.expired == 1
    assert server.balances()
