"""What is left of a session after a restart, and what begins anew."""

from holdfast.bayeux.options import Durable
from holdfast.bayeux.sessions import Session
from tests.unit.bayeux.harness import Wire
from tests.unit.bayeux.second_lives import (
    KeptHouse,
    again,
    batch,
    codes,
    connect,
    named,
    no,
    ok,
    publish,
    redelivered,
    seqs,
    take,
)


def joe(house: KeptHouse) -> Session:
    (session,) = house.bayeux.state.sessions.names.of_subject("joe")
    return session


# Queue holds


def test_a_queue_hold_with_an_end_ends_on_time_after_a_restart() -> None:
    house = KeptHouse()
    client = named(house)
    publish(house, 1)
    until_ms = house.bayeux.state.node.now_ms() + 2000
    house.bayeux.life.hold_back(client.session, "lunch", "operator", house.now, until_ms)
    house = house.reborn()
    client = again(client, house)
    house.advance(1.5)
    assert connect(client, 1).data == []
    house.advance(0.6)
    assert connect(client, 2).data == [1]


def test_a_queue_hold_whose_end_passed_before_a_restart_ends_at_once() -> None:
    house = KeptHouse()
    client = named(house)
    until_ms = house.bayeux.state.node.now_ms() + 2000
    house.bayeux.life.hold_back(client.session, "lunch", "operator", house.now, until_ms)
    house.now += 60.0
    house = house.reborn()
    house.advance(0.2)
    assert joe(house).hold_ends_at == 0.0
    publish(house, 1)
    assert connect(again(client, house), 1).data == [1]


def test_a_queue_hold_of_a_session_without_terms_survives_a_restart() -> None:
    house = KeptHouse(durable=Durable.ACKED)
    client = house.client(ext={"ack": True})
    connect(client, 0)
    client.subscribe("/a")
    house.turn()
    house.bayeux.life.hold_back(client.session, "maintenance", "operator", house.now)
    publish(house, 1)
    house = house.reborn()
    client = again(client, house)
    assert connect(client, 1).data == []
    house.bayeux.life.resume(client.session, house.now)
    assert connect(client, 2).data == [1]


# Messages in flight


def test_a_message_pending_over_a_restart_is_redelivered_after_its_response_timeout() -> None:
    house = KeptHouse()
    client = named(house, ack=False, responseTimeout=2000)
    publish(house, 1)
    working_on = seqs(connect(client, None))
    house = house.reborn()
    client = again(client, house)
    assert connect(client, None, pending=working_on).data == []
    house.advance(1.9)
    assert connect(client, None, pending=working_on).data == []
    house.advance(0.7)
    answer = connect(client, None)
    assert (answer.data, redelivered(answer)) == ([1], [1])


def test_a_verdict_about_a_message_handed_over_before_a_restart_counts() -> None:
    house = KeptHouse()
    client = named(house, ack=False)
    publish(house, 1, 2)
    first, second = seqs(connect(client, None))
    house = house.reborn()
    client = again(client, house)
    connect(client, None, ok(first), no(second, "user.update.error"))
    assert codes(house) == ["user.update.error"]
    assert house.store.queues["joe/1"] == {}


def test_a_message_not_yet_sent_to_a_oneway_receiver_is_delivered_after_a_restart() -> None:
    house = KeptHouse()
    client = named(house, ack=False, oneway=True)
    publish(house, 1)
    wire = Wire()
    wire.is_cut = True
    connect(client, None, wire=wire)
    asked = client.connect(advice={"timeout": 0})
    assert asked.is_held, "the store learns of the next attempt first"
    house = house.reborn()
    client = again(client, house)
    publish(house, 2)
    assert connect(client, None).data == [1, 2]
    assert house.store.queues["joe/1"] == {}


def test_the_numbers_of_entries_rise_over_every_restart() -> None:
    house = KeptHouse()
    client = named(house)
    told: list[int] = []
    ack = 1
    for number in range(3):
        publish(house, number)
        answer = connect(client, ack)
        told += seqs(answer)
        ack = batch(answer)
        # Acked, so that the store has nothing of it any more.
        ack = batch(connect(client, ack))
        house = house.reborn()
        client = again(client, house)
    assert told == sorted(set(told))
    assert told[-1] < 2**53, "JavaScript counts no further"


# Waiting messages


def test_a_restored_queue_is_in_the_order_of_priorities() -> None:
    house = KeptHouse()
    client = named(house)
    sender = house.connected()
    for priority in (1, 9, 5):
        sender.publish("/a", priority, ext={"delivery": {"priority": priority}})
    house.turn()
    house = house.reborn()
    publish(house, 6)
    assert connect(again(client, house), 1).data == [9, 5, 6, 1]


def test_a_message_with_force_destroy_expires_after_restarts_too() -> None:
    house = KeptHouse()
    client = named(house)
    sender = house.connected()
    for number, is_forced in ((1, True), (2, False)):
        expiration = {"lifeTime": 2000, "forceDestroy": is_forced}
        sender.publish("/a", number, ext={"delivery": {"expiration": expiration}})
    house.turn()
    house = house.reborn()
    house.advance(1.0)
    house = house.reborn()
    house.advance(1.0)
    assert connect(again(client, house), 1).data == [2]
    assert house.bayeux.state.hub.counters.expired == 1
    assert house.balances()


def test_a_message_whose_lifetime_ends_while_no_server_runs_is_not_delivered() -> None:
    house = KeptHouse()
    client = named(house)
    expiration = {"lifeTime": 2000, "forceDestroy": True}
    house.connected().publish("/a", 1, ext={"delivery": {"expiration": expiration}})
    house.turn()
    house.now += 60.0
    house = house.reborn()
    assert connect(again(client, house), 1).data == []
    assert house.store.queues["joe/1"] == {}


# Sessions


def test_a_stopped_session_stays_stopped_over_a_restart_until_a_handshake() -> None:
    house = KeptHouse()
    client = named(house, onUserException="dead")
    publish(house, 1)
    connect(client, 1, no(seqs(connect(client, 1))[0], "user.update.error"))
    house = house.reborn()
    client = again(client, house)
    publish(house, 2)
    assert connect(client, 3).data == []
    assert codes(house) == ["user.update.error", "communication.noConnection.dead"]
    new = house.guest()
    take(new, onUserException="dead")
    publish(house, 3)
    assert connect(new, 0).data == [3]


def test_a_stored_subscription_to_an_invalid_channel_is_left_out() -> None:
    house = KeptHouse()
    client = named(house)
    house.store.sessions["joe/1"].subscriptions.insert(0, "no channel")
    house = house.reborn()
    assert again(client, house).session.subscriptions == {"/a"}
