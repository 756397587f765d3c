"""One process at a time has the store; another one waits until that must be silent."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from holdfast.store.format.scripts import RAISE, SCRIPTS
from holdfast.store.links.connection import StoreUnavailable
from holdfast.store.links.link import StoreLink
from holdfast.store.opening import lease, write_right
from holdfast.store.opening.asking_to_open import Claimed, Opening
from holdfast.store.store import Store
from tests.slowness import times_slower
from tests.store.servers import ValkeyServer, primary_at
from tests.store.store_process import DEPLOYMENT, KEYS

LEASE_S = 0.6 * times_slower(most=3.0)


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "LEASE_S", LEASE_S)
    monkeypatch.setattr(write_right, "_LOOK_S", 0.05)


class Process:
    """A process that opens the store, and raises its lease when the test says so."""

    def __init__(self, link: StoreLink, opening: Opening) -> None:
        self.events: list[str] = []
        self._link = link
        self.store = Store(
            link,
            KEYS,
            opening=opening,
            stamp=lambda: 0,
            know=self.know,
            on_told=lambda: None,
            on_fenced=lambda: self.events.append("fenced"),
        )

    def know(self) -> None:
        self.events.append("emptied")

    async def raise_lease(self) -> None:
        words = ("EVAL", RAISE.source, 1, KEYS.meta, self.store.epoch)
        assert await self._link.ask(*words) == self.store.epoch.encode()
        self.store._right.was_confirmed = True

    async def raise_often(self) -> None:
        while True:
            await self.raise_lease()
            await asyncio.sleep(0.05)


@asynccontextmanager
async def process(
    server: ValkeyServer,
    lock: str,
    *,
    node: str = "one",
    is_standby: bool = False,
    host: str = "",
) -> AsyncIterator[Process]:
    link = StoreLink(
        primary_at(server.url), scripts=SCRIPTS, on_state=lambda *_: None, random=lambda: 0.0
    )
    await link.open()
    try:
        claimed = Claimed() if host else None
        opening = Opening(node, DEPLOYMENT, lock, is_standby, host=host, claimed=claimed)
        yield Process(link, opening)
    finally:
        await link.close()


async def took(process: Process) -> float:
    """How long opening takes, in seconds."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    async with asyncio.timeout(60):
        await process.store.open()
    return loop.time() - began


async def test_a_process_waits_until_the_lease_of_one_that_died_has_ended(
    shared_valkey: ValkeyServer,
) -> None:
    async with process(shared_valkey, "a") as one, process(shared_valkey, "b") as other:
        await took(one)
        await one.raise_lease()
        assert await took(other) >= LEASE_S


async def test_a_process_with_the_lock_of_the_one_before_need_not_wait(
    shared_valkey: ValkeyServer,
) -> None:
    async with process(shared_valkey, "a") as one, process(shared_valkey, "a") as other:
        await took(one)
        await one.raise_lease()
        assert await took(other) < LEASE_S


async def test_a_process_that_ended_in_order_leaves_no_lease(shared_valkey: ValkeyServer) -> None:
    async with process(shared_valkey, "a") as one, process(shared_valkey, "b") as other:
        await took(one)
        await one.raise_lease()
        await one.store.close(5)
        assert await took(other) < LEASE_S


async def test_a_store_that_a_living_process_has_is_refused_to_others(
    shared_valkey: ValkeyServer,
) -> None:
    async with process(shared_valkey, "a") as one, process(shared_valkey, "b") as other:
        await took(one)
        raising = asyncio.create_task(one.raise_often())
        with pytest.raises(StoreUnavailable, match="another server, one, has the store: stop it"):
            await took(other)
        raising.cancel()
        assert not one.events


async def test_a_standby_waits_for_as_long_as_the_other_process_lives(
    shared_valkey: ValkeyServer,
) -> None:
    async with (
        process(shared_valkey, "a") as one,
        process(shared_valkey, "b", is_standby=True) as other,
    ):
        await took(one)
        raising = asyncio.create_task(one.raise_often())
        opening = asyncio.create_task(took(other))
        await asyncio.sleep(2 * LEASE_S)
        assert not opening.done()
        raising.cancel()
        assert await opening > 2 * LEASE_S


async def test_a_store_that_a_living_host_of_several_has_is_refused_to_a_standby(
    shared_valkey: ValkeyServer,
) -> None:
    async with (
        process(shared_valkey, "a", host="host-a") as one,
        process(shared_valkey, "b", is_standby=True) as other,
    ):
        await took(one)
        raising = asyncio.create_task(one.raise_often())
        with pytest.raises(StoreUnavailable, match="hosts, one of which is host-a: stop"):
            await took(other)
        raising.cancel()


async def test_a_store_that_a_host_of_several_had_is_opened_when_its_lease_has_ended(
    shared_valkey: ValkeyServer,
) -> None:
    async with (
        process(shared_valkey, "a", host="a.example") as one,
        process(shared_valkey, "b", is_standby=True) as other,
    ):
        await took(one)
        await one.raise_lease()
        assert await took(other) >= LEASE_S
    # From now on it is no store of hosts.
    assert shared_valkey.ask("HGET", KEYS.meta, "host") is None


async def test_of_two_standbys_one_takes_over_and_the_other_waits_for_it(
    shared_valkey: ValkeyServer,
) -> None:
    async with (
        process(shared_valkey, "a") as one,
        process(shared_valkey, "b", is_standby=True) as second,
        process(shared_valkey, "c", is_standby=True) as third,
    ):
        await took(one)
        await one.raise_lease()
        openings = [asyncio.create_task(took(each)) for each in (second, third)]
        await asyncio.wait(openings, return_when=asyncio.FIRST_COMPLETED)
        [first] = [at for at, each in enumerate(openings) if each.done()]
        await (second, third)[first].raise_lease()
        assert not openings[1 - first].done()
        assert await openings[1 - first] > LEASE_S


async def test_a_process_whose_store_was_emptied_opens_it_without_waiting(
    shared_valkey: ValkeyServer,
) -> None:
    async with process(shared_valkey, "a") as one:
        await took(one)
        await one.raise_lease()
        shared_valkey.ask("FLUSHALL")
        one.store.probe()
        async with asyncio.timeout(LEASE_S):
            while not one.events:  # noqa: ASYNC110 - a list of the test
                await asyncio.sleep(0.01)
        assert one.events == ["emptied"]
        await one.raise_lease()


async def test_a_store_is_taken_back_from_a_successor_that_ends_with_the_lock_of_both(
    shared_valkey: ValkeyServer,
) -> None:
    async with process(shared_valkey, "a") as one, process(shared_valkey, "a") as successor:
        await took(one)
        await one.store.give()
        await took(successor)
        await successor.store.close(5, releases=False)
        async with asyncio.timeout(LEASE_S):
            await one.store.take_back()
        assert one.events == ["emptied"]
        await one.raise_lease()


@pytest.mark.parametrize("ends", ["in order", "killed"])
async def test_a_store_is_not_taken_back_from_another_server_which_accepted_more(
    shared_valkey: ValkeyServer, ends: str
) -> None:
    async with process(shared_valkey, "a") as one, process(shared_valkey, "b") as standby:
        await took(one)
        await one.store.give()
        await took(standby)
        if ends == "in order":
            await standby.store.close(5)
        with pytest.raises(StoreUnavailable, match="another server has opened the store"):
            async with asyncio.timeout(60):
                await one.store.take_back()
        assert one.events == ["fenced"]
        await standby.raise_lease()


async def test_a_store_is_not_taken_back_if_a_standby_was_there_behind_the_successor(
    shared_valkey: ValkeyServer,
) -> None:
    async with (
        process(shared_valkey, "a") as one,
        process(shared_valkey, "a") as successor,
        process(shared_valkey, "b") as standby,
    ):
        await took(one)
        await one.store.give()
        await took(successor)
        await took(standby)
        await standby.store.close(5)
        with pytest.raises(StoreUnavailable, match="another server has opened the store"):
            async with asyncio.timeout(60):
                await one.store.take_back()


async def test_a_store_that_was_emptied_or_went_back_meanwhile_is_taken_back(
    shared_valkey: ValkeyServer,
) -> None:
    async with process(shared_valkey, "a") as before, process(shared_valkey, "a") as one:
        await took(before)
        await before.store.close(5)
        await took(one)
        await one.raise_lease()
        for is_emptied in (True, False):
            await one.store.give()
            if is_emptied:
                shared_valkey.ask("FLUSHALL")
            else:
                shared_valkey.ask("HSET", KEYS.meta, "epoch", before.store.epoch)
                shared_valkey.ask("HDEL", KEYS.meta, "holder")
            async with asyncio.timeout(60):
                await one.store.take_back()
        assert one.events == ["emptied", "emptied"]
        await one.raise_lease()


@pytest.mark.parametrize("was_confirmed", [True, False])
async def test_a_process_that_opened_a_former_primary_overwrites_nothing_of_one_that_lives(
    shared_valkey: ValkeyServer, *, was_confirmed: bool
) -> None:
    async with process(shared_valkey, "a") as one, process(shared_valkey, "b") as other:
        await took(one)
        await one.raise_lease()
        there = shared_valkey.ask("HGETALL", KEYS.meta)
        await took(other)
        if was_confirmed:
            # Then the store itself has gone back.
            await other.raise_lease()
        shared_valkey.ask("DEL", KEYS.meta)
        for name, value in there.items():
            shared_valkey.ask("HSET", KEYS.meta, name, value)
        other.store.probe()
        async with asyncio.timeout(60):
            while not other.events:  # noqa: ASYNC110 - a list of the test
                await asyncio.sleep(0.01)
        assert other.events == (["emptied"] if was_confirmed else ["fenced"])


async def test_an_embedded_store_has_no_lease(shared_valkey: ValkeyServer) -> None:
    async with process(shared_valkey, "") as one, process(shared_valkey, "") as other:
        await took(one)
        assert not shared_valkey.ask("HEXISTS", KEYS.meta, "lease")
        assert await took(other) < LEASE_S


async def test_a_store_that_was_frozen_for_all_is_not_taken_from_a_process_that_lives(
    shared_valkey: ValkeyServer,
) -> None:
    async with (
        process(shared_valkey, "a") as one,
        process(shared_valkey, "b", is_standby=True) as other,
    ):
        await took(one)
        raising = asyncio.create_task(one.raise_often())
        opening = asyncio.create_task(took(other))
        await asyncio.sleep(0.2)
        raising.cancel()
        # The standby sees the last raise.
        await asyncio.sleep(0.2)
        shared_valkey.freeze()
        await asyncio.sleep(2.5 * LEASE_S)
        shared_valkey.thaw()
        # Its connection for raises was given up, and it connects again.
        await asyncio.sleep(LEASE_S / 2)
        raising = asyncio.create_task(one.raise_often())
        await asyncio.sleep(LEASE_S)
        assert not opening.done()
        raising.cancel()
        await opening
