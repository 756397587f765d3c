"""A server gives the store to its successor, or takes it back from one that did not start."""

import pytest

from holdfast.delivery.messages.storing import PersistOutcome
from holdfast.store.links.connection import StoreUnavailable
from holdfast.store.opening.write_right import seed_of
from tests.store.servers import ValkeyServer
from tests.store.store_process import StoreProcess, message, session, store_process


async def test_a_successor_has_everything_that_was_written_before_the_store_was_given(
    at: StoreProcess, shared_valkey: ValkeyServer
) -> None:
    async with store_process(shared_valkey, is_open=False) as successor:
        await successor.store.look()
        assert successor.store.deployment == at.store.deployment
        assert seed_of(successor.store.epoch) == seed_of(at.store.epoch)
        at.store.save(session("joe/1"))
        at.keep(message(1), "joe/1")
        await at.store.give()
        await successor.store.open()
        loaded = await successor.loaded()
        assert [entry.id for _, entry in loaded["joe/1"].entries] == [message(1).id]


async def test_nothing_is_written_after_the_store_was_given(at: StoreProcess) -> None:
    await at.store.give()
    at.keep(message(1), "joe/1")
    at.store.save(session("joe/1"))
    at.store.flush()
    await at.answered_line()
    assert at.kept[1] == [PersistOutcome.REFUSED]
    assert at.hash(at.store.keys.sessions) == {}
    assert at.events == []


async def test_a_store_that_no_successor_opened_is_had_again_as_it_was(at: StoreProcess) -> None:
    epoch = at.store.epoch
    await at.store.give()
    at.store.save(session("joe/1"))
    await at.store.take_back()
    assert at.store.epoch == epoch
    await at.answered()
    assert [*at.hash(at.store.keys.sessions)] == ["joe/1"]
    at.keep(message(1), "joe/1")
    await at.answered()
    assert at.kept[1] == [PersistOutcome.KEPT]


async def test_a_store_is_taken_back_from_a_successor_that_has_opened_and_changed_it(
    at: StoreProcess, shared_valkey: ValkeyServer
) -> None:
    at.store.save(session("joe/1"))
    at.keep(message(1), "joe/1")
    await at.store.give()
    async with store_process(shared_valkey) as successor:
        successor.settle("joe/1", [message(1)])
        successor.store.save(session("eve/1"))
        await successor.answered()
        assert successor.bodies() == set()
        # The supervisor has ended it: it has no chance to write at its end.
        await successor.store.give()
    await at.store.take_back()
    at.keep(message(2), "joe/1")
    await at.answered()
    assert at.kept[2] == [PersistOutcome.KEPT]
    assert "emptied" in at.events
    assert "fenced" not in at.events


async def test_a_successor_refuses_a_store_that_is_not_the_running_servers(
    shared_valkey: ValkeyServer,
) -> None:
    async with store_process(shared_valkey, is_open=False) as successor:
        with pytest.raises(StoreUnavailable, match="the running server has another store"):
            await successor.store.look()
