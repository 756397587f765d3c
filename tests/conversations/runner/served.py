"""A process with many servers in it, because starting a process for each takes a second.

Reads commands from standard input, one JSON object a line: `{"open": settings}` is answered with
the URL of a server that has them, or with the reason why there is none; `{"stop": url}` when that
server has stopped, or had before. When the input ends all servers stop.
"""

import asyncio
import json
import sys
import tempfile
from collections.abc import Callable
from contextlib import AsyncExitStack
from itertools import count
from pathlib import Path
from typing import Any

import uvloop
from pydantic import ValidationError

from holdfast.compose import CannotStart, serving
from holdfast.delivery.basics.times import STEPS_S, Histogram
from holdfast.settings import Settings
from holdfast.web import ticker
from tests.conversations.runner.replay import OPERATOR


class UnhurriedTurn:
    """A turn of the event loop that is never over early, whose burst is never split.

    All servers have one thread here, so each would count the work of the others as its own.
    """

    def __init__(self, end_turn_soon: Callable[[], None], send: Callable[[], None]) -> None:
        self._end_turn_soon = end_turn_soon
        self.send = send
        self._has_begun = False
        self.is_hurried = False
        self.is_behind = False
        self.connections = 0
        self.times = Histogram(STEPS_S)

    def is_spent(self) -> bool:
        if not self._has_begun:
            self._has_begun = True
            self._end_turn_soon()
        return False

    is_over = is_late = is_spent

    def is_overdue(self) -> bool:
        return False

    def begin_late(self) -> None:
        self.is_spent()

    def begin_anew(self, turn_s: float = 0.0) -> None:
        self._has_begun = False

    def end(self) -> None:
        self.begin_anew()

    def forget(self) -> None:
        """Take no time: none is counted."""


class Servers:
    """The servers by their URLs."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._servers: dict[str, AsyncExitStack] = {}
        self._numbers = count()

    async def obey(self, command: dict[str, Any]) -> str:
        if "stop" in command:
            server = self._servers.pop(command["stop"], None)
            if server is not None:
                await server.aclose()
            return "stopped"
        new = AsyncExitStack()
        own = {"port": 0, "data": self._directory(), "docs_url": ""}
        try:
            url = await self._serve(Settings(**{**own, **command["open"]}), new)
        except (CannotStart, ValidationError) as error:
            return " ".join(str(error).split())
        self._servers[url] = new
        return url

    async def _serve(self, settings: Settings, stack: AsyncExitStack) -> str:
        return await stack.enter_async_context(serving(settings))

    def _directory(self) -> Path:
        """A new one, with a token that stories know."""
        directory = self._data / str(next(self._numbers))
        directory.mkdir(mode=0o700)
        token = directory / "admin-token"
        token.touch(mode=0o600)
        token.write_text(OPERATOR, "ascii")
        return directory

    async def close(self) -> None:
        await asyncio.gather(*(server.aclose() for server in self._servers.values()))


async def run(servers: Servers) -> None:
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        sys.stdout.write(await servers.obey(json.loads(line)) + "\n")
        sys.stdout.flush()
    await servers.close()


def main(kind: type[Servers]) -> None:
    ticker.TurnBudget = UnhurriedTurn  # type: ignore[assignment,attr-defined]
    with tempfile.TemporaryDirectory(prefix="holdfast-test-") as home:
        uvloop.run(run(kind(Path(home))))


if __name__ == "__main__":
    main(Servers)
