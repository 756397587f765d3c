"""Receivers that are held back, by themselves or by an operator."""

from holdfast.delivery.dispatcher import DispatcherState as Contact
from tests.unit.extensions.delivering import (
    HOLDBACK,
    codes,
    connect,
    house_of,
    no,
    ok,
    publish,
    receiver,
    redelivered,
)


def test_a_message_with_a_holdback_stays_first_and_all_others_stay_behind_it() -> None:
    house = house_of()
    client = receiver(house)
    publish(house, 1, 2, 3)
    events = connect(client).events
    assert connect(client, no(events[0], HOLDBACK, "disk full")).events == []
    publish(house, 4)
    session = client.session
    dispatcher = session.dispatcher
    assert dispatcher is not None
    assert not dispatcher.is_active
    assert dispatcher.state is Contact.ALIVE
    assert session.queue.count == 4
    assert codes(house) == []
    house.bayeux.life.resume(session, house.now)
    answers = [connect(client) for _ in range(3)]
    assert [answer.data for answer in answers] == [[1], [2, 3], [4]]
    assert [redelivered(answer) for answer in answers] == [[1], [0, 0], [0]]
    assert house.balances()


def test_other_messages_of_a_batch_with_a_holdback_are_settled() -> None:
    house = house_of()
    client = receiver(house)
    publish(house, 1, 2, 3)
    events = connect(client).events
    connect(client, no(events[1], HOLDBACK), ok(events[2]))
    assert client.session.queue.count == 1
    house.bayeux.life.resume(client.session, house.now)
    assert connect(client).data == [2]


def test_a_holdback_does_not_end_a_session_without_retries() -> None:
    house = house_of()
    client = receiver(house, retries=0)
    publish(house, 1)
    connect(client, no(connect(client).events[0], HOLDBACK))
    house.advance(60.0)
    assert not client.session.is_gone
    assert codes(house) == []


def test_a_queue_hold_can_end_at_a_set_time() -> None:
    house = house_of()
    client = receiver(house)
    until_ms = house.bayeux.state.node.now_ms() + 2000
    house.bayeux.life.hold_back(client.session, "lunch", "operator", house.now, until_ms)
    publish(house, 1)
    asked = client.connect(ext={"ack": client.session.queue.batch})
    house.advance(1.9)
    assert asked.is_held
    house.advance(0.3)
    assert asked.data == [1]


def test_a_plain_receiver_can_be_held_back_by_an_operator() -> None:
    house = house_of()
    client = house.connected()
    client.subscribe("/a")
    house.bayeux.life.hold_back(client.session, "maintenance", "operator", house.now)
    asked = client.connect()
    publish(house, 1)
    house.turn()
    assert asked.is_held
    house.bayeux.life.resume(client.session, house.now)
    house.turn()
    assert asked.data == [1]
    assert house.balances()
