"""Answers that wait for the store, that carry less than they could, or that get lost."""

from functools import partial

import pytest

from holdfast.bayeux import answers
from holdfast.delivery.session_states import SessionState
from holdfast.extensions.ack import Ack
from holdfast.extensions.delivery_wire import DeliveryWire
from tests.unit.bayeux.harness import Client, House, Wire
from tests.unit.bayeux.second_lives import (
    KeptHouse,
    again,
    batch,
    codes,
    connect,
    drain,
    named,
    no,
    ok,
    publish,
    redelivered,
    seqs,
    take,
)


def cut() -> Wire:
    wire = Wire()
    wire.is_cut = True
    return wire


def lose_one(house: House, client: Client) -> int:
    """Lose the answer that hands over a message; return the batch before it."""
    known = client.session.queue.batch
    publish(house, 1)
    assert connect(client, known).data == [1]
    return known


# Acks settle what their batches carried


def test_the_ack_of_a_batch_without_a_lost_message_does_not_settle_it() -> None:
    house = KeptHouse()
    client = named(house)
    known = lose_one(house, client)
    house.bayeux.life.hold_back(client.session, "maintenance", "operator", house.now)
    known = batch(connect(client, known))
    house.bayeux.life.resume(client.session, house.now)
    connect(client, known, wire=cut())
    answer = connect(client, known)
    assert (answer.data, redelivered(answer)) == ([1], [2])


def test_a_late_ack_settles_a_returned_message() -> None:
    house = KeptHouse(max_interval_s=2.0)
    client = named(house, retries=-1)
    publish(house, 1)
    known = batch(connect(client, 1))
    house.advance(3.0)
    assert client.session.queue.returned
    assert connect(client, known).data == []
    assert client.session.queue.count == 0


def test_a_late_ack_with_a_refusal_settles_neither_the_refused_message_nor_later_ones() -> None:
    house = KeptHouse(max_interval_s=2.0)
    client = named(house, retries=-1)
    publish(house, 1, 2)
    answer = connect(client, 1)
    house.advance(3.0)
    connect(client, batch(answer), no(seqs(answer)[0]))
    assert client.session.queue.count == 2
    house.bayeux.life.resume(client.session, house.now)
    assert drain(client, client.session.queue.batch) == ([1, 2], [2, 1])


def test_a_verdict_on_a_returned_message_counts() -> None:
    house = KeptHouse()
    client = named(house)
    publish(house, 1, 2, 3)
    first, second, third = seqs(connect(client, 1))
    connect(client, 2, no(first))
    connect(client, 3, {"seq": second, "state": "OK"}, no(third, "user.update.error"))
    assert codes(house) == ["user.update.error"]
    house.bayeux.life.resume(client.session, house.now)
    assert connect(client, 4).data == [1]


# The store is away


def test_an_empty_reply_has_no_batch_number_while_the_store_is_away() -> None:
    """Otherwise, after a restart, the ack of this number would settle the lost message."""
    house = KeptHouse()
    client = named(house)
    known = lose_one(house, client)
    house.store.go_away()
    answer = connect(client, known)
    assert answer.data == []
    assert "ack" not in answer.reply.get("ext", {})
    house = house.reborn()
    client = again(client, house)
    answer = connect(client, known)
    assert (answer.data, redelivered(answer)) == ([1], [1])


def test_a_connect_that_waits_for_the_store_is_answered_when_it_is_back() -> None:
    house = KeptHouse()
    client = named(house)
    publish(house, 1)
    house.store.go_away()
    asked = client.connect(ext={"ack": 1})
    house.turn()
    assert asked.is_held
    house.store.come_back()
    house.bayeux.life.store_is_back()
    house.turn()
    assert asked.data == [1]


# Answers that wait


def waiting(house: KeptHouse, client: Client) -> Wire:
    """A connect whose answer waits until the store knows of another attempt."""
    known = lose_one(house, client)
    wire = Wire()
    asked = client.connect(ext={"ack": known}, advice={"timeout": 0}, wire=wire)
    assert asked.is_held
    assert client.session.held_connect is None
    return wire


def test_a_one_way_session_settles_nothing_when_a_waiting_answer_cannot_be_written() -> None:
    house = KeptHouse()
    client = named(house, ack=False, oneway=True)
    publish(house, 1)
    connect(client, None, wire=cut())
    wire = Wire()
    client.connect(advice={"timeout": 0}, wire=wire)
    house.server.publish("/a", 2)
    wire.is_cut = True
    house.store.answer()
    house.flush()
    other = client.connect(advice={"timeout": 0})
    house.turn()
    assert other.data == [1, 2]


def test_messages_of_an_answer_that_cannot_be_written_go_with_the_next_answer() -> None:
    house = KeptHouse()
    client = named(house)
    wire = waiting(house, client)
    second = client.connect(ext={"ack": 1}, advice={"timeout": 0})
    wire.is_cut = True
    house.store.answer()
    house.flush()
    assert second.data == [1]
    assert [entry.attempts for entry in client.session.queue.in_flight().values()] == [3]


def test_a_held_connect_gets_at_once_what_an_earlier_answer_could_not_deliver() -> None:
    house = KeptHouse()
    client = named(house, ack=False)
    publish(house, 1)
    connect(client, None, wire=cut())
    wire = Wire()
    client.connect(advice={"timeout": 0}, wire=wire)
    asked = client.connect()
    assert client.session.held_connect is not None
    wire.is_cut = True
    house.turn()
    assert asked.data == [1]


def test_a_session_stays_connected_while_its_answer_waits_for_the_store() -> None:
    house = KeptHouse(timeout_s=0.5, max_interval_s=5.0)
    client = named(house, retries=0)
    known = lose_one(house, client)
    for _ in range(8):
        connect(client, known)
    asked = client.connect(ext={"ack": known})
    assert client.session.held_connect is not None, "a client that never acks waits a second"
    for moment in (0.7, 0.9, 4.0):
        house.bayeux.tick(house.now + moment)
        assert client.session.state is SessionState.CONNECTED
    assert asked.is_held
    house.turn()
    assert asked.data == [1]


def test_a_held_connect_keeps_its_deadline_while_another_answer_waits() -> None:
    house = KeptHouse(max_interval_s=2.0)
    client = named(house, ack=False)
    publish(house, 1)
    (seq,) = seqs(connect(client, None))
    asked = client.connect()
    deadline = client.session.deadline
    client.publish("/service/delivery", [no(seq, "user.update.error")])
    house.turn()
    assert asked.is_held
    assert client.session.deadline == deadline


# Plain sessions


def test_a_plain_session_does_not_get_an_expired_message() -> None:
    house = House(DeliveryWire, partial(Ack, announces_batch=False))
    client = house.connected()
    client.subscribe("/a")
    expiration = {"lifeTime": 1000, "forceDestroy": True}
    sender = house.connected()
    sender.publish("/a", 1, ext={"delivery": {"expiration": expiration}})
    sender.publish("/a", 2)
    house.advance(2.0)
    assert client.connect().data == [2]
    assert house.bayeux.state.hub.counters.expired == 1
    assert house.balances()


def test_a_pending_publish_makes_no_dead_letter_for_a_receiver_that_disconnects() -> None:
    house = KeptHouse()
    named(house)
    client = house.client(ext={"delivery": True})
    client.subscribe("/a")
    asked = house.connected().publish("/a", 1)
    client.disconnect()
    house.turn()
    assert asked.reply["successful"] is True
    assert codes(house) == []
    assert house.balances()


# Very long queues


@pytest.mark.parametrize("ack", [True, False])
def test_an_answer_to_a_durable_session_carries_a_limited_number_of_messages(
    *, ack: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "_MOST_DURABLE", 3)
    house = KeptHouse()
    client = named(house, ack=ack)
    publish(house, *range(8))
    answer = connect(client, 1 if ack else None)
    assert answer.data == [0, 1, 2]
    known, verdicts = (batch(answer), []) if ack else (None, [*map(ok, seqs(answer))])
    answer = connect(client, known, *verdicts)
    assert answer.data == [3, 4, 5]
    assert redelivered(answer) == [0, 0, 0]
    assert house.balances()


@pytest.mark.parametrize(("waiting", "announced"), [(3, 3), (4, None)])
def test_a_handshake_reply_announces_the_waiting_messages_only_if_all_of_them_fit(
    waiting: int, announced: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "_MOST_DURABLE", 3)
    house = KeptHouse(allow_message_delivery_during_handshake=True)
    client = named(house)
    publish(house, *range(waiting))
    asked = take(client)
    house.turn()
    assert asked.elements[0].get("x-messages") == announced
    assert len(asked.data) == (announced or 0)
