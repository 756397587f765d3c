"""A host whose fixed settings differ from those of the host with the shards gets none."""

from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, TypeVar

import pytest

from bench.processes import reserved_port
from tests.chaos.hosts import NAMES, Host, until
from tests.chaos.twin import LIMIT_S
from tests.store.servers import ValkeyServer
from tests.web.certificates import Authority

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

SHARDS = 2
H = TypeVar("H", bound=Host)


def host_maker(home: Path, url: str, stack: AsyncExitStack, kind: type[H]) -> Callable[..., H]:
    """Return what makes hosts of a deployment of two."""
    authority = Authority(home)
    listed = [f"{name}:{stack.enter_context(reserved_port())}" for name in NAMES[:2]]

    def make(name: str, directory: str, **settings: Any) -> H:
        cert, key = authority.issue(name, at=name)
        (home / directory).mkdir()
        own = {"hosts": listed, "own_host": name, "shards": SHARDS, "standby": False}
        links = {"link_cert": str(cert), "link_key": str(key), "link_ca": str(authority.file)}
        host = kind(home / directory, {"redis": url, **own, **links, **settings})
        stack.push_async_callback(host.close)
        return host

    return make


@pytest.fixture
def store() -> Iterator[ValkeyServer]:
    with ValkeyServer() as found:
        yield found


async def test_a_host_without_the_login_of_the_others_gets_no_shard_and_serves_nothing(
    tmp_path: Path, store: ValkeyServer
) -> None:
    async with AsyncExitStack() as stack:
        make = host_maker(tmp_path, store.url, stack, Host)
        users = tmp_path / "users"
        users.write_text("")
        first = make(NAMES[0], "first", login_passwords=str(users))
        first.begin()
        await first.serves(LIMIT_S)
        await first.until(lambda: len(first.shards) == SHARDS)
        forgot = make(NAMES[1], "forgot")
        forgot.begin()
        await forgot.until(lambda: "takes no shard" in forgot.log(), LIMIT_S)
        [said] = [each for each in forgot.lines() if "takes no shard" in each]
        assert "all hosts with shards: login." in said
        assert (await forgot.readiness())[0] == 503
        assert not forgot.shards
        assert len(first.shards) == SHARDS
        await forgot.close()
        fixed = make(NAMES[1], "fixed", login_passwords=str(users))
        fixed.begin()
        await fixed.serves(LIMIT_S)
        assert "takes no shard" not in fixed.log()
        await first.kill_all()
        await until(lambda: len(fixed.shards) == SHARDS)
