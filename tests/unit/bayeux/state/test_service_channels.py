"""Service channels: requests to the server itself, answered at once, later or never."""

from typing import Any

import pytest

from holdfast.bayeux.state.service_channels import Service, ServiceCall
from holdfast.bayeux.wire.errors import ErrorReply, Refused
from tests.unit.bayeux.harness import ABSENT, Client, Server


def served(pattern: str = "/service/add") -> tuple[Server, Client, list[ServiceCall]]:
    """A server with a service that notes its calls, and a client."""
    server, calls = Server(), list[ServiceCall]()
    server.bayeux.state.services.add(pattern, calls.append)
    return server, server.connected(), calls


def test_a_message_to_a_service_that_does_not_exist_succeeds_and_reaches_nobody() -> None:
    server = Server()
    alice, bob = server.client(), server.client()
    bob.subscribe("/service/a", "/**")
    assert alice.publish("/service/a", 1).reply["successful"]
    assert bob.publish("/nobody").data == [None]


def test_a_service_gets_the_message_and_its_session() -> None:
    _, client, calls = served()
    client.publish("/service/add", [1, 2], ext={"a": 1})
    (call,) = calls
    assert call.data == [1, 2]
    assert call.channel == "/service/add"
    assert call.session is client.session
    assert call.message["ext"] == {"a": 1}


def test_an_immediate_answer_comes_with_the_reply_and_has_the_id_of_the_message() -> None:
    server = Server()
    server.bayeux.state.services.add("/service/add", lambda call: call.answer(3))
    client = server.connected()
    answer = client.publish("/service/add", [1, 2], id="call7")
    assert answer.elements == [
        {"channel": "/service/add", "data": 3, "successful": True, "id": "call7"},
        {"channel": "/service/add", "id": "call7", "successful": True},
    ]


def test_an_answer_that_comes_later_releases_the_held_connect() -> None:
    server, client, calls = served()
    assert client.publish("/service/add", 1, id="call7").reply["successful"]
    asked = client.connect()
    calls[0].fail({"why": "not today"})
    server.turn()
    assert asked.elements[0] == {
        "channel": "/service/add",
        "data": {"why": "not today"},
        "successful": False,
        "id": "call7",
    }


@pytest.mark.parametrize(
    ("sent", "returned"), [(7, "7"), ("a7", "a7"), (None, None), (ABSENT, None)]
)
def test_an_answer_has_the_id_of_the_message_as_text_or_no_id(
    sent: Any, returned: str | None
) -> None:
    server, client, calls = served()
    client.publish("/service/add", 1, id=sent)
    asked = client.connect()
    calls[0].answer(None)
    server.turn()
    assert asked.elements[0].get("id") == returned
    assert ("id" in asked.elements[0]) is (returned is not None)


def test_an_answer_to_a_client_that_is_gone_leaves_the_counters_balanced() -> None:
    server, client, calls = served()
    client.publish("/service/add", 1)
    client.disconnect()
    calls[0].answer(3)
    server.turn()
    assert server.balances()


def test_the_most_exact_of_several_services_for_a_channel_is_called() -> None:
    server, seen = Server(), list[str]()

    def note(name: str) -> Service:
        return lambda call: seen.append(name)

    for pattern in ("/service/**", "/service/a/*", "/service/a/b"):
        server.bayeux.state.services.add(pattern, note(pattern))
    client = server.client()
    for channel in ("/service/a/b", "/service/a/c", "/service/x", "/service/a/b/c"):
        client.publish(channel, 1)
    assert seen == ["/service/a/b", "/service/a/*", "/service/**", "/service/**"]


def test_a_service_may_refuse() -> None:
    server = Server()

    def refuse(call: ServiceCall) -> None:
        raise Refused(ErrorReply.PUBLISH_DENIED, "not_for_you")

    server.bayeux.state.services.add("/service/a", refuse)
    reply = server.client().publish("/service/a", 1).reply
    assert reply["error"] == "403:not_for_you:publish_denied"
