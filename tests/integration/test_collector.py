"""The collector of OpenTelemetry gets the spans of servers, and writes them to a file."""

import http.client
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest

from bench.processes import reserved_port
from tests.integration.talker import Talker
from tests.web.programs import program

pytestmark = pytest.mark.slow

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
LIMIT_S = 60.0
CONFIGURATION = """
receivers:
  otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:{port}"}}}}}}
exporters:
  file: {{path: {file}, append: true, flush_interval: 100ms}}
service:
  pipelines:
    traces: {{receivers: [otlp], exporters: [file]}}
"""
Json = dict[str, Any]


class Collector:
    """A collector that can be killed, and started again at the same port."""

    def __init__(self, program_of_collector: str, home: Path, port: int) -> None:
        self._program, self._home, self._port = program_of_collector, home, port
        self._spans = home / "spans.json"
        self.url = f"http://127.0.0.1:{port}"
        text = CONFIGURATION.format(port=port, file=self._spans)
        (home / "otelcol.yaml").write_text(text)

    def start(self) -> None:
        words = [self._program, "--config", str(self._home / "otelcol.yaml")]
        with (self._home / "collector.log").open("ab") as log:
            self._process = subprocess.Popen(words, stdout=log, stderr=log)
        until(self._is_ready)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def _is_ready(self) -> bool:
        assert self._process.poll() is None, (self._home / "collector.log").read_text()
        asking = http.client.HTTPConnection("127.0.0.1", self._port, timeout=LIMIT_S)
        try:
            asking.request("POST", "/v1/traces", b"{}", {"Content-Type": "application/json"})
            return asking.getresponse().status == 200
        except ConnectionRefusedError:
            return False
        finally:
            asking.close()

    def spans(self, name: str) -> list[Json]:
        """All spans of this name, each with the resource that it is of in `server`."""
        whole = self._spans.read_bytes().rpartition(b"\n")[0]
        return [
            {**span, "about": texts(span), "server": texts(of_server["resource"])}
            for line in whole.splitlines()
            for of_server in orjson.loads(line)["resourceSpans"]
            for scope in of_server["scopeSpans"]
            for span in scope["spans"]
            if span["name"] == name
        ]


def texts(part: Json) -> dict[str, str]:
    return {each["key"]: each["value"]["stringValue"] for each in part["attributes"]}


def until(is_so: Callable[[], bool]) -> None:
    ends_at = time.monotonic() + LIMIT_S
    while not is_so():
        assert time.monotonic() < ends_at
        time.sleep(0.1)


@pytest.fixture
def collector(tmp_path: Path) -> Iterator[Collector]:
    found = shutil.which("otelcol", path=Path(sys.executable).parent)
    if found is None:
        pytest.skip("the collector is not installed: make setup-collector")
    with reserved_port() as port:
        made = Collector(found, tmp_path, port)
        made.start()
        try:
            yield made
        finally:
            made.kill()


@contextmanager
def server(home: Path, collector: Collector, *words: str) -> Iterator[str]:
    """The URL of a server that sends its spans to the collector."""
    with program(*("--otlp", collector.url, "--port", "0"), *words, home=home) as running:
        yield running.place().partition("/cometd")[0]
        assert running.stop()[0] == 0


def publish(url: str, data: object) -> None:
    """Publish as a program does that is traced itself."""
    place = url.removeprefix("http://").rstrip("/")
    asking = http.client.HTTPConnection(place, timeout=LIMIT_S)
    headers = {"Content-Type": "application/json", "traceparent": f"00-{TRACE}-{PARENT}-01"}
    asking.request(
        "POST", "/publish", orjson.dumps([{"channel": "/orders", "data": data}]), headers
    )
    [result] = orjson.loads(asking.getresponse().read())
    asking.close()
    assert result["successful"], result


def receiver(url: str, number: int) -> Talker:
    talker = Talker(url.rstrip("/"))
    delivery = {"session": f"receiver-{number}/1"}
    reply = talker.handshake(ext={"ack": True, "delivery": delivery})
    assert reply["successful"], reply
    assert talker.send("/meta/subscribe", subscription="/orders")[0]["successful"]
    return talker


def settle(talker: Talker, verdict: Json) -> None:
    """Wait for a message, and give the verdict."""
    found: list[Json] = []
    while not found:
        replies = talker.connect(advice={"timeout": 1000})
        found = [each for each in replies if each["channel"] == "/orders"]
    verdicts = [{"seq": found[0]["ext"]["delivery"]["seq"], **verdict}]
    talker.connect(advice={"timeout": 0}, ext={"delivery": {"verdicts": verdicts}})


def test_the_spans_of_all_workers_make_one_trace(tmp_path: Path, collector: Collector) -> None:
    refusal = {"errorCode": "user.clientCode", "message": "no"}
    with server(tmp_path, collector, "--supervisor", "--workers", "2") as url:
        receivers = [receiver(url, number) for number in range(8)]
        publish(url, "traced")
        for number, each in enumerate(receivers):
            settle(each, {"state": "OK"} if number else refusal)
    # The collector writes them a moment after it has them.
    until(lambda: len(collector.spans("deliver")) >= 8 and len(collector.spans("wait")) >= 8)
    until(lambda: collector.spans("publish") != [] and collector.spans("dead letter") != [])
    [published] = collector.spans("publish")
    assert (published["traceId"], published["parentSpanId"]) == (TRACE, PARENT)
    delivered, waited = collector.spans("deliver"), collector.spans("wait")
    [letter] = collector.spans("dead letter")
    names = {f"receiver-{number}/1" for number in range(8)}
    assert {each["about"]["holdfast.receiver"] for each in delivered} == names
    assert len(delivered) == len(waited) == 8
    below = [*delivered, *waited, letter]
    assert {each["traceId"] for each in below} == {TRACE}
    assert {each["parentSpanId"] for each in below} == {published["spanId"]}
    assert letter["about"]["error.type"] == "user.clientCode"
    # In the collector's form, 2 is an error.
    assert letter["status"]["code"] == 2
    workers = {each["server"]["service.instance.id"] for each in delivered}
    assert workers == {"holdfast", "holdfast/1"}
    assert {each["server"]["service.name"] for each in below} == {"holdfast"}


def test_spans_reach_a_collector_that_was_killed(tmp_path: Path, collector: Collector) -> None:
    with server(tmp_path, collector) as url:
        bob = receiver(url, 1)
        publish(url, "before")
        settle(bob, {"state": "OK"})
        until(lambda: len(collector.spans("deliver")) == 1)
        collector.kill()
        publish(url, "while it is away")
        settle(bob, {"state": "OK"})
        collector.start()
        publish(url, "after")
        settle(bob, {"state": "OK"})
        until(lambda: len(collector.spans("deliver")) >= 2)
    until(lambda: len(collector.spans("publish")) >= 2)
