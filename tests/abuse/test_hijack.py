"""A client id alone does not give access to its session."""

import re
import time
from base64 import urlsafe_b64decode

import orjson
import pytest

from tests.abuse.attacker import HANDSHAKE, Person, SocketWire, Wire, request
from tests.abuse.target import Target

UNKNOWN = "402::session_unknown"
NO_COOKIE = "402:send the cookie:cookie_missing"


def attacks(victim: Person) -> list[dict[str, object]]:
    """Messages that would do something in the victim's name."""
    return [
        victim.connect_message(),
        victim.connect_message(advice={"timeout": 0}),
        victim.message("/meta/subscribe", subscription="/secret"),
        victim.message("/meta/unsubscribe", subscription="/news"),
        victim.message("/meta/disconnect"),
        victim.message("/news", data="forged"),
        victim.message("/service/x", data="forged"),
    ]


@pytest.fixture
def victim(either_front_end: Target) -> Person:
    person = either_front_end.person()
    person.subscribe("/news")
    person.connect()
    return person


def check_untouched(victim: Person) -> None:
    """Check that the session has its subscription, and that nothing was sent in its name."""
    messages = victim.publish("/news", "mine").messages()
    assert [message.get("data") for message in messages] == ["mine", None]
    victim.close()


@pytest.mark.parametrize(
    ("cookie", "error"),
    [
        (None, NO_COOKIE),
        ("BAYEUX_BROWSER=", NO_COOKIE),
        ("BAYEUX_BROWSER=0123456789abcdef0123456789abcdef", UNKNOWN),
        ("bayeux_browser=x", NO_COOKIE),
        ("BAYEUX_BROWSER=None", UNKNOWN),
        ("BAYEUX_BROWSER=null", UNKNOWN),
        ("BAYEUX_BROWSER=*", NO_COOKIE),
    ],
)
def test_another_browser_cannot_use_a_stolen_client_id(
    cookie: str | None, error: str, victim: Person, either_front_end: Target
) -> None:
    headers = {} if cookie is None else {"Cookie": cookie}
    for message in attacks(victim):
        with either_front_end.wire() as wire:
            wire.send(request(orjson.dumps([message]), headers))
            (reply,) = wire.answer().messages()
            assert (reply["successful"], reply["error"]) == (False, error)
            assert "clientId" not in reply
    check_untouched(victim)


def test_a_client_with_a_session_of_its_own_cannot_use_a_stolen_client_id(
    victim: Person, either_front_end: Target
) -> None:
    with either_front_end.person() as attacker:
        for message in attacks(victim):
            assert attacker.ask(message).error() == UNKNOWN
    check_untouched(victim)


def test_a_batch_that_begins_with_an_own_message_cannot_use_a_stolen_client_id(
    victim: Person, either_front_end: Target
) -> None:
    with either_front_end.person() as attacker:
        own = attacker.message("/meta/subscribe", subscription="/a")
        replies = attacker.ask(own, *attacks(victim), own).messages()
        assert [reply["successful"] for reply in replies] == [True] + [False] * 7 + [True]
        assert {reply["error"] for reply in replies if "error" in reply} == {UNKNOWN}
        replies = attacker.ask(*attacks(victim), own).messages()
        assert not any(reply["successful"] for reply in replies)
    check_untouched(victim)


def test_a_socket_cannot_use_a_stolen_client_id(victim: Person, either_front_end: Target) -> None:
    for cookie in ({}, {"Cookie": "BAYEUX_BROWSER=0123456789abcdef"}):
        with either_front_end.socket(**cookie) as socket:
            socket.say({**HANDSHAKE})
            own = socket.hear()[0]["clientId"]
            for message in attacks(victim):
                socket.say(message)
                (reply,) = socket.hear()
                assert (reply["successful"], reply["error"]) == (False, UNKNOWN)
            socket.say({"channel": "/meta/subscribe", "subscription": "/a", "clientId": own})
            assert socket.hear()[0]["successful"]
    check_untouched(victim)


def test_a_new_socket_does_not_get_a_session_that_has_connected(
    victim: Person, either_front_end: Target
) -> None:
    with either_front_end.socket() as socket:
        for message in attacks(victim):
            socket.say(message)
            assert socket.hear()[0]["error"] == UNKNOWN
    check_untouched(victim)


def test_a_new_socket_on_a_used_connection_does_not_get_it_either(either_front_end: Target) -> None:
    come: list[Person] = []

    def use(wire: Wire) -> None:
        wire.send(request(orjson.dumps([HANDSHAKE])))
        wire.answer()
        come.append(either_front_end.person())
        come[0].connect()

    with SocketWire(either_front_end.url, before=use) as socket, come[0] as victim:
        for message in attacks(victim):
            socket.say(message)
            assert socket.hear()[0]["error"] == UNKNOWN


def test_a_newcomers_socket_is_recognised_by_the_age_of_its_connection(
    either_front_end: Target,
) -> None:
    come: list[Person] = []

    def handshake_beside(_: Wire) -> None:
        # It has accepted the connection when it answers on a later one.
        either_front_end.metric("holdfast_connections")
        # The server compares times in milliseconds.
        time.sleep(0.01)
        come.append(either_front_end.person())
        come[0].connect()

    with SocketWire(either_front_end.url, before=handshake_beside) as socket, come[0] as newcomer:
        socket.say(newcomer.message("/meta/subscribe", subscription="/news"))
        assert socket.hear()[0]["successful"]


def test_a_socket_of_the_same_browser_may_take_the_session_over(
    victim: Person, either_front_end: Target
) -> None:
    with either_front_end.socket(Cookie=victim.headers["Cookie"]) as socket:
        socket.say(victim.connect_message(advice={"timeout": 0}))
        assert socket.hear()[-1]["successful"]
    victim.close()


def test_a_client_cannot_choose_its_id(either_front_end: Target) -> None:
    with either_front_end.wire() as wire:
        wire.send(request(orjson.dumps([{**HANDSHAKE, "clientId": "f" * 32}])))
        (reply,) = wire.answer().messages()
    assert reply["clientId"] != "f" * 32
    assert re.fullmatch("[0-9]{3}[A-Za-z0-9_-]{26}", reply["clientId"])


def test_another_handshake_of_the_same_browser_is_another_session(
    victim: Person, either_front_end: Target
) -> None:
    again = victim.ask({**HANDSHAKE, "clientId": victim.client_id}).messages()[0]
    assert again["clientId"] != victim.client_id
    check_untouched(victim)


def test_an_id_is_never_shown_to_anyone_else(victim: Person, either_front_end: Target) -> None:
    with either_front_end.person() as publisher:
        secret = {"id": "7", "advice": {"reconnect": "none"}}
        publisher.ask(publisher.message("/news", data={"x": 1}, **secret, more="yes"))
        heard = victim.connect()
        assert publisher.client_id.encode() not in heard.body
        (event, _) = heard.messages()
        assert event == {"channel": "/news", "data": {"x": 1}, "more": "yes"}
    victim.close()


def random_bits_of(id: str) -> int:
    return int.from_bytes(urlsafe_b64decode(id[3:25] + "=="))


def test_ids_do_not_repeat_and_have_no_pattern(target: Target) -> None:
    with target.wire() as wire:
        seen = set()
        for _ in range(300):
            wire.send(request(orjson.dumps([HANDSHAKE])))
            answer = wire.answer()
            seen.add(answer.messages()[0]["clientId"])
            seen.add(answer.headers["set-cookie"].partition(";")[0].partition("=")[2])
    assert len(seen) == 600
    # Each of 128 bits is set about half of the time.
    for bit in range(128):
        share = sum(bits >> bit & 1 for bits in map(random_bits_of, seen)) / len(seen)
        assert 0.3 < share < 0.7
