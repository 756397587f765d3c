"""The server as a whole: which replies carry messages, and how full queues behave."""

import logging

import pytest

from holdfast.bayeux.wire.transports import ConnectionType
from holdfast.delivery.basics.steps import Reason
from tests.unit.bayeux.harness import Server, Wire


def test_all_messages_of_a_turn_come_in_one_reply_to_each_receiver() -> None:
    server = Server()
    clients = [server.connected() for _ in range(3)]
    for client in clients:
        client.subscribe("/a")
    waiting = [client.connect() for client in clients]
    publisher = server.client()
    for number in range(5):
        publisher.publish("/a", number)
    server.turn()
    assert [asked.data for asked in waiting] == [[0, 1, 2, 3, 4]] * 3


def test_a_connect_stays_held_if_another_reply_carried_all_messages() -> None:
    server = Server()
    client = server.connected()
    client.subscribe("/a")
    asked = client.connect()
    assert client.publish("/a", 1).data == [1]
    server.turn()
    assert asked.is_held


def test_counters_balance_if_a_session_with_news_ends_within_the_turn() -> None:
    server = Server()
    client = server.connected()
    client.subscribe("/a")
    server.for_extensions.publish("/a", 1)
    client.disconnect()
    server.turn()
    assert server.balances()


def test_a_message_waits_for_the_next_connect_of_its_receiver() -> None:
    server = Server()
    client = server.connected()
    client.subscribe("/a")
    server.for_extensions.publish("/a", 1)
    server.turn()
    assert client.connect().data == [1]


def test_a_full_queue_discards_the_newest_for_its_receiver_alone() -> None:
    server = Server(max_queue=2)
    full, other, publisher = server.connected(), server.connected(), server.client()
    full.subscribe("/a")
    other.subscribe("/a")
    waiting = other.connect()
    for number in range(3):
        assert publisher.publish("/a", number).reply["successful"]
        server.turn()
        if not waiting.is_held:
            waiting = other.connect()
    assert full.connect().data == [0, 1]
    assert server.bayeux.state.hub.counters.discarded == {Reason.OVERFLOW_ENTRIES: 1}
    assert server.balances()


def test_meta_connect_deliver_only_leaves_messages_to_replies_to_connects() -> None:
    server = Server(meta_connect_deliver_only=True)
    client = server.connected()
    client.subscribe("/a")
    asked = client.connect()
    assert client.publish("/a", 1).events == []
    server.turn()
    assert asked.data == [1]


def test_messages_over_callback_polling_come_only_with_replies_to_connects() -> None:
    server = Server()
    client = server.connected()
    client.subscribe("/a")

    def wire() -> Wire:
        return Wire(ConnectionType.CALLBACK_POLLING)

    message = {"channel": "/a", "data": 1}
    assert client.send(message, wire=wire()).events == []
    assert client.connect(wire=wire()).data == [1]


def test_the_reply_to_a_disconnect_over_callback_polling_carries_waiting_messages() -> None:
    server = Server()
    client = server.connected()
    client.subscribe("/a")
    server.for_extensions.publish("/a", 1)
    assert client.disconnect(wire=Wire(ConnectionType.CALLBACK_POLLING)).data == [1]


def test_client_ids_are_not_logged_when_sessions_begin_and_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.DEBUG):
        server = Server(max_interval=1000)
        alice, bob = server.connected(), server.connected()
        alice.subscribe("/a")
        alice.disconnect()
        server.advance(2.0)
    assert "ended" in caplog.text
    for client in (alice, bob):
        assert str(client.client_id) not in caplog.text


def test_an_event_for_one_session_reaches_it_alone() -> None:
    server = Server()
    alice, bob = server.connected(), server.connected()
    asked, other = alice.connect(), bob.connect()
    server.for_extensions.deliver_event(alice.session, {"channel": "/x", "data": 1})
    server.turn()
    assert asked.data == [1]
    assert other.is_held


def test_an_event_for_a_session_that_is_gone_is_not_accepted() -> None:
    server = Server()
    client = server.connected()
    session = client.session
    client.disconnect()
    server.for_extensions.deliver_event(session, {"channel": "/x", "data": 1})
    assert server.bayeux.state.hub.counters.accepted == 0
