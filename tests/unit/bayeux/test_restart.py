"""Durable sessions go on after a restart."""

from holdfast.bayeux.sessions.status import last_seen_ms
from tests.unit.bayeux.harness import Client
from tests.unit.bayeux.second_lives import (
    RestartableServer,
    again,
    batch,
    codes,
    connect,
    drain,
    named,
    no,
    publish,
    seqs,
    take,
)
from tests.unit.extensions.delivering import redelivered


def test_a_durable_session_goes_on_after_a_restart() -> None:
    before = RestartableServer()
    client = named(before)
    publish(before, 1, 2)
    assert connect(client, 1).data == [1, 2]
    publish(before, 3)
    server = before.reborn()
    client = again(client, server)
    assert drain(client, 1) == ([1, 2, 3], [1, 1, 0])
    publish(server, 4)
    assert connect(client, client.session.queue.batch).data == [4]
    assert server.balances()


def test_a_batch_acked_with_the_first_connect_after_a_restart_is_not_redelivered() -> None:
    before = RestartableServer()
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
    server = before.reborn()
    client = again(client, server)
    answer = connect(client, acked)
    assert answer.data == []
    assert batch(answer) > acked
    assert server.store.queues["joe/1"] == {}
    assert server.bayeux.state.hub.counters.acks_out_of_range == 0


def test_a_refusal_that_the_store_has_lost_is_no_ack_after_a_restart() -> None:
    before = RestartableServer()
    client = named(before)
    publish(before, 1, 2)
    answer = connect(client, 1)
    first, _ = seqs(answer)
    queue = {**before.store.queues["joe/1"]}
    answer = connect(client, batch(answer), no(first, "user.update.error"))
    assert codes(before) == ["user.update.error"]
    # A replica takes over that has nothing of this, and the server dies.
    before.store.queues["joe/1"] = queue
    before.store.letters.clear()
    server = before.reborn()
    client = again(client, server)
    answer = connect(client, batch(answer))
    assert (answer.data, redelivered(answer)) == ([1], [1])
    [first] = seqs(answer)
    answer = connect(client, batch(answer), no(first, "user.update.error"))
    assert (answer.data, redelivered(answer)) == ([2], [1])
    connect(client, batch(answer))
    assert codes(server) == ["user.update.error"]
    assert server.store.queues["joe/1"] == {}
    assert server.balances()


def test_a_client_that_cannot_refuse_is_believed_what_the_store_has_lost() -> None:
    before = RestartableServer(durable="acked")
    client = before.client(ext={"ack": True})
    connect(client, 0)
    client.subscribe("/a")
    publish(before, 1)
    answer = connect(client, 1)
    assert answer.data == [1]
    (key,) = before.store.queues
    queue = {**before.store.queues[key]}
    publish(before, 2)
    answer = connect(client, batch(answer))
    assert answer.data == [2]
    before.store.queues[key] = queue
    server = before.reborn()
    assert connect(again(client, server), batch(answer)).data == []


def test_messages_accepted_before_a_restart_count_as_restored_and_not_as_accepted() -> None:
    before = RestartableServer()
    client = named(before)
    publish(before, 1, 2)
    assert connect(client, 1).data == [1, 2]
    server = before.reborn()
    publish(server, 3)
    counters = server.bayeux.state.hub.counters
    assert (counters.accepted, counters.restored) == (1, 2)
    assert server.balances()


def test_a_client_that_left_before_a_restart_was_last_seen_before_it() -> None:
    before = RestartableServer()
    client = named(before)
    before.advance(3.0)
    client.disconnect()
    left_ms = before.bayeux.state.node.now_ms()
    before.turn()
    before.advance(60.0)
    server = before.reborn()
    state = server.bayeux.state
    (session,) = state.sessions
    assert abs(last_seen_ms(state.options, state.node, session, server.now) - left_ms) < 100
    client = Client(server)
    take(client)
    assert last_seen_ms(state.options, state.node, session, server.now) > left_ms + 60_000
    client.disconnect()
    server.turn()
    server.advance(3.0)
    assert last_seen_ms(state.options, state.node, session, server.now) > left_ms + 60_000


def test_attempts_and_a_queue_hold_survive_a_restart() -> None:
    before = RestartableServer()
    client = named(before)
    publish(before, 1, 2)
    seq, _ = seqs(connect(client, 1))
    connect(client, 2, no(seq, message="full"))
    server = before.reborn()
    client = again(client, server)
    assert connect(client, 3).data == []
    session = client.session
    assert session.dispatcher is not None
    assert session.dispatcher.hold_record is not None
    assert session.dispatcher.hold_record.reason == "full"
    server.bayeux.life.resume(session, server.now)
    assert drain(client, 4) == ([1, 2], [1, 0])


def test_subscriptions_survive_a_restart() -> None:
    before = RestartableServer()
    client = named(before)
    client.subscribe("/b", "/c/**")
    client.unsubscribe("/a")
    before.turn()
    server = before.reborn()
    for channel in ("/a", "/b", "/c/d"):
        server.for_extensions.publish(channel, channel)
    server.turn()
    assert connect(again(client, server), 1).data == ["/b", "/c/d"]


def test_a_session_whose_client_left_before_a_restart_can_be_taken_over_after_it() -> None:
    before = RestartableServer()
    client = named(before)
    publish(before, 1)
    client.disconnect()
    before.turn()
    server = before.reborn()
    assert connect(again(client, server), 1).reply["error"].startswith("402")
    publish(server, 2)
    new = server.guest()
    take(new)
    assert connect(new, 0).data == [1, 2]


def test_an_unnamed_session_with_acks_can_survive_a_restart() -> None:
    before = RestartableServer(durable="acked")
    client = before.client(ext={"ack": True})
    connect(client, 0)
    client.subscribe("/a")
    before.turn()
    publish(before, 1)
    server = before.reborn()
    assert connect(again(client, server), 1).data == [1]


def test_what_is_behind_a_refused_message_that_is_not_stored_comes_again_after_a_restart() -> None:
    before = RestartableServer()
    client = named(before)
    before.client().publish("/a", 1, ext={"delivery": {"persistent": False}})
    publish(before, 2)
    answer = connect(client, 1)
    assert answer.data == [1, 2]
    first, _ = seqs(answer)
    server = before.reborn()
    client = again(client, server)
    # The client wants both later. This server has never had the first one.
    answer = connect(client, batch(answer), no(first, "communication.busy", delay=100))
    server.advance(1)
    assert (answer.data or connect(client, batch(answer)).data) == [2]
    assert server.balances()
