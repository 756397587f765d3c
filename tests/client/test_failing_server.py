"""The Python client with a server that fails on some messages and serves all others."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import WSCloseCode, web
from aiohttp.test_utils import TestServer

from holdfast import Client, ConnectionLost, Outbox, ReplyError
from tests.client.conftest import LONG_POLLING

POISON = "poison"
Json = dict[str, Any]


class FailingServer:
    """The part of a Bayeux server that publishers need; a request with poison fails as a whole."""

    def __init__(
        self, *, cures_after: int | None = None, knows_keys: bool = True, loses_reply: bool = False
    ) -> None:
        self.published: list[object] = []
        self.failures = 0
        self.status = 500
        self._cures_after = cures_after
        self._knows_keys = knows_keys
        # Whether it drops the connection when it has taken poison for the first time.
        self._loses_reply = loses_reply
        self._ends, self._has_failed = asyncio.Event(), asyncio.Event()
        self._awaited_failures = 0
        self.application = web.Application()
        self.application.router.add_route("*", "/cometd", self._serve)
        self.application.on_shutdown.append(self._end)

    async def _end(self, _: web.Application) -> None:
        self._ends.set()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        if "Upgrade" in request.headers:
            return await self._serve_socket(request)
        messages = await request.json()
        if self._drops(messages):
            assert request.transport is not None
            request.transport.close()
            return web.Response()
        if self._fails(messages):
            return web.Response(status=self.status)
        return web.json_response([await self._answer(message) for message in messages])

    async def _serve_socket(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        async with asyncio.TaskGroup() as answering:
            async for frame in socket:
                messages = frame.json()
                if self._drops(messages):
                    await socket.close()
                elif self._fails(messages):
                    await socket.close(code=WSCloseCode.INTERNAL_ERROR)
                else:
                    answering.create_task(self._answer_frame(socket, messages))
        return socket

    async def _answer_frame(self, socket: web.WebSocketResponse, messages: list[Json]) -> None:
        replies = [await self._answer(message) for message in messages]
        if not socket.closed:
            await socket.send_json(replies)

    def _drops(self, messages: list[Json]) -> bool:
        drops = self._loses_reply and any(message.get("data") == POISON for message in messages)
        if drops:
            self._loses_reply = False
            self.published += [message["data"] for message in messages]
        return drops

    def _fails(self, messages: list[Json]) -> bool:
        is_cured = self._cures_after is not None and self.failures >= self._cures_after
        fails = not is_cured and any(message.get("data") == POISON for message in messages)
        self.failures += fails
        if fails and self.failures == self._awaited_failures:
            self._has_failed.set()
        return fails

    async def failed(self, times: int) -> None:
        """Wait until so many requests have failed."""
        self._awaited_failures = times
        await self._has_failed.wait()

    async def _answer(self, message: Json) -> Json:
        reply: Json = {name: message[name] for name in ("channel", "id")}
        if message["channel"] == "/meta/handshake":
            kinds = ["websocket", "long-polling"]
            reply |= {"clientId": "1", "version": "1.0", "supportedConnectionTypes": kinds}
            if self._knows_keys:
                reply["ext"] = {"delivery": {}}
        elif message["channel"] == "/meta/connect":
            if message.get("advice", {}).get("timeout") != 0:
                await self._ends.wait()
        elif not message["channel"].startswith("/meta/"):
            self.published.append(message["data"])
        return reply | {"successful": True}


@asynccontextmanager
async def client_of(
    server: FailingServer, transport: str = LONG_POLLING, **options: Any
) -> AsyncIterator[Client]:
    """A client that does not wait between its attempts."""
    async with (
        TestServer(server.application) as there,
        Client(
            f"http://127.0.0.1:{there.port}",
            transports=[transport],
            longest_pause_s=0.01,
            close_timeout_s=0.1,
            **options,
        ) as client,
    ):
        yield client


def publishing(client: Client, *data: object) -> list[asyncio.Task[Any]]:
    """Publish messages that are repeated until their outcome is known."""
    return [
        asyncio.create_task(client.publish("/a", each, key=f"{number}"))
        for number, each in enumerate(data)
    ]


async def test_a_message_that_the_server_fails_on_is_given_up_and_others_arrive(
    transport: str,
) -> None:
    server = FailingServer()
    async with client_of(server, transport) as client:
        first, bad, last = publishing(client, 1, POISON, 2)
        async with asyncio.timeout(60):
            await asyncio.wait([first, bad, last])
            await client.publish("/a", 3)
        assert server.published == [1, 2, 3]
        # Once with the others, then alone.
        assert server.failures == 6
        with pytest.raises(ConnectionLost, match="5 times"):
            await bad


async def test_a_publish_with_a_key_whose_reply_is_lost_goes_again_if_the_server_knows_keys(
    transport: str,
) -> None:
    # Unlike a real one, it does not drop the second.
    server = FailingServer(loses_reply=True, cures_after=0)
    async with client_of(server, transport) as client, asyncio.timeout(60):
        await asyncio.gather(*publishing(client, POISON))
    assert server.published == [POISON, POISON]


async def test_a_publish_with_a_key_whose_reply_is_lost_fails_if_the_server_knows_no_keys(
    transport: str,
) -> None:
    server = FailingServer(loses_reply=True, cures_after=0, knows_keys=False)
    async with client_of(server, transport) as client, asyncio.timeout(60):
        [lost] = publishing(client, POISON)
        with pytest.raises(ConnectionLost, match="does not know publish keys"):
            await lost
        await client.publish("/a", 1)
    assert server.published == [POISON, 1]


async def test_a_message_that_the_server_fails_on_for_a_while_is_accepted(
    transport: str,
) -> None:
    server = FailingServer(cures_after=5)
    async with client_of(server, transport) as client, asyncio.timeout(60):
        await asyncio.gather(*publishing(client, 1, POISON, 2))
    assert server.published == [1, POISON, 2]


@pytest.mark.parametrize("status", [404, 429, 502, 503, 504])
async def test_a_client_tries_an_unavailable_server_until_it_returns(status: int) -> None:
    server = FailingServer(cures_after=20)
    server.status = status
    async with client_of(server) as client, asyncio.timeout(60):
        await asyncio.gather(*publishing(client, POISON))
    assert server.published == [POISON]


async def test_a_message_that_the_server_fails_on_stays_in_the_outbox_alone(
    tmp_path: Path,
) -> None:
    server, outbox = FailingServer(), Outbox(tmp_path / "outbox")
    async with client_of(server, outbox=outbox) as client, asyncio.timeout(60):
        for each in (1, POISON, 2):
            await client.post("/a", each)
        # Beside the two others first, then alone, and alone again.
        await server.failed(11)
        assert (server.published, len(outbox)) == ([1, 2], 1)


class ExplainingServer(FailingServer):
    """Refuses publishes, and says where it explains that."""

    async def _answer(self, message: Json) -> Json:
        reply = await super()._answer(message)
        if message["channel"].startswith("/meta/"):
            return reply
        see = {"see": "/docs/errors/#400-data_missing"}
        return reply | {"successful": False, "error": "400::data_missing", "ext": see}


async def test_an_error_has_the_url_at_which_the_server_explains_it(transport: str) -> None:
    async with client_of(ExplainingServer(), transport) as client:
        with pytest.raises(ReplyError) as refused:
            await client.publish("/a", 1)
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/docs/errors/#400-data_missing", refused.value.see)
    assert str(refused.value).endswith(f"; see {refused.value.see}")
