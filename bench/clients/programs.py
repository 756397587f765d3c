"""Programs under test: `python -m bench.clients.programs WHAT CLIENT TRANSPORT URL COUNT`.

They print their figures as JSON; those that receive print `ready` first.
"""

import asyncio
import gc
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Self

import aiohttp
import orjson

CHANNEL = "/bench/clients"
# Clients need this time for work after they have connected.
_REST_S = 2.0
# Clients that connect at the same time.
_AT_ONCE = 50

Figures = dict[str, float]
Json = dict[str, Any]


def resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def ours(url: str, transport: str) -> Any:  # noqa: ANN401
    return import_module("holdfast").Client(url, transports=[transport])


def theirs(url: str, transport: str, extensions: Sequence[Any] = ()) -> Any:  # noqa: ANN401
    aiocometd = import_module("aiocometd")
    for name in ("client", "utils", "transports.long_polling"):
        vars(import_module(f"aiocometd.{name}"))["asyncio"] = without_loops()
    kind = aiocometd.ConnectionType(transport)
    # The queue has no limit: with acks, a client waits for ever when it is full.
    return aiocometd.Client(
        url, connection_types=kind, extensions=[*extensions], max_pending_count=0
    )


class Acks:
    """The extension of acknowledged messages, which aiocometd lacks."""

    def __init__(self) -> None:
        self._last = 0

    async def outgoing(self, payload: list[Json], headers: object) -> None:
        for message in payload:
            if message["channel"] == "/meta/handshake":
                message["ext"] = {"ack": True}
            elif message["channel"] == "/meta/connect":
                message["ext"] = {"ack": self._last}

    async def incoming(self, payload: list[Json], headers: object) -> None:
        for message in payload:
            if message["channel"] == "/meta/connect":
                self._last = message.get("ext", {}).get("ack", self._last)


def theirs_with_acks(url: str, transport: str) -> Any:  # noqa: ANN401
    return theirs(url, transport, [Acks()])


class Bare:
    """Decodes and counts messages, without queues or acks: measures aiohttp itself."""

    def __init__(self, url: str, transport: str) -> None:
        self._url = url
        self._has_socket = transport == "websocket"
        self._client_id = ""

    async def __aenter__(self) -> Self:
        self._http = await aiohttp.ClientSession().__aenter__()
        types = ["websocket", "long-polling"]
        [reply] = await self._ask("handshake", version="1.0", supportedConnectionTypes=types)
        self._client_id = reply["clientId"]
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._http.close()

    async def subscribe(self, channel: str) -> None:
        await self._ask("subscribe", subscription=channel)

    def __aiter__(self) -> AsyncIterator[Json]:
        return self._pushed() if self._has_socket else self._polled()

    async def _pushed(self) -> AsyncIterator[Json]:
        async with self._http.ws_connect(self._url, decode_text=False) as socket:
            connect = self._body("connect", connectionType="websocket")
            await socket.send_frame(connect, aiohttp.WSMsgType.TEXT)
            async for frame in socket:
                for message in orjson.loads(frame.data):
                    if message["channel"] == "/meta/connect":
                        await socket.send_frame(connect, aiohttp.WSMsgType.TEXT)
                    else:
                        yield message

    async def _polled(self) -> AsyncIterator[Json]:
        while True:
            for message in await self._ask("connect", connectionType="long-polling"):
                if message["channel"] != "/meta/connect":
                    yield message

    async def _ask(self, what: str, **fields: object) -> list[Json]:
        headers = {"Content-Type": "application/json"}
        async with self._http.post(
            self._url, data=self._body(what, **fields), headers=headers
        ) as response:
            replies: list[Json] = orjson.loads(await response.read())
            return replies

    def _body(self, what: str, **fields: object) -> bytes:
        return orjson.dumps([{"channel": f"/meta/{what}", "clientId": self._client_id, **fields}])


def without_loops() -> ModuleType:
    """Return an asyncio whose functions ignore the argument `loop`."""

    def dropping(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args, loop=None, **options: function(*args, **options)

    shim = ModuleType("asyncio")
    shim.__dict__.update(asyncio.__dict__)
    for name in ("Semaphore", "sleep", "wait", "wait_for"):
        setattr(shim, name, dropping(getattr(asyncio, name)))
    return shim


# It keeps no session, so it has no part in the comparison of idle clients.
BARE = "bare aiohttp"
CLIENTS: dict[str, Callable[[str, str], Any]] = {
    "holdfast": ours,
    "aiocometd": theirs,
    "aiocometd with acks": theirs_with_acks,
    BARE: Bare,
}


async def receive(new_client: Callable[[], Any], count: int) -> Figures:
    """Receive this number of messages; return the processor time and the elapsed time."""
    async with new_client() as client:
        messages = client
        if hasattr(client, "session_name"):
            messages = await client.subscribe(CHANNEL)
        else:
            await client.subscribe(CHANNEL)
        print("ready", flush=True)
        busy, begun, left = time.process_time(), time.perf_counter(), count
        async for _ in messages:
            left -= 1
            if not left:
                break
        return {"busy_s": time.process_time() - busy, "s": time.perf_counter() - begun}


async def idle(new_client: Callable[[], Any], count: int) -> Figures:
    """Return the memory of this number of idle clients, which stay connected."""
    await new_client().__aenter__()
    gc.collect()
    before = resident()
    clients: list[Any] = []
    while len(clients) < count:
        some = [new_client() for _ in range(min(_AT_ONCE, count - len(clients)))]
        clients += await asyncio.gather(*(each.__aenter__() for each in some))
    await asyncio.sleep(_REST_S)
    gc.collect()
    return {"bytes": (resident() - before) / count}


WORK: dict[str, Callable[[Callable[[], Any], int], Awaitable[Figures]]] = {
    "receive": receive,
    "idle": idle,
}


async def main(what: str, name: str, transport: str, url: str, count: str) -> None:
    figures = await WORK[what](lambda: CLIENTS[name](url, transport), int(count))
    print(json.dumps(figures), flush=True)
    # Disconnecting idle clients would take long.
    os._exit(0)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
