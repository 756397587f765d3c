"""The store keeps the name and the key of its deployment, whichever server uses it."""

import re
from typing import Any

import pytest
from redis import Redis

from holdfast.delivery.messages.outcomes import ACKED
from holdfast.store.format.deployment import Deployment
from holdfast.store.format.keys import NO_GENERATION, RedisKeys
from holdfast.store.format.opening_scripts import open_store
from holdfast.store.links.connection import StoreUnavailable
from holdfast.store.opening.asking_to_open import Opening
from holdfast.store.store import Store
from tests.store.servers import ValkeyServer
from tests.store.store_process import KEYS, StoreProcess, ids, message, store_process, until


async def opened(at: StoreProcess, name: str | None = None, node: str = "test") -> Deployment:
    """What another process finds that opens the store over the link of this one."""
    store = Store(
        at.link,
        KEYS,
        opening=Opening(node, Deployment.proposed(name)),
        stamp=lambda: 0,
        know=lambda: None,
        on_told=lambda: None,
        on_fenced=lambda: None,
    )
    await store.open()
    return store.deployment


async def test_every_server_finds_the_deployment_of_the_first_one(
    shared_valkey: ValkeyServer,
) -> None:
    async with store_process(shared_valkey, is_open=False) as at:
        first = await opened(at, node="a")
        assert re.fullmatch("[a-z][a-z0-9]{5}", first.name)
        assert len(first.key) == 32
        assert [await opened(at, node=node) for node in ("b", "c")] == [first, first]
        assert await opened(at, first.name) == first


async def test_a_new_store_gets_the_name_that_a_setting_gives(shared_valkey: ValkeyServer) -> None:
    async with store_process(shared_valkey, is_open=False) as at:
        assert (await opened(at, "shop")).name == "shop"
        assert (await opened(at)).name == "shop"


async def test_no_two_stores_have_the_same_name_or_key(shared_valkey: ValkeyServer) -> None:
    async with store_process(shared_valkey, is_open=False) as at:
        first = await opened(at)
        at.server.ask("FLUSHALL")
        second = await opened(at)
    assert first.name != second.name
    assert first.key != second.key


async def test_a_setting_with_another_name_is_refused_and_changes_nothing(
    shared_valkey: ValkeyServer,
) -> None:
    async with store_process(shared_valkey) as at:
        before = at.hash(KEYS.meta)
        with pytest.raises(StoreUnavailable, match="belongs to the deployment test, not to shop"):
            await opened(at, "shop")
        assert at.hash(KEYS.meta) == before


async def test_a_store_that_was_emptied_in_use_gets_its_deployment_again(
    at: StoreProcess,
) -> None:
    before = at.store.deployment
    at.server.ask("FLUSHALL")
    at.keep(message(1), "joe/1")
    at.store.settle("joe/1", ids(1), ACKED)
    await until(lambda: at.events == ["emptied"])
    assert await opened(at) == at.store.deployment == before


def test_a_key_is_not_printed() -> None:
    assert "key" not in repr(Deployment("shop", b"secret"))


def test_the_name_of_an_earlier_release_is_that_of_its_node(redis: Redis) -> None:
    """Its ids began with it."""
    redis.flushall()
    redis.hset(KEYS.meta, mapping={"version": "2", "seed": "seed", "fence": "1", "node": "shop-1"})
    proposed = Deployment.proposed(None)
    keys = RedisKeys("test", generation=NO_GENERATION)
    call = open_store(keys, seed="x", node="b", nonce="nonce000", deployment=proposed)
    reply: Any = redis.register_script(call.script.source)(call.keys, call.args)
    assert reply[5] == b"shop-1"
