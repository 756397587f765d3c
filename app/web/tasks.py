"""Runs slow work for the core, which never waits, cancels tasks, and waits within limits."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack
from typing import Any

from holdfast.bayeux.state.server_state import GivenUp

log = logging.getLogger(__name__)

Task = asyncio.Task[None]

_LOOK_S = 0.002


class Tasks:
    """Awaits work with a time limit, and reports its outcome: of a late one, that it was given up.

    All of it is for clients that wait: what extensions do at a handshake, and what the backend is
    asked.
    """

    def __init__(self, clock: Callable[[], float], limit_s: float = 10.0) -> None:
        self._clock = clock
        self._limit_s = limit_s
        # The running work, and who waits for its outcome.
        self._running: dict[asyncio.Task[None], Callable[[Any, float], None]] = {}
        # Work that was given up and has not ended yet.
        self._given_up: set[asyncio.Task[None]] = set()
        self._is_closed = False

    def __call__(self, work: Awaitable[Any], done: Callable[[Any, float], None]) -> None:
        task = asyncio.get_running_loop().create_task(self._run(work, done))
        self._running[task] = done
        task.add_done_callback(self._forget)

    async def _run(self, work: Awaitable[Any], done: Callable[[Any, float], None]) -> None:
        outcome: Any
        limit = asyncio.timeout(self._limit_s)
        try:
            async with limit:
                outcome = await work
        except BaseException as error:
            if self._is_ending(error):
                raise
            # Report the end even if the work is cancelled, cancels its task, or exits, because a
            # caller waits for it.
            outcome = GivenUp() if limit.expired() else error
            if limit.expired():
                log.warning("a login took longer than %g s: its client comes again", self._limit_s)
        task = asyncio.current_task()
        # From here on it cannot be given up any more: its outcome is told once.
        if task is not None and self._running.pop(task, None) is not None:
            done(outcome, self._clock())

    def give_up(self) -> None:
        """Wait for running work no longer, even if it does not let itself be cancelled."""
        running, self._running = self._running, {}
        for task, done in running.items():
            task.cancel()
            self._given_up.add(task)
            task.add_done_callback(self._given_up.discard)
            done(GivenUp(), self._clock())

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._running.pop(task, None)

    async def close(self) -> None:
        """Cancel all running work."""
        self._is_closed = True
        running = [*self._running, *self._given_up]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    def _is_ending(self, error: BaseException) -> bool:
        """Return whether our own task is being cancelled, rather than the work."""
        return self._is_closed and isinstance(error, asyncio.CancelledError | GeneratorExit)


def run_until_closed(stack: AsyncExitStack, work: Coroutine[Any, Any, None]) -> None:
    """Run this in a task until the stack closes."""
    stack.push_async_callback(cancel, asyncio.create_task(work))


def task_of(work: Coroutine[Any, Any, None], on_failed: Callable[[Exception], None]) -> Task:
    """Run this in a task. `on_failed` is called if it fails, which is not noticed otherwise."""

    def ended(task: Task) -> None:
        if not task.cancelled() and isinstance(error := task.exception(), Exception):
            on_failed(error)

    task = asyncio.create_task(work)
    task.add_done_callback(ended)
    return task


async def cancel(task: asyncio.Task[Any]) -> None:
    """Cancel the task and wait for its end."""
    # Repeated, because a library may swallow a cancellation, for example by turning it into a
    # timeout.
    while not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=0.1)


async def reached(limit_s: float, is_reached: Callable[[], bool]) -> bool:
    """Wait until this holds, for so long at most, and return whether it does.

    The limit is one of time: on a busy machine, a look may come much later than it was to.
    """
    loop = asyncio.get_running_loop()
    ends_at = loop.time() + limit_s
    while not (holds := is_reached()) and loop.time() < ends_at:  # noqa: ASYNC110 - no event
        await asyncio.sleep(_LOOK_S)
    return holds
