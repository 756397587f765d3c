"""A worker: takes jobs of a work queue one at a time, and refuses what it cannot do.

Each job goes to one worker. A refused job goes to the next one, and becomes a dead letter when all
have refused it. If a worker is killed, its job goes to another. Make `/jobs/**` a work queue, then
start as many workers as you like:

    [channels."/jobs/**"]           # in holdfast.toml
    work_queue = true

    python worker.py http://127.0.0.1:8080
"""

import asyncio
import sys
from contextlib import suppress

from holdfast import Client, Message, Refuse


async def resize(message: Message) -> None:
    """Do a job; whatever this raises is said of the job in its dead letter."""
    pixels = message.data["pixels"]
    if not 0 < pixels <= 4000:
        raise Refuse("user.update.illegalArgument", f"a picture cannot have {pixels} pixels")
    await asyncio.sleep(0)  # stands for the work
    print(f"resized {message.data['picture']} to {pixels} pixels", flush=True)


async def work(url: str) -> None:
    """Take jobs until the program is ended."""
    async with Client(url, terms={"queue": {"maxEntries": 1}}) as client:
        await client.subscribe("/jobs/pictures", resize)
        print("ready", flush=True)
        await client.wait_closed()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(work(sys.argv[1]))
