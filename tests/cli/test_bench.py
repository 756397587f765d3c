"""`holdfast bench`: its counts, and a short run against a real server."""

import asyncio
import json

import pytest

from holdfast.cli.measured import LatencyCounts, SubscriberCounts
from holdfast.client import Message
from tests.cli.conftest import Run


def test_quantiles_are_right_within_two_percent() -> None:
    latencies = LatencyCounts()
    assert latencies.quantile_ms(0.5) is None
    for us in range(1, 1001):
        latencies.add(us * 1000)
    assert latencies.quantile_ms(0.5) == pytest.approx(0.5, rel=0.03)
    assert latencies.quantile_ms(0.99) == pytest.approx(0.99, rel=0.03)
    assert latencies.quantile_ms(1.0) == pytest.approx(1.0, rel=0.03)


def test_repeated_messages_are_counted_apart_from_received_ones() -> None:
    arrived = asyncio.Event()
    subscriber = SubscriberCounts(LatencyCounts(), arrived)
    for number in (0, 1, 3, 3, 2, 4):
        subscriber(Message({"channel": "/a", "data": {"n": number, "at": 0}}))
    assert (subscriber.received, subscriber.repeated) == (4, 2)
    assert arrived.is_set()


@pytest.mark.parametrize("transport", ["websocket", "long-polling"])
def test_a_short_load_arrives(run: Run, transport: str) -> None:
    words = ("--clients", 3, "--channels", 2, "--rate", 100, "--seconds", 0.1)
    done = run("bench", *words, "--transport", transport, "--json")
    told = json.loads(done.stdout)
    assert done.exit_code == 0
    # Two subscribers of the first channel, one of the second.
    assert told["published"] < told["delivered"] <= told["published"] * 3 / 2 + 1
    assert (told["lost"], told["repeated"], told["refused"]) == (0, 0, 0)
    assert 0 < told["latency_p50_ms"] <= told["latency_max_ms"]
    assert told["server_cpu_s"] >= 0


def test_lost_messages_make_the_bench_fail(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.cli.bench._TIMEOUT_S", 0.01)
    monkeypatch.setattr(SubscriberCounts, "__call__", lambda self, message: None)
    done = run("bench", "--clients", 1, "--seconds", 0.1)
    assert done.exit_code == 1
    assert "lost" in done.stdout


def test_refused_messages_make_the_bench_fail(run: Run) -> None:
    words = ("--clients", 1, "--rate", 10, "--seconds", 0.1, "--size", 3_000_000)
    done = run("bench", *words, "--json")
    assert done.exit_code == 1
    assert json.loads(done.stdout)["refused"] > 0
    assert "message_too_large" in done.stderr


def test_what_keeps_all_clients_from_logging_in_is_said_once(run: Run) -> None:
    done = run("bench", "--clients", 3, "--seconds", 1, "--token-file", "/no/token")
    assert done.exit_code == 2
    assert done.stderr.count("No such file") == 1
