"""What is stuck now, as the administration sees it."""

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Any

import pytest

from holdfast.bayeux.state.backend_figures import BackendFigures
from holdfast.delivery.guard.holds import ChannelHold
from holdfast.delivery.messages.message import Message
from holdfast.delivery.queues.dispatcher import DispatcherState
from holdfast.settings import ChannelSettings
from holdfast.store.links.connection import StoreUnavailable
from holdfast.web.admin.now_views import BackendNow, Now
from tests.store.servers import ValkeyServer
from tests.web.live_server import LiveServer, server_at

REFUSED = "user.update.error"


@pytest.fixture
async def server() -> AsyncIterator[LiveServer]:
    rules = {"/jobs/**": ChannelSettings(work_queue=True)}
    with ValkeyServer() as valkey:
        async with server_at(valkey, channels=rules) as server:
            yield server


async def now_of(server: LiveServer, limit: int = 10) -> Now:
    """A new reading."""
    server.now += 60
    return await server.api.system.now(limit)


async def test_nothing_waits_in_a_new_server(server: LiveServer) -> None:
    now = await now_of(server)
    assert now.sentence == "nothing waits"
    assert (now.waiting, now.in_flight, now.oldest, now.store) == (0, 0, None, "available")
    assert (now.receivers.items, now.receivers.more) == ([], 0)
    assert now.figures == await server.api.system.figures()


async def test_a_session_that_is_held_back_is_named_with_what_waits_for_it(
    server: LiveServer,
) -> None:
    await server.receiver("shop/1")
    await server.api.sessions.hold("shop/1", "the till is shut", None, who="operator/ann")
    await server.publish(1, 2)
    now = await now_of(server)
    assert re.fullmatch(
        r"shop/1 has been held back since \d\d:\d\d \S+ and 2 messages wait for it", now.sentence
    )
    [held] = now.held_back.items
    assert held.hold is not None
    assert (held.receiver, held.waiting, held.hold.reason) == ("shop/1", 2, "the till is shut")
    assert held.oldest_id is not None
    trace = await server.api.messages.trace(held.oldest_id, None)
    assert [each.receiver for each in trace.queues] == ["shop/1"]


async def test_the_oldest_entry_is_found_in_flight_and_by_receiver(server: LiveServer) -> None:
    joe, _ = [await server.receiver(key) for key in ("joe/1", "ann/1")]
    await server.publish(1)
    await server.connect(joe)
    await server.publish(2)
    now = await now_of(server)
    assert now.oldest is not None
    assert [each.receiver for each in now.oldest_receivers.items] == ["joe/1", "ann/1"]
    assert (now.oldest.receiver, now.oldest.channel, now.oldest.state) == (
        "joe/1",
        "/a",
        "in_flight",
    )
    [channel] = now.channels.items
    assert (channel.channel, channel.waiting, channel.in_flight) == ("/a", 3, 1)
    assert (channel.receivers, channel.held) == (2, False)


async def test_work_is_counted_by_worker_with_its_times(server: LiveServer) -> None:
    ann = await server.receiver("ann/1", queue={"maxEntries": 2})
    ann.subscribe("/jobs/a")
    publisher = server.client()
    for number in range(3):
        publisher.publish("/jobs/a", number)
        await server.store_process.answered()
    await server.connect(ann)
    handed_ms = server.bayeux.state.node.now_ms()
    now = await now_of(server)
    [work] = now.work_queues.items
    assert (work.channel, work.waiting, work.unassigned, work.in_work) == ("/jobs/a", 1, 1, 2)
    assert work.receivers == 1
    [worker] = now.workers.items
    assert worker.channel == "/jobs/a"
    assert (worker.receiver, worker.waiting, worker.in_work) == ("ann/1", 0, 2)
    assert worker.since is not None
    # Each is reckoned from the clocks of its own moment.
    assert abs((work.since or 0) - worker.since) < 1000
    # The clock of the server was set forward by a minute, its wall clock was not.
    assert abs(worker.since - (handed_ms - 60_000)) < 5000
    assert work.oldest is not None


async def test_work_without_a_worker_is_named(server: LiveServer) -> None:
    server.client().publish("/jobs/b", 1)
    await server.store_process.answered()
    sentence = (await now_of(server)).sentence
    assert re.fullmatch(
        r"/jobs/b has no worker and 1 message waits in it since \d\d:\d\d \S+", sentence
    )


async def test_sessions_that_lost_contact_are_listed(server: LiveServer) -> None:
    await server.receiver("joe/1", retries=-1, delay=60_000)
    await server.publish(1)
    server.advance(11.0)
    now = await server.api.system.now()
    [lost] = now.unreachable.items
    assert (lost.receiver, lost.state, lost.waiting) == ("joe/1", DispatcherState.POLLING, 1)
    assert lost.since is not None
    assert now.sentence.startswith("joe/1 has been POLLING since ")
    assert now.sentence.endswith(" and 1 message waits for it")


async def test_held_channels_are_listed_with_what_waits_on_them(server: LiveServer) -> None:
    await server.receiver("joe/1")
    hold = ChannelHold(0, "it is broken", "operator/ann")
    server.bayeux.state.guard.restore("/a", hold, server.now)
    await server.publish(1)
    now = await now_of(server)
    assert [each.channel for each in now.held_channels.items] == ["/a"]
    assert now.channels.items[0].held
    assert now.sentence.startswith("/a has been held back since 1970-01-01 ")
    assert now.sentence.endswith(" and 1 message waits on it")


async def test_letters_of_the_last_hour_are_counted_by_code(server: LiveServer) -> None:
    joe = await server.receiver("joe/1")
    for code, count in ((REFUSED, 1), ("user.paper.empty", 2)):
        await server.publish(*range(count))
        await server.refuse(joe, code)
    now = await now_of(server)
    assert now.letters is not None
    found = [(each.code, each.letters) for each in now.letters.items]
    assert found == [("user.paper.empty", 2), (REFUSED, 1)]
    fewer = (await server.api.system.now(1)).letters
    assert fewer is not None
    # All others are one.
    assert [(each.code, each.letters) for each in fewer.items] == [
        ("user.paper.empty", 2),
        (None, 1),
    ]


async def test_lists_have_so_many_workers_of_each_queue_in_them(server: LiveServer) -> None:
    for channel in ("/jobs/a", "/jobs/b"):
        for number in (1, 2):
            worker = await server.receiver(f"{channel[-1]}{number}/1", queue={"maxEntries": 1})
            worker.subscribe(channel)
        for number in range(3):
            server.client().publish(channel, number)
            await server.store_process.answered()
    now = await now_of(server)
    assert len(now.workers.items) == 4
    first = await server.api.system.now(1)
    [queue] = first.work_queues.items
    assert [each.channel for each in first.workers.items] == [queue.channel]
    assert first.workers.more == 3


async def test_queues_of_work_have_no_state(server: LiveServer) -> None:
    await server.receiver("joe/1")
    await server.publish(1)
    server.client().publish("/jobs/a", 1)
    await server.store_process.answered()
    states = {each.receiver: each.state for each in (await now_of(server)).receivers.items}
    assert states == {"joe/1": DispatcherState.ALIVE, "work:/jobs/a/0": None}


async def test_every_column_of_the_lists_is_a_field_with_a_meaning(server: LiveServer) -> None:
    now = asdict(await now_of(server))
    for table in await server.api.system.now_tables():
        assert now[table.name] == {"items": [], "more": 0}
        for column in table.columns:
            assert column.meaning.endswith("."), column
            assert not column.meaning.startswith("Milliseconds"), column


async def test_lists_are_bounded_and_say_how_many_more_there_are(server: LiveServer) -> None:
    for number in range(1, 6):
        await server.receiver(f"joe/{number}")
    await server.publish(1)
    now = await now_of(server, 2)
    assert (len(now.receivers.items), now.receivers.more) == (2, 3)
    assert (len(now.oldest_receivers.items), now.oldest_receivers.more) == (2, 3)
    again = await server.api.system.now(10)
    assert (len(again.receivers.items), again.receivers.more) == (5, 0)
    assert again.time == now.time


async def test_a_message_that_nobody_acknowledges_is_named_after_a_minute(
    server: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    joe = await server.receiver("joe/1")
    await server.publish(1)
    await server.connect(joe)
    assert (await now_of(server)).sentence == "nothing waits"
    monkeypatch.setattr("holdfast.web.admin.now_sentence._LATE_MS", 0)
    sentence = (await now_of(server)).sentence
    assert sentence.startswith("nothing waits, but joe/1 has not acknowledged a message since ")


async def test_a_reading_needs_no_store(
    server: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object) -> Any:
        raise StoreUnavailable("it is away")

    monkeypatch.setattr(server.letters.search, "query", away)
    server.bayeux.state.store.link.is_full = True  # type: ignore[attr-defined]
    now = await now_of(server)
    assert (now.letters, now.store) == (None, "full")
    assert now.sentence.startswith("the store is unavailable")


async def test_a_long_count_ends_no_turn_late_and_all_callers_share_it(
    server: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    joe = await server.receiver("joe/1")
    queue = joe.session.queue
    queue.limit(10**6, 10**9)
    queue.new = [Message(b"{}", id=n + 1, channel="/a") for n in range(20_000)]
    queue.count = len(queue.new)
    monkeypatch.setattr("holdfast.web.admin.tallying._SLICE_S", 0.0)
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    busy = asyncio.create_task(others())
    now, again = await asyncio.gather(now_of(server), server.api.system.now())
    busy.cancel()
    assert now.waiting == 20_000
    assert now.time == again.time
    # Ten parts of this queue, each in a turn of its own.
    assert turns >= 10


async def test_a_backend_that_is_broken_or_lets_questions_wait_is_shown(
    server: LiveServer,
) -> None:
    figures = server.bayeux.state.backend = BackendFigures("https://shop.example")
    assert (await now_of(server)).backend.items == []
    figures.open, figures.waiting = 64, 3
    now = await now_of(server)
    assert now.sentence == "nothing waits"
    assert now.backend.items == [
        BackendNow(
            shard=0, state="answers", since=None, open=64, waiting=3, failure="", failed=None
        )
    ]
    figures.waiting, figures.broken_ms = 0, now.time
    figures.failure, figures.failed_ms = "no answer in time", now.time + 1
    now = await now_of(server)
    [broken] = now.backend.items
    assert (broken.state, broken.since) == ("broken", figures.broken_ms)
    assert (broken.failure, broken.failed) == ("no answer in time", figures.failed_ms)
    assert re.fullmatch(
        r"the backend has not answered since \d\d:\d\d \S+: what it decides about is refused",
        now.sentence,
    )
    figures.broken_ms = None
    assert (await now_of(server)).backend.items == []
