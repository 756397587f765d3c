"""The store of a shard comes back empty: no host begins it again, unless an operator wants that."""

import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from holdfast.store.format.keys import RedisKeys
from tests.chaos.hosts import until
from tests.chaos.test_hosts_or_standby import SHARDS, Kinds
from tests.chaos.twin import LIMIT_S, Twin
from tests.serving import ROOT, environment
from tests.store.servers import ValkeyServer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

LOST = "the store of shard {} has come back empty"


class Scene:
    """A host with two shards, and a store that loses what one of them had."""

    def __init__(self, host: Twin, store: ValkeyServer, config: Path) -> None:
        self.host, self._store, self._config = host, store, config

    async def begin(self) -> None:
        self.host.begin()
        await self.host.serves(LIMIT_S)
        await until(lambda: self.has_lease(*range(SHARDS)))

    def lose(self, shard: int) -> None:
        tag = RedisKeys("holdfast", shard).tag
        lost = [key for key in self._store.ask("KEYS", "*") if key.decode().startswith(tag)]
        assert lost
        self._store.ask("DEL", *lost)

    def has_lease(self, *shards: int) -> bool:
        metas = (RedisKeys("holdfast", each).meta for each in shards)
        return all(self._store.ask("HEXISTS", meta, "lease") for meta in metas)

    def command(self, *words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "holdfast", "host", *words],
            cwd=ROOT,
            env={**environment(), "HOLDFAST_SUPERVISOR": "true"},
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
        )

    def renew(self, shard: int) -> "subprocess.CompletedProcess[str]":
        return self.command("renew", str(shard), "--yes", "--config", str(self._config))


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    async with AsyncExitStack() as stack:
        store = stack.enter_context(ValkeyServer())
        host = Kinds(tmp_path, store.url, stack).host()
        found = Scene(host, store, host._config)
        await found.begin()
        yield found


async def test_a_shard_that_lost_its_store_waits_for_an_operator(scene: Scene) -> None:
    assert scene.renew(1).returncode == 1
    assert await scene.host.stop() == 0
    scene.lose(1)
    scene.host.begin()
    await scene.host.until(lambda: LOST.format(1) in scene.host.log())
    await until(lambda: scene.has_lease(0))
    asked = ("--url", scene.host.url, "--token-file", str(scene.host.data / "admin-token"))
    listed = scene.command("list", *asked)
    assert LOST.format(1) in listed.stderr
    assert not scene.has_lease(1)
    done = scene.renew(1)
    assert (done.returncode, done.stderr) == (0, "a host opens shard 1 within seconds\n")
    await until(lambda: scene.has_lease(0, 1))


async def test_the_first_shard_begins_again_as_one_of_the_same_deployment(scene: Scene) -> None:
    assert await scene.host.stop() == 0
    scene.lose(0)
    scene.host.begin()
    await scene.host.until(lambda: LOST.format(0) in scene.host.log())
    assert scene.renew(0).returncode == 0
    await scene.host.serves(LIMIT_S)
    await until(lambda: scene.has_lease(0, 1))


async def test_a_worker_that_lives_tells_an_empty_store_what_it_had(scene: Scene) -> None:
    scene.lose(1)
    await until(lambda: scene.has_lease(0, 1))
    assert "the store has lost changes" in scene.host.log()
    assert LOST.format(1) not in scene.host.log()
