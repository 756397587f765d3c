"""Clients that send too slowly, or do not read."""

import gzip
import time
from contextlib import ExitStack, suppress

import orjson
import pytest

from tests.abuse.attacker import HANDSHAKE, MIB, Person, SocketPerson, many, request
from tests.abuse.conftest import FRONT_ENDS, IMPATIENT, PATIENT, MakeTarget
from tests.abuse.target import Target
from tests.slowness import times_slower

HELLO = orjson.dumps([HANDSHAKE])
FORM = "application/x-www-form-urlencoded"
CHUNKED = request(b"", {"Transfer-Encoding": "chunked"}).replace(b"Content-Length: 0\r\n", b"")
# The allowance is 0.5 s; tests wait much longer for the end, but not until all has trickled in.
LONG_S = 15.0


@pytest.fixture(params=FRONT_ENDS, ids=["fast lane", "ordinary front end"])
def impatient(target_with: MakeTarget, request: pytest.FixtureRequest) -> Target:
    """A server that does not wait long for requests."""
    return target_with(fast_lane=request.param, **IMPATIENT)


# A head that is complete or not, and what trickles in behind it.
TRICKLES: dict[str, tuple[bytes, bytes]] = {
    "one byte": (b"P", request(HELLO)[1:]),
    "half a head": (request(HELLO)[:30], request(HELLO)[30:]),
    "a body": (request(b"", {"Content-Length": "999"}), HELLO),
    "chunks": (CHUNKED, b"1\r\n \r\n" * 10),
    "a body that was asked for": (
        request(b"", {"Content-Length": "999", "Expect": "100-continue"}),
        HELLO,
    ),
    "gzip": (
        request(b"", {"Content-Length": "999", "Content-Encoding": "gzip"}),
        gzip.compress(HELLO),
    ),
    "a form": (
        request(b"message=", {"Content-Length": "999", "Content-Type": FORM}),
        HELLO,
    ),
}


def test_requests_that_trickle_in_are_given_up(impatient: Target) -> None:
    with impatient.bystander(), many(len(TRICKLES), impatient.url) as wires:
        for wire, (head, _) in zip(wires, TRICKLES.values(), strict=True):
            wire.send(head)
        begin = time.monotonic()
        rest = [iter(slow) for _, slow in TRICKLES.values()]
        trickling = dict(zip(wires, rest, strict=True))
        while trickling:
            assert time.monotonic() - begin < LONG_S * times_slower(), "still trickling"
            for wire, bytes_left in list(trickling.items()):
                if wire.has_heard(b" 408 ") or wire.send_until_refused(bytes([next(bytes_left)])):
                    del trickling[wire]
        for wire in wires:
            answer = wire.answer()
            if answer.status == 100:
                answer = wire.answer()
            assert (answer.status, answer.error()) == (408, "408::request_timeout")
            assert answer.headers["connection"] == "close"


def test_the_deadline_of_a_request_is_not_that_of_the_connection(impatient: Target) -> None:
    with impatient.person() as person:
        for _ in range(3):
            time.sleep(0.3)
            assert person.publish("/a", 1).status == 200


def test_a_held_connect_has_no_deadline_but_its_own(impatient: Target) -> None:
    with impatient.person() as person:
        person.hold()
        assert not person.is_closed(0.8)


@pytest.mark.parametrize("is_websocket", [False, True], ids=["long-polling", "websocket"])
def test_a_client_that_never_reads_costs_no_more_than_its_queue_and_is_cut_off(
    is_websocket: bool, either_front_end: Target
) -> None:
    target = either_front_end
    with target.bystander(), ExitStack() as stack:
        sloth: SocketPerson | Person
        if is_websocket:
            sloth = stack.enter_context(target.socket_person(receive_buffer=4096))
            sloth.settle_in("/flood")
        else:
            sloth = stack.enter_context(target.person(receive_buffer=4096))
            sloth.subscribe("/flood")
        publisher = stack.enter_context(target.person())
        for number in range(64):
            if number % 16 == 8:
                # Where publishing takes long, the server has closed the connection by now.
                with suppress(ConnectionError):
                    sloth.say(sloth.connect_message())
            assert publisher.publish("/flood", "x" * MIB).status == 200
        target.until_logged("the client does not read")
        # One queue full, another one on its way out, and what the allocator keeps.
        assert target.growth_mib() < 60
        # Nobody is left but the bystander.
        target.until_metric("holdfast_sessions", 1)
    assert target.growth_mib() < 60


@pytest.mark.parametrize("fast_lane", FRONT_ENDS, ids=["fast lane", "ordinary front end"])
def test_a_client_that_reads_late_gets_everything_in_order(
    fast_lane: bool, target_with: MakeTarget
) -> None:
    target = target_with(fast_lane=fast_lane, write_timeout=60_000, **PATIENT)
    with target.socket_person(receive_buffer=4096) as late, target.person() as publisher:
        late.settle_in("/flood")
        numbers = list(range(60))
        for number in numbers:
            publisher.publish("/flood", {"number": number, "ballast": "x" * 100_000})
        begin = time.monotonic()
        heard = [late.hear()[0]["data"]["number"] for _ in numbers]
        assert heard == numbers
        assert time.monotonic() - begin < LONG_S * times_slower()


def test_a_slow_reader_of_a_refused_request_is_cut_off_too(either_front_end: Target) -> None:
    """Bytes that are still to be written do not keep a closed connection open for ever."""
    with (
        either_front_end.person(receive_buffer=4096) as sleeper,
        either_front_end.person() as publisher,
    ):
        sleeper.subscribe("/flood")
        for _ in range(7):
            publisher.publish("/flood", "x" * MIB)
        before = either_front_end.metric("process_open_fds")
        sleeper.say(sleeper.connect_message())
        sleeper.send_until_refused(b"x" * 200_000)
        either_front_end.until_metric("process_open_fds", before - 1)
    assert either_front_end.growth_mib() < 60
