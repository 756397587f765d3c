"""Publishing: who the receivers of a message are, and what they get of it."""

from typing import Any

import pytest

from holdfast.bayeux.extending.base import ServerExtension
from holdfast.bayeux.publish.incoming import PROTOCOL_FIELDS
from holdfast.settings import ChannelSettings
from tests.unit.bayeux.harness import ABSENT, Client, Json, Server


def pair(*extensions: ServerExtension, **options: Any) -> tuple[Server, Client, Client]:
    """A server with a publisher and a receiver of /a."""
    server = Server(*extensions, **options)
    alice, bob = server.client(), server.client()
    bob.subscribe("/a")
    return server, alice, bob


def heard(client: Client) -> list[Json]:
    return client.publish("/nobody").events


def test_a_successful_publish_is_answered_with_channel_id_and_success_alone() -> None:
    _, alice, bob = pair()
    assert alice.publish("/a", {"x": 1}).elements == [
        {"channel": "/a", "id": "2", "successful": True}
    ]
    assert heard(bob) == [{"channel": "/a", "data": {"x": 1}}]


def test_a_publish_without_receivers_succeeds() -> None:
    assert Server().client().publish("/nobody", 1).reply["successful"]


@pytest.mark.parametrize("data", [None, 0, False, "", [], {}, 1.5, 2**64 - 1, "€\u2028", [[[]]]])
def test_data_arrives_as_it_was_sent_even_if_it_is_null_or_empty(data: Any) -> None:
    _, alice, bob = pair()
    alice.publish("/a", data)
    assert heard(bob) == [{"channel": "/a", "data": data}]


def test_a_message_without_data_is_refused() -> None:
    _, alice, bob = pair()
    for channel in ("/a", "/service/a"):
        reply = alice.publish(channel, data=ABSENT).reply
        assert reply["error"] == "400::data_missing"
    assert heard(bob) == []


@pytest.mark.parametrize("channel", ["/*", "/**", "/a/*", "/a/**", "/service/*"])
def test_a_publish_to_a_pattern_is_refused(channel: str) -> None:
    assert Server().client().publish(channel, 1).reply["error"] == "405::channel_invalid"


def test_fields_that_the_protocol_does_not_know_are_forwarded() -> None:
    _, alice, bob = pair()
    alice.publish("/a", 1, order=5, timestamp="now", version="1.0")
    assert heard(bob) == [
        {"channel": "/a", "data": 1, "order": 5, "timestamp": "now", "version": "1.0"}
    ]


def test_fields_of_the_protocol_are_not_forwarded() -> None:
    _, alice, bob = pair()
    fields: Json = dict.fromkeys(PROTOCOL_FIELDS - {"advice", "id", "clientId"}, "evil")
    alice.publish("/a", 1, advice={"reconnect": "none"}, **fields)
    assert heard(bob) == [{"channel": "/a", "data": 1}]


def test_receivers_do_not_get_the_client_id_of_the_publisher() -> None:
    _, alice, bob = pair()
    alice.publish("/a", 1)
    assert str(alice.client_id) not in str(heard(bob))


def test_receivers_get_the_channel_name_without_a_trailing_slash_and_space() -> None:
    _, alice, bob = pair()
    assert alice.publish("/a/ ", 1).reply["channel"] == "/a/ "
    assert heard(bob)[0]["channel"] == "/a"


class Owner(ServerExtension):
    owns = frozenset({"mine", "also"})


@pytest.mark.parametrize(
    ("sent", "received"),
    [
        ({"a": 1, "mine": 2, "b": {"mine": 3}}, {"a": 1, "b": {"mine": 3}}),
        ({"mine": 1, "also": 2}, ABSENT),
        ({"authentication": {"password": "secret"}, "a": 1}, {"a": 1}),
        ({}, ABSENT),
        (None, ABSENT),
    ],
)
def test_ext_is_forwarded_without_credentials_and_the_keys_of_extensions(
    sent: Any, received: Any
) -> None:
    _, alice, bob = pair(Owner())
    alice.publish("/a", 1, ext=sent)
    expected = {"channel": "/a", "data": 1}
    assert heard(bob) == [expected if received is ABSENT else expected | {"ext": received}]


def test_credentials_are_not_forwarded_even_if_no_extension_owns_them() -> None:
    _, alice, bob = pair()
    alice.publish("/a", 1, ext={"authentication": {"user": "alice"}})
    assert heard(bob) == [{"channel": "/a", "data": 1}]


def test_a_message_with_only_unknown_destinations_does_not_reach_subscribers() -> None:
    _, alice, bob = pair()
    ext = {"delivery": {"destinations": [{"name": "joe/1"}]}}
    reply = alice.publish("/a", "between us", ext=ext).reply
    assert reply["error"] == "404:user.ptp.unknownDestination,client/joe/1:destination_unknown"
    assert heard(bob) == []


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"key": "k"}, "400:user.publish,key:delivery_invalid"),
        ({"destinations": []}, "400:user.publish,destinations:delivery_invalid"),
        ({"destinations": ["joe"]}, "400:user.publish,destinations:delivery_invalid"),
        ({"verdicts": []}, None),
    ],
)
def test_a_service_message_with_delivery_options_other_than_verdicts_is_refused(
    options: Json, error: str | None
) -> None:
    _, alice, _ = pair()
    reply = alice.publish("/service/any", 1, ext={"delivery": options}).reply
    assert reply.get("error") == error


# A publisher's own messages


def test_a_publisher_that_is_subscribed_gets_its_own_message_with_the_reply() -> None:
    _, _, bob = pair()
    answer = bob.publish("/a", 1)
    assert answer.data == [1]
    assert "data" not in answer.elements[-1]


@pytest.mark.parametrize("where", ["server", "channel", "session"])
def test_a_publisher_does_not_get_its_own_message_if_server_channel_or_session_say_so(
    where: str,
) -> None:
    options: dict[str, Any] = {}
    if where == "server":
        options["broadcast_to_publisher"] = False
    if where == "channel":
        options["channels"] = {"/a": ChannelSettings(broadcast_to_publisher=False)}
    server, alice, bob = pair(**options)
    alice.subscribe("/a")
    if where == "session":
        alice.session.broadcast_to_publisher = False
    assert alice.publish("/a", 1).events == []
    assert heard(bob) == [{"channel": "/a", "data": 1}]
    server.for_extensions.publish("/a", 2)
    assert heard(alice) == [{"channel": "/a", "data": 2}]


@pytest.mark.parametrize(
    ("channels", "is_told"),
    [
        ({"/a/b": False}, False),
        ({"/a/*": False}, False),
        ({"/a/**": False}, False),
        ({"/**": False}, False),
        ({"/a": False}, True),
        ({"/x": False}, True),
        ({"/a/b": True, "/a/*": False}, True),
        ({"/**": True, "/a/**": False}, False),
    ],
)
def test_the_most_exact_of_several_rules_for_a_channel_applies(
    channels: dict[str, bool], is_told: bool
) -> None:
    rules = {name: ChannelSettings(broadcast_to_publisher=told) for name, told in channels.items()}
    client = Server(channels=rules).client()
    client.subscribe("/a/b")
    assert client.publish("/a/b", 1).data == [1] * is_told


# Limits


def test_a_message_that_is_too_large_is_refused_alone() -> None:
    _, alice, bob = pair(max_message_size=100)
    answer = alice.send(
        {"channel": "/a", "data": "x" * 100},
        {"channel": "/a", "data": "x" * 74},
        {"channel": "/a", "data": "x" * 75},
    )
    errors = [reply.get("error") for reply in answer.elements]
    too_large = "413:100:message_too_large"
    assert errors == [too_large, None, too_large]
    assert len(heard(bob)) == 1


# The server as publisher


def test_the_server_can_publish_too() -> None:
    server, _, bob = pair()
    server.for_extensions.publish("/a/", {"x": 1})
    assert heard(bob) == [{"channel": "/a", "data": {"x": 1}}]


@pytest.mark.parametrize("channel", ["/a/*", "/**", "/meta/connect", "/service/a", "no channel"])
def test_the_server_can_publish_to_broadcast_channels_only(channel: str) -> None:
    with pytest.raises(ValueError, match="not a channel to publish on"):
        Server().for_extensions.publish(channel, 1)
