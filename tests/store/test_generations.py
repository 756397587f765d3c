"""The keys of a store show their generation; `meta` says which one is current."""

import pytest
from redis import Redis

from holdfast.store.format.keys import RedisKeys
from holdfast.store.format.tags import slot_of, tag_of
from holdfast.store.links.connection import StoreUnavailable
from holdfast.store.opening.dividing import generation_of
from holdfast.store.opening.generations import keys_of
from tests.store.model import Room
from tests.store.servers import ValkeyServer
from tests.store.store_process import KEYS, StoreProcess, store_process, until
from tests.store.stored_scene import furnish, stored

# What all generations share.
SHARED = (
    "meta",
    "audit",
    "lakes",
    "journal:",
    "notes:",
    "pipeline:",
    "log",
    "facts",
    "inbox",
    "figures",
    "hosts",
)


def test_everything_but_what_generations_share_has_the_generation_in_its_key(redis: Redis) -> None:
    furnish(Room(redis))
    names = [name.removeprefix("{test}:") for name in stored(redis)]
    own = [name for name in names if not name.startswith(SHARED)]
    assert len(own) > 10
    assert all(name.startswith("g1:") for name in own)
    assert redis.hget(KEYS.meta, "generation") == b"1"


def test_no_two_generations_have_a_key_in_common_unless_they_share_it() -> None:
    def keys_in(generation: int) -> set[str]:
        keys = RedisKeys("test", generation=generation)
        made = (keys.receivers(7), keys.marks("joe/1"), keys.replay("1"), keys.letters_by("a", "b"))
        shared = (keys.journal("n"), keys.journal_read("n"), keys.notes("n"))
        fixed = [value for value in vars(keys).values() if type(value) is str]
        assert all(name.startswith("{test}:") for name in (*fixed, *made, *shared))
        return {*fixed, *made, *shared, keys.pipeline_result("dead")} - {"{test}:"}

    for one, other in ((1, 2), (0, 1)):
        common = {name.removeprefix("{test}:") for name in keys_in(one) & keys_in(other)}
        assert all(name.startswith(SHARED) for name in common), common
        assert len(common) == 13


def test_what_generations_share_is_of_none_so_that_it_is_not_removed_with_a_former_one() -> None:
    keys = RedisKeys("test", generation=2)
    for name, key in vars(keys).items():
        if type(key) is str and name not in ("tag", "prefix"):
            is_shared = not key.startswith(keys.prefix)
            assert generation_of(keys, key) == (None if is_shared else 2), key


def test_all_generations_of_a_shard_are_in_one_slot() -> None:
    for shard in (0, 3):
        prefixes = [RedisKeys("test", shard, generation).prefix for generation in range(3)]
        assert {slot_of(each.partition("}")[0][1:]) for each in prefixes} == {
            slot_of(tag_of("test", shard))
        }


async def test_an_empty_store_gets_the_first_generation_and_keeps_it(
    shared_valkey: ValkeyServer,
) -> None:
    async with store_process(shared_valkey, is_open=False) as at:
        assert (await keys_of(at.link, "test")).prefix == "{test}:g1:"
        await at.store.open()
        assert (await keys_of(at.link, "test")).prefix == "{test}:g1:"
        at.server.ask("HSET", KEYS.meta, "generation", 7)
        assert (await keys_of(at.link, "test")).prefix == "{test}:g7:"


async def test_a_store_without_a_readable_generation_is_refused(at: StoreProcess) -> None:
    at.server.ask("HSET", KEYS.meta, "generation", "new")
    with pytest.raises(StoreUnavailable, match="generation"):
        await keys_of(at.link, "test")


@pytest.mark.parametrize("generation", [0, 2])
async def test_a_process_with_keys_of_another_generation_is_refused_and_changes_nothing(
    shared_valkey: ValkeyServer, generation: int
) -> None:
    async with store_process(shared_valkey) as at:
        before = at.hash(KEYS.meta)
        other = RedisKeys("test", generation=generation)
        async with store_process(shared_valkey, is_open=False, keys=other) as late:
            with pytest.raises(StoreUnavailable, match="GENERATION 1"):
                await late.store.open()
        assert at.hash(KEYS.meta) == before


@pytest.mark.parametrize("generation", [0, 2])
async def test_a_store_that_was_emptied_in_use_gets_its_generation_again(
    shared_valkey: ValkeyServer, generation: int
) -> None:
    keys = RedisKeys("test", generation=generation)
    shared_valkey.ask("HSET", keys.meta, "generation", generation)
    async with store_process(shared_valkey, keys=keys) as at:
        at.server.ask("FLUSHALL")
        at.store.leave_history("/a", 1)
        at.store.flush()
        await until(lambda: at.events == ["emptied"])
        assert at.hash(keys.meta)["generation"] == str(generation)
        assert (await keys_of(at.link, "test")).prefix == keys.prefix
