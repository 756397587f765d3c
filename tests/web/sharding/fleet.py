"""Workers as processes that can be killed and frozen, and clients that come again."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from secrets import token_bytes
from typing import IO, Any

import aiohttp
from redis import Redis

from holdfast.bayeux.wire.client_ids import ClientIds
from holdfast.store.local.home import Home
from tests.forking import Forked, start
from tests.serving import ROOT, START_LIMIT_S, environment, kill_orphans_in
from tests.web.people import Json, Person

# A name whose sessions are at the second of two workers, which have a key that is known.
_IDS = ClientIds(bytes(32), token_bytes)
AT_SECOND = next(
    each for each in ("joe", "ann", "bob", "eve", "kim") if _IDS.bucket_of(each) >= 500
)


class Fleet:
    """The processes, by the number of their shard."""

    def __init__(self, home: Path, count: int, redis: str = "", durability: str = "") -> None:
        self._store = (redis, durability)
        self.data = home / "data"
        self.count = count
        self._log: IO[bytes] = (home / "log").open("a+b")
        self._processes: dict[int, Forked] = {}
        self.urls: dict[int, str] = {}

    async def start(self, *shards: int) -> None:
        """Start these workers together, as a supervisor does."""
        for shard in shards:
            self._processes[shard] = self._spawn(shard)
        for shard in shards:
            output = self._processes[shard].stdout
            assert output is not None
            async with asyncio.timeout(START_LIMIT_S):
                line = await asyncio.to_thread(output.readline)
            self.urls[shard] = line.decode().strip()
            assert self.urls[shard], self.log()

    def _spawn(self, shard: int) -> Forked:
        words = [str(self.data), str(shard), str(self.count), *self._store]
        return start(
            *("tests.web.sharding.worker", *words),
            environment=environment(str(ROOT)),
            cwd=ROOT,
            errors=self._log,
        )

    def send(self, shard: int, number: signal.Signals) -> None:
        self._processes[shard].send_signal(number)

    async def end(self, shard: int, number: signal.Signals) -> None:
        """End a worker, and wait for it."""
        process = self._processes.pop(shard)
        process.send_signal(number)
        await asyncio.to_thread(process.wait)
        assert process.stdout is not None
        process.stdout.close()

    def kill_store(self, shard: int) -> None:
        """Kill the Valkey of a worker, which starts it again."""
        pid = self._place(shard) / "store" / "valkey.pid"
        os.kill(int(pid.read_text()), signal.SIGKILL)

    def wait_for_disks(self) -> None:
        """Wait until all that the stores of the workers have is on the disk."""
        for shard in range(self.count):
            with Redis.from_url(Home(self._place(shard)).url) as store:
                store.set("written", "last")
                [count, _] = store.execute_command("WAITAOF", 1, 0, 60_000)
                assert count == 1

    def _place(self, shard: int) -> Path:
        return self.data / "shards" / str(shard) if shard else self.data

    def log(self) -> str:
        self._log.seek(0)
        return self._log.read().decode("utf-8", "replace")

    def close(self) -> None:
        for process in self._processes.values():
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()
        kill_orphans_in(self.data)
        self._log.close()


@asynccontextmanager
async def fleet(
    home: Path, count: int = 2, redis: str = "", durability: str = ""
) -> AsyncIterator[Fleet]:
    """Workers that run, each with its own Valkey unless all are to use one server."""
    workers = Fleet(home, count, redis, durability)
    try:
        await workers.start(*range(count))
        yield workers
    finally:
        workers.close()


class Visitor:
    """A client of one shard that goes on at each of its processes."""

    def __init__(self, fleet: Fleet, shard: int, name: str | None = None) -> None:
        self.fleet = fleet
        self.shard = shard
        self.name = name
        self.heard: list[Any] = []
        self._ack = 0
        self._person: Person | None = None
        self._url = ""

    async def __aenter__(self) -> "Visitor":
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._person is not None:
            await self._person.http.close()

    async def person(self) -> Person:
        """The client at the current process."""
        url = self.fleet.urls[self.shard]
        if self._person is None or url != self._url:
            if self._person is not None:
                await self._person.http.close()
                self._person = None
            person = Person(url)
            try:
                reply = await person.handshake(self.name)
                assert reply["successful"], reply
            except BaseException:
                await person.http.close()
                raise
            self._person, self._url, self._ack = person, url, 0
        return self._person

    async def ask(self, channel: str, **fields: Any) -> Json:
        person = await self.person()
        replies = await person.ask(channel, **fields)
        self._take(replies)
        return next(each for each in replies if "successful" in each)

    def _take(self, replies: list[Json]) -> None:
        self.heard += [each["data"] for each in replies if "data" in each and "channel" in each]

    async def subscribe(self, channel: str) -> Json:
        return await self.ask("/meta/subscribe", subscription=channel)

    async def publish(self, channel: str, data: Any, **options: Any) -> bool:
        """Whether it was accepted; what is lost on the way was not."""
        ext = {"ext": {"delivery": options}} if options else {}
        with suppress(aiohttp.ClientError, AssertionError, ConnectionError):
            return bool((await self.ask(channel, data=data, **ext))["successful"])
        return False

    async def listen(self, timeout_ms: int = 200) -> None:
        try:
            person = await self.person()
            replies = await person.connect(timeout_ms, ack=self._ack)
        except (aiohttp.ClientError, AssertionError, ConnectionError):
            await asyncio.sleep(0.1)
            return
        self._take(replies)
        self._ack = replies[-1].get("ext", {}).get("ack", self._ack)

    async def hear(self, wanted: set[Any], limit_s: float = 60.0) -> None:
        """Listen until everything wanted has come."""
        with suppress(TimeoutError):
            async with asyncio.timeout(limit_s):
                while not wanted <= {*self.heard}:
                    await self.listen()
