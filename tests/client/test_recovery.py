"""The Python client survives bad networks, killed servers and logins that end."""

import asyncio
import time
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest

from holdfast import Client, ClientState, ConnectionLost, Message
from tests.chaos.proxy import Address, Proxy, Way
from tests.client.conftest import Basket, Enter
from tests.clients.mortal_server import MortalServer
from tests.serving import Server, Servers
from tests.unit.login.signing import SECRET, token

API = "/admin/api/v1"


def behind(url: str) -> Address:
    return Address("127.0.0.1", urlsplit(url).port or 0)


class SocketRefuser(Proxy):
    """A proxy that refuses WebSockets until it is told not to."""

    def __init__(self, upstream: Address) -> None:
        super().__init__(upstream)
        self.refused = 0
        self.opened = asyncio.Event()
        self.refuses = True

    async def _pass_on(self, link: Any, way: Way, data: bytes) -> None:
        if way is Way.UP and b"Upgrade: websocket" in data:
            if self.refuses:
                self.refused += 1
                link.writers[Way.DOWN].write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
                return
            self.opened.set()
        await super()._pass_on(link, way, data)


async def test_a_named_session_loses_nothing_when_the_server_is_killed(
    mortal: MortalServer, transport: str
) -> None:
    basket, url = Basket(), mortal.alive.url
    common: dict[str, Any] = {"transports": [transport], "longest_pause_s": 0.5}
    async with (
        Client(url, session="reader/1", **common) as reader,
        Client(url, session="writer/1", **common) as writer,
    ):
        await reader.subscribe("/client/killed", basket)

        async def publish(number: int) -> None:
            await writer.publish("/client/killed", number, key=str(number), persistent=True)

        before = [publish(number) for number in range(100)]
        during = [publish(number) for number in range(100, 200)]
        await asyncio.gather(*before)
        publishing = asyncio.gather(*during)
        await asyncio.to_thread(mortal.kill_and_start)
        await publishing
        await publish(200)
        assert sorted(await basket.data(201)) == [*range(201)]


async def test_a_client_without_a_name_subscribes_again_before_it_publishes(
    mortal: MortalServer, transport: str
) -> None:
    states: list[ClientState] = []
    options: dict[str, Any] = {"transports": [transport], "longest_pause_s": 0.5}
    async with Client(mortal.alive.url, on_state=states.append, **options) as client:
        basket = Basket()
        await client.subscribe("/client/again/*", basket)
        mortal.alive.process.kill()
        mortal.alive.process.wait()
        waiting = asyncio.create_task(client.publish("/client/again/a", "meanwhile"))
        await asyncio.to_thread(mortal.kill_and_start)
        try:
            await waiting
        except ConnectionLost:
            # The publish was on its way when the server died.
            await client.publish("/client/again/a", "meanwhile")
        assert await basket.data(1) == ["meanwhile"]
        assert not client.is_resumed
        assert states[-2:] == [ClientState.HANDSHAKING, ClientState.CONNECTED]


async def test_a_processed_message_whose_ack_was_lost_is_not_processed_again(
    enter: Enter, transport: str
) -> None:
    client, basket = await enter(session=f"twice-{transport}/1"), Basket()
    first_id = client._conversation._client_id

    async def process(message: Message) -> None:
        if message.data == 1:
            # The ack comes from a client that the server does not know.
            client._conversation._client_id = "unknown"
        await basket(message)

    await client.subscribe("/client/twice", process)
    publisher = await enter()
    await publisher.publish("/client/twice", 1)
    await basket.data(1)
    await publisher.publish("/client/twice", 2)
    assert await basket.data(2) == [1, 2]
    assert client.is_resumed
    assert client._conversation._client_id != first_id


async def test_a_client_uses_long_polling_while_a_proxy_refuses_websockets_and_tries_them_again(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.client.transport_choice._FIRST_REST_S", 0.05)
    async with SocketRefuser(behind(server.url)) as proxy, Client(proxy.url) as client:
        basket = Basket()
        await client.subscribe("/client/refused-socket", basket)
        await client.publish("/client/refused-socket", 0)
        assert await basket.data(1) == [0]
        assert proxy.refused

        proxy.refuses = False
        count = 1
        async with asyncio.timeout(60):
            while not proxy.opened.is_set():
                await client.publish("/client/refused-socket", count)
                count += 1
        await client.publish("/client/refused-socket", count)
        assert await basket.data(count + 1) == [*range(count + 1)]


@pytest.fixture
def strict(servers: Servers, tmp_path_factory: pytest.TempPathFactory) -> Server:
    """A server with a login by tokens."""
    keys = tmp_path_factory.getbasetemp() / "client-keys"
    keys.write_bytes(SECRET)
    return servers.with_settings({"login_keys": str(keys)})


class Tokens:
    """Gives a token that ends soon, then another."""

    def __init__(self, then: str) -> None:
        self.then = then
        self.given = 0
        self.is_renewed = asyncio.Event()

    def __call__(self) -> str:
        self.given += 1
        if self.given == 1:
            return token(exp=int(time.time()) + 20)
        self.is_renewed.set()
        return self.then

    async def later(self) -> str:
        await asyncio.sleep(0)
        return self()


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_login_is_renewed_before_it_ends(
    strict: Server, transport: str, is_async: bool, caplog: pytest.LogCaptureFixture
) -> None:
    tokens = Tokens(token())
    states: list[ClientState] = []
    get = tokens.later if is_async else tokens
    async with Client(
        strict.url, token=get, transports=[transport], on_state=states.append
    ) as client:
        async with asyncio.timeout(60):
            await tokens.is_renewed.wait()
        await client.publish("/client/renewed", 1)
        assert tokens.given == 2
    assert states.count(ClientState.CONNECTED) == 1
    assert "not renewed" not in caplog.text


async def test_a_token_function_that_fails_is_called_again(
    strict: Server, transport: str, caplog: pytest.LogCaptureFixture
) -> None:
    failures = [OSError("not yet"), OSError("no file")]

    def get() -> str:
        if failures:
            raise failures.pop()
        return token()

    async with Client(
        strict.url, token=get, transports=[transport], longest_pause_s=0.01
    ) as client:
        await client.publish("/client/renewed", 1)
    assert "there is no token: OSError('no file')" in caplog.text
    assert "there is no token: OSError('not yet')" in caplog.text


async def test_a_renewed_token_that_the_server_refuses_is_logged(
    strict: Server, transport: str, caplog: pytest.LogCaptureFixture
) -> None:
    tokens = Tokens(token(b"k" * 40))
    async with Client(strict.url, token=tokens, transports=[transport]) as client:
        async with asyncio.timeout(60):
            await tokens.is_renewed.wait()
        await client.publish("/client/renewed", 1)
    assert "the login was not renewed: /service/login: 403" in caplog.text


async def test_a_client_whose_session_an_operator_ends_begins_a_new_one(
    server: Server, enter: Enter, transport: str
) -> None:
    channel, basket, states = f"/client/ended/{transport}", Basket(), asyncio.Queue[ClientState]()
    client = await enter(session=f"ended-{transport}/1", on_state=states.put_nowait)
    await client.subscribe(channel, basket)
    operator = (server.data / "admin-token").read_text().strip()
    url = f"{server.url}{API}/sessions/ended-{transport}/1"
    headers = {"Authorization": f"Bearer {operator}"}
    async with asyncio.timeout(60):
        while await states.get() is not ClientState.CONNECTED:
            pass
        async with aiohttp.ClientSession(headers=headers) as http, http.delete(url) as response:
            assert response.status == 204
        while await states.get() is not ClientState.CONNECTED:
            pass
    assert not client.is_resumed
    await client.publish(channel, "again")
    assert await basket.data(1) == ["again"]


async def test_a_slow_client_is_handed_no_more_than_its_queue_holds(
    server: Server, enter: Enter, transport: str
) -> None:
    client, publisher = await enter(max_queue=10), await enter()
    channel = f"/client/full/{transport}"
    subscription = await client.subscribe(channel)
    await asyncio.gather(*(publisher.publish(channel, number) for number in range(100)))
    seen = []
    async for message in subscription:
        seen.append(message.data)
        assert client._inbox.settling.open_count <= 10
        if len(seen) == 100:
            break
    assert seen == [*range(100)]
