"""Replays into the queues of living sessions."""

from holdfast.delivery.messages.marks import Mark
from holdfast.delivery.messages.message import Message
from tests.unit.bayeux.harness import Server, server_of
from tests.unit.bayeux.operated_server import connect, letters, publish, receiver, replaying_of


def a_message(server: Server, data: str = "7") -> Message:
    wire = f'{{"channel":"/a","data":{data}}}'.encode()
    message = Message(wire, id=server.bayeux.state.node.stamp(), channel="/a")
    message.generation = 1
    return message


def test_a_replayed_message_counts_as_waiting_until_it_is_acked() -> None:
    server = server_of()
    replaying = replaying_of(server)
    client = receiver(server)
    message = a_message(server)
    assert replaying.is_durable("joe/1") is True
    replaying.deliver("joe/1", message, 1)
    sent = [("joe/1", message.id), ("joe/1", 5)]
    assert replaying.queued(sent) == sent[:1]
    (event,) = client.connect(advice={"timeout": 0}).events
    assert (event["data"], event["ext"]["delivery"]["generation"]) == (7, 1)
    assert replaying.queued(sent) == sent[:1], "it is in flight"
    connect(client)
    assert replaying.queued(sent) == []
    assert server.balances()


def test_a_replayed_message_reaches_an_unnamed_session() -> None:
    server = server_of()
    replaying = replaying_of(server)
    client = receiver(server, session=None)
    key = client.session.key
    assert replaying.is_durable(key) is False
    replaying.deliver(key, a_message(server), 1)
    assert connect(client) == [7]
    server.for_extensions.end_by_server(client.session)
    assert replaying.is_durable(key) is None


def test_a_receiver_is_away_while_its_session_waits_for_a_client() -> None:
    server = server_of()
    replaying = replaying_of(server)
    client = receiver(server)
    assert not replaying.is_away("joe/1")
    client.disconnect()
    server.turn()
    assert replaying.is_away("joe/1")
    assert not replaying.is_away("ann/1"), "there is no such session"


def test_a_replay_finds_sessions_that_began_after_it() -> None:
    server = server_of()
    replaying = replaying_of(server)
    assert replaying.is_durable("anonymous/-1") is None
    client = server.connected()
    server.advance(1.1)
    assert replaying.is_durable(client.session.key) is False
    assert replaying.is_durable("anonymous/-1") is None


def test_a_replayed_message_without_a_receiver_is_a_dead_letter_again() -> None:
    server = server_of()
    replaying = replaying_of(server)
    message = a_message(server)
    replaying.deliver("joe/1", message, 1)
    (letter,) = server.keeper.letters
    assert (letter.key, letter.message, letter.generation) == ("joe/1", message.id, 1)
    assert replaying.queued([("joe/1", message.id)]) == []
    assert server.balances()


def test_a_replayed_message_leaves_the_stored_queue_of_an_ended_session() -> None:
    server = server_of()
    message = a_message(server)
    message.is_durable = True
    server.keeper.queues["joe/1"] = {message.id: Mark(message.id)}
    replaying_of(server).deliver("joe/1", message, 1)
    assert (server.keeper.queues, letters(server)) == ({"joe/1": {}}, [7])


def test_a_replayed_message_that_finds_no_room_is_a_dead_letter_again() -> None:
    server = server_of()
    receiver(server, queue={"maxEntries": 1})
    publish(server, 1)
    replaying_of(server).deliver("joe/1", a_message(server), 1)
    assert letters(server) == [7]
    assert server.balances()
