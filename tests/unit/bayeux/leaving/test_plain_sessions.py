"""Sessions that the store does not have go on at the next server."""

from tests.unit.bayeux.harness import Client
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
