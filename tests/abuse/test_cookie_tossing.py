"""A host of the same domain sets a cookie of the server's: nobody is locked out or let in."""

from collections.abc import Iterator

import orjson
import pytest

from tests.abuse.attacker import HANDSHAKE, Person, SocketWire, request
from tests.abuse.target import Target

UNKNOWN = "402::session_unknown"
NAME = "BAYEUX_BROWSER"
# What a browser may send in front of the right cookie, or behind it.
TOSSED = [
    f"{NAME}=",
    f"{NAME}=<junk>",
    f"{NAME}=a b",
    f"{NAME}={'a' * 65}",
    f"{NAME}=0123456789abcdef0123456789abcdef",
    "; ".join(f"{NAME}=tossed{number}" for number in range(15)),
    "; ".join(f"{NAME}=<junk{number}>" for number in range(100)),
]


@pytest.fixture
def victim(either_front_end: Target) -> Iterator[Person]:
    with either_front_end.person() as person:
        person.connect()
        yield person


@pytest.mark.parametrize("tossed", TOSSED)
def test_a_cookie_in_front_of_the_right_one_locks_nobody_out(tossed: str, victim: Person) -> None:
    own = victim.headers["Cookie"]
    for cookies in (f"{tossed}; {own}", f"{own}; {tossed}"):
        victim.headers["Cookie"] = cookies
        assert victim.publish("/a", 1).messages()[-1]["successful"]
        assert victim.connect(advice={"timeout": 0}).messages()[-1]["successful"]


def test_a_cookie_in_a_line_of_its_own_locks_nobody_out(victim: Person) -> None:
    own = victim.headers["Cookie"]
    victim.headers = {"Cookie": TOSSED[1], "cookie": own}
    assert victim.publish("/a", 1).messages()[-1]["successful"]
    victim.headers = {"Cookie": TOSSED[4], "cookie": own}
    assert victim.publish("/a", 1).messages()[-1]["successful"]


@pytest.mark.parametrize("tossed", TOSSED)
def test_a_cookie_in_front_of_the_right_one_locks_no_socket_out(
    tossed: str, victim: Person, either_front_end: Target
) -> None:
    headers = {"Cookie": f"{tossed}; {victim.headers['Cookie']}"}
    with SocketWire(either_front_end.url, headers) as socket:
        assert "set-cookie" not in socket.upgrade.headers
        socket.say(victim.connect_message(advice={"timeout": 0}))
        assert socket.hear()[-1]["successful"]


def test_a_session_made_with_several_cookies_continues_with_them_in_any_order(
    either_front_end: Target,
) -> None:
    with either_front_end.person() as one, either_front_end.person() as other:
        tossed, own = one.headers["Cookie"], other.headers["Cookie"]
    cookies = f"{tossed}; {own}"
    with either_front_end.wire() as wire:
        wire.send(request(orjson.dumps([HANDSHAKE]), {"Cookie": cookies}))
        answer = wire.answer()
        assert "set-cookie" not in answer.headers
        publish = {"channel": "/a", "data": 1, "clientId": answer.messages()[0]["clientId"]}
        for sent in (cookies, f"{own}; {tossed}"):
            wire.send(request(orjson.dumps([publish]), {"Cookie": sent}))
            assert wire.answer().messages()[0]["successful"]


@pytest.mark.parametrize("tossed", TOSSED)
def test_a_handshake_uses_the_own_cookie_among_invented_ones(
    tossed: str, victim: Person, either_front_end: Target
) -> None:
    own = victim.headers["Cookie"]
    with either_front_end.wire() as wire:
        for cookies in (f"{tossed}; {own}", f"{own}; {tossed}"):
            wire.send(request(orjson.dumps([HANDSHAKE]), {"Cookie": cookies}))
            assert "set-cookie" not in wire.answer().headers


def test_only_a_bounded_number_of_cookies_in_a_request_is_tried(victim: Person) -> None:
    guesses = "; ".join(f"{NAME}=guess{number}" for number in range(300))
    victim.headers["Cookie"] = f"{guesses}; {victim.headers['Cookie']}"
    assert victim.publish("/a", 1).error() == UNKNOWN
