"""Durable sessions go on after a restart."""

from holdfast.bayeux.options import Durable
from holdfast.bayeux.session_status import last_seen_ms
from tests.unit.bayeux.harness import Client
from tests.unit.bayeux.second_lives import (
    KeptHouse,
    again,
    batch,
    connect,
    drain,
    named,
    no,
    publish,
    seqs,
    take,
)


def test_a_durable_session_goes_on_after_a_restart() -> None:
    before = KeptHouse()
    client = named(before)
    publish(before, 1, 2)
    assert connect(client, 1).data == [1, 2]
    publish(before, 3)
    house = before.reborn()
    client = again(client, house)
    assert drain(client, 1) == ([1, 2, 3], [1, 1, 0])
    publish(house, 4)
    assert connect(client, client.session.queue.batch).data == [4]
    assert house.balances()


def test_a_batch_acked_with_the_first_connect_after_a_restart_is_not_redelivered() -> None:
    before = KeptHouse()
    client = named(before)
    publish(before, 1)
    answer = connect(client, 1)
    acked = batch(answer)
    for _ in range(5):
        acked = batch(connect(client, acked))
    publish(before, 2)
    answer = connect(client, acked)
    assert answer.data == [2]
    acked = batch(answer)
    house = before.reborn()
    client = again(client, house)
    answer = connect(client, acked)
    assert answer.data == []
    assert batch(answer) > acked
    assert house.store.queues["joe/1"] == {}
    assert house.bayeux.state.hub.counters.acks_out_of_range == 0


def test_messages_accepted_before_a_restart_count_as_restored_and_not_as_accepted() -> None:
    before = KeptHouse()
    client = named(before)
    publish(before, 1, 2)
    assert connect(client, 1).data == [1, 2]
    house = before.reborn()
    publish(house, 3)
    counters = house.bayeux.state.hub.counters
    assert (counters.accepted, counters.restored) == (1, 2)
    assert house.balances()


def test_a_client_that_left_before_a_restart_was_last_seen_before_it() -> None:
    before = KeptHouse()
    client = named(before)
    before.advance(3.0)
    client.disconnect()
    left_ms = before.bayeux.state.node.now_ms()
    before.turn()
    before.advance(60.0)
    house = before.reborn()
    state = house.bayeux.state
    (session,) = state.sessions
    assert abs(last_seen_ms(state.options, state.node, session, house.now) - left_ms) < 100
    take(Client(house))
    assert last_seen_ms(state.options, state.node, session, house.now) > left_ms + 60_000


def test_attempts_and_a_queue_hold_survive_a_restart() -> None:
    before = KeptHouse()
    client = named(before)
    publish(before, 1, 2)
    seq, _ = seqs(connect(client, 1))
    connect(client, 2, no(seq, message="full"))
    house = before.reborn()
    client = again(client, house)
    assert connect(client, 3).data == []
    session = client.session
    assert session.dispatcher is not None
    assert session.dispatcher.hold_record is not None
    assert session.dispatcher.hold_record.reason == "full"
    house.bayeux.life.resume(session, house.now)
    assert drain(client, 4) == ([1, 2], [1, 0])


def test_subscriptions_survive_a_restart() -> None:
    before = KeptHouse()
    client = named(before)
    client.subscribe("/b", "/c/**")
    client.unsubscribe("/a")
    before.turn()
    house = before.reborn()
    for channel in ("/a", "/b", "/c/d"):
        house.server.publish(channel, channel)
    house.turn()
    assert connect(again(client, house), 1).data == ["/b", "/c/d"]


def test_a_session_whose_client_left_before_a_restart_can_be_taken_over_after_it() -> None:
    before = KeptHouse()
    client = named(before)
    publish(before, 1)
    client.disconnect()
    before.turn()
    house = before.reborn()
    assert connect(again(client, house), 1).reply["error"].startswith("402")
    publish(house, 2)
    new = house.guest()
    take(new)
    assert connect(new, 0).data == [1, 2]


def test_an_unnamed_session_with_acks_can_survive_a_restart() -> None:
    before = KeptHouse(durable=Durable.ACKED)
    client = before.client(ext={"ack": True})
    connect(client, 0)
    client.subscribe("/a")
    before.turn()
    publish(before, 1)
    house = before.reborn()
    assert connect(again(client, house), 1).data == [1]
