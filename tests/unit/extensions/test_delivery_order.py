"""The order in which messages are handed over, and how many at a time."""

from tests.unit.extensions.delivering import (
    HOLDBACK,
    codes,
    connect,
    data_of,
    house_of,
    no,
    publish,
    receiver,
)


def test_priority_orders_what_was_never_handed_over() -> None:
    house = house_of()
    client = receiver(house, dispatcherActive=False)
    sender = house.connected()
    for priority in (1, 5, 9, 5):
        sender.publish("/a", priority, ext={"delivery": {"priority": priority}})
    assert connect(client).events == []
    house.bayeux.life.resume(client.session, house.now)
    answer = connect(client)
    assert answer.data == [9, 5, 5, 1]
    assert [e["ext"]["delivery"]["queue"]["index"] for e in answer.events] == [0, 1, 2, 3]


def test_what_came_back_precedes_everything_that_waits_whatever_its_priority() -> None:
    house = house_of()
    client = receiver(house)
    publish(house, 1)
    connect(client, no(connect(client).events[0], HOLDBACK))
    house.connected().publish("/a", 2, ext={"delivery": {"priority": 9}})
    house.bayeux.life.resume(client.session, house.now)
    assert [connect(client).data, connect(client).data] == [[1], [2]]


def test_a_batch_has_no_more_entries_than_was_agreed() -> None:
    house = house_of()
    client = receiver(house, maxEntries=2)
    publish(house, 1, 2, 3)
    assert connect(client).data == [1, 2]
    assert connect(client).data == [3]


def test_overflow_is_a_dead_letter_and_the_publisher_does_not_see_it() -> None:
    house = house_of()
    client = receiver(house, queue={"maxEntries": 2})
    other = house.connected()
    assert [other.publish("/a", n).reply["successful"] for n in range(3)] == [True] * 3
    assert codes(house) == ["resource.overflow.queue.entries"]
    assert data_of(house) == [2]
    assert connect(client).data == [0, 1]
    assert "/a" in client.session.subscriptions


def test_a_message_whose_life_is_over_leaves_the_queue_where_it_waits() -> None:
    house = house_of()
    client = receiver(house, dispatcherActive=False)
    sender = house.connected()
    expiration = {"lifeTime": 1000, "forceDestroy": True}
    sender.publish("/a", 1, ext={"delivery": {"expiration": expiration}})
    sender.publish("/a", 2, ext={"delivery": {"expiration": {"lifeTime": 1000}}})
    house.advance(2.0)
    house.bayeux.life.resume(client.session, house.now)
    answer = connect(client)
    assert answer.data == [2]
    told = answer.events[0]["ext"]["delivery"]["expiration"]
    assert told == {"lifeTime": 1000, "remainingLife": 0}
    assert house.bayeux.state.hub.counters.expired == 1
    assert house.balances()
