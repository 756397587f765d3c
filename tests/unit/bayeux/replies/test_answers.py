"""Answers that wait for the store, that carry less than they could, or that get lost."""

import pytest

from holdfast.bayeux.replies import writing
from holdfast.delivery.basics.session_states import SessionState
from tests.unit.bayeux.harness import Client, Server, Wire, server_of
from tests.unit.bayeux.second_lives import (
    RestartableServer,
    again,
    batch,
    codes,
    connect,
    drain,
    named,
    no,
    ok,
    publish,
    seqs,
    take,
)
from tests.unit.extensions.delivering import redelivered


def cut() -> Wire:
    wire = Wire()
    wire.is_cut = True
    return wire


def lose_one(server: Server, client: Client) -> int:
    """Lose the answer that hands over a message; return the batch before it."""
    known = client.session.queue.batch
    publish(server, 1)
    assert connect(client, known).data == [1]
    return known


# Acks settle what their batches carried


def test_the_ack_of_a_batch_without_a_lost_message_does_not_settle_it() -> None:
    server = RestartableServer()
    client = named(server)
    known = lose_one(server, client)
    server.bayeux.life.hold_back(client.session, "maintenance", who="operator", now=server.now)
    known = batch(connect(client, known))
    server.bayeux.life.resume(client.session, server.now)
    connect(client, known, wire=cut())
    answer = connect(client, known)
    assert (answer.data, redelivered(answer)) == ([1], [2])


def test_a_late_ack_settles_a_returned_message() -> None:
    server = RestartableServer(max_interval=2000)
    client = named(server, retries=-1)
    publish(server, 1)
    known = batch(connect(client, 1))
    server.advance(3.0)
    assert client.session.queue.returned
    assert connect(client, known).data == []
    assert client.session.queue.count == 0


def test_a_late_ack_with_a_refusal_settles_neither_the_refused_message_nor_later_ones() -> None:
    server = RestartableServer(max_interval=2000)
    client = named(server, retries=-1)
    publish(server, 1, 2)
    answer = connect(client, 1)
    server.advance(3.0)
    connect(client, batch(answer), no(seqs(answer)[0]))
    assert client.session.queue.count == 2
    server.bayeux.life.resume(client.session, server.now)
    assert drain(client, client.session.queue.batch) == ([1, 2], [2, 1])


def test_a_verdict_on_a_returned_message_counts() -> None:
    server = RestartableServer()
    client = named(server)
    publish(server, 1, 2, 3)
    first, second, third = seqs(connect(client, 1))
    connect(client, 2, no(first))
    connect(client, 3, {"seq": second, "state": "OK"}, no(third, "user.update.error"))
    assert codes(server) == ["user.update.error"]
    server.bayeux.life.resume(client.session, server.now)
    assert connect(client, 4).data == [1]


# The store is away


def test_an_empty_reply_has_no_batch_number_while_the_store_is_away() -> None:
    """Otherwise, after a restart, the ack of this number would settle the lost message."""
    server = RestartableServer()
    client = named(server)
    known = lose_one(server, client)
    server.store.go_away()
    answer = connect(client, known)
    assert answer.data == []
    assert "ack" not in answer.reply.get("ext", {})
    server = server.reborn()
    client = again(client, server)
    answer = connect(client, known)
    assert (answer.data, redelivered(answer)) == ([1], [1])


def test_a_connect_that_waits_for_the_store_is_answered_when_it_is_back() -> None:
    server = RestartableServer()
    client = named(server)
    publish(server, 1)
    server.store.go_away()
    asked = client.connect(ext={"ack": 1})
    server.turn()
    assert asked.is_held
    server.store.come_back()
    server.bayeux.life.store_is_back()
    server.turn()
    assert asked.data == [1]


# Answers that wait


def waiting(server: RestartableServer, client: Client) -> Wire:
    """A connect whose answer waits until the store knows of another attempt."""
    known = lose_one(server, client)
    wire = Wire()
    asked = client.connect(ext={"ack": known}, advice={"timeout": 0}, wire=wire)
    assert asked.is_held
    assert client.session.held_connect is None
    return wire


def test_a_one_way_session_settles_nothing_when_a_waiting_answer_cannot_be_written() -> None:
    server = RestartableServer()
    client = named(server, ack=False, oneway=True)
    publish(server, 1)
    connect(client, None, wire=cut())
    wire = Wire()
    client.connect(advice={"timeout": 0}, wire=wire)
    server.for_extensions.publish("/a", 2)
    wire.is_cut = True
    server.store.answer()
    server.flush()
    other = client.connect(advice={"timeout": 0})
    server.turn()
    assert other.data == [1, 2]


def test_messages_of_an_answer_that_cannot_be_written_go_with_the_next_answer() -> None:
    server = RestartableServer()
    client = named(server)
    wire = waiting(server, client)
    second = client.connect(ext={"ack": 1}, advice={"timeout": 0})
    wire.is_cut = True
    server.store.answer()
    server.flush()
    assert second.data == [1]
    assert [entry.attempts for entry in client.session.queue.in_flight().values()] == [3]


def test_a_held_connect_gets_at_once_what_an_earlier_answer_could_not_deliver() -> None:
    server = RestartableServer()
    client = named(server, ack=False)
    publish(server, 1)
    connect(client, None, wire=cut())
    wire = Wire()
    client.connect(advice={"timeout": 0}, wire=wire)
    asked = client.connect()
    assert client.session.held_connect is not None
    wire.is_cut = True
    server.turn()
    assert asked.data == [1]


def test_a_session_stays_connected_while_its_answer_waits_for_the_store() -> None:
    server = RestartableServer(timeout=500, max_interval=5000)
    client = named(server, retries=0)
    known = lose_one(server, client)
    for _ in range(8):
        connect(client, known)
    asked = client.connect(ext={"ack": known})
    assert client.session.held_connect is not None, "a client that never acks waits a second"
    for moment in (0.7, 0.9, 4.0):
        server.bayeux.tick(server.now + moment)
        assert client.session.state is SessionState.CONNECTED
    assert asked.is_held
    server.turn()
    assert asked.data == [1]


def test_a_held_connect_keeps_its_deadline_while_another_answer_waits() -> None:
    server = RestartableServer(max_interval=2000)
    client = named(server, ack=False)
    publish(server, 1)
    (seq,) = seqs(connect(client, None))
    asked = client.connect()
    deadline = client.session.deadline
    client.publish("/service/delivery", [no(seq, "user.update.error")])
    server.turn()
    assert asked.is_held
    assert client.session.deadline == deadline


# Plain sessions


def test_a_plain_session_does_not_get_an_expired_message() -> None:
    server = server_of()
    client = server.connected()
    client.subscribe("/a")
    expiration = {"lifeTime": 1000, "forceDestroy": True}
    sender = server.connected()
    sender.publish("/a", 1, ext={"delivery": {"expiration": expiration}})
    sender.publish("/a", 2)
    server.advance(2.0)
    assert client.connect().data == [2]
    assert server.bayeux.state.hub.counters.expired == 1
    assert server.balances()


def test_a_pending_publish_makes_no_dead_letter_for_a_receiver_that_disconnects() -> None:
    server = RestartableServer()
    named(server)
    client = server.client(ext={"delivery": True})
    client.subscribe("/a")
    asked = server.connected().publish("/a", 1)
    client.disconnect()
    server.turn()
    assert asked.reply["successful"] is True
    assert codes(server) == []
    assert server.balances()


# Very long queues


@pytest.mark.parametrize("ack", [True, False])
def test_an_answer_to_a_durable_session_carries_a_limited_number_of_messages(
    *, ack: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "_MOST_DURABLE", 3)
    server = RestartableServer()
    client = named(server, ack=ack)
    publish(server, *range(8))
    answer = connect(client, 1 if ack else None)
    assert answer.data == [0, 1, 2]
    known, verdicts = (batch(answer), []) if ack else (None, [*map(ok, seqs(answer))])
    answer = connect(client, known, *verdicts)
    assert answer.data == [3, 4, 5]
    assert redelivered(answer) == [0, 0, 0]
    assert server.balances()


@pytest.mark.parametrize(("waiting", "announced"), [(3, 3), (4, None)])
def test_a_handshake_reply_announces_the_waiting_messages_only_if_all_of_them_fit(
    waiting: int, announced: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "_MOST_DURABLE", 3)
    server = RestartableServer(allow_message_delivery_during_handshake=True)
    client = named(server)
    publish(server, *range(waiting))
    asked = take(client)
    server.turn()
    assert asked.elements[0].get("x-messages") == announced
    assert len(asked.data) == (announced or 0)


def test_a_handshake_reply_that_waited_for_the_store_announces_no_expired_messages() -> None:
    server = RestartableServer(allow_message_delivery_during_handshake=True)
    client = named(server, ack=False)
    qos = {"expiration": {"lifeTime": 1000, "forceDestroy": True}}
    server.connected().publish("/a", 1, ext={"delivery": qos})
    publish(server, 2)
    heir = server.guest(browser=client.browser)
    asked = heir.begin_handshake(ext={"delivery": {"session": "joe/1"}})
    server.now += 1.5
    server.turn()
    assert asked.data == [2]
    assert asked.elements[0]["x-messages"] == 1, "cometd.js would wait for ever for another"


@pytest.mark.parametrize("is_prompt", [True, False])
@pytest.mark.parametrize("how", ["logged out", "ended", "taken over"])
def test_a_handshake_reply_whose_client_loses_its_session_announces_no_messages(
    how: str, *, is_prompt: bool
) -> None:
    server = server_of(allow_message_delivery_during_handshake=True)
    client = named(server, ack=False)
    session = client.session
    publish(server, 1, 2)
    server.keeper.is_prompt = is_prompt
    asked = server.guest(browser=client.browser).begin_handshake(
        ext={"delivery": {"session": "joe/1"}}
    )
    if not is_prompt:
        # With messages, the reply would wait once more for the store.
        server.keeper.turn()
        server.flush()
    if how == "logged out":
        server.for_extensions.log_out(session)
    elif how == "ended":
        server.for_extensions.end_by_server(session)
    else:
        take(server.guest(browser=client.browser))
    server.turn()
    assert asked.elements[0]["successful"]
    assert asked.elements[1:] == []
    assert "x-messages" not in asked.elements[0], "cometd.js would wait for them for ever"
    assert server.balances()
