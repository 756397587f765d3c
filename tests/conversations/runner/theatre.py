"""Where stories are played: those for one server one after the other, different servers at once.

A test that waits for time to pass would otherwise keep all the others waiting.
"""

import asyncio
import json
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Iterator, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import groupby, islice
from threading import Thread
from time import monotonic
from typing import Any

import uvloop

from tests.conversations.runner.pulse import MEMORY_S, Pulse, pulse_of
from tests.conversations.runner.replay import TOLD, replay
from tests.conversations.runner.stories import Story
from tests.serving import ROOT, Settings, environment

STAGES = 10
PLAYS_OF_AN_EVENING = 48
ATTEMPTS = 8
# Stories bear stalls of this length, and of this part of the time that they take.
BEARABLE_S = 0.15
BEARABLE = 0.1


@dataclass(frozen=True, slots=True)
class Play:
    """One story over one transport, at the server's ordinary front end or at the fast lane."""

    story: Story
    transport: str
    fast_lane: bool = True

    def __str__(self) -> str:
        front_end = "" if self.fast_lane else ", ordinary front end"
        return f"{self.story.chapter.stem}: {self.story.title} ({self.transport}{front_end})"

    @property
    def settings(self) -> Settings:
        settings = {"transports": TOLD["transports"], **self.story.settings}
        return settings if self.fast_lane else {**settings, "fast_lane": False}

    @property
    def programme(self) -> str:
        """Plays with the same programme can have the same server."""
        ending = str(self) if self.story.ends_the_server else ""
        return json.dumps([self.settings, ending], sort_keys=True)


class ServerProcess:
    """The process with the servers."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._turn = asyncio.Lock()

    async def open(self, settings: Settings) -> "Server":
        """A new server."""
        answer = await self.tell({"open": settings})
        if not answer.startswith("http"):
            raise RuntimeError(f"no server starts with {settings}: {answer}")
        return Server(answer, self)

    async def tell(self, command: dict[str, Any]) -> str:
        """One command, one answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        async with self._turn:
            self._process.stdin.write(json.dumps(command).encode() + b"\n")
            return (await self._process.stdout.readline()).decode().strip()


@dataclass(frozen=True, slots=True)
class Server:
    """One server of the process."""

    url: str
    process: ServerProcess

    async def stop(self) -> None:
        await self.process.tell({"stop": self.url})


@asynccontextmanager
async def open_process(module: str = "served") -> AsyncIterator[ServerProcess]:
    module = f"{__package__}.{module}"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", module, cwd=ROOT, env=environment(), stdin=PIPE, stdout=PIPE
    )
    try:
        yield ServerProcess(process)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()


class Theatre:
    """Plays everything in a thread of its own; each play has a result to wait for."""

    def __init__(self, plays: Sequence[Play], module: str = "served") -> None:
        """The module is the process with the servers."""
        self._module = module
        self._results: dict[str, Future[str | None]] = {str(play): Future() for play in plays}
        self._plays = sorted(plays, key=lambda play: play.programme)
        self._thread = Thread(target=self._run)

    def __enter__(self) -> "Theatre":
        self._thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        for result in self._results.values():
            result.cancel()
        self._thread.join()

    def watch(self, play: Play) -> str | None:
        """The error of the play, if it failed."""
        return self._results[str(play)].result()

    def _run(self) -> None:
        try:
            uvloop.run(self._open())
        except Exception as error:
            for result in self._results.values():
                if not result.done():
                    result.set_exception(error)

    async def _open(self) -> None:
        stages = asyncio.Semaphore(STAGES)
        async with open_process(self._module) as process:
            onlooker = await process.open({})
            async with pulse_of(onlooker.url) as pulse, asyncio.TaskGroup() as tasks:
                for plays in self._evenings():
                    tasks.create_task(self._evening(plays, process, pulse, stages))

    def _evenings(self) -> Iterator[list[Play]]:
        """Plays that share a server, in bearable portions."""
        for _, group in groupby(self._plays, lambda play: play.programme):
            while plays := list(islice(group, PLAYS_OF_AN_EVENING)):
                yield plays

    async def _evening(
        self, plays: list[Play], process: ServerProcess, pulse: Pulse, stages: asyncio.Semaphore
    ) -> None:
        async with stages:
            server: Server | None = None
            for play in plays:
                result = self._results[str(play)]
                if not result.set_running_or_notify_cancel():
                    continue
                try:
                    server = server or await process.open(play.settings)
                    complaint, server = await performance(play, server, pulse)
                    result.set_result(complaint)
                except Exception as error:
                    result.set_exception(error)
            if server is not None:
                # It would go on looking after its clocks as long as others play.
                await server.stop()


async def performance(play: Play, server: Server, pulse: Pulse) -> tuple[str | None, Server | None]:
    """The error of the play, if it failed, and its server, if that can be used again.

    A play that failed while the machine stood still, or again and again for a moment, is played
    again, by a server of its own.
    """
    complaint, took_s, lost_s = "", 0.0, 0.0
    for attempt in range(ATTEMPTS):
        if attempt:
            await server.stop()
            server = await server.process.open(play.settings)
        began, lost_before = monotonic(), pulse.lost_s
        try:
            await replay(play.story, play.transport, server)
        except AssertionError as error:
            complaint = str(error)
        else:
            return None, server
        took_s = monotonic() - began
        await asyncio.sleep(MEMORY_S)
        lost_s = pulse.lost_s - lost_before
        if lost_s < max(BEARABLE_S, BEARABLE * took_s):
            break
    end = f"played {attempt + 1} times, at last the machine lost {lost_s:.2f} s of {took_s:.2f} s"
    return f"{complaint}\n{end}", None
