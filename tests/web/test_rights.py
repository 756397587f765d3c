"""Rights and sessions that have ended do not return after a restart."""

from pathlib import Path
from typing import Any

import aiohttp

from holdfast.compose import serving
from holdfast.settings import Settings
from holdfast.store.format.keys import RedisKeys
from tests.store.servers import ValkeyServer

KEYS = RedisKeys("holdfast")
DENIED = "403:denied_by_security_policy:publish_denied"


def settings(home: Path, valkey: ValkeyServer) -> Settings:
    given: dict[str, Any] = {"port": 0, "data": home, "redis": valkey.url}
    return Settings(**given)


async def ask(client: aiohttp.ClientSession, channel: str, **fields: Any) -> dict[str, Any]:
    async with client.post("/cometd", json=[{"channel": channel, **fields}]) as response:
        (reply,) = await response.json()
        return dict(reply)


async def begin(client: aiohttp.ClientSession, session: object, **ext: Any) -> str:
    """The client id of a new session."""
    reply = await ask(
        client,
        "/meta/handshake",
        supportedConnectionTypes=["long-polling"],
        ext={"ack": True, "delivery": {"session": session}, **ext},
    )
    client_id: str = reply["clientId"]
    return client_id


async def sign_in(client: aiohttp.ClientSession, home: Path, name: str) -> str:
    """The client id of an operator's session of this name."""
    shown = {"token": (home / "admin-token").read_text().strip()}
    client_id = await begin(client, name, authentication=shown)
    alerts = await ask(client, "/meta/subscribe", clientId=client_id, subscription="/sys/alert")
    assert alerts["successful"]
    return client_id


async def run(client: aiohttp.ClientSession, client_id: str) -> dict[str, Any]:
    return await ask(
        client,
        "/service/admin",
        clientId=client_id,
        data={"cmd": "client/joe/?subjectQueueNumMsgs"},
    )


async def test_operators_stay_operators_after_a_restart(tmp_path: Path) -> None:
    with ValkeyServer() as valkey:
        jar, given = aiohttp.CookieJar(unsafe=True), settings(tmp_path, valkey)
        async with serving(given) as url, aiohttp.ClientSession(url, cookie_jar=jar) as client:
            client_id = await sign_in(client, tmp_path, "ops/1")
        async with serving(given) as url, aiohttp.ClientSession(url, cookie_jar=jar) as client:
            assert (await run(client, client_id))["successful"]


async def test_a_new_operators_token_revokes_the_rights_of_stored_sessions(tmp_path: Path) -> None:
    with ValkeyServer() as valkey:
        jar, given = aiohttp.CookieJar(unsafe=True), settings(tmp_path, valkey)
        async with serving(given) as url, aiohttp.ClientSession(url, cookie_jar=jar) as client:
            client_id = await sign_in(client, tmp_path, "ops/1")
            old = (tmp_path / "admin-token").read_text()
        (tmp_path / "admin-token").unlink()
        async with serving(given) as url, aiohttp.ClientSession(url, cookie_jar=jar) as client:
            assert (await run(client, client_id))["error"] == DENIED
            again = await ask(
                client, "/meta/subscribe", clientId=client_id, subscription="/sys/alert"
            )
            assert again["error"] == "403:denied_by_security_policy:subscribe_denied"
            other = await sign_in(client, tmp_path, "ops/2")
            assert (await run(client, other))["successful"]
        records = valkey.ask("HGETALL", KEYS.sessions)
        assert old.strip() not in str(records), "what is stored is no token"


async def test_sessions_ended_by_clear_sessions_stay_ended_and_leave_dead_letters(
    tmp_path: Path,
) -> None:
    with ValkeyServer() as valkey:
        jar, given = aiohttp.CookieJar(unsafe=True), settings(tmp_path, valkey)
        async with serving(given) as url, aiohttp.ClientSession(url, cookie_jar=jar) as client:
            first = await begin(client, "joe/1")
            await ask(client, "/meta/subscribe", clientId=first, subscription="/a")
            assert (await ask(client, "/a", clientId=first, data=1))["successful"]
            await begin(client, {"name": "joe/2", "clearSessions": True})
        async with serving(given):
            assert valkey.ask("HKEYS", KEYS.sessions) == [b"joe/2"]
            assert valkey.ask("HLEN", KEYS.dead) == 1
            assert valkey.ask("HLEN", KEYS.bodies) == 0
