"""The remarks of operators about groups of dead letters."""

import itertools

import pytest

from holdfast.store import remarks
from holdfast.store.links.connection import StoreUnavailable
from tests.store.servers import ValkeyServer
from tests.store.store_process import StoreProcess, store_process


async def test_a_later_remark_replaces_an_earlier_one(at: StoreProcess) -> None:
    await at.letters.remarks.put("f1", "joe", "", "operator")
    said = await at.letters.remarks.put("f1", "ann", "the disk was full", "operator/ann")
    assert await at.letters.remarks.of(["f1", "f2"]) == [said, None]
    assert await at.letters.remarks.of([]) == []


async def test_an_empty_remark_removes_the_remark(at: StoreProcess) -> None:
    before = at.names()
    await at.letters.remarks.put("f1", "joe", "it is known", "operator")
    await at.letters.remarks.put("f1", "", "", "operator")
    assert await at.letters.remarks.of(["f1"]) == [None]
    assert at.names() == before


async def test_the_oldest_of_too_many_remarks_is_removed(
    at: StoreProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remarks, "MOST", 2)
    noon = itertools.count(10**18, 10**9)
    some = remarks.Remarks(at.store, at.reader, noon.__next__)
    for name in ("f1", "f2", "f1", "f3"):
        await some.put(name, "joe", "", "operator")
    known = await some.of(["f1", "f2", "f3"])
    assert [each is not None for each in known] == [True, False, True]


async def test_reading_remarks_fails_while_the_store_is_away(valkey: ValkeyServer) -> None:
    async with store_process(valkey) as at:
        valkey.kill()
        with pytest.raises(StoreUnavailable):
            await at.letters.remarks.of(["f1"])
