"""Subscriptions that select messages: by a filter, or by their publisher."""

from typing import Any

import pytest

from holdfast.extensions.delivery_wire import DeliveryWire
from tests.unit.bayeux.harness import Client, Json, Server
from tests.unit.bayeux.second_lives import RestartableServer, again, connect, named


def subscribe(client: Client, *channels: str, **options: Any) -> Json:
    message = {"channel": "/meta/subscribe", "subscription": list(channels)}
    asked = client.send({**message, "ext": {"delivery": options}})
    client.server.turn()
    return asked.reply


def received(server: Server, client: Client) -> list[Any]:
    server.turn()
    return client.connect(advice={"timeout": 0}).data


def test_a_filter_lets_only_matching_messages_pass() -> None:
    server = Server(DeliveryWire)
    client, other = server.connected(), server.client()
    assert subscribe(client, "/a", filter="data > 5")["successful"]
    for number in (4, 5, 6, "7", None):
        other.publish("/a", number)
    assert received(server, client) == [6]


def test_receivers_without_a_filter_get_everything() -> None:
    server = Server(DeliveryWire)
    choosy, other = server.connected(), server.connected()
    subscribe(choosy, "/a", filter="data > 5")
    other.subscribe("/a")
    server.for_extensions.publish("/a", 1)
    assert (received(server, choosy), received(server, other)) == ([], [1])


def test_a_filter_can_ask_about_properties_and_the_publisher() -> None:
    server = Server(DeliveryWire)
    client, other = server.connected(), server.client(ext={"delivery": True})
    subscribe(client, "/a", filter="properties.kind = 'bid' AND sender LIKE 'client/%'")
    for kind in ("bid", "ask"):
        other.publish("/a", kind, ext={"delivery": {"properties": {"kind": kind}}})
    other.publish("/a", "none")
    assert received(server, client) == ["bid"]


def test_a_message_arrives_once_if_any_matching_subscription_selects_it() -> None:
    server = Server(DeliveryWire)
    client = server.connected()
    subscribe(client, "/a/b", filter="data = 1")
    subscribe(client, "/a/*", filter="data < 3")
    for number in (1, 2, 3):
        server.for_extensions.publish("/a/b", number)
    assert received(server, client) == [1, 2]
    client.subscribe("/a/**")
    server.for_extensions.publish("/a/b", 3)
    assert received(server, client) == [3]


def test_a_later_subscription_replaces_the_filter() -> None:
    server = Server(DeliveryWire)
    client = server.connected()
    seen = []
    for text in ("data LIKE '12%3'", "data LIKE '1XX%3'", "data LIKE '12%3'", None):
        subscribe(client, "/a", filter=text)
        server.for_extensions.publish("/a", "1203")
        seen.append(received(server, client))
    assert seen == [["1203"], [], ["1203"], ["1203"]]
    assert len(server.bayeux.state.hub.routes.filters) == 0


def test_a_filter_is_removed_with_its_last_subscription() -> None:
    server = Server(DeliveryWire)
    one, other = server.client(), server.client()
    subscribe(one, "/a", "/b", filter="data > 5")
    subscribe(other, "/a", filter="data > 5")
    routes = server.bayeux.state.hub.routes
    assert (len(routes.filters), routes.selecting) == (1, 3)
    one.unsubscribe("/a")
    one.disconnect()
    server.turn()
    assert (len(routes.filters), routes.selecting) == (1, 1)
    other.disconnect()
    server.turn()
    assert (len(routes.filters), routes.selecting) == (0, 0)


def test_an_invalid_filter_is_refused_with_the_reason() -> None:
    server = Server(DeliveryWire)
    client = server.client()
    reply = subscribe(client, "/a", filter="price > 5")
    begin = "400:user.illegalArgument,filter (a field begins with "
    assert reply["error"].startswith(begin)
    assert reply["error"].endswith(" at character 1 of the filter):delivery_invalid")
    assert client.session.subscriptions == set()


def test_verdicts_beside_a_refused_filter_have_no_effect() -> None:
    server = Server(DeliveryWire)
    client = server.connected(ext={"delivery": True})
    client.subscribe("/a")
    server.for_extensions.publish("/a", 1)
    (event,) = client.connect().events
    verdicts = [{"seq": event["ext"]["delivery"]["seq"], "state": "OK"}]
    assert not subscribe(client, "/b", filter="(", verdicts=verdicts)["successful"]
    assert client.session.queue.count == 1


def test_the_filters_of_a_session_are_limited() -> None:
    server = Server(DeliveryWire, max_session_filters=2)
    client = server.client()
    assert subscribe(client, "/a", "/b", filter="data > 5")["successful"]
    assert subscribe(client, "/b", filter="data > 6")["successful"]
    assert subscribe(client, "/c", filter="data > 5")["error"] == (
        "413:filter,2:subscriptions_exceeded"
    )
    assert subscribe(client, "/c")["successful"]


def test_the_different_filters_of_all_sessions_are_limited() -> None:
    server = Server(DeliveryWire, max_filters=1)
    client, other = server.client(), server.client()
    assert subscribe(client, "/a", filter="data > 5")["successful"]
    assert subscribe(other, "/a", filter="data > 6")["error"] == (
        "503:filter:subscriptions_used_up"
    )
    assert subscribe(other, "/a", filter="data > 5")["successful"]


def test_a_publish_asks_many_filters_over_several_turns() -> None:
    server = Server(DeliveryWire, is_turn_over=lambda: True)
    clients = [server.connected() for _ in range(3)]
    for number, client in enumerate(clients):
        subscribe(client, "/a", filter=f"data > {number}")
    other = server.client()
    asked = other.send({"channel": "/a", "data": 2})
    turns = 0
    while asked.wire.elements is None:
        assert all(client.session.queue.count == 0 for client in clients)
        server.go_on()
        turns += 1
    assert turns == 2
    assert asked.reply["successful"]
    assert [received(server, client) for client in clients] == [[2], [2], []]


@pytest.mark.parametrize("local", [True, False])
def test_a_subscription_can_leave_out_messages_of_its_own_session(local: bool) -> None:
    server = Server(DeliveryWire)
    client, other = server.connected(), server.client()
    subscribe(client, "/a", local=local)
    own = client.publish("/a", "own").data
    other.publish("/a", "another's")
    assert [*own, *received(server, client)] == (["own", "another's"] if local else ["another's"])


def test_a_message_that_a_filter_stops_is_not_accepted_and_leaves_no_dead_letter() -> None:
    server = RestartableServer()
    client = named(server)
    assert subscribe(client, "/f", filter="data > 5", persistent=True)["successful"]
    server.for_extensions.publish("/f", 1)
    server.for_extensions.publish("/f", 6)
    server.turn()
    assert connect(client, 1).data == [6]
    assert server.bayeux.state.hub.counters.accepted == 1
    assert server.store.letters == []
    assert server.balances()


def test_the_selection_of_a_subscription_survives_a_restart() -> None:
    before = RestartableServer()
    client = named(before)
    subscribe(client, "/f", filter="data > 5", local=False)
    server = before.reborn()
    client = again(client, server)
    assert len(server.bayeux.state.hub.routes.filters) == 1
    server.for_extensions.publish("/f", 5)
    server.for_extensions.publish("/f", 6)
    client.publish("/f", 7)
    server.turn()
    assert connect(client, 1).data == [6]
