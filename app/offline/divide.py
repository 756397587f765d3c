"""Divides a deployment, after its shards have taken what they have for each other."""

import asyncio
import ctypes
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

from holdfast.compose.cannot_start import CannotStart
from holdfast.offline.reshard import NotTaken, Plan, Progress, Report, reshard
from holdfast.offline.tenure import holding, shown
from holdfast.offline.undrained import untaken_in
from holdfast.settings import Settings

# How long a server has for a start, and for what its shards have for each other.
_LIMIT_S: Final = 60.0
_LOOK_S: Final = 0.1
# How often a server is started for that. While it stops, its workers may tell each other more.
_MOST_RUNS: Final = 3
_PR_SET_PDEATHSIG: Final = 1


async def divide(settings: Settings, plan: Plan, told: Progress, config: Path | None) -> Report:
    """Divide the deployment. Raises `CannotStart` or `StoreUnavailable`.

    If shards have something for each other, a server runs for a moment, to which no client comes.
    """
    for _ in range(_MOST_RUNS):
        try:
            return await _divide(settings, plan, told)
        except NotTaken as error:
            told.say(f"{error.untaken[0]}: a server without clients runs until it has")
            await _let_take(settings, error.count, config)
    return await _divide(settings, plan, told)


async def _divide(settings: Settings, plan: Plan, told: Progress) -> Report:
    async with holding(settings) as tenure:
        return await reshard(tenure, settings, plan, told)


async def _let_take(settings: Settings, count: int, config: Path | None) -> None:
    """Run a server that lets each shard take what the others have for it."""
    with tempfile.TemporaryDirectory(prefix="holdfast-") as home:
        async with _serving(settings, count, config, Path(home)):
            await until_taken(settings, count)


async def until_taken(settings: Settings, count: int) -> None:
    """Wait until nothing is left that the running shards have for each other, or for a minute.

    Raises `StoreUnavailable`.
    """
    # If it takes longer, the next run says what is left.
    with suppress(TimeoutError):
        async with asyncio.timeout(_LIMIT_S), shown(settings, count) as sides:
            while await untaken_in(sides):  # noqa: ASYNC110 - stores do not say when it changes
                await asyncio.sleep(_LOOK_S)


@asynccontextmanager
async def _serving(
    settings: Settings, count: int, config: Path | None, home: Path
) -> AsyncIterator[None]:
    """Run a server with the settings at a socket that is open to this user only."""
    words = [sys.executable, "-P", "-m", "holdfast", "serve"]
    words += ["--workers", str(count), "--unix", str(home / "socket"), "--data", str(settings.data)]
    if config is not None:
        words += ["--config", str(config)]
    log = home / "log"
    with log.open("wb") as errors:
        process = await asyncio.create_subprocess_exec(
            *words,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
            env={**os.environ, "HOLDFAST_SUPERVISOR": "on", "HOLDFAST_STANDBY": "off"},
            preexec_fn=_end_with_us,
        )
    try:
        if b"is ready" not in await _first_line(process):
            why = log.read_text(errors="replace").strip().rpartition("\n")[2]
            raise CannotStart(f"a server that takes what shards have for each other fails: {why}")
        yield
    finally:
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        await process.communicate()


async def _first_line(process: asyncio.subprocess.Process) -> bytes:
    if process.stdout is None:
        return b""
    with suppress(TimeoutError):
        async with asyncio.timeout(_LIMIT_S):
            return await process.stdout.readline()
    return b""


def _end_with_us() -> None:
    """Let the server stop if this process is killed. Several workers need Linux in any case."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
