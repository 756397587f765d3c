"""A process with many servers in it, because starting a process for each takes a second.

Reads settings from standard input, one JSON object a line, and answers each with a line: the URL of
a server that has them, or why there is none. All servers stop when the input ends.
"""

import asyncio
import json
import sys
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import uvloop
from pydantic import ValidationError

from app.compose import CannotStart, serving
from app.settings import Settings


async def house(data: Path) -> None:
    loop = asyncio.get_running_loop()
    servers: list[AsyncExitStack] = []
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        servers.append(AsyncExitStack())
        given: dict[str, Any] = json.loads(line)
        try:
            settings = Settings(**{"port": 0, "data": data / str(len(servers)), **given})
            answer = await servers[-1].enter_async_context(serving(settings))
        except (CannotStart, ValidationError) as error:
            answer = " ".join(str(error).split())
        sys.stdout.write(answer + "\n")
        sys.stdout.flush()
    await asyncio.gather(*(server.aclose() for server in servers))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="holdfast-test-") as home:
        uvloop.run(house(Path(home)))
