"""Receivers that are held back, by themselves or by an operator."""

from holdfast.delivery.queues.dispatcher import DispatcherState as Contact
from tests.unit.bayeux.harness import server_of
from tests.unit.extensions.delivering import (
    HOLDBACK,
    codes,
    connect,
    no,
    ok,
    publish,
    receiver,
    redelivered,
)


def test_a_message_with_a_holdback_stays_first_and_all_others_stay_behind_it() -> None:
    server = server_of()
    client = receiver(server)
    publish(server, 1, 2, 3)
    events = connect(client).events
    assert connect(client, no(events[0], HOLDBACK, "disk full")).events == []
    publish(server, 4)
    session = client.session
    dispatcher = session.dispatcher
    assert dispatcher is not None
    assert not dispatcher.is_active
    assert dispatcher.state is Contact.ALIVE
    assert session.queue.count == 4
    assert codes(server) == []
    server.bayeux.life.resume(session, server.now)
    answers = [connect(client) for _ in range(3)]
    assert [answer.data for answer in answers] == [[1], [2, 3], [4]]
    assert [redelivered(answer) for answer in answers] == [[1], [0, 0], [0]]
    assert server.balances()


def test_other_messages_of_a_batch_with_a_holdback_are_settled() -> None:
    server = server_of()
    client = receiver(server)
    publish(server, 1, 2, 3)
    events = connect(client).events
    connect(client, no(events[1], HOLDBACK), ok(events[2]))
    assert client.session.queue.count == 1
    server.bayeux.life.resume(client.session, server.now)
    assert connect(client).data == [2]


def test_a_holdback_does_not_end_a_session_without_retries() -> None:
    server = server_of()
    client = receiver(server, retries=0)
    publish(server, 1)
    connect(client, no(connect(client).events[0], HOLDBACK))
    server.advance(60.0)
    assert not client.session.is_gone
    assert codes(server) == []


def test_a_queue_hold_can_end_at_a_set_time() -> None:
    server = server_of()
    client = receiver(server)
    until_ms = server.bayeux.state.node.now_ms() + 2000
    server.bayeux.life.hold_back(
        client.session, "lunch", who="operator", now=server.now, until_ms=until_ms
    )
    publish(server, 1)
    asked = client.connect(ext={"ack": client.session.queue.batch})
    server.advance(1.9)
    assert asked.is_held
    server.advance(0.3)
    assert asked.data == [1]


def test_a_plain_receiver_can_be_held_back_by_an_operator() -> None:
    server = server_of()
    client = server.connected()
    client.subscribe("/a")
    server.bayeux.life.hold_back(client.session, "maintenance", who="operator", now=server.now)
    asked = client.connect()
    publish(server, 1)
    server.turn()
    assert asked.is_held
    server.bayeux.life.resume(client.session, server.now)
    server.turn()
    assert asked.data == [1]
    assert server.balances()
