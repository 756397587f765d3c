"""Replays into the queues of living sessions."""

from holdfast.delivery.marks import Mark
from holdfast.delivery.messages import Message
from tests.unit.bayeux.desk import connect, house_of, letters, publish, receiver, replaying_of
from tests.unit.bayeux.harness import House


def a_message(house: House, data: str = "7") -> Message:
    wire = f'{{"channel":"/a","data":{data}}}'.encode()
    message = Message(wire, id=house.bayeux.state.node.stamp(), channel="/a")
    message.generation = 1
    return message


def test_a_replayed_message_counts_as_waiting_until_it_is_acked() -> None:
    house = house_of()
    replaying = replaying_of(house)
    client = receiver(house)
    message = a_message(house)
    assert replaying.is_durable("joe/1") is True
    replaying.deliver("joe/1", message, 1)
    sent = [("joe/1", message.id), ("joe/1", 5)]
    assert replaying.waiting(sent) == sent[:1]
    (event,) = client.connect(advice={"timeout": 0}).events
    assert (event["data"], event["ext"]["delivery"]["generation"]) == (7, 1)
    assert replaying.waiting(sent) == sent[:1], "it is in flight"
    connect(client)
    assert replaying.waiting(sent) == []
    assert house.balances()


def test_a_replayed_message_reaches_an_unnamed_session() -> None:
    house = house_of()
    replaying = replaying_of(house)
    client = receiver(house, session=None)
    key = client.session.key
    assert replaying.is_durable(key) is False
    replaying.deliver(key, a_message(house), 1)
    assert connect(client) == [7]
    house.server.end_by_server(client.session)
    assert replaying.is_durable(key) is None


def test_a_replay_finds_sessions_that_began_after_it() -> None:
    house = house_of()
    replaying = replaying_of(house)
    assert replaying.is_durable("anonymous/-1") is None
    client = house.connected()
    house.advance(1.1)
    assert replaying.is_durable(client.session.key) is False
    assert replaying.is_durable("anonymous/-1") is None


def test_a_replayed_message_without_a_receiver_is_a_dead_letter_again() -> None:
    house = house_of()
    replaying = replaying_of(house)
    message = a_message(house)
    replaying.deliver("joe/1", message, 1)
    (letter,) = house.keeper.letters
    assert (letter.key, letter.message, letter.generation) == ("joe/1", message.id, 1)
    assert replaying.waiting([("joe/1", message.id)]) == []
    assert house.balances()


def test_a_replayed_message_leaves_the_stored_queue_of_an_ended_session() -> None:
    house = house_of()
    message = a_message(house)
    message.is_durable = True
    house.keeper.queues["joe/1"] = {message.id: Mark(message.id)}
    replaying_of(house).deliver("joe/1", message, 1)
    assert (house.keeper.queues, letters(house)) == ({"joe/1": {}}, [7])


def test_a_replayed_message_that_finds_no_room_is_a_dead_letter_again() -> None:
    house = house_of()
    receiver(house, queue={"maxEntries": 1})
    publish(house, 1)
    replaying_of(house).deliver("joe/1", a_message(house), 1)
    assert letters(house) == [7]
    assert house.balances()
