"""What operators see: figures and their feed, channels, and the trace of a message."""

import asyncio
import time
from dataclasses import asdict
from typing import Any

import orjson
import pytest

from holdfast.delivery.guard.holds import ChannelHold
from holdfast.delivery.messages.message import Message
from holdfast.delivery.queues.dispatcher import DispatcherState
from holdfast.delivery.routing.latency import LatencySampler
from holdfast.journal.builder import FrameBuilder
from holdfast.journal.schema import Kind
from holdfast.store.links.connection import StoreUnavailable
from holdfast.web.admin import messages, sorting
from holdfast.web.admin.alerts import Alerts
from holdfast.web.admin.faults import RequestFailed
from holdfast.web.admin.feed import CHANNEL, Feed
from holdfast.web.admin.figures import LiveFigures
from holdfast.web.admin.session_filter import SessionFilter
from holdfast.web.admin.system_views import Figures
from tests.slowness import times_slower
from tests.store.store_process import until
from tests.unit.bayeux.harness import Asked
from tests.web.live_server import LiveServer

REFUSED = "user.update.error"


def figures_of(server: LiveServer, letters: Any = None) -> LiveFigures:
    state = server.bayeux.state
    return LiveFigures(
        state,
        alerts=Alerts(),
        clock=lambda: server.now,
        version="1",
        letters=letters or server.letters.search.statistics,
    )


async def test_figures_count_messages_entries_and_letters(server: LiveServer) -> None:
    joe = await server.receiver("joe/1")
    ann = await server.receiver("ann/1")
    await server.publish(1, 2)
    await server.refuse(joe, REFUSED)
    await server.connect(ann)
    await server.publish(3)
    figures = await server.api.system.figures()
    assert (figures.published, figures.accepted) == (3, 6)
    assert (figures.dead, figures.letters, figures.failed) == (2, 2, 2)
    oldest = (await server.dead())[-1]
    assert (figures.letters_lately, figures.letters_oldest) == (2, oldest.died)
    assert (figures.waiting, figures.in_flight, figures.unaccounted) == (2, 2, 0)
    assert (figures.sessions, figures.durable, figures.store_available) == (2, 2, True)
    assert figures.oldest_ms is not None
    assert figures.latency is None


async def test_sessions_whose_client_has_left_or_was_lost_are_not_connected(
    server: LiveServer,
) -> None:
    await server.receiver("joe/1", retries=5, delay=60_000)
    server.advance(9.0)
    ann = await server.receiver("ann/1")
    leaving = await server.receiver("eve/1")
    leaving.disconnect()
    server.advance(1.5)
    figures = await server.api.system.figures()
    assert (figures.sessions, figures.connected, figures.away, figures.polling) == (3, 1, 1, 1)
    found = await server.api.sessions.sessions(SessionFilter(unconnected=False), None, 10)
    assert [each.key for each in found.items] == [ann.session.key]
    sessions = (await server.api.sessions.sessions(SessionFilter(), None, 10)).items
    assert {each.key: (each.state, each.absent) for each in sessions} == {
        "ann/1": (DispatcherState.ALIVE, False),
        "eve/1": (DispatcherState.UNDEF, True),
        "joe/1": (DispatcherState.POLLING, True),
    }


async def test_entries_of_a_held_back_session_do_not_count_as_oldest(server: LiveServer) -> None:
    await server.receiver("joe/1")
    await server.api.sessions.hold("joe/1", "", None, who="operator")
    await server.publish(1)
    figures = await server.api.system.figures()
    assert (figures.waiting, figures.held_back, figures.oldest_ms) == (1, 1, None)


async def test_entries_of_a_held_channel_do_not_count_as_oldest(server: LiveServer) -> None:
    client = await server.receiver("joe/1")
    client.subscribe("/b")
    server.bayeux.state.guard.restore(
        "/a", ChannelHold(0, "most refuse", "operator/ann"), server.now
    )
    await server.publish(1)
    assert (await server.api.system.figures()).oldest_ms is None
    server.for_extensions.publish("/b", 2)
    await server.store_process.answered()
    server.now += 1
    assert (await server.api.system.figures()).oldest_ms is not None


async def test_returned_entries_count_as_oldest_unless_they_wait_for_a_retry(
    server: LiveServer,
) -> None:
    client = await server.receiver("joe/1", retries=5, delay=60_000)
    await server.publish(1)
    await server.refuse(client, "communication.noConnection")
    figures = await server.api.system.figures()
    assert (figures.waiting, figures.polling, figures.oldest_ms) == (1, 1, None)
    client.disconnect()
    server.now += 2
    figures = await server.api.system.figures()
    assert (figures.waiting, figures.polling, figures.oldest_ms is None) == (1, 0, False)


async def test_readings_do_not_wait_for_a_store_that_is_known_to_be_silent(
    server: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def silent(*_: object) -> Any:
        await asyncio.Event().wait()

    system = server.api.system
    monkeypatch.setattr(type(server.bayeux.state.store), "takes_messages", False)
    monkeypatch.setattr(server.letters.search, "query", silent)
    monkeypatch.setattr(system._figures, "_letters", silent)
    async with asyncio.timeout(0.9 * times_slower()):
        now = await system.now(1)
    assert (now.store, now.letters, now.figures.letters) == ("unavailable", None, None)


async def test_all_callers_share_one_reading_a_second(server: LiveServer) -> None:
    first = await server.api.system.figures()
    await server.publish(1)
    assert await server.api.system.figures() is first
    server.now += 1
    assert (await server.api.system.figures()).published == 1


async def test_figures_need_no_store(server: LiveServer) -> None:
    async def away() -> int:
        raise StoreUnavailable("it is away")

    assert (await figures_of(server, away).read()).letters is None


class FramedEvent:
    """A feed, and a subscriber that may receive it and acknowledges."""

    def __init__(self, server: LiveServer) -> None:
        self.server = server
        self.figures, state = figures_of(server), server.bayeux.state
        self.feed = Feed(self.figures, state.channels, state.hub, state.node)
        self.client = server.guest()
        self.client.learn(self.client.handshake(ext={"ack": True, "delivery": True}))
        self.client.session.identity.role = "reader"
        self.client.connect()
        assert self.client.subscribe(CHANNEL).reply["successful"]

    async def second(self) -> None:
        self.server.now += 1
        await self.feed.publish()

    def wait(self) -> Asked:
        """The client acknowledges what it has, and waits for the next reading."""
        return self.client.connect(ext={"ack": self.client.session.queue.batch})

    async def waited_for(self) -> list[Any]:
        """The events that the waiting client gets within the next second."""
        waiting = self.wait()
        await self.second()
        await until(lambda: not waiting.is_held)
        return waiting.data

    async def heard(self) -> list[Any]:
        return (await self.server.connect(self.client)).data


async def test_subscribers_get_figures_once_a_second(server: LiveServer) -> None:
    told = FramedEvent(server)
    for _ in range(3):
        [figures] = await told.waited_for()
        assert figures.keys() == Figures.__dataclass_fields__.keys()
        waiting = told.wait()
        await told.feed.publish()
        assert waiting.is_held


async def test_nothing_is_measured_without_subscribers(server: LiveServer) -> None:
    told = FramedEvent(server)
    await told.second()
    assert server.bayeux.state.hub.watch is not None
    told.client.unsubscribe(CHANNEL)
    await told.second()
    assert server.bayeux.state.hub.watch is None
    assert (await told.figures.read()).published == 1


async def test_a_subscriber_that_connects_rarely_finds_one_reading(server: LiveServer) -> None:
    told = FramedEvent(server)
    for _ in range(9):
        await told.second()
        assert told.client.session.queue.count == 1
    assert len(await told.heard()) == 1
    server.advance(60.0)
    await server.store_process.answered()
    assert told.client.session.is_gone
    assert await server.dead() == []
    assert server.balances()


@pytest.mark.parametrize("is_noticed", [True, False])
async def test_a_closed_console_leaves_no_dead_letters(
    server: LiveServer, is_noticed: bool, caplog: pytest.LogCaptureFixture
) -> None:
    told = FramedEvent(server)
    assert len(await told.waited_for()) == 1
    waiting = told.wait()
    if is_noticed:
        server.abort(waiting)
    for _ in range(9):
        await told.second()
        server.bayeux.life.owner.alert("/a", "most refuse")
        await server.store_process.answered()
    server.advance(60.0)
    await server.store_process.answered()
    assert told.client.session.is_gone
    counters = server.bayeux.state.hub.counters
    assert (counters.expired, counters.dead, counters.refused.total()) == (0, 0, 0)
    assert server.balances()
    assert "given up" not in caplog.text


async def test_latency_is_measured_while_somebody_subscribes(server: LiveServer) -> None:
    told = FramedEvent(server)
    assert await told.waited_for()
    waiting = told.wait()
    await told.second()
    await until(lambda: not waiting.is_held)
    server.now += 1
    latency = (await told.figures.read()).latency
    assert latency is not None
    assert latency.count == 1
    assert 0 <= latency.p50 <= latency.p99 <= latency.longest


async def test_channels_come_by_name_with_subscribers_and_rates(server: LiveServer) -> None:
    await server.receiver("joe/1")
    await server.receiver("ann/1")
    server.bayeux.state.hub.watch = LatencySampler(server.now)
    server.for_extensions.publish("/nobody", 1)
    await server.publish(1, 2)
    server.bayeux.state.hub.watch.read(server.now + 2)
    first = await server.api.system.channels("", None, 1)
    rest = await server.api.system.channels("", first.cursor, 9)
    told = [
        (each.name, each.subscribers, each.rate, each.held) for each in first.items + rest.items
    ]
    assert told == [("/a", 2, 1.0, False), ("/nobody", 0, 0.5, False)]
    assert rest.cursor is None
    assert (await server.api.system.channels("/x", None, 9)).items == []
    found = await server.api.sessions.sessions(SessionFilter(channel="/a"), None, 9)
    assert [each.key for each in found.items] == ["ann/1", "joe/1"]


async def test_a_session_that_ends_while_the_list_is_sorted_is_not_in_it(
    server: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sorting, "_STRETCH", 1)
    for key in ("ann/1", "joe/1", "zoe/1"):
        await server.receiver(key)
    listing = asyncio.create_task(
        server.api.sessions.sessions(SessionFilter(), None, 9, sort="key")
    )
    await asyncio.sleep(0)
    await server.api.sessions.end_session("zoe/1", "operator")
    assert [each.key for each in (await listing).items] == ["ann/1", "joe/1"]


async def test_a_message_is_found_waiting_in_flight_and_among_dead_letters(
    server: LiveServer,
) -> None:
    joe, ann, _ = [await server.receiver(key) for key in ("joe/1", "ann/1", "zoe/1")]
    await server.publish("lost")
    [event] = (await server.connect(ann)).events
    id = event["ext"]["delivery"]["id"]
    await server.refuse(joe, REFUSED)
    trace = await server.api.messages.trace(id, None)
    found = [(each.receiver, each.state, each.attempts) for each in trace.queues]
    assert sorted(found) == [("ann/1", "in_flight", 1), ("zoe/1", "waiting", 0)]
    assert [letter.receiver for letter in trace.letters] == ["joe/1"]
    assert {letter.message for letter in trace.letters} == {id}
    assert (trace.published, trace.is_cut) == (int(id.rpartition("-")[2]) // 1_000_000, False)


async def test_the_place_of_a_message_says_since_when_its_receiver_is_gone(
    server: LiveServer,
) -> None:
    joe, ann = [await server.receiver(key) for key in ("joe/1", "ann/1")]
    await server.publish("lost")
    [event] = (await server.connect(ann)).events
    before = time.time_ns() // 1_000_000
    joe.disconnect()
    trace = await server.api.messages.trace(event["ext"]["delivery"]["id"], None)
    gone = {each.receiver: each.gone_since for each in trace.queues}
    assert gone["ann/1"] is None
    assert gone["joe/1"] is not None
    assert abs(gone["joe/1"] - before) < 60_000


async def test_the_trace_of_a_message_that_never_existed_is_empty(server: LiveServer) -> None:
    await server.receiver("joe/1")
    await server.publish(1)
    nothing = await server.api.messages.trace(f"test-{time.time_ns()}", None)
    assert (nothing.queues, nothing.letters, nothing.steps) == ([], [], [])
    assert nothing.lakes == []
    assert (nothing.published, nothing.is_cut) == (None, False)


async def test_a_trace_names_the_tables_that_the_journal_is_read_into(server: LiveServer) -> None:
    keys = server.store_process.store.keys
    server.store_process.server.ask("HSET", keys.lakes, "2", "shelf:/lake", "1", "desk:/data/lake")
    trace = await server.api.messages.trace(f"test-{time.time_ns()}", None)
    assert trace.lakes == ["desk:/data/lake", "shelf:/lake"]


async def test_a_trace_says_when_it_is_incomplete(
    server: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    joe, _ = [await server.receiver(key) for key in ("joe/1", "ann/1")]
    await server.publish(1)
    [event] = (await server.connect(joe)).events
    id = event["ext"]["delivery"]["id"]
    monkeypatch.setattr(messages, "_MOST_QUEUES", 1)
    trace = await server.api.messages.trace(id, None)
    assert (len(trace.queues), trace.is_cut) == (1, True)
    monkeypatch.setattr(messages, "_MOST_QUEUES", 2)
    assert not (await server.api.messages.trace(id, None)).is_cut
    for key in ("joe/1", "ann/1"):
        await server.api.sessions.end_session(key, "operator")
    await server.store_process.answered()
    monkeypatch.setattr(messages, "_MOST_LETTERS", 1)
    trace = await server.api.messages.trace(id, None)
    assert (len(trace.letters), trace.is_cut) == (1, True)


async def test_a_trace_reads_the_journal_in_pages(server: LiveServer) -> None:
    now = time.time_ns()
    message = Message(b"{}", id=now, channel="/a")
    for number in range(101):
        builder = FrameBuilder("test")
        builder.delivered(Kind.HANDED, [message], "joe/1", now // 1000, number + 1)
        server.store_process.store.journal.write_frame(builder.frame())
    await server.store_process.answered()
    first = await server.api.messages.trace(f"test-{now}", None)
    rest = await server.api.messages.trace(f"test-{now}", first.cursor)
    attempts = [each.attempt for each in first.steps + rest.steps]
    assert attempts == [*range(1, 102)]
    assert (len(first.steps), rest.cursor) == (100, None)


async def test_a_message_of_an_earlier_release_is_found_by_the_name_of_its_node(
    server: LiveServer,
) -> None:
    """Then ids began with that name, and a server could be renamed."""
    now, store = time.time_ns(), server.store_process.store
    message = Message(b"{}", id=now, channel="/a")
    for node, kind in (("one", Kind.HANDED), ("two", Kind.ACKED)):
        builder = FrameBuilder(node)
        builder.delivered(kind, [message], "joe/1", now // 1000)
        at = server.store_process
        at.server.ask("XADD", store.keys.journal(node), "*", "frame", builder.frame())
        at.server.ask("HSET", store.keys.meta, store.keys.journal(node), 1)
    for name in ("one", "two", "test"):
        trace = await server.api.messages.trace(f"{name}-{now}", None)
        assert [(each.node, each.kind) for each in trace.steps] == [
            ("one", Kind.HANDED),
            ("two", Kind.ACKED),
        ]
        assert trace.id == f"test-{now}"


async def test_nothing_is_known_of_a_message_of_another_deployment(server: LiveServer) -> None:
    client = await server.receiver()
    await server.publish(1)
    (message,) = client.session.queue.messages()
    assert (await server.api.messages.trace(f"test-{message.id}", None)).queues
    other = await server.api.messages.trace(f"other-{message.id}", None)
    assert (other.queues, other.letters, other.steps, other.published) == ([], [], [], None)


async def test_results_of_the_pipeline_are_shown_unchanged(server: LiveServer) -> None:
    column = {"name": "dead", "form": "count", "meaning": "How many."}
    about = {"title": "Dead letters", "columns": [column]}
    told = {"result": "dead", "at": 3, "since": 1, "until": 2, **about, "rows": [{"dead": 7}]}
    key = server.store_process.store.keys.pipeline_result("dead")
    server.store_process.server.ask("SET", key, orjson.dumps({"v": 2, **told}))
    assert asdict(await server.api.system.pipeline_result("dead")) == told
    assert [asdict(each) for each in await server.api.system.pipeline_results()] == [told]
    server.store_process.server.ask("SET", key, orjson.dumps({"v": 3, "shape": "nobody knows"}))
    for name in ("dead", "poison"):
        with pytest.raises(RequestFailed):
            await server.api.system.pipeline_result(name)
    assert await server.api.system.pipeline_results() == []
