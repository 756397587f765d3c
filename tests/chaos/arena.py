"""Publishers, receivers, a server and its faults, from the start to the result."""

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any, Protocol

from holdfast.store.format.keys import RedisKeys
from tests.chaos import kept
from tests.chaos.checker import Result, check_file
from tests.chaos.history import HistoryWriter, What
from tests.chaos.manners import Manner
from tests.chaos.nemesis import Nemesis, Step
from tests.chaos.operators import Operator
from tests.chaos.processes import SERVER, Processes
from tests.chaos.proxy import Proxy
from tests.chaos.publisher import Publisher
from tests.chaos.receiver import Receiver
from tests.chaos.requesters import Requester, Responder
from tests.chaos.talker import Talker

# Connects are held for a second, so that verdicts in them are answered soon.
SETTINGS: Mapping[str, Any] = {
    "timeout": 1000,
    "max_interval": 30_000,
    "max_sessions_per_browser": -1,
    "quota_addressed": 0,
    "quota_addressed_bytes": 0,
    "channels": {
        "/jobs/*": {"work_queue": True},
        "/news/long": {"history": 10_000, "durable": True},
        "/news/short": {"history": 20, "durable": True},
    },
}
HISTORY = "history.ndjson"
TIMEOUT_S = 3.0
START_S = 60.0
DRAIN_S = 60.0
_LOOK_S = 0.1
_PULSE_S = 0.02


class Member(Protocol):
    """Somebody who listens as long as the play lasts."""

    name: str
    is_subscribed: asyncio.Event

    @property
    def limit(self) -> int: ...

    @property
    def is_there(self) -> bool: ...

    async def run(self, stop: asyncio.Event) -> None: ...


class Arena:
    """Add receivers and publishers, `play`, and see the result."""

    def __init__(
        self, processes: Processes, proxy: Proxy, history: HistoryWriter, seed: int
    ) -> None:
        self.processes = processes
        self.proxy = proxy
        self.history = history
        self.random = Random(seed)
        self.nemesis = Nemesis(processes, proxy, history)
        self.receivers: list[Member] = []
        # Clients that are active until `play` ends.
        self._busy: list[Callable[[], Coroutine[Any, Any, None]]] = []
        self._done = asyncio.Event()
        self._active: list[asyncio.Task[None]] = []

    def operator(self) -> Operator:
        return Operator(self.processes, self.history, Random(self.random.random()))

    def add_operator(self, *keys: str) -> None:
        """Add an operator who holds these receivers back now and then."""
        self._busy.append(lambda: self.operator().run(keys, self._done))

    def talker(self, kind: type[Talker] = Talker) -> Talker:
        return kind(self.proxy.url, timeout_s=TIMEOUT_S)

    def add_receiver(
        self,
        name: str,
        manner: Manner,
        *,
        by: type[Talker] = Talker,
        is_named: bool = True,
        channels: Sequence[str] = ("/chaos/**",),
    ) -> Receiver:
        receiver = Receiver(
            name,
            self.talker(by),
            self.history,
            channels=channels,
            manner=manner,
            is_named=is_named,
        )
        self.receivers.append(receiver)
        return receiver

    def add_responder(self, name: str, channel: str, *, is_named: bool = True) -> None:
        responder = Responder(
            name, self.talker(), self.history, channels=(channel,), is_named=is_named
        )
        self.receivers.append(responder)

    def add_requester(self, name: str, *targets: str) -> None:
        random = Random(self.random.random())
        requester = Requester(name, self.talker(), self.history, random=random, targets=targets)
        self.receivers.append(requester)
        self._busy.append(lambda: requester.ask(self._done))

    def add_publisher(
        self,
        name: str,
        *,
        is_careful: bool = True,
        has_keys: bool = False,
        priorities: Sequence[int] = (5,),
        channels: Sequence[str] = ("/chaos/a", "/chaos/b"),
        **more: Any,
    ) -> Publisher:
        publisher = Publisher(
            name,
            self.talker(),
            self.history,
            Random(self.random.random()),
            channels=channels,
            is_careful=is_careful,
            has_keys=has_keys,
            priorities=priorities,
            **more,
        )
        self._busy.append(lambda: publisher.run(self._done))
        return publisher

    async def play(
        self,
        steps: Sequence[Step],
        *,
        at_least_s: float = 0.0,
        within_s: float = math.inf,
        drain_s: float = DRAIN_S,
        is_time: Callable[[], bool] = lambda: True,
        start_s: float = START_S,
    ) -> Result:
        """Run all clients while the faults happen, then wait until the rest is delivered.

        The first fault happens as soon as `is_time` says so, or after `start_s`.
        """
        async with self.crowd(drain_s):
            await self._wait_for(is_time, start_s)
            await asyncio.gather(
                self.nemesis.run(steps, within_s=within_s, after_each=self.scan),
                asyncio.sleep(at_least_s),
            )
        return await self.result()

    @asynccontextmanager
    async def crowd(self, drain_s: float = DRAIN_S) -> AsyncIterator[None]:
        """Run all publishers and receivers; at the end, wait until the rest is delivered."""
        over = asyncio.Event()
        async with asyncio.TaskGroup() as people:
            for receiver in self.receivers:
                people.create_task(receiver.run(over))
            for receiver in self.receivers:
                await receiver.is_subscribed.wait()
            self._active = [people.create_task(begin()) for begin in self._busy]
            people.create_task(self._feel_pulse(over))
            yield
            await self.quiet_down(drain_s)
            over.set()

    async def _feel_pulse(self, over: asyncio.Event) -> None:
        """Record the stalls of this machine: its servers stall, too."""
        loop = asyncio.get_running_loop()
        while not over.is_set():
            due = loop.time() + _PULSE_S
            await asyncio.sleep(_PULSE_S)
            late_s = loop.time() - due
            if late_s > _PULSE_S:
                self.history.note("arena", What.LATE, ns=int(late_s * 1e9))

    async def _wait_for(self, is_so: Callable[[], bool], within_s: float) -> None:
        for _ in range(int(within_s / _LOOK_S)):
            if is_so():
                return
            await asyncio.sleep(_LOOK_S)

    async def quiet_down(self, drain_s: float = DRAIN_S) -> None:
        """End the publishers, then wait until everything is delivered."""
        self._done.set()
        await asyncio.gather(*self._active)
        await self.drain(drain_s)

    async def drain(self, within_s: float) -> None:
        """Wait until no entry waits; if that never happens, the checker reports it."""
        deadline_s = asyncio.get_running_loop().time() + within_s
        while asyncio.get_running_loop().time() < deadline_s:
            if not await self.left() and all(each.is_there for each in self.receivers):
                return
            await asyncio.sleep(_LOOK_S)

    async def left(self) -> int:
        """The number of entries that are not settled."""
        found = await self.processes.counters()
        return found["waiting"] + found["in_flight"]

    async def result(self) -> Result:
        self.history.note("server", What.COUNTERS, **await self.processes.counters())
        await self.scan()
        return check_file(self.history.path)

    async def scan(self) -> None:
        """Record what the store has now, if it is the server's own."""
        socket = self.processes.store_socket
        if socket is not None:
            await self.scan_at(socket)

    async def scan_at(self, socket: Path, namespace: str = "holdfast") -> None:
        """Record what the store at this socket has now."""
        limits = {each.name: each.limit for each in self.receivers if each.limit}
        begun = self.history.begin("store", What.SCAN, limits=limits)
        begun.ok(**await kept.look(socket, RedisKeys(namespace)))


@asynccontextmanager
async def arena(
    home: Path,
    *,
    seed: int,
    program: Sequence[str] = SERVER,
    kind: type[Processes] = Processes,
    **settings: Any,
) -> AsyncIterator[Arena]:
    """A server of its own behind a proxy; the history is in `home`."""
    processes = kind(home, {**SETTINGS, **settings}, program)
    history = HistoryWriter(home / HISTORY)
    try:
        await processes.start()
        async with Proxy(processes.address) as proxy:
            yield Arena(processes, proxy, history, seed)
    finally:
        history.close()
        await processes.close()
