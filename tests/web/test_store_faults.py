"""Faults of the store, and the replies of a whole server meanwhile and afterwards."""

import asyncio
import os
import re
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from bench.processes import reserved_port
from holdfast.compose import serving
from holdfast.settings import Settings
from holdfast.store.format.keys import RedisKeys
from holdfast.store.links.failover_risks import failover_risks
from holdfast.store.links.primary import Primary
from holdfast.store.links.url import StoreUrl
from holdfast.store.opening.lease import SPEAK_S
from tests.chaos.talker import Denied, Talker
from tests.slowness import times_slower
from tests.store.servers import ValkeyServer

TIMEOUT_S = 60.0
KEYS = RedisKeys("holdfast")
AWAY = "503:communication.noConnection"
UNKNOWN = "503:communication.noConnection,unknown"
REPLICAS_ALERT = 'holdfast_alert_raised{alert="replicas"}'


@pytest.fixture
def valkey() -> Iterator[ValkeyServer]:
    with ValkeyServer() as server:
        yield server


class Scene:
    """A server, a durable receiver of /kept, an ordinary one of /passing, and a publisher."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._durable, self._ordinary, self._publisher = self._people = [
            Talker(url, timeout_s=TIMEOUT_S) for _ in range(3)
        ]
        self._ack = 0

    async def open(self) -> None:
        ext = {"ack": True, "delivery": {"session": "joe/1"}}
        for who, channel, wish in (
            (self._durable, "/kept", ext),
            (self._ordinary, "/passing", {}),
            (self._publisher, "", {}),
        ):
            await who.handshake(wish)
            if channel:
                await who.subscribe(channel)

    async def close(self) -> None:
        for who in self._people:
            await who.close()

    async def publish(self, channel: str, data: object, **options: Any) -> str:
        """The error without its text; or "kept"."""
        message = {"channel": channel, "data": data, "ext": {"delivery": options}}
        try:
            found = await self._publisher.ask(message)
        except Denied as denied:
            return denied.error
        [reply] = [each for each in found if each["channel"] == channel]
        return "kept" if reply["successful"] else reply["error"].rpartition(":")[0]

    async def heard(self) -> list[object]:
        """What the durable receiver has got since then; it acknowledges that next time."""
        ext = {"ack": self._ack}
        found = await self._connect(self._durable, ext)
        # While the store is away there is no batch, for nothing is handed over.
        self._ack = found[-1].get("ext", {}).get("ack", self._ack)
        return [each["data"] for each in found[:-1]]

    async def hears(self, *expected: object) -> None:
        """Wait until the durable receiver gets these messages, each once."""
        heard: list[object] = []
        async with asyncio.timeout(TIMEOUT_S):
            while len(heard) < len(expected):
                heard += await self.heard()
                await asyncio.sleep(0.02)
        assert [*heard, *await self.heard()] == [*expected]

    async def overheard(self) -> list[object]:
        """What the ordinary receiver has got since then."""
        found = await self._connect(self._ordinary, {})
        return [each["data"] for each in found if each["channel"] == "/passing"]

    async def _connect(self, who: Talker, ext: dict[str, Any]) -> list[dict[str, Any]]:
        connect = {"channel": "/meta/connect", "connectionType": "long-polling", "ext": ext}
        found = await who.ask({**connect, "advice": {"timeout": 0}})
        return sorted(found, key=lambda each: each["channel"] == "/meta/connect")

    async def get(self, path: str) -> tuple[int, str]:
        async with aiohttp.ClientSession() as http, http.get(self.url + path) as response:
            return response.status, await response.text()

    async def is_ready(self) -> bool:
        return (await self.get("/readyz"))[0] == 200

    async def becomes(self, *, ready: bool) -> None:
        async with asyncio.timeout(TIMEOUT_S):
            while await self.is_ready() is not ready:  # noqa: ASYNC110 - it is told over HTTP alone
                await asyncio.sleep(0.02)

    async def recovers(self) -> None:
        """Check that the server works as before, and that its counts add up."""
        await self.becomes(ready=True)
        assert await self.publish("/kept", "recovered") == "kept"
        await self.hears("recovered")
        _, metrics = await self.get("/metrics")
        [unaccounted] = re.findall(r"^holdfast_entries_unaccounted (\S+)", metrics, re.MULTILINE)
        assert float(unaccounted) == 0


@asynccontextmanager
async def scene_at(redis: str | None, home: Path, **more: Any) -> AsyncIterator[Scene]:
    given: dict[str, Any] = {"port": 0, "data": home, "redis": redis, **more}
    async with serving(Settings(**given)) as url:
        scene = Scene(url)
        await scene.open()
        try:
            yield scene
        finally:
            await scene.close()


@pytest.fixture
async def scene(valkey: ValkeyServer, tmp_path: Path) -> AsyncIterator[Scene]:
    async with scene_at(valkey.url, tmp_path) as scene:
        yield scene


def waiting(valkey: ValkeyServer) -> int:
    """The number of messages that the store has for the durable receiver."""
    return int(valkey.ask("HLEN", KEYS.bodies))


async def settled(valkey: ValkeyServer) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while waiting(valkey):  # noqa: ASYNC110 - the store tells nobody
            await asyncio.sleep(0.01)


async def test_a_full_store_refuses_only_durable_messages(
    scene: Scene, valkey: ValkeyServer
) -> None:
    assert await scene.publish("/kept", "before") == "kept"
    valkey.set(maxmemory="1", maxmemory_policy="noeviction")
    assert await scene.publish("/kept", "refused") == AWAY
    assert await scene.publish("/kept", "lost at worst", persistent=False) == "kept"
    assert await scene.publish("/passing", "aloud") == "kept"
    assert await scene.overheard() == ["aloud"]
    # Hand-overs and acks need no room.
    await scene.hears("before", "lost at worst")
    await settled(valkey)
    valkey.set(maxmemory="0")
    await scene.recovers()


async def test_operators_learn_that_the_store_does_not_have_a_change_yet(tmp_path: Path) -> None:
    """It is embedded: with another store that is away, a server says nothing after a while."""
    async with scene_at(None, tmp_path) as scene:
        store = embedded_in(tmp_path)
        token = (tmp_path / "admin-token").read_text().strip()
        base = f"{scene.url}/admin/api/v1"

        async def is_unstored(method: str, path: str, **asked: Any) -> bool:
            async with (
                aiohttp.ClientSession(headers={"Authorization": f"Bearer {token}"}) as http,
                http.request(method, base + path, **asked) as response,
            ):
                return bool((await response.json())["unstored"])

        os.kill(store, signal.SIGSTOP)
        try:
            await scene.becomes(ready=False)
            assert await is_unstored("PUT", "/sessions/joe/1/hold", json={"reason": "why"})
            assert await is_unstored("PUT", "/held-channels", json={"channel": "/kept"})
            assert await is_unstored("DELETE", "/held-channels?channel=/kept")
        finally:
            os.kill(store, signal.SIGCONT)
        await scene.becomes(ready=True)
        assert not await is_unstored("PUT", "/held-channels", json={"channel": "/kept"})
        assert not await is_unstored("DELETE", "/held-channels?channel=/kept")
        assert not await is_unstored("DELETE", "/sessions/joe/1/hold")


def embedded_in(home: Path) -> int:
    """The process id of the store of a server."""
    return int(next(home.rglob("*.pid")).read_text())


def available(metrics: str) -> float:
    [found] = re.findall(r"^holdfast_store_available (\S+)", metrics, re.MULTILINE)
    return float(found)


async def test_a_server_with_a_full_store_is_not_ready_until_there_is_room_again(
    scene: Scene, valkey: ValkeyServer, caplog: pytest.LogCaptureFixture
) -> None:
    valkey.set(maxmemory="1", maxmemory_policy="noeviction")
    await scene.becomes(ready=False)
    status, why = await scene.get("/readyz")
    assert status == 503
    assert why.startswith("the store accepts no messages: OOM")
    assert available((await scene.get("/metrics"))[1]) == 0
    for _ in range(5):
        assert await scene.publish("/kept", "refused") == AWAY
    # There is one line for all refused messages.
    said = [line for line in caplog.messages if "the store accepts no messages" in line]
    assert len(said) == 1
    valkey.set(maxmemory="0")
    await scene.recovers()
    assert available((await scene.get("/metrics"))[1]) == 1
    assert "the store accepts messages again; it had refused 5 more" in caplog.messages


async def save(valkey: ValkeyServer) -> str:
    """Have it write its file; return whether it could: "ok" or "err"."""
    valkey.ask("BGSAVE")
    async with asyncio.timeout(TIMEOUT_S):
        while valkey.ask("INFO", "persistence")["rdb_bgsave_in_progress"]:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    return str(valkey.ask("INFO", "persistence")["rdb_last_bgsave_status"])


@pytest.mark.slow
async def test_a_store_that_cannot_write_its_file_refuses_only_durable_messages(
    scene: Scene, valkey: ValkeyServer
) -> None:
    assert await scene.publish("/kept", "before") == "kept"
    # Where its file should be is something else, so it refuses all writes after the next attempt.
    valkey.set(save="3600 1", stop_writes_on_bgsave_error="yes")
    obstacle = valkey.directory / "dump.rdb"
    obstacle.mkdir()
    assert await save(valkey) == "err"
    assert await scene.publish("/kept", "refused") == AWAY
    await scene.becomes(ready=False)
    assert (await scene.get("/readyz"))[1].startswith("the store accepts no messages: MISCONF")
    # Its lease cannot be raised either, but nobody can take the store from it.
    await asyncio.sleep(SPEAK_S + 0.5)
    assert await scene.publish("/passing", "aloud") == "kept"
    assert await scene.overheard() == ["aloud"]
    assert await scene.publish("/kept", "refused") == AWAY
    obstacle.rmdir()
    assert await save(valkey) == "ok"
    await scene.becomes(ready=True)
    await scene.hears("before")
    await settled(valkey)
    await scene.recovers()


async def test_a_store_that_became_a_replica_is_waited_for(
    scene: Scene, valkey: ValkeyServer
) -> None:
    valkey.ask("REPLICAOF", "127.0.0.1", 1)
    early = asyncio.create_task(scene.publish("/kept", "early"))
    await scene.becomes(ready=False)
    assert (await scene.get("/healthz"))[0] == 200
    assert await scene.publish("/kept", "refused") == AWAY
    assert await scene.publish("/passing", "aloud") == "kept"
    assert await scene.overheard() == ["aloud"]
    assert not early.done()
    valkey.ask("REPLICAOF", "NO", "ONE")
    # It was not refused meanwhile, so it is kept.
    assert await early == "kept"
    await scene.hears("early")
    await scene.recovers()


@pytest.mark.slow
async def test_a_server_whose_store_is_paused_is_silent_until_it_continues(
    scene: Scene, valkey: ValkeyServer
) -> None:
    valkey.ask("CLIENT", "PAUSE", 60_000, "WRITE")
    late = asyncio.create_task(scene.publish("/kept", "late"))
    assert await scene.publish("/passing", "at once") == "kept"
    assert await scene.overheard() == ["at once"]
    await asyncio.sleep(3.0)
    # Another server may have opened a store that answers nobody here.
    waiting = asyncio.create_task(scene.publish("/passing", "aloud"))
    await asyncio.sleep(2.5)
    assert not late.done()
    assert not waiting.done()
    await scene.becomes(ready=False)
    valkey.ask("CLIENT", "UNPAUSE")
    assert await late == UNKNOWN
    assert await waiting == "kept"
    assert await scene.overheard() == ["aloud"]
    # It was kept, so it is delivered.
    await scene.hears("late")
    await scene.recovers()


async def test_a_store_that_lost_its_scripts_gets_them_again_unnoticed(
    scene: Scene, valkey: ValkeyServer
) -> None:
    for n in range(3):
        valkey.ask("SCRIPT", "FLUSH")
        assert await scene.publish("/kept", n) == "kept"
        valkey.ask("SCRIPT", "FLUSH")
        await scene.hears(n)
        await settled(valkey)
        # The last repeated call may be the one that is settled.
        await scene.becomes(ready=True)
    await scene.recovers()


async def test_an_emptied_store_is_filled_again_from_memory(
    scene: Scene, valkey: ValkeyServer
) -> None:
    assert await scene.publish("/kept", "before") == "kept"
    valkey.ask("FLUSHALL")
    assert await scene.publish("/kept", "after") == "kept"
    assert (waiting(valkey), valkey.ask("HLEN", KEYS.sessions)) == (2, 1)
    await scene.hears("before", "after")
    await settled(valkey)
    await scene.recovers()


async def has_copied(replica: ValkeyServer, count: int) -> None:
    """Wait until a replica has so many messages."""
    async with asyncio.timeout(TIMEOUT_S):
        while waiting(replica) < count:  # noqa: ASYNC110 - the replica tells nobody
            await asyncio.sleep(0.01)


@pytest.fixture
def primary() -> Iterator[ValkeyServer]:
    settings = {"repl-diskless-sync-delay": "0"}
    with reserved_port() as port, ValkeyServer(port=str(port), **settings) as server:
        yield server


@pytest.fixture
def place(primary: ValkeyServer, tmp_path: Path) -> Path:
    """The address of whichever server has the store, as a name or a proxy gives it."""
    place = tmp_path / "store"
    lead_to(place, primary)
    return place


def lead_to(place: Path, server: ValkeyServer) -> None:
    place.unlink(missing_ok=True)
    place.symlink_to(server.directory / "s")


@pytest.mark.slow
async def test_a_replica_without_the_last_second_gets_what_the_server_knows(
    primary: ValkeyServer, valkey: ValkeyServer, place: Path, tmp_path: Path
) -> None:
    valkey.follow(primary)
    async with scene_at(f"unix://{place}", tmp_path) as scene:
        assert await scene.publish("/kept", "acked") == "kept"
        assert await scene.publish("/kept", "early") == "kept"
        await has_copied(valkey, 2)
        # From here on, it gets nothing any more.
        valkey.ask("REPLICAOF", "NO", "ONE")
        await scene.hears("acked", "early")
        await settled(primary)
        assert await scene.publish("/kept", "late") == "kept"
        for n in range(50):
            assert await scene.publish("/kept", n, key=f"k{n}") == "kept"
        assert (waiting(primary), waiting(valkey)) == (51, 2)
        primary.kill()
        lead_to(place, valkey)
        await scene.becomes(ready=True)
        assert await scene.publish("/kept", "after") == "kept"
        # The same key again is the same message.
        assert await scene.publish("/kept", "again", key="k7") == "kept"
        assert waiting(valkey) == 52
    # The next server finds the same, and no session has ended.
    async with scene_at(f"unix://{place}", tmp_path) as scene:
        await scene.hears("late", *range(50), "after")
        await settled(valkey)
        await scene.recovers()


@pytest.mark.slow
async def test_a_replica_takes_the_place_of_a_store_that_is_gone(
    primary: ValkeyServer, valkey: ValkeyServer, place: Path, tmp_path: Path
) -> None:
    valkey.follow(primary)
    async with scene_at(f"unix://{place}", tmp_path) as scene:
        assert await scene.publish("/kept", "before") == "kept"
        await has_copied(valkey, 1)
        primary.kill()
        await scene.becomes(ready=False)
        assert await scene.publish("/kept", "refused") == AWAY
        valkey.ask("REPLICAOF", "NO", "ONE")
        lead_to(place, valkey)
        await scene.becomes(ready=True)
        assert await scene.publish("/kept", "after") == "kept"
        await scene.hears("before", "after")
        await settled(valkey)
        await scene.recovers()


# Within which operators must know that a store has lost its replica.
KNOWN_S = 5.0


async def doctor_says(redis: str) -> str:
    primary = Primary(StoreUrl.of(redis), KEYS.meta)
    return "\n".join(await failover_risks(primary, "replicas:1"))


@pytest.mark.slow
async def test_a_server_whose_store_has_lost_its_replica_says_so_within_seconds(
    tmp_path: Path,
) -> None:
    kept = {"appendonly": "yes", "repl-diskless-sync-delay": "0"}
    with (
        reserved_port() as port,
        ValkeyServer(port=str(port), **kept) as primary,
        ValkeyServer(**kept) as replica,
    ):
        replica.follow(primary)
        home, redis = tmp_path / "data", f"redis://127.0.0.1:{port}"
        async with scene_at(redis, home, durability="replicas:1") as scene:
            assert await scene.get("/readyz") == (200, "ready\n")
            assert "the store has 0 replicas" not in await doctor_says(redis)
            replica.kill()
            async with asyncio.timeout(KNOWN_S * times_slower()):
                while (answer := await scene.get("/readyz"))[1].count("\n") < 2:  # noqa: ASYNC110
                    await asyncio.sleep(0.1)
                while "the store has 0 replicas" not in await doctor_says(redis):  # noqa: ASYNC110
                    await asyncio.sleep(0.1)
            assert answer[0] == 200
            assert answer[1].startswith("ready\ntoo few replicas confirm messages; publishers get")
            assert REPLICAS_ALERT + " 1.0" in (await scene.get("/metrics"))[1]
            replica.start()
            replica.follow(primary)
            async with asyncio.timeout(TIMEOUT_S):
                while (await scene.get("/readyz"))[1] != "ready\n":  # noqa: ASYNC110
                    await asyncio.sleep(0.1)
            assert REPLICAS_ALERT + " 0.0" in (await scene.get("/metrics"))[1]
