"""Keeps an embedded store, given DATA and DURABILITY, until somebody kills it."""

import asyncio
import sys
from pathlib import Path

import uvloop

from holdfast.store.local.embedded import Durability, EmbeddedValkey


async def keep(data: str, durability: str) -> None:
    async with EmbeddedValkey(Path(data), Durability(durability)) as url:
        sys.stdout.write(f"{url}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(keep(*sys.argv[1:]))
