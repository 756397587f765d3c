"""What operators say of dead letters that failed alike."""

import itertools

import pytest

from holdfast.store import remarks
from holdfast.store.connection import StoreUnavailable
from tests.store.desk import Desk, desk
from tests.store.servers import ValkeyServer


async def test_the_latest_word_stands(at: Desk) -> None:
    await at.letters.remarks.put("f1", "joe", "", "operator")
    said = await at.letters.remarks.put("f1", "ann", "the disk was full", "operator/ann")
    assert await at.letters.remarks.of(["f1", "f2"]) == [said, None]
    assert await at.letters.remarks.of([]) == []


async def test_nothing_to_say_leaves_nothing(at: Desk) -> None:
    before = at.names()
    await at.letters.remarks.put("f1", "joe", "it is known", "operator")
    await at.letters.remarks.put("f1", "", "", "operator")
    assert await at.letters.remarks.of(["f1"]) == [None]
    assert at.names() == before


async def test_of_too_many_the_oldest_goes(at: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remarks, "MOST", 2)
    noon = itertools.count(10**18, 10**9)
    some = remarks.Remarks(at.store, at.redis, noon.__next__)
    for name in ("f1", "f2", "f1", "f3"):
        await some.put(name, "joe", "", "operator")
    known = await some.of(["f1", "f2", "f3"])
    assert [each is not None for each in known] == [True, False, True]


async def test_a_store_that_is_away_says_so(valkey: ValkeyServer) -> None:
    async with desk(valkey) as at:
        valkey.kill()
        with pytest.raises(StoreUnavailable):
            await at.letters.remarks.of(["f1"])
