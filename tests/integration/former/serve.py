"""Runs a server of a former release: `python serve.py SETTINGS` prints its URL.

It runs that release's own code, without its command line. So the library that read settings for it
need not be installed; `pydantic_settings.py` beside this takes its place.
"""

import asyncio
import json
import signal
import sys

from holdfast.compose import serving
from holdfast.settings import Settings


async def main(text: str) -> None:
    """Serve until SIGTERM."""
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    async with serving(Settings(**json.loads(text))) as url:
        sys.stdout.write(f"{url}\n")
        sys.stdout.flush()
        await stopped.wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
