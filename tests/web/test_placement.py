"""Shards on one machine have their own stores; what operators read is in one directory."""

from pathlib import Path
from typing import Any

import pytest

from holdfast.compose import CannotStart, serving
from holdfast.compose.placement import placed
from holdfast.settings import Settings
from holdfast.store.keys import RedisKeys
from tests.store.servers import ValkeyServer


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
        assert names(first.data) - names(second.data) == {"admin-token", "reader-token", "shards"}
        assert {"lock", "store", "store.sock"} <= names(second.data)
        assert second.data.parent.stat().st_mode & 0o777 == 0o700
        with pytest.raises(CannotStart, match="belongs to another running server"):
            async with serving(settings, second):
                pass


async def test_shards_in_one_external_store_have_keys_of_their_own(tmp_path: Path) -> None:
    with ValkeyServer() as valkey:
        settings = settings_in(tmp_path / "data", redis=valkey.url, namespace="test")
        async with (
            serving(settings, placed(settings, 0, 2)),
            serving(settings, placed(settings, 1, 2)),
        ):
            deployments = [valkey.ask("HGET", RedisKeys("test", n).meta, "fence") for n in (0, 1)]
            assert deployments == [b"1", b"1"]


def test_a_shard_knows_the_places_of_the_others(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    third = placed(settings, 2, 4, links=tmp_path / "short")
    assert third.others == [0, 1, 3]
    assert third.data_of(0) == tmp_path
    assert third.data_of(3) == tmp_path / "shards" / "3"
    assert third.link_of(1) == tmp_path / "short" / "1.sock"
