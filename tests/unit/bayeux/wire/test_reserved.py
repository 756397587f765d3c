"""Names that are reserved for features which this server does not have."""

from typing import Any, ClassVar

import pytest

from holdfast.bayeux.extending.base import ServerExtension
from holdfast.bayeux.state.service_channels import ServiceCall
from tests.unit.bayeux.harness import Client, Json, Server


def error_of(name: str) -> str:
    return f"400:internal.notImplemented,{name}:not_supported"


SERVICES = ["/service/admin", "/service/delivery"]
KEYS: list[tuple[str, Any]] = [
    ("request", True),
    ("replyTo", "/ret/AAAAAAAAAAAAAAAAAAAAAA/4000001"),
    ("timeout", 1000),
]


@pytest.mark.parametrize("service", SERVICES)
def test_a_reserved_service_that_does_not_exist_is_refused_by_its_name(service: str) -> None:
    client = Server().client()
    data = {"destinations": [{"name": "joe/1"}], "content": "between us"}
    assert client.publish(service, data).reply["error"] == error_of(service)
    assert client.publish(f"{service}/", data).reply["error"] == error_of(service)


def test_an_added_service_may_have_a_reserved_name() -> None:
    server, calls = Server(), list[ServiceCall]()
    server.bayeux.state.services.add("/service/delivery", calls.append)
    server.bayeux.state.services.add("/service/**", calls.append)
    client = server.client()
    for service in ("/service/delivery", "/service/more", "/service/other"):
        assert client.publish(service, 1).reply["successful"]
    assert len(calls) == 3


@pytest.mark.parametrize(("key", "value"), KEYS, ids=repr)
@pytest.mark.parametrize(
    "message",
    [
        {"channel": "/a", "data": 1},
        {"channel": "/service/any", "data": 1},
        {"channel": "/meta/connect", "connectionType": "long-polling"},
        {"channel": "/meta/subscribe", "subscription": "/b"},
    ],
    ids=lambda message: message["channel"],
)
def test_a_message_with_a_reserved_key_of_ext_that_nobody_owns_is_refused(
    message: Json, key: str, value: object
) -> None:
    server = Server()
    client, other = server.client(), server.client()
    other.subscribe("/a")
    reply = client.send({**message, "ext": {key: value}}).reply
    assert reply["error"] == error_of(f"ext.{key}")
    assert client.session.subscriptions == set()
    assert other.connect(advice={"timeout": 0}).data == []


def test_a_handshake_that_asks_for_replies_is_refused() -> None:
    server = Server()
    reply = server.guest().handshake(ext={"request": True}).reply
    assert reply["error"] == error_of("ext.request")
    assert reply["advice"]["reconnect"] == "none"
    assert len(server.bayeux.state.sessions) == 0


@pytest.mark.parametrize("value", [None, False])
def test_a_reserved_key_of_ext_may_be_null_or_false(value: object) -> None:
    server = Server()
    keys = {"request": value, "replyTo": value, "timeout": value}
    client = server.client(ext=keys)
    assert client.publish("/a", 1, ext=keys).reply["successful"]


def test_other_keys_of_ext_are_forwarded() -> None:
    server = Server()
    client = server.client(ext={"token": 1})
    client.subscribe("/a")
    (event,) = client.publish("/a", 1, ext={"binary": {}, "priority": 2, "mine": None}).events
    assert event["ext"] == {"binary": {}, "priority": 2, "mine": None}


def test_a_reserved_key_of_ext_is_accepted_if_an_extension_owns_it() -> None:
    class Replies(ServerExtension):
        owns: ClassVar[frozenset[str]] = frozenset({"request", "replyTo"})

    server = Server(Replies())
    client = server.client(ext={"request": True})
    assert client.publish("/a", 1, ext={"replyTo": "/ret/x"}).reply["successful"]
    reply = client.publish("/a", 1, ext={"replyTo": "/ret/x", "timeout": 5}).reply
    assert reply["error"] == error_of("ext.timeout")


def test_each_of_several_owners_of_a_key_checks_it() -> None:
    seen: list[tuple[str, object]] = []

    class Reader(ServerExtension):
        owns: ClassVar[frozenset[str]] = frozenset({"replay", "mine"})

        def __init__(self, name: str) -> None:
            self.name = name

        def check(self, message: Json) -> None:
            seen.append((self.name, message["ext"].get("mine")))

    client = Server(Reader("one"), Reader("other")).client()
    client.publish("/a", 1, ext={"mine": 7})
    assert seen == [("one", 7), ("other", 7)]


def test_an_owner_of_two_keys_checks_a_message_with_both_once() -> None:
    seen: list[Json] = []

    class Reader(ServerExtension):
        owns: ClassVar[frozenset[str]] = frozenset({"one", "two"})

        def check(self, message: Json) -> None:
            seen.append(message["ext"])

    client = Server(Reader()).client()
    client.publish("/a", 1, ext={"one": 1, "two": 2})
    assert seen == [{"one": 1, "two": 2}]


def publishes(client: Client, channel: str) -> Json:
    return client.publish(channel, 1).reply


def subscribes(client: Client, channel: str) -> Json:
    return client.subscribe("/b", channel).reply


@pytest.mark.parametrize("channel", ["/ret/x", "/ret/x/4000001", "/ret/**", "/ret/*"])
def test_reply_channels_are_refused_for_publishes_and_subscriptions(channel: str) -> None:
    client = Server().client()
    assert subscribes(client, channel)["error"] == error_of("/ret/")
    assert client.session.subscriptions == set()
    if not channel.endswith("*"):
        assert publishes(client, channel)["error"] == error_of("/ret/")
    assert publishes(client, "/ret")["successful"]
    assert publishes(client, "/return/x")["successful"]
