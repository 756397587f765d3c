"""`GET /streams/CHANNEL` under attack: it shows nothing to foreign pages, and leaves nothing."""

from collections.abc import Iterator
from contextlib import ExitStack

import orjson
import pytest

from tests.abuse.attacker import Answer, Wire, request
from tests.abuse.conftest import MakeTarget
from tests.abuse.target import Target
from tests.abuse.test_origins import (
    DENIED,
    FOREIGN,
    FOREIGN_WITHOUT_ORIGIN,
    SEVERAL_ORIGINS,
    ask,
    is_silent,
)

CHANNEL = "/kept/a"
KEEPS = {"channels": {"/kept/**": {"history": 100}}, "journal": False, "timeout": 60_000}
READERS = "holdfast_stream_readers"
WAYS = ["long-poll", "sse"]
MANY = 300


def asked(query: str = "", *, channel: str = CHANNEL, **headers: str) -> bytes:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return request(b"", named, method=f"GET /streams{channel}{query}")


def waiting(live: str, channel: str = CHANNEL) -> bytes:
    return asked(f"?offset=now&live={live}", channel=channel)


def publish(target: Target, data: object, channel: str = CHANNEL) -> None:
    body = orjson.dumps([{"channel": channel, "data": data}])
    assert ask(target, request(body, method="POST /publish")).status == 200


@pytest.fixture
def keeper(target_with: MakeTarget) -> Target:
    return target_with(**KEEPS)


@pytest.fixture
def crowd(keeper: Target) -> Iterator[list[Wire]]:
    with ExitStack() as stack:
        yield [stack.enter_context(keeper.wire()) for _ in range(MANY)]


@pytest.mark.parametrize(
    "headers",
    [*({"Origin": each} for each in FOREIGN), *SEVERAL_ORIGINS, *FOREIGN_WITHOUT_ORIGIN],
)
def test_a_foreign_page_reads_nothing(headers: dict[str, str], keeper: Target) -> None:
    publish(keeper, "secret")
    for query in ("", "?offset=-1&live=sse"):
        answer = ask(keeper, asked(query, **headers))
        assert (answer.status, answer.error()) == DENIED
        assert is_silent(answer)
        assert b"secret" not in answer.body


def test_a_name_that_is_not_the_servers_is_refused(keeper: Target) -> None:
    answer = ask(keeper, asked(Host="rebound.example"))
    assert (answer.status, answer.error()) == (421, "421:host_name:host_unknown")


@pytest.mark.parametrize("live", WAYS)
def test_readers_of_one_address_leave_room_for_others(target_with: MakeTarget, live: str) -> None:
    target = target_with(trusted_proxies=["127.0.0.1"], quota_readers=2, **KEEPS)
    said = [
        asked(f"?offset=now&live={live}", X_Forwarded_For=f"203.0.113.{last}")
        for last in (7, 7, 7, 8)
    ]
    with ExitStack() as stack:
        first, second, third, other = (stack.enter_context(target.wire()) for _ in said)
        first.send(said[0])
        second.send(said[1])
        target.until_metric(READERS, 2)
        third.send(said[2])
        refused = third.answer()
        assert (refused.status, refused.error()) == (503, "503:quota_readers:readers_exceeded")
        other.send(said[3])
        target.until_metric(READERS, 3)
    target.until_metric(READERS, 0)


@pytest.mark.parametrize("live", WAYS)
def test_readers_that_leave_at_once_leave_nothing(
    keeper: Target, crowd: list[Wire], live: str
) -> None:
    with keeper.bystander():
        for each in crowd:
            each.send(waiting(live))
            each.close()
    keeper.until_metric(READERS, 0)


def test_one_message_wakes_many_readers_without_a_pause_for_others(
    keeper: Target, crowd: list[Wire]
) -> None:
    for each in crowd:
        each.send(waiting("long-poll"))
    keeper.until_metric(READERS, MANY)
    with keeper.bystander():
        publish(keeper, [{} for _ in range(10_000)])
        answers = [each.answer() for each in crowd]
    assert {each.status for each in answers} == {200}
    assert len({each.body for each in answers}) == 1
    keeper.until_metric(READERS, 0)


def test_requests_on_one_connection_wait_one_after_the_other(keeper: Target) -> None:
    own = "/kept/one-connection"
    with keeper.wire() as wire:
        wire.send(waiting("long-poll", own) * 3 + asked(channel=own))
        for number in range(3):
            keeper.until_metric(READERS, 1)
            publish(keeper, number, own)
            assert _data(wire.answer()) == [number]
        assert _data(wire.answer()) == [0, 1, 2]


def test_a_reader_whose_body_never_comes_waits_no_longer_than_others(
    target_with: MakeTarget,
) -> None:
    target = target_with(**{**KEEPS, "timeout": 300})
    unfinished = waiting("long-poll").replace(b"Content-Length: 0", b"Content-Length: 9")
    with target.wire() as wire:
        wire.send(unfinished + b"123")
        assert wire.answer().status == 204
    target.until_metric(READERS, 0)


def test_readers_of_old_http_get_one_answer(keeper: Target) -> None:
    own = "/kept/old"
    publish(keeper, 1, own)
    for query in ("", "?offset=-1&live=long-poll"):
        with keeper.wire() as wire:
            wire.send(asked(query, channel=own).replace(b"HTTP/1.1", b"HTTP/1.0"))
            assert _data(wire.answer()) == [1]
            assert wire.is_closed()


def _data(answer: Answer) -> object:
    assert answer.status == 200
    return orjson.loads(answer.body)
