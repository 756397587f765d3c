"""`/meta/subscribe` and `/meta/unsubscribe`: all channels of a message, or none of them."""

from typing import Any

import pytest

from tests.unit.bayeux.harness import ABSENT, Client, Json, Server


def subscribed(server: Server, client: Client) -> set[str]:
    """The client's subscriptions, which must all be among the routes."""
    routes = server.bayeux.state.hub.routes
    found = client.session.subscriptions
    assert all(pattern in routes for pattern in found)
    return set(found)


def ask(client: Client, verb: str, subscription: Any) -> Json:
    return client.send({"channel": f"/meta/{verb}", "subscription": subscription}).reply


def test_a_client_can_subscribe_to_one_or_several_channels_before_its_first_connect() -> None:
    server = Server()
    client = server.client()
    assert ask(client, "subscribe", "/a")["successful"]
    assert ask(client, "subscribe", ["/b", "/c/*", "/d/**"])["successful"]
    assert subscribed(server, client) == {"/a", "/b", "/c/*", "/d/**"}


def test_a_repeated_subscribe_is_no_error_and_brings_no_second_copy() -> None:
    client = Server().client()
    client.subscribe("/a")
    assert client.subscribe("/a", "/a", "/a/").reply["successful"]
    assert client.publish("/a", 1).data == [1]


def test_a_message_is_delivered_once_however_many_subscriptions_match() -> None:
    client = Server().client()
    client.subscribe("/a/b", "/a/*", "/a/**", "/**")
    assert client.publish("/a/b", 1).data == [1]


@pytest.mark.parametrize("verb", ["subscribe", "unsubscribe"])
@pytest.mark.parametrize("subscription", [ABSENT, None])
def test_a_subscribe_or_unsubscribe_without_a_subscription_is_refused(
    verb: str, subscription: Any
) -> None:
    reply = ask(Server().client(), verb, subscription)
    assert reply["error"] == "403::subscription_missing"


@pytest.mark.parametrize("verb", ["subscribe", "unsubscribe"])
@pytest.mark.parametrize(
    "subscription",
    [[], "", "no channel", 5, True, {}, ["/a", "no channel"], ["/a", 5], ["/a", None], [["/a"]]],
    ids=repr,
)
def test_an_invalid_subscription_is_refused_and_changes_nothing(
    verb: str, subscription: Any
) -> None:
    server = Server()
    client = server.client()
    client.subscribe("/old", "/a") if verb == "unsubscribe" else client.subscribe("/old")
    before = subscribed(server, client)
    assert ask(client, verb, subscription)["error"] == "403::subscription_invalid"
    assert subscribed(server, client) == before


@pytest.mark.parametrize("name", ["handshake", "connect", "subscribe", "unsubscribe", "disconnect"])
def test_a_subscription_to_a_meta_channel_is_refused(name: str) -> None:
    server = Server()
    client = server.client()
    reply = ask(client, "subscribe", ["/a", f"/meta/{name}"])
    assert reply["error"] == "403:denied_by_security_policy:subscribe_denied"
    assert subscribed(server, client) == set()


@pytest.mark.parametrize("channel", ["/meta/foo", "/meta/*", "/meta/**", "/meta/"])
def test_a_subscription_to_an_unknown_meta_channel_or_a_meta_pattern_is_refused(
    channel: str,
) -> None:
    server = Server()
    client = server.client()
    reply = ask(client, "subscribe", ["/a", channel])
    assert reply["error"] == "403:denied_by_security_policy:create_denied"
    assert subscribed(server, client) == set()


def test_a_subscription_to_a_service_channel_succeeds_without_effect() -> None:
    server = Server()
    client = server.client()
    assert ask(client, "subscribe", ["/service/a", "/service/**"])["successful"]
    assert subscribed(server, client) == set()
    assert ask(client, "unsubscribe", "/service/a")["successful"]


def test_a_subscriber_to_everything_gets_no_meta_and_no_service_messages() -> None:
    server = Server()
    client, other = server.client(), server.client()
    client.subscribe("/**")
    other.publish("/service/a", 1)
    other.subscribe("/b")
    other.disconnect()
    assert client.publish("/x", "only this").data == ["only this"]


def test_a_subscribe_beyond_the_limit_of_subscriptions_is_refused_as_a_whole() -> None:
    server = Server(max_subscriptions=3)
    client = server.client()
    client.subscribe("/a", "/b")
    assert client.subscribe("/c", "/d").reply["error"] == "413:3:subscriptions_exceeded"
    assert subscribed(server, client) == {"/a", "/b"}
    assert client.subscribe("/a", "/b", "/c").reply["successful"]
    assert client.subscribe("/a").reply["successful"]
    assert client.subscribe("/d").reply["error"] == "413:3:subscriptions_exceeded"
    client.unsubscribe("/a")
    assert client.subscribe("/d").reply["successful"]


def test_an_array_longer_than_the_limit_is_refused_before_its_channels_are_checked() -> None:
    server = Server(max_subscriptions=3)
    client = server.client()
    assert client.subscribe(*["no channel"] * 4).reply["error"] == "413:3:subscriptions_exceeded"


USED_UP = "503::subscriptions_used_up"


def test_subscriptions_of_all_sessions_are_limited_together() -> None:
    server = Server(max_total_subscriptions=3)
    greedy, late = server.client(), server.client()
    greedy.subscribe("/a", "/b")
    assert late.subscribe("/a", "/c").reply["error"] == USED_UP
    assert subscribed(server, late) == set()
    assert late.subscribe("/a").reply["successful"]
    assert late.subscribe("/a").reply["successful"], "it has this subscription"
    assert greedy.subscribe("/c").reply["error"] == USED_UP
    assert server.bayeux.state.hub.counters.subscriptions_refused == 2
    greedy.disconnect()
    assert late.subscribe("/b", "/c").reply["successful"]
    late.unsubscribe("/a")
    assert late.subscribe("/d").reply["successful"]
    assert late.subscribe("/e").reply["error"] == USED_UP


def test_a_session_that_uses_up_all_subscriptions_leaves_others_their_share() -> None:
    server = Server(max_total_subscriptions=10, max_sessions=5)
    greedy, late = server.client(), server.client()
    greedy.subscribe(*[f"/{number}" for number in range(10)])
    assert greedy.subscribe("/more").reply["error"] == USED_UP
    assert late.subscribe("/a", "/b").reply["successful"]
    assert late.subscribe("/c").reply["error"] == USED_UP


def test_an_unsubscribe_ends_one_or_several_subscriptions() -> None:
    server = Server()
    client = server.client()
    client.subscribe("/a", "/b", "/c")
    assert client.unsubscribe("/a").reply["successful"]
    assert client.unsubscribe("/b", "/c").reply["successful"]
    assert subscribed(server, client) == set()
    assert client.publish("/a", 1).events == []


def test_an_unsubscribe_from_what_others_have_is_refused_like_one_from_what_nobody_has() -> None:
    server = Server()
    alice, bob = server.client(), server.client()
    alice.subscribe("/a")
    for channel in ("/a", "/nobody"):
        assert bob.unsubscribe(channel).reply["error"] == "400::channel_missing"
    assert alice.publish("/a", 1).data == [1]


def test_an_unsubscribe_from_more_than_the_session_has_is_refused_as_a_whole() -> None:
    server = Server()
    client = server.client()
    client.subscribe("/a", "/b")
    server.client().subscribe("/others")
    reply = client.unsubscribe("/a", "/others", "/b").reply
    assert reply["error"] == "400::channel_missing"
    assert subscribed(server, client) == {"/a", "/b"}


@pytest.mark.parametrize("channel", ["/meta/connect", "/meta/foo"])
def test_an_unsubscribe_from_a_meta_channel_is_refused_as_a_whole(channel: str) -> None:
    server = Server()
    client = server.client()
    client.subscribe("/a")
    assert ask(client, "unsubscribe", ["/a", channel])["error"] == "403::unsubscribe_failed"
    assert subscribed(server, client) == {"/a"}


def test_the_end_of_a_session_ends_its_subscriptions() -> None:
    server = Server()
    client = server.client()
    client.subscribe("/a", "/**")
    client.disconnect()
    assert len(server.bayeux.state.hub.routes) == 0
