"""Tasks that go on while the server runs."""

import asyncio


async def cancel(task: asyncio.Task[None]) -> None:
    """End the task and wait for it."""
    # A library that makes a timeout of a cancellation may have swallowed it.
    while not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=0.1)
