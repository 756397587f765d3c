"""The messages of a request: each is checked by itself, and they are answered in order."""

import json
import logging
from typing import Any

import pytest

from holdfast.bayeux.state.service_channels import ServiceCall
from holdfast.bayeux.wire.errors import ErrorReply, RequestRefused
from tests.unit.bayeux.harness import ABSENT, Json, Server

# Refusals that do not depend on the sender


def refusals(message: Json) -> list[str | None]:
    """The errors that a message gets with a session and without one."""
    server = Server()
    known, unknown = server.client(), server.guest()
    known_reply = known.send(message).replies[0]
    return [known_reply.get("error"), unknown.send(message).reply.get("error")]


@pytest.mark.parametrize("message", [{"id": "1"}, {"id": "1", "channel": None}, {}])
def test_a_message_without_a_channel_is_refused_whoever_sent_it(message: Json) -> None:
    assert refusals(message) == ["400::channel_missing"] * 2


@pytest.mark.parametrize("channel", ["", "/", "foo", "/a//b", "/a/*/b", "/a?", 5, True, [], {}])
def test_an_invalid_channel_is_refused_whoever_sent_it(channel: Any) -> None:
    assert refusals({"channel": channel, "data": 1}) == ["405::channel_invalid"] * 2


@pytest.mark.parametrize(
    "message_id",
    ["", "ä", "²", "a\n", "\x7f", "\0", "a\u2028", "-" * 256, 1.5, -1, True, [], {}, ["1"]],
)
def test_an_id_that_is_not_printable_ascii_is_refused_whoever_sent_it(message_id: Any) -> None:
    message = {"channel": "/a", "data": 1, "id": message_id}
    assert refusals(message) == ["405::message_id_invalid"] * 2


PRINTABLE = "".join(map(chr, range(0x20, 0x7F)))


@pytest.mark.parametrize(
    "message_id",
    ["0b5a4f1e-6f0c-4d5e-9a53-0d8a4f8f6f10", " ", "-" * 255, PRINTABLE, "a" * 256, "7" * 5_000],
)
def test_an_id_of_printable_ascii_comes_back_unchanged(message_id: str) -> None:
    server = Server()
    handshake = server.guest().handshake(id=message_id).reply
    client = server.connected()
    replies = [
        client.publish("/a", 1, id=message_id).replies[0],
        client.send({"channel": "/meta/subscribe", "subscription": "/a", "id": message_id}).reply,
        client.connect(id=message_id, advice={"timeout": 0}).reply,
    ]
    for reply in (handshake, *replies):
        assert (reply["id"], reply["successful"]) == (message_id, True)


def test_a_refused_message_keeps_its_id_of_printable_ascii() -> None:
    message = {"channel": "/a//b", "data": 1, "id": PRINTABLE}
    assert Server().client().send(message).replies[0]["id"] == PRINTABLE


@pytest.mark.parametrize("ext", [5, True, False, "", "text", 0, [], ["ack"]])
def test_an_ext_that_is_not_an_object_is_refused_whoever_sent_it(ext: Any) -> None:
    assert refusals({"channel": "/a", "data": 1, "ext": ext}) == ["400::ext_invalid"] * 2


@pytest.mark.parametrize("advice", [5, True, False, "", "text", 0, [], [1]])
def test_advice_that_is_not_an_object_is_refused_whoever_sent_it(advice: Any) -> None:
    assert refusals({"channel": "/a", "data": 1, "advice": advice}) == ["400::advice_invalid"] * 2


@pytest.mark.parametrize("field", ["ext", "advice", "id"])
def test_a_null_ext_advice_or_id_counts_as_absent(field: str) -> None:
    message = {"channel": "/a", "data": 1, field: None}
    assert refusals(message) == [None, "402:send the clientId:client_id_missing"]


@pytest.mark.parametrize("message_id", ["a1", "00", 0, 5, 2**63, ABSENT, None])
def test_a_message_may_have_an_id_of_letters_and_digits_or_none(message_id: Any) -> None:
    message = {"channel": "/a", "data": 1, "id": message_id}
    assert refusals(message) == [None, "402:send the clientId:client_id_missing"]


# What a reply repeats


@pytest.mark.parametrize(("sent", "echoed"), [("a1", "a1"), (5, "5"), (0, "0"), (-5, "-5")])
def test_the_reply_has_the_id_as_text(sent: Any, echoed: str) -> None:
    reply = Server().client().publish("/a", 1, id=sent).reply
    assert reply["id"] == echoed


@pytest.mark.parametrize("sent", [None, ABSENT, True, [], {}])
def test_the_reply_has_no_id_if_that_of_the_message_is_neither_text_nor_number(sent: Any) -> None:
    assert "id" not in Server().client().publish("/a", 1, id=sent).reply


def test_the_reply_has_a_refused_fractional_id_as_text() -> None:
    assert Server().client().publish("/a", 1, id=1.5).reply["id"] == "1.5"


def test_the_reply_repeats_the_channel_as_it_was_sent_if_it_is_text() -> None:
    client = Server().client()
    assert client.publish("/a/", 1).reply["channel"] == "/a/"
    assert client.publish("no channel", 1).reply["channel"] == "no channel"
    assert "channel" not in client.send({"channel": 5}).reply


@pytest.mark.parametrize("subscription", ["/a", ["/a", "/b"], [], {}, 5, False, "", "no channel"])
def test_the_reply_repeats_the_subscription_with_its_type(subscription: Any) -> None:
    message = {"channel": "/meta/subscribe", "subscription": subscription}
    server = Server()
    for client in (server.client(), server.guest()):
        assert client.send(message).reply["subscription"] == subscription


def test_the_reply_repeats_no_other_fields() -> None:
    reply = Server().client().publish("/a", 1, ext={"a": 1}, advice={}, custom=1).reply
    assert reply == {"channel": "/a", "id": "2", "successful": True}


# Whose message it is


def test_messages_without_a_session_are_refused_and_connects_advised_to_handshake() -> None:
    guest = Server().guest(browser="known")
    for channel in ("/a", "/service/a", "/meta/subscribe", "/meta/unsubscribe", "/meta/disconnect"):
        reply = guest.send({"channel": channel, "data": 1, "subscription": "/a"}).reply
        assert (reply["successful"], reply["error"]) == (
            False,
            "402:send the clientId:client_id_missing",
        )
        assert "advice" not in reply
    reply = guest.connect().reply
    assert reply["error"] == "402:send the clientId:client_id_missing"
    assert reply["advice"] == {"reconnect": "handshake", "interval": 0, "timeout": 30000}


def test_an_unknown_meta_channel_is_not_supported() -> None:
    reply = Server().client().send({"channel": "/meta/foo"}).reply
    assert reply["error"] == "400:/meta/foo:not_supported"


@pytest.mark.parametrize("channel", ["/meta/connect/", "/meta/connect ", "/meta/", "/meta/*"])
def test_a_channel_that_only_resembles_a_meta_channel_is_not_supported(channel: str) -> None:
    reply = Server().client().send({"channel": channel}).reply
    assert reply["error"] == f"400:{channel}:not_supported"


@pytest.mark.parametrize("client_id", [ABSENT, None, 5, True, [], {}, "", "0" * 32])
def test_a_message_with_a_missing_or_wrong_client_id_has_no_session(client_id: Any) -> None:
    client = Server().client()
    reply = client.publish("/a", 1, clientId=client_id).reply
    is_missing = client_id is None or client_id is ABSENT
    assert reply["error"] == (
        "402:send the clientId:client_id_missing" if is_missing else "402::session_unknown"
    )


def test_every_message_of_a_batch_is_checked_by_itself() -> None:
    server = Server()
    alice, mallory = server.connected(), server.connected()
    alice.subscribe("/private")
    stolen = {"channel": "/meta/disconnect", "clientId": alice.client_id}
    answer = mallory.send({"channel": "/a", "data": 1}, stolen, {"channel": "/b", "data": 2})
    assert [reply.get("error") for reply in answer.elements] == [
        None,
        "402::session_unknown",
        None,
    ]
    assert alice.connect().is_held


def test_a_batch_whose_first_message_has_no_client_id_has_no_session() -> None:
    client = Server().client()
    first = {"channel": "/a", "data": 1, "clientId": ABSENT}
    answer = client.send(first, {"channel": "/a", "data": 2})
    errors = [reply["error"] for reply in answer.elements]
    assert errors == [
        "402:send the clientId:client_id_missing",
        "402::session_unknown",
    ]


# Order


def test_a_single_object_is_answered_with_an_array() -> None:
    server = Server()
    client = server.client()
    message = {"channel": "/a", "data": 1, "clientId": client.client_id}
    answer = server.receive(json.dumps(message).encode(), browser=client.browser)
    assert answer.elements == [{"channel": "/a", "successful": True}]


def test_messages_are_handled_and_answered_in_order() -> None:
    client = Server().client()
    answer = client.send(
        {"channel": "/a", "data": "unheard"},
        {"channel": "/meta/subscribe", "subscription": "/a"},
        {"channel": "/a", "data": "heard"},
        {"channel": "/meta/unsubscribe", "subscription": "/a"},
        {"channel": "/a", "data": "unheard again"},
    )
    assert answer.data == ["heard"]
    assert [reply["id"] for reply in answer.replies] == ["2", "3", "4", "5", "6"]


def test_waiting_messages_come_before_the_replies() -> None:
    server = Server()
    alice, bob = server.client(), server.client()
    alice.subscribe("/a")
    bob.publish("/a", 1)
    answer = alice.publish("/a", 2)
    assert answer.data == [1, 2]
    assert "successful" in answer.elements[-1]


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_connect_in_a_batch_is_answered_in_its_place_and_at_once(place: int) -> None:
    client = Server().connected()
    messages: list[Json] = [
        {"channel": "/meta/subscribe", "subscription": "/a"},
        {"channel": "/a", "data": 1},
    ]
    messages.insert(place, {"channel": "/meta/connect"})
    answer = client.send(*messages)
    assert [reply["id"] for reply in answer.replies] == ["3", "4", "5"]
    assert answer.replies[place]["channel"] == "/meta/connect"
    assert answer.data == [1]


def test_each_of_several_connects_in_a_batch_is_answered_in_its_place() -> None:
    client = Server().connected()
    connect, publish = {"channel": "/meta/connect"}, {"channel": "/a", "data": 1}
    answer = client.send(connect, publish, connect, connect, publish)
    channels = [reply["channel"] for reply in answer.elements]
    assert channels == ["/meta/connect", "/a", "/meta/connect", "/meta/connect", "/a"]
    assert [reply["id"] for reply in answer.elements] == ["3", "4", "5", "6", "7"]


def test_messages_after_a_disconnect_in_a_batch_have_no_session() -> None:
    server = Server()
    alice, bob = server.client(), server.client()
    bob.subscribe("/a")
    answer = alice.send(
        {"channel": "/a", "data": "before"},
        {"channel": "/meta/disconnect"},
        {"channel": "/a", "data": "after"},
        {"channel": "/meta/subscribe", "subscription": "/a"},
        {"channel": "/meta/connect"},
    )
    errors = [reply.get("error") for reply in answer.elements]
    assert errors == [None, None, *["402::session_unknown"] * 3]
    assert answer.elements[-1]["advice"]["reconnect"] == "none"
    assert bob.publish("/b").data == ["before"]


# Handshakes in batches


def test_messages_beside_a_handshake_are_refused_and_have_no_effect() -> None:
    server = Server()
    bob = server.client()
    bob.subscribe("/a")
    guest = server.guest()
    handshake = {
        "channel": "/meta/handshake",
        "supportedConnectionTypes": ["long-polling"],
    }
    subscribe = {"channel": "/meta/subscribe", "subscription": "/a"}
    publish = {"channel": "/a", "data": 1, "clientId": bob.client_id}
    answer = guest.send(publish, handshake, subscribe, handshake)
    # The reply that clients wait for comes first, wherever its request stood.
    assert [reply["id"] for reply in answer.elements] == ["2", "1", "3", "4"]
    assert [reply["successful"] for reply in answer.elements] == [True, False, False, False]
    assert {r["error"] for r in answer.elements[1:]} == {"400::handshake_batched"}
    assert len(server.bayeux.state.sessions) == 2
    assert bob.publish("/b").events == []


# Faults and refused requests


def test_a_failing_service_affects_no_other_message_of_the_request(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = Server()

    def fail(call: ServiceCall) -> None:
        raise ZeroDivisionError("a secret")

    server.bayeux.state.services.add("/service/broken", fail)
    client = server.client()
    with caplog.at_level(logging.ERROR):
        answer = client.send(
            {"channel": "/service/broken", "data": 1}, {"channel": "/a", "data": 1}
        )
    assert [reply["successful"] for reply in answer.elements] == [False, True]
    assert answer.elements[0]["error"] == "500::server_fault"
    assert "ZeroDivisionError" in caplog.text


def test_a_refused_request_has_no_effect() -> None:
    server = Server(max_batch=2)
    client = server.client()
    body = json.dumps([client.dress({"channel": "/meta/disconnect"})] * 3).encode()
    with pytest.raises(RequestRefused) as refused:
        client.send_bytes(body)
    assert refused.value.error is ErrorReply.REQUEST_TOO_LARGE
    assert client.publish("/a").reply["successful"]
