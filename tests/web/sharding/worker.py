"""A worker as a process: `python -m tests.web.sharding.worker DATA NUMBER COUNT [URL]`."""

import asyncio
import logging
import signal
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import uvloop

from holdfast.compose import serving
from holdfast.compose.placement import placed
from holdfast.settings import Settings
from holdfast.store.format.deployment import Deployment

RULES: dict[str, dict[str, Any]] = {
    "/kept/**": {"history": 1000, "durable": True},
    # At another shard, if there are three.
    "/also/**": {"history": 1000, "durable": True},
    "/brief": {"history": 2, "durable": True},
    "/topics/**": {"topic": True, "durable": True, "destroy_delay": 1000},
    "/jobs/**": {"work_queue": True},
}


async def serve(data: str, number: str, count: str, redis: str = "", durability: str = "") -> None:
    given: dict[str, Any] = {"port": 0, "data": Path(data), "journal": False, "chat": True}
    given["channels"] = RULES
    given["ptp_create_session"] = True
    if redis:
        # Each has a store of its own on this server.
        given["redis"] = redis
    if durability:
        given["durability"] = durability
    settings = Settings(**given)
    is_over = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, is_over.set)
    async with serving(settings, placed(settings, int(number), int(count))) as url:
        print(url, flush=True)  # noqa: T201 - the fleet reads it
        await is_over.wait()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    # Until workers share name and key of the deployment.
    with patch.object(Deployment, "proposed", lambda _: Deployment("here", bytes(32), False)):
        uvloop.run(serve(*sys.argv[1:]))
