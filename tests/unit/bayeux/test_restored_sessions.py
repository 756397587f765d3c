"""What is left of a session after a restart, and what starts again."""

from holdfast.bayeux.session import Session
from holdfast.bayeux.sessions.status import hold_of
from tests.unit.bayeux.harness import Wire
from tests.unit.bayeux.second_lives import (
    RestartableServer,
    again,
    batch,
    codes,
    connect,
    named,
    no,
    ok,
    publish,
    seqs,
    take,
)
from tests.unit.extensions.delivering import redelivered


def joe(server: RestartableServer) -> Session:
    (session,) = server.bayeux.state.sessions.names.of_subject("joe")
    return session


# Queue holds


def test_a_queue_hold_with_an_end_ends_on_time_after_a_restart() -> None:
    server = RestartableServer()
    client = named(server)
    publish(server, 1)
    until_ms = server.bayeux.state.node.now_ms() + 2000
    server.bayeux.life.hold_back(
        client.session, "lunch", who="operator", now=server.now, until_ms=until_ms
    )
    server = server.reborn()
    client = again(client, server)
    server.advance(1.5)
    assert connect(client, 1).data == []
    server.advance(0.6)
    assert connect(client, 2).data == [1]


def test_a_queue_hold_whose_end_passed_before_a_restart_ends_at_once() -> None:
    server = RestartableServer()
    client = named(server)
    until_ms = server.bayeux.state.node.now_ms() + 2000
    server.bayeux.life.hold_back(
        client.session, "lunch", who="operator", now=server.now, until_ms=until_ms
    )
    server.now += 60.0
    server = server.reborn()
    server.advance(0.2)
    assert hold_of(joe(server)) is None
    publish(server, 1)
    assert connect(again(client, server), 1).data == [1]


def test_a_queue_hold_of_a_session_without_terms_survives_a_restart() -> None:
    server = RestartableServer(durable="acked")
    client = server.client(ext={"ack": True})
    connect(client, 0)
    client.subscribe("/a")
    server.turn()
    server.bayeux.life.hold_back(client.session, "maintenance", who="operator", now=server.now)
    publish(server, 1)
    server = server.reborn()
    client = again(client, server)
    assert connect(client, 1).data == []
    server.bayeux.life.resume(client.session, server.now)
    assert connect(client, 2).data == [1]


# Messages in flight


def test_a_message_pending_over_a_restart_is_redelivered_after_its_response_timeout() -> None:
    server = RestartableServer()
    client = named(server, ack=False, responseTimeout=2000)
    publish(server, 1)
    working_on = seqs(connect(client, None))
    server = server.reborn()
    client = again(client, server)
    assert connect(client, None, pending=working_on).data == []
    server.advance(1.9)
    assert connect(client, None, pending=working_on).data == []
    server.advance(0.7)
    answer = connect(client, None)
    assert (answer.data, redelivered(answer)) == ([1], [1])


def test_a_verdict_about_a_message_handed_over_before_a_restart_counts() -> None:
    server = RestartableServer()
    client = named(server, ack=False)
    publish(server, 1, 2)
    first, second = seqs(connect(client, None))
    server = server.reborn()
    client = again(client, server)
    connect(client, None, ok(first), no(second, "user.update.error"))
    assert codes(server) == ["user.update.error"]
    assert server.store.queues["joe/1"] == {}


def test_a_message_not_yet_sent_to_a_oneway_receiver_is_delivered_after_a_restart() -> None:
    server = RestartableServer()
    client = named(server, ack=False, oneway=True)
    publish(server, 1)
    wire = Wire()
    wire.is_cut = True
    connect(client, None, wire=wire)
    asked = client.connect(advice={"timeout": 0})
    assert asked.is_held, "the store learns of the next attempt first"
    server = server.reborn()
    client = again(client, server)
    publish(server, 2)
    assert connect(client, None).data == [1, 2]
    assert server.store.queues["joe/1"] == {}


def test_the_numbers_of_entries_rise_over_every_restart() -> None:
    server = RestartableServer()
    client = named(server)
    told: list[int] = []
    ack = 1
    for number in range(3):
        publish(server, number)
        answer = connect(client, ack)
        told += seqs(answer)
        ack = batch(answer)
        # Acked, so that the store has nothing of it any more.
        ack = batch(connect(client, ack))
        server = server.reborn()
        client = again(client, server)
    assert told == sorted(set(told))
    assert told[-1] < 2**53, "JavaScript counts no further"


# Waiting messages


def test_a_restored_queue_is_in_the_order_of_priorities() -> None:
    server = RestartableServer()
    client = named(server)
    sender = server.connected()
    for priority in (1, 9, 5):
        sender.publish("/a", priority, ext={"delivery": {"priority": priority}})
    server.turn()
    server = server.reborn()
    publish(server, 6)
    assert connect(again(client, server), 1).data == [9, 5, 6, 1]


def test_a_message_with_force_destroy_expires_after_restarts_too() -> None:
    server = RestartableServer()
    client = named(server)
    sender = server.connected()
    for number, is_forced in ((1, True), (2, False)):
        expiration = {"lifeTime": 2000, "forceDestroy": is_forced}
        sender.publish("/a", number, ext={"delivery": {"expiration": expiration}})
    server.turn()
    server = server.reborn()
    server.advance(1.0)
    server = server.reborn()
    server.advance(1.0)
    assert connect(again(client, server), 1).data == [2]
    assert server.bayeux.state.hub.counters.expired == 1
    assert server.balances()


def test_a_message_whose_lifetime_ends_while_no_server_runs_is_not_delivered() -> None:
    server = RestartableServer()
    client = named(server)
    expiration = {"lifeTime": 2000, "forceDestroy": True}
    server.connected().publish("/a", 1, ext={"delivery": {"expiration": expiration}})
    server.turn()
    server.now += 60.0
    server = server.reborn()
    assert connect(again(client, server), 1).data == []
    assert server.store.queues["joe/1"] == {}


# Sessions


def test_a_stopped_session_stays_stopped_over_a_restart_until_a_handshake() -> None:
    server = RestartableServer()
    client = named(server, onUserException="dead")
    publish(server, 1)
    connect(client, 1, no(seqs(connect(client, 1))[0], "user.update.error"))
    server = server.reborn()
    client = again(client, server)
    publish(server, 2)
    assert connect(client, 3).data == []
    assert codes(server) == ["user.update.error", "communication.noConnection.dead"]
    new = server.guest()
    take(new, onUserException="dead")
    publish(server, 3)
    assert connect(new, 0).data == [3]


def test_a_stored_subscription_to_an_invalid_channel_is_left_out() -> None:
    server = RestartableServer()
    client = named(server)
    server.store.sessions["joe/1"].subscriptions.insert(0, "no channel")
    server = server.reborn()
    assert again(client, server).session.subscriptions == {"/a"}


def test_a_letter_tells_of_the_attempts_before_a_restart_and_a_takeover() -> None:
    server = RestartableServer()
    client = named(server, ack=False)
    publish(server, 1)
    connect(client, None)
    server = server.reborn()
    assert connect(again(client, server), None).data == [1]
    client = server.guest()
    take(client, ack=False)
    [seq] = seqs(connect(client, None))
    connect(client, None, no(seq, "user.update.error"))
    [letter] = server.store.letters
    told = [(each.n, each.outcome) for each in letter.attempts]
    assert told == [(1, "lost reply"), (2, "taken over"), (3, "user.update.error")]


# Replies that wait for the store


def test_a_full_queue_has_no_room_until_the_reply_that_waits_for_the_store_has_left() -> None:
    server = RestartableServer()
    client = named(server, ack=False, oneway=True, queue={"maxEntries": 2})
    publish(server, 1)
    wire = Wire()
    wire.is_cut = True
    connect(client, None, wire=wire)
    publish(server, 2)
    # The first one is redelivered, which the store must know before the client does.
    asked = client.connect(advice={"timeout": 0})
    assert asked.is_held
    publish(server, 3)
    assert asked.data == [1, 2]
    assert codes(server) == ["resource.overflow.queue.entries"]


def test_a_queue_that_is_held_while_its_reply_waits_for_the_store_hands_nothing_over() -> None:
    server = RestartableServer()
    client = named(server, ack=False)
    publish(server, 1)
    connect(client, None)
    server = server.reborn()
    client = again(client, server)
    asked = client.connect(advice={"timeout": 0})
    assert asked.is_held
    server.bayeux.life.hold_back(client.session, "lunch", who="operator", now=server.now)
    server.turn()
    assert (asked.is_held, asked.data) == (False, [])
    server.bayeux.life.resume(client.session, server.now)
    assert connect(client, None).data == [1]
