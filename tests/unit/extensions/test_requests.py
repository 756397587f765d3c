"""Requests: publishes whose receivers may answer, once, in time, and nobody else."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.delivery.requests.reply_channels import reply_channel_of
from holdfast.delivery.requests.request import RequestEnd
from tests.unit.bayeux.harness import Server
from tests.unit.extensions.requesting import (
    POWER,
    Person,
    figures,
    requester,
    requesting,
    responder,
)

ILLEGAL = "400:user.illegalArgument,{}:ext_invalid"


# Agreement


def test_a_client_that_asks_for_it_gets_a_reply_channel_of_its_own() -> None:
    server = requesting()
    one, other = requester(server), requester(server)
    assert one.ret.startswith("/ret/")
    assert len(one.ret) == len("/ret/") + 29
    assert one.ret != other.ret


@pytest.mark.parametrize("asked", [None, False])
def test_a_client_that_does_not_ask_has_no_reply_channel(asked: Any) -> None:
    client = requesting().guest()
    assert "ext" not in client.handshake(ext={"request": asked}).reply
    assert reply_channel_of(client.session) is None


@pytest.mark.parametrize(
    "asked", [1, "yes", [], {}, "/a/b", "/ret/", "/ret/" + "x" * 21, "/ret/" + "x" * 1_000_000]
)
def test_a_handshake_with_an_unreadable_request_field_is_refused(asked: Any) -> None:
    reply = requesting().guest().handshake(ext={"request": asked}).reply
    assert reply["error"] == ILLEGAL.format("request")


@pytest.mark.parametrize(("key", "value"), [("replyTo", "/ret/a/4000001"), ("timeout", 5)])
def test_a_handshake_with_the_fields_of_a_request_is_refused(key: str, value: object) -> None:
    reply = requesting().guest().handshake(ext={key: value}).reply
    assert reply["error"] == ILLEGAL.format(key)


# Asking


def test_a_reply_reaches_its_requester_and_nobody_else() -> None:
    server = requesting()
    ann, bob, eve = requester(server), responder(server), responder(server, "/**")
    assert ann.ask({"volt": 230})["successful"]
    request = bob.last()
    assert (request["channel"], request["data"]) == (POWER, {"volt": 230})
    assert request["ext"] == {"replyTo": ann.address(), "timeout": 10_000}
    assert bob.reply(request, {"watt": 7}, mime="application/json")["successful"]
    answer = ann.last()
    assert (answer["channel"], answer["data"]) == (ann.address(), {"watt": 7})
    assert answer["ext"] == {"mime": "application/json"}
    assert [event["channel"] for event in eve.heard()] == [POWER]
    assert figures(server) == {"answered": 1}
    assert server.balances()


def test_a_request_does_not_tell_its_responders_who_asks() -> None:
    server = requesting()
    ann, bob = requester(server), responder(server)
    ann.ask()
    request = bob.last()
    assert request.keys() == {"channel", "data", "ext"}
    assert str(ann.client_id) not in str(request)


@pytest.mark.parametrize(
    ("ext", "wrong"),
    [
        ({"replyTo": 7}, "replyTo"),
        ({"timeout": 0}, "timeout"),
        ({"timeout": 300_001}, "timeout"),
        ({"timeout": "soon"}, "timeout"),
        ({"timeout": True}, "timeout"),
        ({"replyTo": None, "timeout": 5}, "timeout"),
        ({"request": "some"}, "request"),
        ({"request": True}, "request"),
        ({"replyTo": None, "request": "all"}, "request"),
    ],
)
def test_an_unreadable_request_is_refused(ext: dict[str, Any], wrong: str) -> None:
    server = requesting()
    ann, bob = requester(server), responder(server)
    assert ann.ask(**ext)["error"] == ILLEGAL.format(wrong)
    assert bob.heard() == []


@pytest.mark.parametrize("channel", ["/service/any", "/meta/connect"])
def test_a_request_on_a_service_or_meta_channel_is_refused(channel: str) -> None:
    ann = requester(requesting())
    assert ann.ask(channel=channel)["error"] == ILLEGAL.format("replyTo")


def test_a_request_for_replies_outside_the_requesters_channel_is_refused() -> None:
    server = requesting()
    ann, bob, eve = requester(server), responder(server), requester(server)
    for wrong in (
        eve.address(),
        ann.ret,
        f"{ann.ret}/4000001/more",
        f"{ann.ret}/9000001",
        f"{ann.ret}/400001",
        f"{ann.ret}4000001",
        "/a",
    ):
        assert ann.ask(replyTo=wrong)["error"] == "403:replyTo:reply_denied"
    assert bob.ask(replyTo=ann.address())["error"] == "403:replyTo:reply_denied"
    assert bob.heard() == []


def test_a_request_without_responders_ends_at_once() -> None:
    server = requesting()
    ann = requester(server)
    assert ann.ask()["successful"]
    error = f"404:{POWER}:no_responders"
    assert ann.last() == {
        "channel": ann.address(),
        "data": {"error": error},
        "error": error,
        "ext": {"status": "ERROR"},
    }
    assert figures(server) == {"no_responders": 1}


def test_a_request_without_a_reply_ends_at_its_deadline() -> None:
    server = requesting()
    ann, bob = requester(server), responder(server)
    ann.ask(timeout=1000)
    server.advance(0.9)
    assert ann.heard() == []
    server.advance(0.3)
    assert ann.last()["error"] == f"408:{POWER}:timeout"
    assert figures(server) == {"timeout": 1}
    assert server.bayeux.state.requests.outstanding == 0
    bob.heard()


# Replies that are refused


def test_the_first_reply_counts_and_later_ones_are_duplicates() -> None:
    server = requesting()
    ann, bob, cleo = requester(server), responder(server), responder(server)
    ann.ask()
    first, second = bob.last(), cleo.last()
    assert cleo.reply(second, "mine")["successful"]
    assert bob.reply(first)["error"] == f"409:{ann.address()}:duplicate_reply"
    assert cleo.reply(second)["error"] == f"409:{ann.address()}:duplicate_reply"
    assert ann.last()["data"] == "mine"
    assert figures(server) == {"answered": 1, "duplicate": 2}


def test_a_late_reply_becomes_a_dead_letter() -> None:
    server = requesting()
    ann, bob = requester(server), responder(server)
    ann.ask(timeout=500)
    request = bob.last()
    server.advance(1)
    assert ann.last()["error"] == f"408:{POWER}:timeout"
    assert bob.reply(request, "sorry")["error"] == f"410:{ann.address()}:late_reply"
    assert ann.heard() == []
    (letter,) = server.keeper.letters
    assert (letter.code, letter.channel) == ("communication.lateReply", ann.address())
    assert letter.publisher == bob.session.name
    assert letter.receiver == ann.session.name
    assert figures(server) == {"timeout": 1, "late": 1}
    assert bob.reply(request)["error"] == f"409:{ann.address()}:duplicate_reply"
    assert server.balances()


def test_a_client_that_was_not_handed_the_request_may_not_reply() -> None:
    server = requesting()
    ann, bob, eve = requester(server), responder(server), responder(server, "/other")
    ann.ask()
    request = bob.last()
    denied = f"403:{ann.address()}:reply_denied"
    assert eve.reply(request)["error"] == denied
    assert ann.reply(request)["error"] == denied
    assert eve.say(ann.address(2))["error"] == f"403:{ann.address(2)}:reply_denied"
    assert bob.reply(request)["successful"]
    assert eve.reply(request)["error"] == denied
    assert figures(server) == {"denied": 4, "answered": 1}


def test_a_subscriber_may_not_reply_before_it_is_handed_the_request() -> None:
    server = requesting()
    ann, bob = requester(server), responder(server)
    slow = server.client()
    slow.subscribe(POWER)
    ann.ask()
    address = bob.last()["ext"]["replyTo"]
    server.turn()
    assert slow.publish(address, "!").replies[0]["error"] == f"403:{address}:reply_denied"


def test_only_the_requester_may_subscribe_to_its_reply_channel() -> None:
    server = requesting()
    ann, eve = requester(server), responder(server)
    for pattern in (f"{ann.ret}/*", f"{ann.ret}/**", "/ret/*", "/ret/**", ann.address()):
        reply = eve.subscribe(pattern).replies[0]
        assert reply["error"] == "403:denied_by_security_policy:subscribe_denied"
    assert ann.subscribe(f"{ann.ret}/*").replies[0]["successful"]
    assert ann.session.subscriptions == set()
    assert ann.subscribe("/ret/**").replies[0]["successful"] is False


def test_a_reply_that_is_too_large_leaves_its_request_to_a_smaller_one() -> None:
    server = requesting(max_message_size=300)
    ann, bob, cleo = requester(server), responder(server), responder(server)
    ann.ask(timeout=1000)
    request = bob.last()
    assert bob.reply(request, "x" * 400)["error"].startswith("413:")
    assert bob.reply(request, "small")["successful"]
    assert ann.last()["data"] == "small"
    ann.ask(serial=2, timeout=1000)
    assert cleo.reply(cleo.heard()[-1], "x" * 400)["error"].startswith("413:")
    server.advance(1.2)
    assert ann.last()["error"] == f"408:{POWER}:timeout"
    assert server.bayeux.state.requests.outstanding == 0


# Serials


def test_a_late_reply_answers_no_later_request_with_the_same_serial() -> None:
    server = requesting()
    ann, bob = requester(server), responder(server)
    ann.ask("first", 999_999, timeout=500)
    first = bob.last()
    server.advance(1)
    ann.heard()
    ann.ask("second", 0)
    ann.ask("third", 999_999)
    ann.ask("fourth", 999_999)
    second, third, fourth = bob.heard()
    assert bob.reply(first, "late")["error"].endswith(":late_reply")
    assert ann.heard() == []
    addresses = {event["ext"]["replyTo"] for event in (first, second, third, fourth)}
    assert len(addresses) == 4
    assert bob.reply(fourth, 4)["successful"]
    assert bob.reply(third, 3)["successful"]
    assert [(each["channel"], each["data"]) for each in ann.heard()] == [
        (ann.address(999_999), 4),
        (ann.address(999_999), 3),
    ]


def test_two_requesters_with_the_same_serial_get_their_own_replies() -> None:
    server = requesting()
    ann, ada, bob = requester(server), requester(server), responder(server)
    ann.ask("ann")
    ada.ask("ada")
    for request in bob.heard():
        bob.reply(request, request["data"])
    assert (ann.last()["data"], ada.last()["data"]) == ("ann", "ada")


def test_two_sessions_of_one_subject_with_the_same_serial_get_their_own_replies() -> None:
    server = requesting()
    session = {"name": "ann", "maxSessions": 2}
    one, other = [
        Person.come(server, {"request": True, "delivery": {"session": session}}) for _ in range(2)
    ]
    one.connect()
    other.connect()
    bob = responder(server)
    assert one.session.subject == other.session.subject == "ann"
    one.ask("one", 17)
    other.ask("other", 17)
    for request in bob.heard():
        bob.reply(request, request["data"])
    assert (one.last()["data"], other.last()["data"]) == ("one", "other")


# Ends of sessions


def test_a_request_does_not_wait_for_responders_that_left() -> None:
    server = requesting()
    ann, bob, cleo = requester(server), responder(server), responder(server)
    ann.ask()
    bob.last()
    bob.disconnect()
    assert ann.heard() == []
    cleo.disconnect()
    assert ann.last()["error"] == f"404:{POWER}:no_responders"


def test_a_request_waits_for_a_lost_responder_until_its_session_ends() -> None:
    server = requesting()
    ann, bob = requester(server), responder(server)
    ann.ask(timeout=200_000)
    bob.last()
    assert bob.socket is not None
    server.close(bob.socket)
    server.advance(1)
    ann.connect()
    assert ann.heard() == []
    server.advance(server.bayeux.state.options.max_interval_s)
    assert ann.last()["error"] == f"404:{POWER}:no_responders"
    assert figures(server) == {"no_responders": 1}


def test_the_requests_of_a_client_that_leaves_are_abandoned() -> None:
    server = requesting()
    ann, bob = requester(server), responder(server)
    ann.ask()
    request = bob.last()
    ann.disconnect()
    assert figures(server) == {"abandoned": 1}
    assert bob.reply(request)["error"].endswith(":late_reply")
    assert len(server.keeper.letters) == 1


# Any values

ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)
SAID: dict[str, Any] = {
    "replyTo": "",
    "timeout": 5000,
    "request": "all",
    "mime": "text/csv",
    "status": "ERROR",
}
REFUSED = (":ext_invalid", ":reply_denied", ":channel_invalid", ":duplicate_reply")


@pytest.mark.slow
@given(st.dictionaries(st.sampled_from(sorted(SAID)), ANYTHING), st.booleans())
def test_a_request_or_a_reply_with_any_ext_is_accepted_or_refused(
    said: dict[str, Any], is_reply: bool
) -> None:
    server = requesting()
    ann, bob = requester(server), responder(server)
    if is_reply:
        ann.ask()
        answer = bob.reply(bob.last(), **said)
    else:
        answer = ann.ask(**SAID | {"replyTo": ann.address()} | said)
    assert answer["successful"] or answer["error"].endswith(REFUSED)
    bob.heard()
    ann.heard()
    assert server.balances()
    server.now += 301
    server.bayeux.tick(server.now)
    server.turn()
    assert server.bayeux.state.requests.outstanding == 0
    assert server.balances()


@pytest.mark.slow
@given(ANYTHING | st.text("/ret", max_size=30))
def test_a_handshake_with_any_request_field_is_accepted_or_refused(asked: Any) -> None:
    reply = requesting().guest().handshake(ext={"request": asked}).reply
    assert reply["successful"] or reply["error"] == ILLEGAL.format("request")


# Limits


def test_a_session_has_a_limited_number_of_outstanding_requests() -> None:
    server = requesting(max_outstanding=2)
    ann, bob = requester(server), responder(server)
    ann.ask(serial=1)
    ann.ask(serial=2)
    assert ann.ask(serial=3)["error"] == "503:2:requests_exceeded"
    bob.reply(bob.heard()[0])
    assert ann.ask(serial=4)["successful"]


def test_all_sessions_together_have_a_limited_number_of_outstanding_requests() -> None:
    server = requesting(max_total_outstanding=4)
    ann, ada, bob = requester(server), requester(server), responder(server)
    ann.ask()
    ada.ask()
    assert ada.ask(serial=2)["error"] == "503::requests_used_up"
    bob.reply(bob.heard()[0])
    assert ada.ask(serial=3)["successful"]


def test_reply_channels_are_reserved_without_the_extension() -> None:
    client = Server().client()
    error = "400:internal.notImplemented,/ret/:not_supported"
    assert client.publish("/ret/x/4000001", 1).reply["error"] == error


def test_the_request_ends_have_the_documented_names() -> None:
    assert {end.value for end in RequestEnd} == {
        *("answered", "no_responders", "timeout", "refused", "abandoned", "unsent")
    }
