"""Delayed messages in the store: another process finds them, and a publish is stored once."""

from functools import partial

import pytest

from holdfast.bayeux.sessions.restoring import restore, restore_without_session
from holdfast.delivery.shared_queues.delays import KEY, delays_of
from tests.store.servers import ValkeyServer
from tests.web.live_server import LiveServer, server_at

SECOND = 1000


async def delay(server: LiveServer, data: object, ms: int) -> None:
    server.client().publish("/a", data, ext={"delivery": {"delay": ms}})
    await server.store_process.answered()


async def load(server: LiveServer) -> None:
    store, life = server.store_process.store, server.bayeux.life
    async for loaded in store.load(partial(restore_without_session, life)):
        restore(life, loaded.record, loaded.entries, server.now)
    await server.store_process.answered()


async def pass_time(server: LiveServer, seconds: float) -> None:
    server.sleep(seconds)
    # The second tick removes what the first has published.
    for _ in range(2):
        server.now += 0.1
        server.bayeux.tick(server.now)
        await server.store_process.answered()


async def test_another_process_finds_delayed_messages_and_publishes_them_when_they_are_due(
    shared_valkey: ValkeyServer,
) -> None:
    async with server_at(shared_valkey) as server:
        await server.receiver("joe/1")
        await delay(server, "soon", SECOND)
        await delay(server, "later", 3600 * SECOND)
    async with server_at(shared_valkey) as after:
        await load(after)
        waiting = (await after.api.delayed.delayed()).items
        assert [each.data for each in waiting] == ["soon", "later"]
        assert waiting[0].due - waiting[0].accepted == SECOND
        await pass_time(after, 2)
        assert [each.data for each in (await after.api.delayed.delayed()).items] == ["later"]
        assert len(after.store_process.queue("joe/1")) == 1
        assert len(after.store_process.queue(KEY)) == 1
        assert after.balances()


async def test_a_process_that_was_killed_between_two_steps_publishes_nothing_twice(
    shared_valkey: ValkeyServer,
) -> None:
    async with server_at(shared_valkey) as server:
        await server.receiver("joe/1")
        await delay(server, "once", 1)
        # One tick publishes it. The next one, which removes it, does not come.
        server.sleep(1)
        server.bayeux.tick(server.now)
        await server.store_process.answered()
        assert len(server.store_process.queue(KEY)) == len(server.store_process.queue("joe/1")) == 1
    async with server_at(shared_valkey) as after:
        await load(after)
        await pass_time(after, 1)
        assert len(after.store_process.queue("joe/1")) == 1
        assert after.store_process.queue(KEY) == {}
        assert after.balances()


async def test_an_unreadable_record_stays_in_the_store_and_harms_no_other(
    shared_valkey: ValkeyServer, caplog: pytest.LogCaptureFixture
) -> None:
    async with server_at(shared_valkey) as server:
        await delay(server, "good", 3600 * SECOND)
        (first,) = delays_of(server.bayeux.state.waiting_places).waiting()
        await delay(server, "bad", 3600 * SECOND)
        process = server.store_process
        key = process.store.keys.bodies
        (bad,) = [each for each in process.hash(key) if int(each) != first.id]
        record = process.server.ask("HGET", key, bad)
        process.server.ask("HSET", key, bad, record[:-2] + b"]]")
    async with server_at(shared_valkey) as after:
        await load(after)
        found = (await after.api.delayed.delayed()).items
        assert [each.data for each in found] == ["good"]
        assert "unreadable and stays" in caplog.text
        assert len(after.store_process.queue(KEY)) == 2
