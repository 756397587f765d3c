"""The administration of a running server, with its store on a real Valkey: sessions, commands."""

import asyncio
import logging
import time
from typing import Any

import orjson
import pytest

from holdfast.bayeux.wire.command_refused import ILLEGAL, CommandRefused
from holdfast.delivery.queues.dispatcher import DispatcherState
from holdfast.store.letters.filter import LetterFilter
from holdfast.store.links.connection import StoreUnavailable
from holdfast.store.replays.parameters import ReplayOptions
from holdfast.web.admin.session_filter import SessionFilter
from holdfast.web.admin.session_views import ClearedQueue
from tests.store.servers import ValkeyServer
from tests.store.store_process import until
from tests.web.live_server import LiveServer, refused_with, server_at
from tests.web.people import until as until_async

REFUSED = "user.update.error"


# Sessions


async def test_sessions_are_listed_in_pages_by_key(server: LiveServer) -> None:
    for name in ("joe/2", "ann/1", "joe/10", "joe/1"):
        await server.receiver(name)
    await server.receiver(None)
    found, cursor = [], None
    while True:
        page = await server.api.sessions.sessions(SessionFilter(), cursor, 2)
        found += [item.key for item in page.items]
        cursor = page.cursor
        if cursor is None:
            break
    assert found == sorted(session.key for session in server.bayeux.state.sessions)
    assert {"ann/1", "joe/1", "joe/10", "joe/2"} < set(found)


async def keys(server: LiveServer, **conditions: Any) -> list[str]:
    page = await server.api.sessions.sessions(SessionFilter(**conditions), None, 10)
    return [item.key for item in page.items]


async def test_sessions_are_filtered_by_their_properties(server: LiveServer) -> None:
    for name in ("joe/1", "joe/2", "ann/1"):
        await server.receiver(name)
    await server.api.sessions.hold("joe/2", "", None, who="operator")

    assert await keys(server, prefix="joe/") == ["joe/1", "joe/2"]
    assert await keys(server, held=True) == ["joe/2"]
    assert await keys(server, prefix="joe/", held=False) == ["joe/1"]
    assert await keys(server, state=DispatcherState.ALIVE) == ["ann/1", "joe/1", "joe/2"]
    assert await keys(server, state=DispatcherState.DEAD) == []


async def test_a_session_is_shown_with_everything_known_about_it(server: LiveServer) -> None:
    client = await server.receiver("joe/1", retries=5, delay=7000, queue={"maxEntries": 9})
    await server.publish(1)
    await server.refuse(client, REFUSED)
    await server.publish(2, 3)
    await server.connect(client)
    await server.publish(4)
    session = await server.api.sessions.session("joe/1")
    assert (session.key, session.name, session.subject, session.number) == (
        "joe/1", "client/joe/1", "joe", 1,
    )  # fmt: skip
    assert (session.state, session.active, session.hold) == (DispatcherState.ALIVE, True, None)
    assert (session.has_connection, session.transport, session.durable) == (
        False,
        "long-polling",
        True,
    )
    assert (session.waiting, session.in_flight, session.attempts) == (1, 2, 1)
    assert session.bytes == client.session.queue.size
    assert (session.max_entries, session.retries, session.delay_ms) == (9, 5, 7000)
    assert (session.channels, session.subscriptions) == (["/a"], 1)
    assert (session.acknowledges, session.gives_verdicts) == (True, True)
    assert (session.dead, session.last_failure) == (1, REFUSED)
    assert abs(session.created - time.time() * 1000) < 60_000
    assert session.expires is not None
    assert session.expires > session.last_seen >= session.created


async def test_a_session_whose_client_is_lost_is_polling(server: LiveServer) -> None:
    await server.receiver("joe/1", retries=5, delay=7000)
    server.advance(10.1)
    session = await server.api.sessions.session("joe/1")
    assert (session.state, session.retry) == (DispatcherState.POLLING, 1)
    assert session.next_attempt is not None
    assert 0 < session.next_attempt - time.time() * 1000 < 7000


async def test_entries_show_their_state_and_attempts(server: LiveServer) -> None:
    client = await server.receiver(maxEntries=1)
    await server.publish({"n": 1}, {"n": 2})
    await server.connect(client)
    first, second = await server.api.sessions.peek("joe/1", 10)
    assert (first.state, first.seq, first.batch, first.attempts) == ("in_flight", 1, 2, 1)
    assert (second.state, second.seq, second.batch, second.attempts) == ("waiting", 0, 0, 0)
    assert (first.data, second.data) == ({"n": 1}, {"n": 2})
    assert first.id == f"test-{first.published}" + first.id[-6:]
    assert first.durable
    assert await server.api.sessions.peek("joe/1", 1) == [first]


async def test_large_entries_are_not_shown_and_deep_ones_are(server: LiveServer) -> None:
    await server.receiver()
    deep = orjson.loads("[" * 400 + "]" * 400)
    await server.publish("x" * 70_000, deep)
    large, nested = await server.api.sessions.peek("joe/1", 10)
    assert (large.is_cut, large.data) == (True, None)
    assert large.bytes > 70_000
    assert b"[" * 400 in orjson.dumps(nested)


async def test_a_killed_session_leaves_its_queue_as_dead_letters(server: LiveServer) -> None:
    client = await server.receiver()
    await server.publish(1, 2)
    await server.api.sessions.end_session("joe/1", "operator/ann")
    await server.store_process.answered()
    assert sorted(letter.data for letter in await server.dead()) == [1, 2]
    assert server.store_process.queue("joe/1") == {}
    assert client.connect().reply["error"].startswith("402")
    (entry,) = await server.audited()
    assert (entry.who, entry.action, entry.target) == ("operator/ann", "session.end", "joe/1")
    assert entry.outcome == "ok"


async def test_sessions_that_match_a_filter_are_ended_in_parts(server: LiveServer) -> None:
    for name in ("joe/1", "joe/2", "joe/3", "ann/1"):
        await server.receiver(name)
    await server.publish(1)
    which = SessionFilter(prefix="joe/")
    plan = await server.api.sessions.end_sessions(which, 2, dry_run=True, who="operator")
    assert (plan.matched, plan.entries, plan.ended, plan.dry_run) == (3, 3, 0, True)
    assert await server.audited() == []
    done = await server.api.sessions.end_sessions(which, 2, dry_run=False, who="operator/ann")
    assert (done.matched, done.entries, done.ended, done.dry_run) == (3, 3, 2, False)
    assert len(await server.dead()) == 2
    rest = await server.api.sessions.end_sessions(which, 2, dry_run=False, who="operator/ann")
    assert (rest.matched, rest.ended) == (1, 1)
    assert [session.key for session in server.bayeux.state.sessions] == ["ann/1"]
    last, first = await server.audited()
    assert (first.action, first.outcome) == ("sessions.end", "ok")
    assert first.detail == {"filter": {"prefix": "joe/"}, "ended": 2}
    assert last.detail["ended"] == 1
    assert server.balances()


async def test_sessions_are_filtered_by_whether_and_since_when_a_client_is_there(
    server: LiveServer,
) -> None:
    await server.receiver("joe/1")
    (await server.receiver("ann/1")).disconnect()
    assert await keys(server, unconnected=True) == ["ann/1"]
    assert await keys(server, unconnected=False) == ["joe/1"]
    now_ms = time.time_ns() // 1_000_000
    assert await keys(server, begun_before=now_ms - 60_000) == []
    assert await keys(server, begun_before=now_ms + 1000) == ["ann/1", "joe/1"]
    assert await keys(server, seen_before=now_ms - 60_000) == []
    assert await keys(server, seen_before=now_ms + 1000) == ["ann/1", "joe/1"]


async def test_a_session_whose_client_returns_meanwhile_is_not_ended(server: LiveServer) -> None:
    _, back = await server.receiver("joe/1"), await server.receiver("joe/2")
    server.advance(11.0)

    def come_back() -> bool:
        """Have another session return when the first has ended, at the end of its turn."""
        back.connect(ext={"ack": back.session.queue.batch})
        return True

    server.bayeux.state.is_turn_over = come_back
    which = SessionFilter(unconnected=True)
    done = await server.api.sessions.end_sessions(which, 10, dry_run=False, who="operator")
    assert (done.matched, done.ended) == (2, 1)
    assert [session.key for session in server.bayeux.state.sessions] == ["joe/2"]


async def test_a_held_session_gets_nothing_until_it_is_resumed(server: LiveServer) -> None:
    client = await server.receiver()
    until_ms = time.time_ns() // 1_000_000 + 60_000
    session = await server.api.sessions.hold("joe/1", "disk full", until_ms, who="operator")
    assert (session.active, session.state) == (False, DispatcherState.ALIVE)
    assert session.hold is not None
    assert (session.hold.reason, session.hold.who) == ("disk full", "operator")
    assert session.hold.until == until_ms
    await server.publish(1)
    assert (await server.connect(client)).data == []
    assert (await server.api.sessions.resume("joe/1", "operator")).active
    assert (await server.connect(client)).data == [1]
    assert [entry.action for entry in await server.audited()] == ["session.resume", "session.hold"]


async def test_the_log_names_the_operators_who_hold_a_session_back_and_resume_it(
    server: LiveServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    await server.receiver()
    await server.api.sessions.hold("joe/1", "", None, who="operator/ann")
    await server.api.sessions.resume("joe/1", "operator/bo")
    assert [text for text in caplog.messages if "session joe/1" in text] == [
        "session joe/1 is held back by operator/ann",
        "session joe/1 is resumed by operator/bo",
    ]


async def test_a_held_connect_is_answered_when_its_session_is_resumed(server: LiveServer) -> None:
    client = await server.receiver()
    await server.api.sessions.hold("joe/1", "", None, who="operator")
    await server.publish(1)
    asked = client.connect(ext={"ack": client.session.queue.batch})
    assert asked.is_held
    await server.api.sessions.resume("joe/1", "operator")
    await until(lambda: not asked.is_held)
    assert asked.data == [1]


async def test_a_holdback_cannot_end_before_it_begins(server: LiveServer) -> None:
    await server.receiver()
    with refused_with("user.illegalArgument"):
        await server.api.sessions.hold("joe/1", "", 1_000_000, who="operator")
    assert (await server.api.sessions.session("joe/1")).active
    (entry,) = await server.audited()
    assert (entry.action, entry.outcome) == ("session.hold", "user.illegalArgument")


async def test_a_change_is_answered_when_the_store_has_it(server: LiveServer) -> None:
    def record() -> str:
        return server.store_process.hash(server.store_process.store.keys.sessions)["joe/1"]

    await server.receiver("joe/1")
    await server.publish(1)
    await server.api.sessions.hold("joe/1", "lunch", None, who="operator")
    assert "lunch" in record()
    await server.api.system.command("client/joe/1/?dispatcherActive=true", who="operator")
    assert "lunch" not in record()
    await server.api.sessions.clear("joe/1", "operator")
    assert server.store_process.bodies() == set()
    await server.publish(2)
    await server.api.sessions.end_session("joe/1", "operator")
    assert len(server.store_process.dead()) == 1


async def test_a_cleared_queue_is_gone_and_leaves_no_letters(server: LiveServer) -> None:
    client = await server.receiver(maxEntries=1)
    await server.publish(1, 2, 3)
    await server.connect(client)
    assert await server.api.sessions.clear("joe/1", "operator") == ClearedQueue(3)
    await server.store_process.answered()
    assert server.store_process.queue("joe/1") == {}
    assert await server.dead() == []
    (entry,) = await server.audited()
    assert entry.detail == {"discarded": 3}
    assert server.balances()


async def test_requests_for_missing_things_say_that_they_are_unknown(server: LiveServer) -> None:
    api = server.api
    for asked in (
        api.sessions.session("joe/1"),
        api.sessions.peek("joe/1", 1),
        api.sessions.end_session("joe/1", "operator"),
    ):
        with refused_with("user.notConnected"):
            await asked
    for other in (
        api.letters.letter("1" * 19),
        api.letters.replay("1" * 19),
        api.system.release("/a", "operator"),
    ):
        with refused_with("user.oid.unknown"):
            await other
    assert [entry.outcome for entry in await server.audited()] == [
        "user.oid.unknown",
        "user.notConnected",
    ]


@pytest.mark.parametrize("cursor", ["", "5", "x" * 19, "1-1-1", "+", "0-0", "00-0"])
async def test_an_invalid_cursor_is_refused(server: LiveServer, cursor: str) -> None:
    with refused_with("user.illegalArgument"):
        await server.api.letters.letters(LetterFilter(), cursor, 10)
    with refused_with("user.illegalArgument"):
        await server.api.system.audit(cursor, 10)


async def test_a_held_channel_is_shown_and_released(server: LiveServer) -> None:
    clients = [await server.receiver(f"{name}/1") for name in ("joe", "ann", "eve")]
    await server.publish(0)
    for client in clients:
        await server.connect(client)
    # Each receiver has acked a message, and refuses all others from now on.
    for number in range(20):
        await server.publish(number)
        server.now += 0.5
        for client in clients:
            await server.refuse(client, REFUSED)
        if server.bayeux.state.guard.held:
            break
    (held,) = await server.api.system.held_channels()
    assert held.channel == "/a"
    assert held.reason.startswith("3 of 3 receivers refused ")
    assert abs(held.since - time.time() * 1000) < 60_000
    assert held.attempts == 0
    assert held.next_attempt is not None
    assert 4000 <= held.next_attempt - held.since <= 6000
    for client in clients:
        server.bayeux.life.clear(client.session)
    await server.publish("later")
    assert (await server.connect(clients[0])).data == []
    await server.api.system.release("/a", "operator")
    assert await server.api.system.held_channels() == []
    assert (await server.connect(clients[0])).data == ["later"]


# Commands


async def test_a_command_that_changes_something_is_audited(server: LiveServer) -> None:
    await server.receiver()
    ask = server.api.system.command
    assert (await ask("client/joe/1/?dispatcherActive", who="reader")).value == "true"
    await ask("client/joe/1/?dispatcherActive=false", who="operator")
    assert not (await server.api.sessions.session("joe/1")).active
    with pytest.raises(CommandRefused):
        await ask("client/ann/1/?killSession", who="operator")
    refused, done = await server.audited()
    assert (done.action, done.target, done.outcome) == (
        "command",
        "/node/here/client/joe/1/?dispatcherActive",
        "ok",
    )
    assert done.detail == {"argument": False}
    assert refused.outcome == "user.illegalArgument"


# The store


async def test_requests_that_need_no_store_are_answered_while_it_is_away() -> None:
    with ValkeyServer() as valkey:
        async with server_at(valkey) as server:
            client = await server.receiver()
            await server.publish(1)
            valkey.kill()
            await until(lambda: not server.store_process.link.is_up)
            api = server.api
            for asked in (
                api.letters.letters(LetterFilter(), None, 1),
                api.letters.groups(None, None, 1),
                api.letters.replays(),
                api.system.audit(None, 1),
                api.letters.replay_start(
                    LetterFilter(), ReplayOptions(), all=True, dry_run=False, who="operator"
                ),
            ):
                with pytest.raises(StoreUnavailable):
                    await asked
            [channel] = (await api.system.channels("", None, 9, sort="letters")).items
            assert (channel.name, channel.letters) == ("/a", None)
            with refused_with("resource.db.unavailable"):
                await api.letters.purge(LetterFilter(), all=True, dry_run=False, who="operator")
            session = await api.sessions.hold("joe/1", "no store", None, who="operator")
            assert (session.active, session.waiting, session.dead) == (False, 1, 0)
            valkey.start()
            await until(lambda: server.store_process.link.is_up)
            assert client.session.dispatcher is not None
            outcomes: dict[str, str] = {}

            async def are_audited() -> bool:
                # Once the store has heard what it may have lost.
                outcomes.update({each.action: each.outcome for each in await server.audited()})
                return {"session.hold", "dead.purge"} <= outcomes.keys()

            await until_async(are_audited)
            assert outcomes["session.hold"] == "ok"
            assert outcomes["dead.purge"] == "resource.db.unavailable"


async def test_an_operator_holds_a_channel_back_for_a_time(server: LiveServer) -> None:
    joe = await server.receiver("joe/1")
    until = server.bayeux.state.node.now_ms() + 60_000
    held = await server.api.system.hold_channel("/a", "stock-taking", until, who="operator/ann")
    assert (held.who, held.reason, held.until) == ("operator/ann", "stock-taking", until)
    assert (held.attempts, held.next_attempt) == (0, None)
    await server.publish("waits")
    assert (await server.connect(joe)).data == []
    server.bayeux.life.channel_holds.tick(until - 1)
    assert [each.channel for each in await server.api.system.held_channels()] == ["/a"]
    server.bayeux.life.channel_holds.tick(until)
    assert await server.api.system.held_channels() == []
    assert (await server.connect(joe)).data == ["waits"]


@pytest.mark.parametrize("channel", ["/a/*", "/service/ptp", "/meta/connect"])
async def test_only_channels_that_can_be_published_to_can_be_held_back(
    server: LiveServer, channel: str
) -> None:
    with pytest.raises(CommandRefused, match=ILLEGAL):
        await server.api.system.hold_channel(channel, who="operator")
    with pytest.raises(CommandRefused, match=ILLEGAL):
        await server.api.system.hold_channel("/a", until=1, who="operator")
    assert await server.api.system.held_channels() == []


async def test_a_channel_hold_may_end_before_the_store_has_it(server: LiveServer) -> None:
    held = asyncio.create_task(server.api.system.hold_channel("/orders", who="operator"))
    await asyncio.sleep(0)
    assert server.bayeux.life.channel_holds.release("/orders", "until", "its hold has ended")
    assert (await held).channel == "/orders"
    assert await server.api.system.held_channels() == []
