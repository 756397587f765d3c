"""The terms that a handshake agrees on, and what events have because of them."""

from typing import Any

import pytest

from holdfast.bayeux.wire.terms import NAME_INVALID
from tests.unit.bayeux.harness import server_of
from tests.unit.extensions.delivering import codes, connect, no, publish, receiver


def test_the_handshake_reply_has_the_terms_and_waits_for_the_store() -> None:
    server = server_of()
    ext = {"ack": True, "delivery": {"session": "joe/1", "delay": 1000}}
    asked = server.guest().send(
        {
            "channel": "/meta/handshake",
            "version": "1.0",
            "supportedConnectionTypes": ["long-polling"],
            "ext": ext,
        }
    )
    assert asked.is_held, "the session is stored before the reply promises it"
    server.turn()
    told = asked.elements[0]["ext"]["delivery"]
    assert told["session"]["name"] == "client/joe/1"
    assert (told["retries"], told["delay"], told["resumed"], told["waiting"]) == (
        -1,
        1000,
        False,
        0,
    )
    assert server.keeper.sessions["joe/1"].client_id == asked.elements[0]["clientId"]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"retries": "many"}, "retries"),
        ({"delay": -1}, "delay"),
        ({"session": "joe/0/1"}, NAME_INVALID),
        ({"session": "joe/0"}, NAME_INVALID),
        ({"session": "x"}, NAME_INVALID),
        ({"session": {"name": "joe/1", "timeout": True}}, "timeout"),
        ({"oneway": 1}, "oneway"),
        ({"onUserException": "panic"}, "onUserException"),
        ([], "delivery"),
        ({"retriess": 3}, "retriess"),
        ({"no such, at all": 1}, "delivery"),
        ({"session": {"name": "joe/1", "maxSession": 3}}, "maxSession"),
        ({"queue": {"entries": 3}}, "entries"),
        ({"queue": 0}, "queue"),
        ({"queue": []}, "queue"),
    ],
)
def test_an_invalid_option_refuses_the_handshake_and_the_error_names_it(
    options: Any, named: str
) -> None:
    reply = server_of().guest().handshake(ext={"delivery": options}).reply
    assert reply["error"] == f"400:user.illegalArgument,{named}:delivery_invalid"


def test_an_event_has_the_delivery_data_for_its_receiver() -> None:
    server = server_of()
    client = receiver(server, secret="topsecret")
    other = server.connected()
    other.publish("/a", {"n": 1}, ext={"delivery": {"priority": 7, "properties": {"color": "red"}}})
    (event,) = connect(client).events
    told = event["ext"]["delivery"]
    assert event["data"] == {"n": 1}
    assert told["id"].startswith("test-17")
    assert told["rcvTimestamp"] == told["id"].removeprefix("test-")
    assert told["sender"] == other.session.name
    assert (told["seq"], told["state"], told["priority"]) == (1, "OK", 7)
    assert told["properties"] == {"color": "red"}
    assert told["queue"] == {"index": 0, "size": 1}
    assert (told["subscription"], told["cbSessionId"]) == ("/a", "topsecret")
    assert "redelivered" not in told


def test_an_event_with_an_ext_carries_the_same_delivery_data_as_one_without() -> None:
    server = server_of()
    client = receiver(server)
    other = server.connected()
    other.publish("/a", 1)
    other.publish("/a", 2, ext={"mine": True})
    plain, extended = (event["ext"] for event in connect(client).events)
    assert extended.pop("mine")
    for told in (plain["delivery"], extended["delivery"]):
        number = told.pop("rcvTimestamp")
        assert told.pop("id") == f"test-{number}"
        del told["seq"], told["queue"]["index"]
    assert plain == extended


def test_a_plain_session_gets_no_delivery_data() -> None:
    server = server_of()
    plain = server.connected()
    plain.subscribe("/a")
    server.connected().publish("/a", 1, ext={"delivery": {"priority": 7}, "mine": True})
    (event,) = plain.connect().events
    assert event["ext"] == {"mine": True}


def test_other_fields_of_ext_stay_beside_the_servers_own() -> None:
    server = server_of()
    client = receiver(server)
    server.connected().publish("/a", 1, ext={"mine": {"x": 1}})
    (event,) = connect(client).events
    assert event["ext"]["mine"] == {"x": 1}
    assert event["ext"]["delivery"]["seq"] == 1


# Receivers that give no verdicts


def test_a_message_to_a_oneway_receiver_is_settled_when_written_and_cannot_be_refused() -> None:
    server = server_of()
    client = receiver(server, ack=False, oneway=True)
    publish(server, 1)
    (event,) = connect(client, ack=None).events
    connect(client, no(event, "user.update.error"), ack=None)
    assert codes(server) == []
    assert server.bayeux.state.hub.counters.acked == 1


def test_a_subscription_can_be_oneway_too() -> None:
    server = server_of()
    client = receiver(server)
    ext = {"delivery": {"oneway": True}}
    client.send({"channel": "/meta/subscribe", "subscription": "/b", "ext": ext})
    publish(server, 1)
    publish(server, 2, channel="/b")
    assert connect(client, ack=0).data == [1, 2]
    assert connect(client, ack=0).data == [1]
    client.unsubscribe("/b")
    client.subscribe("/b")
    publish(server, 3, channel="/b")
    assert connect(client).data == [3]
    assert connect(client, ack=0).data == [3]
    assert server.balances()
