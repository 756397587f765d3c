"""The addresses and ports of listeners."""

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from bench.processes import reserved_port
from holdfast.compose import serving
from holdfast.settings import Settings
from holdfast.web.http.addresses import listen_at

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


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The first two ports, which are taken at the second address when the first listens."""
    ports: list[int] = []
    create = socket.create_server

    with contextlib.ExitStack() as others:

        def creating(place: tuple[str, int], **more: Any) -> socket.socket:
            made = create(place, **more)
            if place[0] == ADDRESSES[0] and len(ports) < 2:
                ports.append(made.getsockname()[1])
                others.enter_context(create((ADDRESSES[1], ports[-1])))
            return made

        monkeypatch.setattr(socket, "create_server", creating)
        yield ports


def test_a_port_that_one_address_has_in_use_is_not_chosen(taken: list[int]) -> None:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(each) for each in listen_at(ADDRESSES, 0, 1)]
        assert [each.getsockname()[0] for each in sockets] == ADDRESSES
        (port,) = {each.getsockname()[1] for each in sockets}
    assert len(taken) == 2
    assert port not in taken


def test_a_port_that_was_asked_for_is_not_replaced_by_another() -> None:
    with reserved_port() as port, socket.create_server((ADDRESSES[1], port)):
        with pytest.raises(OSError, match="in use"):
            listen_at(ADDRESSES, port, 1)
        socket.create_server((ADDRESSES[0], port)).close()
