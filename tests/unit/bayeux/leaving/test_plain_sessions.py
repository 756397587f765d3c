"""Sessions that the store does not have go on at the next server."""

from holdfast.bayeux.leaving.session_state import READING_S
from tests.unit.bayeux.harness import Client, Wire
from tests.unit.bayeux.leaving.successors import LeavingServer, at
from tests.unit.bayeux.second_lives import publish


def poll(client: Client) -> list[object]:
    """What waits for a client without acks."""
    asked = client.connect(advice={"timeout": 0})
    assert asked.elements[-1]["successful"], asked.elements
    return asked.data


def subscribed(server: LeavingServer) -> Client:
    client = server.connected()
    client.subscribe("/a")
    return client


def test_a_plain_session_keeps_its_id_and_its_messages() -> None:
    server = LeavingServer()
    client = subscribed(server)
    publish(server, 1, 2, 3)
    id = client.client_id
    server = server.succeeded()
    assert poll(at(client, server)) == [1, 2, 3]
    assert client.session.client_id == id
    publish(server, 4)
    assert poll(client) == [4]
    assert server.balances()


def test_a_held_connect_is_answered_empty_with_the_usual_advice() -> None:
    server = LeavingServer()
    client = subscribed(server)
    held = client.connect()
    assert held.is_held
    left = server.leave()
    assert held.reply["successful"]
    assert "advice" not in held.reply
    server = server.follower(left)
    held = at(client, server).connect()
    assert held.is_held
    publish(server, 1)
    assert held.data == [1]


def test_a_client_that_still_reads_a_reply_may_be_silent_for_longer() -> None:
    server = LeavingServer()
    client = subscribed(server)
    wire = Wire()
    client.connect(advice={"timeout": 0}, wire=wire)
    wire.is_full = True
    server = server.succeeded()
    server.advance(READING_S / 2)
    server = server.succeeded()
    server.advance(READING_S / 2)
    assert poll(at(client, server)) == []
    server.advance(READING_S / 2)
    assert client.connect().reply["error"].startswith("402")
