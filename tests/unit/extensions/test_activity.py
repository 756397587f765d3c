"""Sessions that do nothing but keep their connection alive are ended."""

from holdfast.extensions.activity import Activity
from tests.unit.bayeux.harness import Client, Server, Socket


def watched(*, socket: Socket | None = None) -> tuple[Server, Client]:
    """A client that is allowed a minute of inactivity, and begins it now."""
    server = Server(timeout=20_000, max_interval=50_000)
    server.bayeux.state.installed.extend(Activity(server.for_extensions, 60.0))
    return server, server.connected(socket=socket, browser="mine" if socket else None)


def keep_connected(server: Server, client: Client, seconds: float) -> None:
    for _ in range(round(seconds / 20)):
        client.connect()
        server.advance(20.1)


def test_a_session_that_only_connects_is_ended_at_its_next_connect() -> None:
    server, client = watched()
    keep_connected(server, client, 60.0)
    reply = client.connect().elements[-1]
    assert reply["error"] == "402::session_unknown"
    assert reply["advice"]["reconnect"] == "none"
    assert len(server.bayeux.state.sessions) == 0
    assert server.balances()


def test_publishing_counts_as_activity() -> None:
    server, client = watched()
    for _ in range(3):
        keep_connected(server, client, 40.0)
        client.publish("/service/a", 1)
    assert client.connect().is_held


def test_subscribing_does_not_count_as_activity() -> None:
    server, client = watched()
    keep_connected(server, client, 60.0)
    assert client.subscribe("/a").reply["successful"]
    assert client.connect().elements[-1]["error"] == "402::session_unknown"


def test_an_inactive_client_gets_a_disconnect_with_its_last_connect_reply() -> None:
    server, client = watched()
    keep_connected(server, client, 60.0)
    answer = client.connect()
    assert answer.elements[0] == {"channel": "/meta/disconnect", "successful": True}


def test_an_inactive_client_on_a_socket_gets_a_disconnect_before_its_connect_reply() -> None:
    server, client = watched(socket=Socket())
    keep_connected(server, client, 60.0)
    client.hear()
    client.connect()
    assert [element["channel"] for element in client.hear()] == [
        "/meta/disconnect",
        "/meta/connect",
    ]
