"""Events for operators: sessions begin and end."""

import pytest

from tests.unit.bayeux.harness import Client, Server, server_of
from tests.unit.bayeux.publish.test_point_to_point import leave, named
from tests.unit.extensions.delivering import connect


def operator(server: Server) -> Client:
    client = server.client()
    client.session.identity.role = "operator"
    client.subscribe("/sys/login", "/sys/logout")
    client.connect()
    server.turn()
    return client


def heard(client: Client) -> list[tuple[str, object]]:
    client.server.turn()
    events = client.connect(advice={"timeout": 0}).events
    return [(event["channel"], event["data"]) for event in events]


def test_the_start_and_the_end_of_a_session_are_each_published_once() -> None:
    server = server_of()
    watcher = operator(server)
    joe = named(server, "joe/1")
    who = {"subject": "joe", "session": "client/joe/1"}
    assert heard(watcher) == [("/sys/login", who)]
    leave(joe)
    assert heard(watcher) == [("/sys/logout", {**who, "how": "disconnect"})]
    assert heard(watcher) == []


def test_an_event_names_the_subject_as_xmlblaster_does() -> None:
    server = server_of()
    watcher = operator(server)
    named(server, "joe/1")
    (event,) = watcher.connect(advice={"timeout": 0}).events
    properties = event["ext"]["delivery"]["properties"]
    assert properties["_subjectId"] == "joe"
    assert properties["_absoluteName"] == "client/joe/1"


def test_a_named_session_whose_client_leaves_and_returns_causes_no_events() -> None:
    server = server_of()
    joe = named(server, "joe/1")
    watcher = operator(server)
    joe.disconnect()
    server.turn()
    connect(named(server, "joe/1"))
    assert heard(watcher) == []


def test_each_of_several_sessions_that_end_together_causes_an_event() -> None:
    server = Server()
    watcher = operator(server)
    others = [server.client() for _ in range(3)]
    assert len(heard(watcher)) == len(others)
    for each in others:
        each.disconnect()
    assert [channel for channel, _ in heard(watcher)] == ["/sys/logout"] * len(others)


@pytest.mark.parametrize("channel", ["/sys/login", "/sys/logout"])
def test_a_client_without_a_role_cannot_subscribe_to_login_events(channel: str) -> None:
    asked = Server().client().subscribe(channel)
    assert asked.reply["error"].startswith("403:")
