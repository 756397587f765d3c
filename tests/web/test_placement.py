"""Shards on one machine have their own stores; what operators read is in one directory."""

from pathlib import Path
from typing import Any

import pytest

from holdfast.cluster.shards import homes_of, map_of
from holdfast.compose import CannotStart, serving
from holdfast.compose.placement import placed
from holdfast.compose.shard_origin import count_in_store
from holdfast.compose.workers import stored_here
from holdfast.settings import Settings
from holdfast.sharding import following
from holdfast.store.format.keys import RedisKeys
from holdfast.store.links.primary import Primary
from holdfast.store.links.reader import Reader
from holdfast.store.links.url import StoreUrl
from holdfast.store.local.home import Home
from tests.store.servers import ValkeyServer


@pytest.fixture(autouse=True)
def others_are_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most shards here are alone: each would wait for the facts of others that never come."""
    monkeypatch.setattr(following, "_PATIENCE_S", 0.05)


def settings_in(data: Path, **given: Any) -> Settings:
    return Settings(port=0, data=data, **given)


def names(directory: Path) -> set[str]:
    return {each.name for each in directory.iterdir()}


async def test_each_shard_has_a_lock_and_a_store_and_all_have_the_same_tokens(
    tmp_path: Path,
) -> None:
    settings = settings_in(tmp_path / "data")
    first, second = (placed(settings, number, 2) for number in (0, 1))
    async with serving(settings, first), serving(settings, second):
        assert first.data == settings.data
        assert second.data == settings.data / "shards" / "1"
        only_first = names(first.data) - names(second.data)
        assert only_first == {"admin-token", "reader-token", "shards", "links"}
        assert {"lock", "store", "store.sock"} <= names(second.data)
        assert second.data.parent.stat().st_mode & 0o777 == 0o700
        with pytest.raises(CannotStart, match="belongs to another running server"):
            async with serving(settings, second):
                pass


async def meta(url: str, namespace: str, shard: int) -> dict[bytes, bytes]:
    key = RedisKeys(namespace, shard).meta
    reader = Reader(Primary(StoreUrl.of(url), key))
    found: dict[bytes, bytes] = await reader.ask("HGETALL", key)
    reader.close()
    return found


async def test_all_shards_have_the_name_and_the_key_of_the_first(tmp_path: Path) -> None:
    with ValkeyServer() as valkey:
        settings = settings_in(tmp_path / "data", redis=valkey.url, namespace="test")
        async with (
            serving(settings, placed(settings, 0, 2)),
            serving(settings, placed(settings, 1, 2)),
        ):
            both = [await meta(valkey.url, "test", shard) for shard in (0, 1)]
            for field in (b"deployment", b"key", b"seed"):
                assert both[0][field] == both[1][field]
            assert map_of(both[0][b"shards"]).count == 2
            assert homes_of(both[0][b"homes"]).segments == {}
            assert not {b"shards", b"homes"} & both[1].keys()


async def test_a_server_alone_has_no_map_of_shards(tmp_path: Path) -> None:
    settings = settings_in(tmp_path / "data")
    async with serving(settings):
        found = await meta(Home(settings.data).url, "holdfast", 0)
        assert not {b"shards", b"homes"} & found.keys()


async def test_no_shard_starts_with_rules_for_which_channels_would_have_other_homes(
    tmp_path: Path,
) -> None:
    rules = {"/a/**": {"history": 3}, "/b": {"lazy_timeout": 1.0}}
    settings = settings_in(tmp_path / "data", channels=rules)
    others = settings_in(tmp_path / "data", channels={"/a/**": {"history": 3}, "/c": {"topic": 1}})
    async with serving(settings, placed(settings, 0, 2)):
        found = await meta(Home(settings.data).url, "holdfast", 0)
        assert homes_of(found[b"homes"]).segments == {"/a/**": 1}
        with pytest.raises(CannotStart, match='other rules for "/c"'):
            async with serving(others, placed(others, 1, 2)):
                pass
    with pytest.raises(CannotStart, match='other rules for "/c"'):
        async with serving(others, placed(others, 0, 2)):
            pass


@pytest.mark.parametrize(("created", "wanted"), [(2, 1), (1, 2), (2, 3)])
async def test_a_store_of_another_number_of_shards_is_refused(
    tmp_path: Path, created: int, wanted: int
) -> None:
    settings = settings_in(tmp_path / "data")
    async with serving(settings, placed(settings, 0, created)):
        before = await meta(Home(settings.data).url, "holdfast", 0)
    with pytest.raises(
        CannotStart, match=f"this deployment has {created}, and {wanted} cannot serve"
    ):
        async with serving(settings, placed(settings, 0, wanted)):
            pass
    async with serving(settings, placed(settings, 0, created)):
        after = await meta(Home(settings.data).url, "holdfast", 0)
        assert after.get(b"shards") == before.get(b"shards")


def test_a_shard_knows_the_places_of_the_others(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    third = placed(settings, 2, 4, links=tmp_path / "short")
    assert third.others == [0, 1, 3]
    assert third.data_of(0) == tmp_path
    assert third.data_of(3) == tmp_path / "shards" / "3"
    assert third.link_of(1) == tmp_path / "short" / "1.sock"


async def test_a_store_says_with_how_many_workers_it_was_created(tmp_path: Path) -> None:
    with ValkeyServer() as valkey:
        settings = settings_in(tmp_path / "data", redis=valkey.url, namespace="test")
        assert await count_in_store(settings) is None
        async with serving(settings, placed(settings, 0, 3)):
            assert await count_in_store(settings) == 3
        other = settings_in(tmp_path / "other", redis=valkey.url, namespace="alone")
        async with serving(other):
            assert await count_in_store(other) == 1


async def test_a_data_directory_shows_with_how_many_workers_it_was_created(tmp_path: Path) -> None:
    several, single = settings_in(tmp_path / "several"), settings_in(tmp_path / "single")
    async with serving(several, placed(several, 0, 3)), serving(single):
        assert (stored_here(several.data), stored_here(single.data)) == (3, 1)
