"""Where a server can be reached."""

import asyncio
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from app.compose import serving
from app.settings import Settings

ADDRESSES = ["127.0.0.1", "127.0.0.2"]


async def test_a_name_with_several_addresses_has_the_same_free_port_at_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = asyncio.get_running_loop()
    look_up = loop.getaddrinfo

    async def of_localhost(host: Any, port: Any, **more: Any) -> list[Any]:
        return [found for each in ADDRESSES for found in await look_up(each, port, **more)]

    with monkeypatch.context() as resolving:
        resolving.setattr(loop, "getaddrinfo", of_localhost)
        given: dict[str, Any] = {"host": "localhost", "port": 0, "data": tmp_path}
        async with serving(Settings(**given)) as url:
            resolving.undo()
            for address in ADDRESSES:
                _, writer = await asyncio.open_connection(address, urlsplit(url).port)
                writer.close()
                await writer.wait_closed()
