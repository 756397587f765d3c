"""What is logged of connections whose requests end while a server does."""

import asyncio
import logging
import socket
from pathlib import Path

import pytest
from aiohttp import web

from holdfast.web.front.http_faults import log_of_http


async def until_nothing_happens() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_request_that_ends_when_a_stop_waits_for_it_no_longer_is_no_fault(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    begun, may_end = asyncio.Event(), asyncio.Event()

    async def answer(_: web.Request) -> web.Response:
        begun.set()
        await may_end.wait()
        return web.Response()

    application = web.Application()
    application.router.add_get("/", answer)
    runner = web.AppRunner(application, logger=log_of_http, shutdown_timeout=1.0)
    await runner.setup()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        listening.listen()
        await web.SockSite(runner, listening).start()
        reader, writer = await asyncio.open_unix_connection(str(tmp_path / "socket"))
        writer.write(b"GET / HTTP/1.1\r\nHost: private\r\n\r\n")
        await begun.wait()
        closing = asyncio.create_task(runner.cleanup())
        await until_nothing_happens()
        # In one turn of the event loop, in this order.
        may_end.set()
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        await reader.read()
        writer.close()
        await until_nothing_happens()
    assert [each for each in caplog.records if each.levelno >= logging.WARNING] == []
