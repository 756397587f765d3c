"""What a host asks the stores of all shards, twice a second."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from holdfast.compose.claim_store import ClaimStore
from holdfast.settings import Settings
from holdfast.store.links.reader import Reader

SHARDS = 6
LONE, CLUSTER = "redis://127.0.0.1:6399", "redis+cluster://127.0.0.1:6399"


@pytest.mark.parametrize(("url", "stores"), [(LONE, 1), (CLUSTER, SHARDS)])
async def test_a_look_asks_each_store_once_so_that_a_distant_one_is_seen_in_time(
    url: str, stores: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[Sequence[Sequence[str]]] = []

    async def answer(_: Reader, *commands: Sequence[str]) -> list[Any]:
        asked.append(commands)
        answers = {"HMGET": [b"7", b"1", b"a", b"", b"n", b"d"], "HGETALL": {}, "EXISTS": 1}
        return [answers[command[0]] for command in commands]

    monkeypatch.setattr(Reader, "ask_all", answer)
    files: dict[str, Any] = {name: tmp_path / name for name in ("link_cert", "link_key", "link_ca")}
    settings = Settings(
        redis=url,
        hosts=["127.0.0.1:1", "127.0.0.2:1"],
        own_host="127.0.0.1",
        shards=SHARDS,
        **files,
    )
    store = ClaimStore(settings, SHARDS)
    # What comes over a connection that is new does not count.
    monkeypatch.setattr(Reader, "connection", "the first one")
    seen, rows = await store.read()
    assert (set(seen.values()), rows, store.is_to_drain) == ({None}, None, None)
    assert len(asked) == stores
    seen, rows = await store.read()
    assert [each and each.host for each in seen.values()] == ["a"] * SHARDS
    assert (rows, store.is_to_drain) == ({}, True)
    assert len(asked) == 2 * stores
    store.close()
