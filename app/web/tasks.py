"""Runs slow work for the core, which never waits, and cancels tasks."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any


class Tasks:
    """Awaits work with a time limit, and reports its outcome."""

    def __init__(self, clock: Callable[[], float], limit_s: float = 10.0) -> None:
        self._clock = clock
        self._limit_s = limit_s
        self._running: set[asyncio.Task[None]] = set()
        self._is_closed = False

    def __call__(self, work: Awaitable[Any], done: Callable[[Any, float], None]) -> None:
        task = asyncio.get_running_loop().create_task(self._run(work, done))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _run(self, work: Awaitable[Any], done: Callable[[Any, float], None]) -> None:
        outcome: Any
        try:
            async with asyncio.timeout(self._limit_s):
                outcome = await work
        except BaseException as error:
            if self._is_ending(error):
                raise
            # Report the end even if the work is cancelled, cancels its task, or exits, because a
            # caller waits for it.
            outcome = error
        done(outcome, self._clock())

    async def close(self) -> None:
        """Cancel all running work."""
        self._is_closed = True
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    def _is_ending(self, error: BaseException) -> bool:
        """Return whether our own task is being cancelled, rather than the work."""
        return self._is_closed and isinstance(error, asyncio.CancelledError | GeneratorExit)


async def cancel(task: asyncio.Task[Any]) -> None:
    """Cancel the task and wait for its end."""
    # Repeated, because a library may swallow a cancellation, for example by turning it into a
    # timeout.
    while not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=0.1)
