"""Ends tasks that run for as long as the server."""

import asyncio


async def cancel(task: asyncio.Task[None]) -> None:
    """Cancel the task and wait for its end."""
    # Repeated, because a library may swallow a cancellation, for example by making it a timeout.
    while not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=0.1)
