"""`GET /events` and `POST /streams/tickets` under attack: others do not wait, nothing is left."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import orjson
import pytest

from tests.abuse.attacker import MIB, Wire, request
from tests.abuse.conftest import MakeTarget
from tests.abuse.target import Target
from tests.abuse.test_origins import DENIED, FOREIGN, SEVERAL_ORIGINS, ask, is_silent
from tests.abuse.test_stream_readers import READERS

KEEPS = {"channels": {"/kept/**": {"history": 10_000}}, "journal": False}
# Of one reader.
MOST_HISTORIES = 5_000


def events(query: str, **headers: str) -> bytes:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return request(b"", named, method=f"GET /events?{query}")


def publish(target: Target, *messages: tuple[str, object]) -> None:
    for first in range(0, len(messages), 100):
        some = messages[first : first + 100]
        body = orjson.dumps([{"channel": channel, "data": data} for channel, data in some])
        assert ask(target, request(body, method="POST /publish")).status == 200


@pytest.fixture
def keeper(target_with: MakeTarget) -> Target:
    return target_with(**KEEPS)


def test_a_pattern_of_very_many_histories_gets_what_is_new(keeper: Target) -> None:
    with keeper.wire() as wire, keeper.bystander():
        wire.send(events("channel=/kept/**"))
        keeper.until_metric(READERS, 1)
        # More at once than the server remembers, so messages may be missing.
        publish(keeper, *[(f"/kept/{number}", 1) for number in range(MOST_HISTORIES + 1)])
        publish(keeper, ("/kept/last", "the last"))
        heard = bytearray()
        while b"the last" not in heard:
            heard += wire.read(1)
            heard += wire.read(len(wire._read))
        count = heard.count(b'"data":1}')
        assert count == MOST_HISTORIES + 1 or b"event: lost" in heard
    refused = ask(keeper, events("channel=/kept/**&after=-1"))
    assert (refused.status, refused.error()) == (413, "413:channels:subscriptions_exceeded")
    keeper.until_metric(READERS, 0)


def test_a_history_that_runs_over_ends_the_stream_of_its_reader(target_with: MakeTarget) -> None:
    target = target_with(channels={"/kept/**": {"history": 1}}, journal=False)
    publish(target, ("/kept/a", 0))
    with target.wire() as wire, target.bystander():
        wire.send(request(b"", method="GET /streams/kept/a?offset=now&live=sse"))
        target.until_metric(READERS, 1)
        publish(target, *[("/kept/a", number) for number in range(1000)])
        publish(target, ("/kept/a", 0))
    target.until_metric(READERS, 0)


def test_deep_histories_are_read_without_a_pause_for_others(keeper: Target) -> None:
    deep = [(f"/kept/deep/{number % 8}", str(number) + "x" * 1000) for number in range(3000)]
    publish(keeper, *deep)
    with keeper.bystander(), ThreadPoolExecutor(8) as threads:
        assert {*threads.map(_read_deep, [keeper] * 8)} == {3000}
    keeper.until_metric(READERS, 0)


def _read_deep(keeper: Target) -> int:
    heard = bytearray()
    with keeper.wire() as wire:
        wire.send(events("channel=/kept/deep/*&after=-1"))
        while b'"2999x' not in heard[-10_000:] or not heard.endswith(b"\n\n\r\n"):
            heard += wire.read(1)
            heard += wire.read(len(wire._read))
    return heard.count(b'"data":')


def test_a_thousand_readers_that_leave_at_once_leave_nothing(keeper: Target) -> None:
    publish(keeper, *[("/kept/leaving", "x" * 1000)] * 100)
    with keeper.bystander():
        for number in range(1000):
            # Before the answer, within it, and after it.
            with keeper.wire() as wire:
                wire.send(events("channel=/kept/leaving&after=-1"))
                wire.read(number % 3 * 50_000)
    keeper.until_metric(READERS, 0)
    assert keeper.growth_mib() < 40


def test_a_thousand_readers_may_leave_together(target_with: MakeTarget) -> None:
    target = target_with(quota_readers=1000, **KEEPS)
    with ExitStack() as stack:
        for _ in range(1000):
            stack.enter_context(target.wire()).send(events("channel=/kept/*&channel=/kept/a/b"))
        target.until_metric(READERS, 1000)
        stack.enter_context(target.bystander())
        publish(target, ("/kept/a", "x" * 1000))
    target.until_metric(READERS, 0)
    assert target.growth_mib() < 40


@pytest.mark.parametrize("after", ["-1", "now"])
def test_a_reader_that_reads_nothing_gets_little(keeper: Target, after: str) -> None:
    publish(keeper, *[("/kept/mute", "x" * 10_000)] * 500)
    before = keeper.memory()
    with ExitStack() as stack:
        for _ in range(20):
            wire = stack.enter_context(Wire(keeper.url, receive_buffer=4096))
            wire.send(events(f"channel=/kept/mute&after={after}"))
        keeper.until_metric(READERS, 20)
        publish(keeper, *[("/kept/mute", "x" * 10_000)] * 1000)
        assert keeper.memory() - before < 40 * MIB
    keeper.until_metric(READERS, 0)


@pytest.mark.parametrize(
    ("last", "status"),
    [
        ("0-x_1", 200),
        ("0-x_" + "9" * 20, 200),
        ("0-x_" + "9" * 21, 400),
        ("9999-x_1", 200),
        ("~".join(f"{home}-x_1" for home in range(100)), 200),
        ("~".join(["0-x_1"] * 700), 400),
        ("d-x~0-x_1", 200),
        ("0-_1", 400),
        ("0-x_\u00b2", 400),
        ("0-x_1~", 400),
    ],
)
def test_a_forged_place_is_another_store_or_refused(keeper: Target, last: str, status: int) -> None:
    with keeper.wire() as wire:
        wire.send(events("channel=/kept/a", Last_Event_ID=last))
        line = wire.read_line()
        assert b" %d " % status in line
    keeper.until_metric(READERS, 0)


def test_an_old_client_and_one_that_wants_only_the_head_get_what_they_can_read(
    keeper: Target,
) -> None:
    with keeper.wire() as wire, keeper.wire() as head:
        wire.send(events("channel=/kept/old").replace(b"HTTP/1.1", b"HTTP/1.0"))
        keeper.until_metric(READERS, 1)
        publish(keeper, ("/kept/old", 1))
        while b'"data":1' not in wire._read:
            assert wire._receive()
        assert b"chunked" not in wire._read
        head.send(events("channel=/kept/old").replace(b"GET", b"HEAD") + events("channel=/none"))
        assert b"200" in head.read_line()
    keeper.until_metric(READERS, 0)


def test_a_second_request_on_the_connection_waits_for_the_end(keeper: Target) -> None:
    with keeper.wire() as wire:
        wire.send(events("channel=/kept/a") * 20)
        keeper.until_metric(READERS, 1)
        publish(keeper, ("/kept/a", 1))
        while b'"data":1' not in wire._read:
            assert wire._receive()
        assert keeper.metric(READERS) == 1
    keeper.until_metric(READERS, 0)


@pytest.mark.parametrize("headers", [*({"Origin": each} for each in FOREIGN), *SEVERAL_ORIGINS])
@pytest.mark.parametrize("path", ["GET /events", "POST /streams/tickets"])
def test_a_foreign_page_gets_neither_events_nor_tickets(
    keeper: Target, path: str, headers: dict[str, str]
) -> None:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    answer = ask(keeper, request(b"", named, method=f"{path}?channel=/kept/a"))
    assert (answer.status, answer.error()) == DENIED
    assert is_silent(answer)


def test_a_foreign_page_may_not_ask_for_tickets_by_a_preflight(keeper: Target) -> None:
    named = {"Origin": "http://evil.test", "Access-Control-Request-Method": "POST"}
    answer = ask(keeper, request(b"", named, method="OPTIONS /streams/tickets?channel=/kept/a"))
    assert not [name for name in answer.headers if name.startswith("access-control")]
