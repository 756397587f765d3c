"""A store has a server with a standby, or hosts, and refuses the others until all have stopped."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from bench.processes import reserved_port
from tests.chaos.hosts import NAMES
from tests.chaos.twin import LIMIT_S, Twin
from tests.store.servers import ValkeyServer
from tests.web.certificates import Authority

SHARDS = 2

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


class Kinds:
    """A host, and a standby, on one store."""

    def __init__(self, home: Path, url: str, stack: AsyncExitStack) -> None:
        self._home, self._stack = home, stack
        self._redis = {"redis": url, "deployment": "d"}

    def standby(self, name: str = "standby") -> Twin:
        return self._twin(name, workers=SHARDS)

    def host(self, name: str = "host") -> Twin:
        authority = Authority(self._home)
        cert, key = authority.issue(NAMES[0], at=NAMES[0])
        port = self._stack.enter_context(reserved_port())
        return self._twin(
            name,
            hosts=[f"{NAMES[0]}:{port}"],
            own_host=NAMES[0],
            shards=SHARDS,
            standby=False,
            link_cert=str(cert),
            link_key=str(key),
            link_ca=str(authority.file),
        )

    def _twin(self, name: str, **settings: Any) -> Twin:
        directory = self._home / name
        directory.mkdir()
        found = Twin(directory, {"node": name, **self._redis, **settings})
        self._stack.push_async_callback(found.close)
        return found


@pytest.fixture
async def kinds(tmp_path: Path) -> AsyncIterator[Kinds]:
    async with AsyncExitStack() as stack:
        store = stack.enter_context(ValkeyServer())
        yield Kinds(tmp_path, store.url, stack)


async def test_a_standby_is_refused_by_a_host_and_has_the_store_after_a_stop(kinds: Kinds) -> None:
    host, standby = kinds.host(), kinds.standby()
    host.begin()
    await host.serves(LIMIT_S)
    with pytest.raises(RuntimeError, match=f"several hosts, one of which is {NAMES[0]}: stop all"):
        await kinds.standby("refused").start()
    assert (await host.readiness())[0] == 200
    assert await host.stop() == 0
    standby.begin()
    await standby.serves(LIMIT_S)


async def test_a_host_is_refused_by_a_standby_and_has_the_store_after_a_stop(kinds: Kinds) -> None:
    host, standby = kinds.host(), kinds.standby()
    standby.begin()
    await standby.serves(LIMIT_S)
    with pytest.raises(RuntimeError, match="the server standby, which has no such setting, has"):
        await kinds.host("refused").start()
    assert (await standby.readiness())[0] == 200
    assert await standby.stop() == 0
    host.begin()
    await host.serves(LIMIT_S)
