"""Both front ends of long-polling in this process: bytes in and out, without sockets or chance."""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

from aiohttp import web

from holdfast.bayeux.assembly import assemble
from holdfast.bayeux.for_extensions import ForExtensions
from holdfast.delivery.basics.node import Node
from holdfast.delivery.ports.journal_port import NO_JOURNAL
from holdfast.settings import Settings
from holdfast.web.admin.alerts import Alerts
from holdfast.web.answering.endpoint import Endpoint
from holdfast.web.answering.heads import Heads
from holdfast.web.application import make_application
from holdfast.web.front.connection_limit import ConnectionLimit
from holdfast.web.front.connection_parts import ConnectionParts
from holdfast.web.front.fast_lane import FastLane
from holdfast.web.front.listener import Listener
from holdfast.web.http.addresses import Address
from holdfast.web.http.cookies import BrowserCookie
from holdfast.web.http.hosts import Hosts
from holdfast.web.http.origins import Origins
from holdfast.web.http.peers import Peers
from holdfast.web.prometheus.metrics import Metrics
from holdfast.web.scheduling.intake import Intake, UnreadRequests
from holdfast.web.scheduling.request_scheduler import RequestScheduler
from holdfast.web.scheduling.write_coalescer import WriteCoalescer
from holdfast.web.site.static_files import read_files
from holdfast.web.websockets.websocket import WebSocketFrontEnd
from tests.serving import ROOT
from tests.unit.delivery.fake_keeper import FakeKeeper
from tests.web.requests import client_ids

if TYPE_CHECKING:
    from holdfast.web.http.host_cookie import HostCookie
    from holdfast.web.scheduling.request_sink import RequestSink

# Turns of the event loop that are enough for aiohttp to answer a request, with some to spare.
TURNS = 24
LONG_S = 3600.0
_PLACE = ("127.0.0.1", 40_000)

PAGES = read_files(ROOT / "static")
_STATUS_LINE = re.compile(rb"HTTP/\d\.\d (\d{3}) [^\r\n]*\r\n")


class FrontEnd(Enum):
    """The ways to handle requests: the fast lane, its connections without it, and aiohttp's own."""

    FAST_LANE = "fast lane"
    ORDINARY = "ordinary"
    PLAIN_AIOHTTP = "plain aiohttp"


class FakeTransport(asyncio.Transport):
    """Takes what a connection handler writes; the client reads it only when told to."""

    def __init__(self, protocol: asyncio.Protocol) -> None:
        super().__init__()
        self.written = bytearray()
        self.is_reading_paused = False
        self.is_aborted = False
        # Whether closing waits until the client has read, which it never does.
        self.is_stuck = False
        self._protocol = protocol
        self._is_full = False
        self._is_paused = self._is_closing = False
        self.is_lost = False
        self.socket: Any = None  # a real one, if it matters how much has arrived
        self.closing = asyncio.Event()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not self._is_closing:
            self.written += data
            if self._is_full and not self._is_paused:
                self._is_paused = True
                self._protocol.pause_writing()

    def stop_reading(self) -> None:
        """Let the client stop reading: what is written next stays here."""
        self._is_full = True

    def read_on(self) -> None:
        """Let the client read everything."""
        self._is_full = False
        if self._is_paused:
            self._is_paused = False
            self._protocol.resume_writing()

    def writelines(self, data: Any) -> None:
        self.write(b"".join(data))

    def is_closing(self) -> bool:
        return self._is_closing

    def close(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            self.closing.set()
            if not self.is_stuck:
                asyncio.get_running_loop().call_soon(self.lose)

    def abort(self) -> None:
        self.is_aborted = True
        self.lose()

    def lose(self) -> None:
        """End the connection, as either side may."""
        self._is_closing = True
        self.closing.set()
        if not self.is_lost:
            self.is_lost = True
            self._protocol.connection_lost(None)

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None:
        self.is_reading_paused = True

    def resume_reading(self) -> None:
        self.is_reading_paused = False

    def is_reading(self) -> bool:
        return not self.is_reading_paused

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return {"socket": self.socket, "peername": _PLACE, "sockname": _PLACE}.get(name, default)


@dataclass(frozen=True)
class Response:
    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass
class Transcript:
    """Everything that a client received on a connection."""

    responses: list[Response] = field(default_factory=list)
    is_closed: bool = False
    rest: bytes = b""

    def lines(self) -> list[str]:
        """The same, easy to compare."""
        told = [
            f"{each.status} {sorted(each.headers.items())} {each.body!r}" for each in self.responses
        ]
        return [*told, f"rest {self.rest!r}", "closed" if self.is_closed else "open"]


def read_responses(data: bytes, *, is_closed: bool) -> Transcript:
    """Split the bytes into responses; the rest is what is none."""
    found = Transcript(is_closed=is_closed)
    while match := _STATUS_LINE.match(data):
        head, end, behind = data[match.end() :].partition(b"\r\n\r\n")
        if match[1] == b"100":
            found.responses.append(Response(100, {}, b""))
            data = data[match.end() + 2 :]
            continue
        headers = _headers(head)
        length = int(headers.get("content-length", "0"))
        if not end or len(behind) < length:
            break
        found.responses.append(Response(int(match[1]), headers, behind[:length]))
        data = behind[length:]
    found.rest = data
    return found


def _headers(head: bytes) -> dict[str, str]:
    headers: dict[str, str] = {}
    for line in head.split(b"\r\n"):
        name, _, value = line.decode("latin-1").partition(": ")
        if name.lower() == "set-cookie" and "set-cookie" in headers:
            # Only this one may come twice.
            headers["set-cookie"] += f"\n{value}"
            continue
        assert name.lower() not in headers, f"{name} came twice"
        headers[name.lower()] = value
    return headers


class Client:
    """One connection to a rig."""

    def __init__(self, protocol: asyncio.Protocol) -> None:
        self.protocol = protocol
        self.transport = FakeTransport(protocol)
        self._unread: list[bytes] = []
        protocol.connection_made(self.transport)

    def send_now(self, data: bytes) -> None:
        """Send these bytes in one piece, unless the server does not read."""
        self._unread.append(data)
        self._deliver()

    async def send(self, *chunks: bytes) -> None:
        """Send each of the chunks in a turn of its own."""
        for chunk in chunks:
            self.send_now(chunk)
            await self.settle()

    async def settle(self, turns: int = TURNS) -> None:
        """Wait until nothing happens any more."""
        for _ in range(turns):
            await asyncio.sleep(0)
            self._deliver()

    def heard(self) -> Transcript:
        """Everything that the server has sent."""
        return read_responses(bytes(self.transport.written), is_closed=self.transport.is_closing())

    def _deliver(self) -> None:
        while self._unread and not self.transport.is_reading_paused and not self.is_over():
            self.protocol.data_received(self._unread.pop(0))

    def is_over(self) -> bool:
        return self.transport.is_closing()


class FakeTurn:
    """A turn that is over when a test says so. The real one is compiled and has no subclasses."""

    def __init__(self, is_over: Callable[[], bool], send: Callable[[], None]) -> None:
        self.is_spent = is_over
        self.send = send
        self.is_hurried = False
        self.is_behind = False
        self.connections = 0
        self.is_long_over = False

    def is_over(self) -> bool:
        return self.is_hurried or self.is_spent()

    def is_late(self) -> bool:
        return self.is_over()

    def is_overdue(self) -> bool:
        return self.is_long_over

    def begin_late(self) -> None:
        """Nothing is counted."""

    def begin_anew(self, turn_s: float = 0.0) -> None:
        """Nothing is counted."""


class FakeRight:
    """The right to speak, which a test takes away and gives back."""

    def __init__(self) -> None:
        self.is_silent = False
        self.silences, self.silent_s = 0, 0.0
        self._waiting: list[Callable[[], None]] = []

    def may_speak(self) -> bool:
        return not self.is_silent

    def when_speaking(self, then: Callable[[], None]) -> None:
        self._waiting.append(then)

    def speak_again(self) -> None:
        """End the silence."""
        self.is_silent = False
        waiting, self._waiting = self._waiting, []
        for then in waiting:
            then()


class Rig:
    """A server behind one of the front ends. Its ids are known, see `ids_of_session`."""

    def __init__(
        self,
        *,
        front_end: FrontEnd = FrontEnd.FAST_LANE,
        options: Settings | None = None,
        is_turn_over: Callable[[], bool] = lambda: False,
        requests: "Callable[[Rig], RequestSink] | None" = None,
        host_cookie: "HostCookie | None" = None,
    ) -> None:
        """With `requests`, front ends pass requests to what it returns, not to the scheduler.

        With `host_cookie`, they read which host clients name.
        """
        self._front_end = front_end
        self.keeper = FakeKeeper()
        self._now = 0.0
        self.turn = FakeTurn(is_turn_over, lambda: self.coalescer.send())
        is_fast = front_end is FrontEnd.FAST_LANE
        options = (options or Settings()).model_copy(update={"fast_lane": is_fast})
        self.unread = UnreadRequests()
        self.bayeux = assemble(
            options,
            node=Node("node", count(1_700_000_000_000_000_000).__next__, "test"),
            store=self.keeper,
            epoch="",
            journal=NO_JOURNAL,
            client_ids=client_ids(),
            random=lambda: 0.5,
            on_ready=self._on_ready,
            run_later=_never,
            is_turn_over=self.turn.is_over,
            unread_since=self.unread.since,
            role_of=lambda warrant: "",
        )
        # As extensions have it.
        self.server = ForExtensions(self.bayeux, self._clock)
        self.right = FakeRight()
        flush = self.bayeux.state.hub.store.flush
        self.coalescer = WriteCoalescer(self._on_ready, flush, self.right)
        intake = Intake(options.max_unfinished_bytes)
        scheduler = RequestScheduler(
            *(self.bayeux, self._clock, intake, self.turn, self.unread, self.right)
        )
        self.scheduler = scheduler
        self.endpoint = Endpoint(
            self.bayeux,
            self.bayeux.state.notices,
            self.bayeux.state.budgets,
            options,
            BrowserCookie(options),
            Origins(options.allow_origin),
            Hosts(["holdfast.test", "h"]),
            Peers(),
            self._clock,
            self.coalescer,
            self.turn,
            intake,
            scheduler,
            requests(self) if requests is not None else scheduler,
            self.right,
            host_cookie=host_cookie,
        )
        self.room = ConnectionLimit(10_000)
        self.sockets = WebSocketFrontEnd(self.endpoint)
        application = make_application(
            self.endpoint,
            self.sockets,
            Metrics(self.bayeux, {}, Alerts(), self.right),
            _is_ready,
            PAGES,
        )
        self._listener = Listener(
            application, Address("127.0.0.1", 0), self.room, shutdown_timeout_s=0.0
        )
        self._clients: list[Client] = []
        self._factory: Callable[[], asyncio.Protocol] | None = None

    async def __aenter__(self) -> "Rig":
        runner = self._listener._runner
        await runner.setup()
        manager = runner.server
        assert isinstance(manager, web.Server)
        lane = partial(FastLane, ConnectionParts(self.endpoint, Heads(), manager, self.room))
        self._factory = manager if self._front_end is FrontEnd.PLAIN_AIOHTTP else lane
        return self

    async def __aexit__(self, *_: object) -> None:
        for client in self._clients:
            client.transport.lose()
        await asyncio.sleep(0)
        await self._listener.close()

    def connect(self) -> Client:
        """Another connection."""
        assert self._factory is not None, "the rig is not set up"
        client = Client(self._factory())
        self._clients.append(client)
        return client

    def pass_time(self, seconds: float) -> None:
        """Advance the protocol's clock, but not the event loop's."""
        self._now += seconds
        self.bayeux.tick(self._clock())

    def _clock(self) -> float:
        # aiohttp's deadlines are the event loop's, so the shell's clock must be near it.
        return asyncio.get_running_loop().time() + self._now

    def _on_ready(self) -> None:
        loop = asyncio.get_running_loop()
        loop.call_soon(self._end_turn)

    def _end_turn(self) -> None:
        if self.right.is_silent:
            self.right.when_speaking(self._on_ready)
            return
        self.bayeux.flush(self._clock())
        self.coalescer.send()


async def _is_ready(_: bool) -> tuple[str | None, str]:
    return None, ""


def _never(work: Awaitable[object], done: Callable[[Any, float], None]) -> None:
    raise AssertionError("no extension here takes its time")


class _Faults(logging.Handler):
    """Remembers the faults that were logged."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.seen: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.seen.append(self.format(record))


@contextmanager
def without_faults() -> Iterator[None]:
    """Check that no fault is logged meanwhile."""
    faults, root = _Faults(), logging.getLogger()
    root.addHandler(faults)
    try:
        yield
    finally:
        root.removeHandler(faults)
    assert faults.seen == []


async def play(
    chunks: Sequence[bytes],
    *,
    front_end: FrontEnd,
    options: Settings | None = None,
) -> Transcript:
    """The answers to a client that sends these chunks, finally also to its held connects."""
    with without_faults():
        async with Rig(front_end=front_end, options=options) as rig:
            client = rig.connect()
            await client.send(*chunks)
            for _ in range(3):
                rig.pass_time(LONG_S)
                await client.settle()
            return client.heard()


def less(transcript: Transcript, *names: str) -> Transcript:
    """Without these headers."""
    responses = [
        replace(each, headers={k: v for k, v in each.headers.items() if k not in names})
        for each in transcript.responses
    ]
    return replace(transcript, responses=responses)
