"""The server as a whole: who is told what at the end of a turn, and how full queues behave."""

import logging

import pytest

from holdfast.bayeux.transports import ConnectionType
from holdfast.delivery.counters import Reason
from holdfast.delivery.queue import QueueLimits
from tests.unit.bayeux.harness import House, Wire


def test_a_burst_becomes_one_answer_for_each_receiver() -> None:
    house = House()
    clients = [house.connected() for _ in range(3)]
    for client in clients:
        client.subscribe("/a")
    waiting = [client.connect() for client in clients]
    publisher = house.client()
    for number in range(5):
        publisher.publish("/a", number)
    house.turn()
    assert [asked.data for asked in waiting] == [[0, 1, 2, 3, 4]] * 3


def test_who_got_everything_with_a_reply_is_not_told_again() -> None:
    house = House()
    client = house.connected()
    client.subscribe("/a")
    asked = client.connect()
    assert client.publish("/a", 1).data == [1]
    house.turn()
    assert asked.is_held


def test_who_is_gone_at_the_end_of_the_turn_is_not_told() -> None:
    house = House()
    client = house.connected()
    client.subscribe("/a")
    house.server.publish("/a", 1)
    client.disconnect()
    house.turn()
    assert house.balances()


def test_who_does_not_wait_is_not_told() -> None:
    house = House()
    client = house.connected()
    client.subscribe("/a")
    house.server.publish("/a", 1)
    house.turn()
    assert client.connect().data == [1]


def test_a_full_queue_discards_the_newest_for_its_receiver_alone() -> None:
    house = House(queue_limits=QueueLimits(entries=2))
    full, other, publisher = house.connected(), house.connected(), house.client()
    full.subscribe("/a")
    other.subscribe("/a")
    waiting = other.connect()
    for number in range(3):
        assert publisher.publish("/a", number).reply["successful"]
        house.turn()
        if not waiting.is_held:
            waiting = other.connect()
    assert full.connect().data == [0, 1]
    assert house.bayeux.state.hub.counters.discarded == {Reason.OVERFLOW_ENTRIES: 1}
    assert house.balances()


def test_messages_can_be_kept_for_connects_alone() -> None:
    house = House(meta_connect_deliver_only=True)
    client = house.connected()
    client.subscribe("/a")
    asked = client.connect()
    assert client.publish("/a", 1).events == []
    house.turn()
    assert asked.data == [1]


def test_over_callback_polling_messages_come_with_connects_alone() -> None:
    house = House()
    client = house.connected()
    client.subscribe("/a")

    def wire() -> Wire:
        return Wire(ConnectionType.CALLBACK_POLLING)

    message = {"channel": "/a", "data": 1}
    assert client.send(message, wire=wire()).events == []
    assert client.connect(wire=wire()).data == [1]


def test_a_disconnect_over_callback_polling_takes_everything_with_it() -> None:
    house = House()
    client = house.connected()
    client.subscribe("/a")
    house.server.publish("/a", 1)
    assert client.disconnect(wire=Wire(ConnectionType.CALLBACK_POLLING)).data == [1]


def test_client_ids_are_never_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        house = House(max_interval_s=1.0)
        alice, bob = house.connected(), house.connected()
        alice.subscribe("/a")
        alice.disconnect()
        house.advance(2.0)
    assert "ended" in caplog.text
    for client in (alice, bob):
        assert str(client.client_id) not in caplog.text


def test_an_event_for_one_session_reaches_it_alone() -> None:
    house = House()
    alice, bob = house.connected(), house.connected()
    asked, other = alice.connect(), bob.connect()
    house.server.deliver_event(alice.session, {"channel": "/x", "data": 1})
    house.turn()
    assert asked.data == [1]
    assert other.is_held


def test_an_event_for_a_session_that_is_gone_is_lost() -> None:
    house = House()
    client = house.connected()
    session = client.session
    client.disconnect()
    house.server.deliver_event(session, {"channel": "/x", "data": 1})
    assert house.bayeux.state.hub.counters.accepted == 0
