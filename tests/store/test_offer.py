"""A process offers its store to another host, and learns whether that has taken it."""

import asyncio
from collections.abc import Callable

import pytest

from holdfast.store.opening import offer
from holdfast.store.opening.offer import is_taken
from tests.store.servers import ValkeyServer, primary_at
from tests.store.store_process import KEYS

EPOCH, LATER = "seed-1.aaaaaaaa", "seed-2.bbbbbbbb"


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offer, "_LASTS_S", 1.0)


async def outcome(valkey: ValkeyServer, meanwhile: Callable[[], object]) -> bool:
    """Offer the store of a process, and do something as soon as it is offered."""
    valkey.ask("HSET", KEYS.meta, "epoch", EPOCH)
    offering = asyncio.create_task(is_taken(primary_at(valkey.url), KEYS, EPOCH, "b"))
    while valkey.ask("HGET", KEYS.meta, "offer") != b"b":  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    meanwhile()
    return await offering


async def test_an_offer_that_another_process_opens_is_taken(shared_valkey: ValkeyServer) -> None:
    assert await outcome(
        shared_valkey, lambda: shared_valkey.ask("HSET", KEYS.meta, "epoch", LATER)
    )


async def test_an_offer_that_is_not_opened_is_withdrawn(shared_valkey: ValkeyServer) -> None:
    assert not await outcome(shared_valkey, lambda: None)
    assert shared_valkey.ask("HGET", KEYS.meta, "offer") is None


async def test_a_store_that_is_emptied_meanwhile_was_not_taken(
    shared_valkey: ValkeyServer,
) -> None:
    # The process that offers it still has what was lost.
    assert not await outcome(shared_valkey, lambda: shared_valkey.ask("DEL", KEYS.meta))
