"""Spans tell a collector of OpenTelemetry what happens to messages with a `traceparent`."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import pytest
from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from holdfast.extensions import tracing
from holdfast.logs import JsonLines
from tests.web.people import Json, Person, ServerAndClients
from tests.web.test_publish_requests import open_server
from tests.web.test_webhooks import SECRET, Hooked
from tests.web.webhook_receiver import WebhookReceiver

pytestmark = pytest.mark.untraced

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
TRACED = f"00-{TRACE}-{PARENT}-01"


@dataclass(frozen=True)
class Span:
    """A span as the collector gets it."""

    name: str
    trace: str
    id: str
    parent: str
    about: dict[str, str]
    is_error: bool
    links: list[str]
    ms: float


@dataclass
class Collector:
    """Takes spans as a collector does: by OTLP over HTTP."""

    spans: list[Span] = field(default_factory=list)
    services: set[str] = field(default_factory=set)

    async def __aenter__(self) -> Self:
        application = web.Application()
        application.router.add_post("/v1/traces", self._take)
        self._runner = web.AppRunner(application)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _take(self, request: web.Request) -> web.Response:
        said = ExportTraceServiceRequest.FromString(await request.read())
        for of_resource in said.resource_spans:
            about = {each.key: each.value.string_value for each in of_resource.resource.attributes}
            self.services.add(about["service.name"])
            for of_scope in of_resource.scope_spans:
                self.spans += map(_span, of_scope.spans)
        return web.Response(body=b"", content_type="application/x-protobuf")

    def named(self, name: str, **about: str) -> list[Span]:
        wanted = {f"holdfast.{key}": value for key, value in about.items()}
        found = [each for each in self.spans if each.name == name]
        return [each for each in found if wanted.items() <= each.about.items()]


def _span(sent: Any) -> Span:
    return Span(
        sent.name,
        sent.trace_id.hex(),
        sent.span_id.hex(),
        sent.parent_span_id.hex(),
        {each.key: each.value.string_value for each in sent.attributes},
        sent.status.code == 2,
        [each.span_id.hex() for each in sent.links],
        (sent.end_time_unix_nano - sent.start_time_unix_nano) / 1e6,
    )


@pytest.fixture
async def collector() -> AsyncIterator[Collector]:
    async with Collector() as collector:
        yield collector


@asynccontextmanager
async def traced(
    home: Path, collector: Collector, **settings: Any
) -> AsyncIterator[ServerAndClients]:
    async with open_server(home, otlp=collector.url, **settings) as made:
        yield made


async def bob_at(home: ServerAndClients, *channels: str) -> Person:
    bob = home.person()
    bob.wants = {"request": True}
    await bob.handshake("bob/1")
    for channel in channels:
        await bob.reply("/meta/subscribe", subscription=channel)
    await bob.connect()
    return bob


async def publish(person: Person, data: Any, traceparent: str = TRACED, **more: Any) -> None:
    body = [{"channel": "/orders", "data": data, "ext": {"traceparent": traceparent}, **more}]
    async with person.http.post("/publish", json=body) as response:
        [result] = await response.json()
        assert result["successful"], result


async def test_a_delivery_is_a_trace_from_the_publisher_to_the_receiver(
    tmp_path: Path, collector: Collector
) -> None:
    async with traced(tmp_path, collector) as home:
        bob = await bob_at(home, "/orders")
        await publish(home.person(), 1)
        [event, _] = await bob.connect()
        await asyncio.sleep(0.05)
        await bob.connect(ack=1, delivery={"verdicts": [ok(event)]})
        said = event["ext"]["traceparent"]
    [published], [waited] = collector.named("publish"), collector.named("wait")
    [delivered] = collector.named("deliver", outcome="acked", receiver="bob/1")
    assert published.parent == PARENT
    assert said == f"00-{TRACE}-{published.id}-01"
    assert [waited.parent, delivered.parent] == [published.id, published.id]
    assert {each.trace for each in collector.spans} == {TRACE}
    assert delivered.ms > 40
    assert not any(each.is_error for each in collector.spans)
    assert delivered.about["messaging.destination.name"] == "/orders"
    assert collector.services == {"holdfast"}


async def test_the_header_of_a_request_holds_for_its_messages(
    tmp_path: Path, collector: Collector
) -> None:
    other = TRACED.replace(PARENT, "b" * 16)
    async with traced(tmp_path, collector) as home:
        body: list[Json] = [{"channel": "/a", "data": number} for number in range(3)]
        body[1]["ext"] = {"traceparent": other}
        body[2]["ext"] = None
        for said in (TRACED, "nonsense"):
            headers = {"traceparent": said}
            async with home.person().http.post("/publish", json=body, headers=headers) as response:
                assert len(await response.json()) == 3
    parents = sorted(each.parent for each in collector.named("publish"))
    assert parents == sorted([PARENT, "b" * 16, "b" * 16])


def ok(event: Json) -> Json:
    return {"seq": event["ext"]["delivery"]["seq"], "state": "OK"}


def refusal(event: Json, code: str = "user.clientCode") -> Json:
    return {"seq": event["ext"]["delivery"]["seq"], "errorCode": code, "message": "no"}


async def test_a_refusal_a_letter_and_a_replay_are_in_the_trace(
    tmp_path: Path, collector: Collector
) -> None:
    async with traced(tmp_path, collector) as home:
        bob = await bob_at(home, "/orders")
        shop = Hooked(home, home.person(), WebhookReceiver())
        await publish(shop.person, "bad")
        [event, _] = await bob.connect()
        await bob.connect(delivery={"verdicts": [refusal(event)]})
        [letter] = await shop.letters(1)
        wanted = {"code": "user.clientCode"}
        await shop.administrate("POST", "/replays", filter=wanted, options={}, dry_run=False)
        while not (found := [each for each in await bob.connect(1000) if "data" in each]):
            pass
        await bob.connect(delivery={"verdicts": [ok(found[0])]})
    [published] = collector.named("publish")
    [refused] = collector.named("deliver", outcome="refused")
    [dead], [replayed] = collector.named("dead letter"), collector.named("replay")
    [delivered] = collector.named("deliver", outcome="acked")
    assert refused.about["error.type"] == "user.clientCode"
    assert refused.is_error
    assert dead.about["holdfast.letter"] == letter["id"]
    assert replayed.links == [dead.id]
    below = [refused, dead, replayed, delivered]
    assert [each.parent for each in below] == [published.id] * len(below)


async def test_attempts_follow_each_other(tmp_path: Path, collector: Collector) -> None:
    async with WebhookReceiver() as receiver:
        hook: Json = {"url": receiver.url, "secret": SECRET, "channels": ["/orders"]}
        hook |= {"allow_private": True, "delays": [20, 20]}
        receiver.plan += [500, 503]
        async with traced(tmp_path, collector, webhooks={"shop": hook}) as home:
            await publish(home.person(), 1)
            calls = await receiver.called(3)
            await asyncio.sleep(0.2)
    [published] = collector.named("publish")
    assert {each.headers["traceparent"] for each in calls} == {f"00-{TRACE}-{published.id}-01"}
    attempts = collector.named("deliver", receiver="webhook/shop/1")
    outcomes = ["refused", "refused", "acked"]
    assert [each.about["holdfast.outcome"] for each in attempts] == outcomes
    assert [each.is_error for each in attempts] == [True, True, False]
    assert len(collector.named("wait")) == 3


async def test_a_reply_is_linked_to_its_request(tmp_path: Path, collector: Collector) -> None:
    async with traced(tmp_path, collector) as home:
        bob = await bob_at(home, "/orders")
        ann = home.person()
        ann.wants = {"request": True}
        await ann.handshake("ann/1")
        for number, of_reply in enumerate((None, TRACED.replace(PARENT, "a" * 16))):
            asked = {"replyTo": f"{ann.ret}/400000{number}", "timeout": 60_000}
            await ann.reply("/orders", data="?", ext={**asked, "traceparent": TRACED})
            event = next(each for each in await bob.connect(1000) if "data" in each)
            ext = {} if of_reply is None else {"traceparent": of_reply}
            answered = {"channel": event["ext"]["replyTo"], "data": "!", "ext": ext}
            reply = await bob.reply(answered.pop("channel"), **answered)
            assert reply["successful"], reply
            await bob.connect(delivery={"verdicts": [ok(event)]})
    first, first_reply, second, second_reply = collector.named("publish")
    assert first_reply.parent == first.id
    assert second_reply.parent == "a" * 16
    assert second_reply.links == [second.id]


async def test_a_traced_message_is_read_once(
    tmp_path: Path, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[bytes] = []

    def loads(wire: bytes) -> Any:
        read.append(wire)
        return json.loads(wire)

    monkeypatch.setattr(tracing, "orjson", SimpleNamespace(loads=loads))
    async with traced(tmp_path, collector) as home:
        bob = await bob_at(home, "/orders")
        await publish(home.person(), 1)
        [event, _] = await bob.connect()
        await bob.connect(delivery={"verdicts": [ok(event)]})
    assert len(collector.named("deliver", outcome="acked")) == len(read) == 1


@pytest.mark.parametrize(
    "said",
    [
        *("", "nonsense", "00-" + "0" * 32 + f"-{PARENT}-01", f"00-{TRACE}-{PARENT}-00"),
        *(7, None, [], {"a": 1}, "x" * 10_000, "\u0000", f"ff-{TRACE}-{PARENT}-01"),
    ],
)
async def test_what_is_no_sampled_context_makes_no_span(
    tmp_path: Path, collector: Collector, said: Any
) -> None:
    async with traced(tmp_path, collector) as home:
        bob = await bob_at(home, "/orders")
        await publish(home.person(), {"traceparent": TRACED}, said)
        [event, _] = await bob.connect()
        assert event["ext"].get("traceparent") == said
    assert collector.spans == []


async def test_a_collector_that_is_away_holds_nobody(tmp_path: Path) -> None:
    async with open_server(tmp_path, otlp="http://127.0.0.1:9") as home:
        bob = await bob_at(home, "/orders")
        for number in range(50):
            await publish(home.person(), number)
        heard: list[Any] = []
        while len(heard) < 50:
            heard += [each["data"] for each in await bob.connect() if "data" in each]


@pytest.fixture
def lines() -> Iterator[list[Json]]:
    """What the log says in JSON."""
    found: list[Json] = []

    class Lines(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(json.loads(JsonLines().format(record)))

    handler = Lines()
    logging.getLogger("holdfast").addHandler(handler)
    yield found
    logging.getLogger("holdfast").removeHandler(handler)


async def test_lines_of_the_log_name_the_trace(
    tmp_path: Path, collector: Collector, lines: list[Json]
) -> None:
    logging.getLogger("holdfast").setLevel(logging.INFO)
    async with traced(tmp_path, collector) as home:
        bob = await bob_at(home, "/orders")
        await publish(home.person(), 1)
        [event, _] = await bob.connect()
        await bob.connect(delivery={"verdicts": [refusal(event)]})
    [refused] = collector.named("deliver")
    assert [each["trace_id"] for each in lines if each.get("span_id") == refused.id] == [TRACE]
