"""The administration of a running server, with its store on a real Valkey: sessions, commands."""

import asyncio
import time
from typing import Any

import orjson
import pytest

from holdfast.bayeux.grammar import ILLEGAL, CommandRefused
from holdfast.store.connection import StoreUnavailable
from holdfast.store.letter_filter import LetterFilter
from holdfast.store.replay_options import ReplayOptions
from holdfast.web.admin.session_filter import SessionFilter
from holdfast.web.admin.session_views import ClearedQueue
from tests.store.desk import until
from tests.store.servers import ValkeyServer
from tests.web.live_house import LiveHouse, house_at, refused_with

REFUSED = "user.update.error"


# Sessions


async def test_sessions_are_listed_in_pages_by_key(house: LiveHouse) -> None:
    for name in ("joe/2", "ann/1", "joe/10", "joe/1"):
        await house.receiver(name)
    await house.receiver(None)
    found, cursor = [], None
    while True:
        page = await house.api.sessions.sessions(SessionFilter(), cursor, 2)
        found += [item.key for item in page.items]
        cursor = page.cursor
        if cursor is None:
            break
    assert found == sorted(session.key for session in house.bayeux.state.sessions)
    assert {"ann/1", "joe/1", "joe/10", "joe/2"} < set(found)


async def test_sessions_are_filtered_by_their_properties(house: LiveHouse) -> None:
    for name in ("joe/1", "joe/2", "ann/1"):
        await house.receiver(name)
    await house.api.sessions.hold("joe/2", "", None, who="operator")

    async def keys(**conditions: Any) -> list[str]:
        page = await house.api.sessions.sessions(SessionFilter(**conditions), None, 10)
        return [item.key for item in page.items]

    assert await keys(prefix="joe/") == ["joe/1", "joe/2"]
    assert await keys(held=True) == ["joe/2"]
    assert await keys(prefix="joe/", held=False) == ["joe/1"]
    assert await keys(state="ALIVE") == ["ann/1", "joe/1", "joe/2"]
    assert await keys(state="DEAD") == []


async def test_a_session_is_shown_with_everything_known_about_it(house: LiveHouse) -> None:
    client = await house.receiver("joe/1", retries=5, delay=7000, queue={"maxEntries": 9})
    await house.publish(1)
    await house.refuse(client, REFUSED)
    await house.publish(2, 3)
    await house.connect(client)
    await house.publish(4)
    session = await house.api.sessions.session("joe/1")
    assert (session.key, session.name, session.subject, session.number) == (
        "joe/1", "client/joe/1", "joe", 1,
    )  # fmt: skip
    assert (session.state, session.active, session.hold) == ("ALIVE", True, None)
    assert (session.connected, session.transport, session.durable) == (False, "long-polling", True)
    assert (session.waiting, session.handed, session.attempts) == (1, 2, 1)
    assert session.bytes == client.session.queue.size
    assert (session.max_entries, session.retries, session.delay_ms) == (9, 5, 7000)
    assert (session.channels, session.subscriptions) == (["/a"], 1)
    assert (session.acknowledges, session.gives_verdicts) == (True, True)
    assert (session.dead, session.last_failure) == (1, REFUSED)
    assert abs(session.created - time.time() * 1000) < 60_000
    assert session.expires is not None
    assert session.expires > session.last_seen >= session.created


async def test_a_session_whose_client_is_lost_is_polling(house: LiveHouse) -> None:
    await house.receiver("joe/1", retries=5, delay=7000)
    house.advance(10.1)
    session = await house.api.sessions.session("joe/1")
    assert (session.state, session.retry) == ("POLLING", 1)
    assert session.next_attempt is not None
    assert 0 < session.next_attempt - time.time() * 1000 < 7000


async def test_entries_show_their_state_and_attempts(house: LiveHouse) -> None:
    client = await house.receiver(maxEntries=1)
    await house.publish({"n": 1}, {"n": 2})
    await house.connect(client)
    first, second = await house.api.sessions.peek("joe/1", 10)
    assert (first.state, first.seq, first.batch, first.attempts) == ("handed", 1, 2, 1)
    assert (second.state, second.seq, second.batch, second.attempts) == ("waiting", 0, 0, 0)
    assert (first.data, second.data) == ({"n": 1}, {"n": 2})
    assert first.id == f"test-{first.published}" + first.id[-6:]
    assert first.durable
    assert await house.api.sessions.peek("joe/1", 1) == [first]


async def test_large_entries_are_not_shown_and_deep_ones_are(house: LiveHouse) -> None:
    await house.receiver()
    deep = orjson.loads("[" * 400 + "]" * 400)
    await house.publish("x" * 70_000, deep)
    large, nested = await house.api.sessions.peek("joe/1", 10)
    assert (large.is_cut, large.data) == (True, None)
    assert large.bytes > 70_000
    assert b"[" * 400 in orjson.dumps(nested)


async def test_a_killed_session_leaves_its_queue_as_dead_letters(house: LiveHouse) -> None:
    client = await house.receiver()
    await house.publish(1, 2)
    await house.api.sessions.kill("joe/1", "operator/ann")
    await house.desk.answered()
    assert sorted(letter.data for letter in await house.dead()) == [1, 2]
    assert house.desk.queue("joe/1") == {}
    assert client.connect().reply["error"].startswith("402")
    (entry,) = await house.audited()
    assert (entry.who, entry.action, entry.target) == ("operator/ann", "session.kill", "joe/1")
    assert entry.outcome == "ok"


async def test_sessions_that_match_a_filter_are_ended_in_parts(house: LiveHouse) -> None:
    for name in ("joe/1", "joe/2", "joe/3", "ann/1"):
        await house.receiver(name)
    await house.publish(1)
    which = SessionFilter(prefix="joe/")
    plan = await house.api.sessions.end_sessions(which, 2, dry_run=True, who="operator")
    assert (plan.matched, plan.entries, plan.ended, plan.dry_run) == (3, 3, 0, True)
    assert await house.audited() == []
    done = await house.api.sessions.end_sessions(which, 2, dry_run=False, who="operator/ann")
    assert (done.matched, done.entries, done.ended, done.dry_run) == (3, 3, 2, False)
    assert len(await house.dead()) == 2
    rest = await house.api.sessions.end_sessions(which, 2, dry_run=False, who="operator/ann")
    assert (rest.matched, rest.ended) == (1, 1)
    assert [session.key for session in house.bayeux.state.sessions] == ["ann/1"]
    last, first = await house.audited()
    assert (first.action, first.outcome) == ("sessions.end", "ok")
    assert first.detail == {"filter": {"prefix": "joe/"}, "ended": 2}
    assert last.detail["ended"] == 1
    assert house.balances()


async def test_sessions_are_filtered_by_whether_and_since_when_a_client_is_there(
    house: LiveHouse,
) -> None:
    async def keys(**conditions: Any) -> list[str]:
        page = await house.api.sessions.sessions(SessionFilter(**conditions), None, 10)
        return [item.key for item in page.items]

    await house.receiver("joe/1")
    (await house.receiver("ann/1")).disconnect()
    assert await keys(unconnected=True) == ["ann/1"]
    assert await keys(unconnected=False) == ["joe/1"]
    now_ms = time.time_ns() // 1_000_000
    assert await keys(begun_before=now_ms - 60_000) == []
    assert await keys(begun_before=now_ms + 1000) == ["ann/1", "joe/1"]
    assert await keys(seen_before=now_ms - 60_000) == []
    assert await keys(seen_before=now_ms + 1000) == ["ann/1", "joe/1"]


async def test_a_session_whose_client_returns_meanwhile_is_not_ended(house: LiveHouse) -> None:
    _, back = await house.receiver("joe/1"), await house.receiver("joe/2")
    house.advance(11.0)

    def come_back() -> bool:
        """Have another session return when the first has ended, at the end of its turn."""
        back.connect(ext={"ack": back.session.queue.batch})
        return True

    house.bayeux.state.is_turn_over = come_back
    which = SessionFilter(unconnected=True)
    done = await house.api.sessions.end_sessions(which, 10, dry_run=False, who="operator")
    assert (done.matched, done.ended) == (2, 1)
    assert [session.key for session in house.bayeux.state.sessions] == ["joe/2"]


async def test_a_held_session_gets_nothing_until_it_is_resumed(house: LiveHouse) -> None:
    client = await house.receiver()
    until_ms = time.time_ns() // 1_000_000 + 60_000
    session = await house.api.sessions.hold("joe/1", "disk full", until_ms, who="operator")
    assert (session.active, session.state) == (False, "ALIVE")
    assert session.hold is not None
    assert (session.hold.reason, session.hold.who) == ("disk full", "operator")
    assert session.hold.until == until_ms
    await house.publish(1)
    assert (await house.connect(client)).data == []
    assert (await house.api.sessions.resume("joe/1", "operator")).active
    assert (await house.connect(client)).data == [1]
    assert [entry.action for entry in await house.audited()] == ["session.resume", "session.hold"]


async def test_a_held_connect_is_answered_when_its_session_is_resumed(house: LiveHouse) -> None:
    client = await house.receiver()
    await house.api.sessions.hold("joe/1", "", None, who="operator")
    await house.publish(1)
    asked = client.connect(ext={"ack": client.session.queue.batch})
    assert asked.is_held
    await house.api.sessions.resume("joe/1", "operator")
    await until(lambda: not asked.is_held)
    assert asked.data == [1]


async def test_a_holdback_cannot_end_before_it_begins(house: LiveHouse) -> None:
    await house.receiver()
    with refused_with("user.illegalArgument"):
        await house.api.sessions.hold("joe/1", "", 1_000_000, who="operator")
    assert (await house.api.sessions.session("joe/1")).active
    (entry,) = await house.audited()
    assert (entry.action, entry.outcome) == ("session.hold", "user.illegalArgument")


async def test_a_change_is_answered_when_the_store_has_it(house: LiveHouse) -> None:
    def record() -> str:
        return house.desk.hash(house.desk.store.keys.sessions)["joe/1"]

    await house.receiver("joe/1")
    await house.publish(1)
    await house.api.sessions.hold("joe/1", "lunch", None, who="operator")
    assert "lunch" in record()
    await house.api.system.command("client/joe/1/?dispatcherActive=true", who="operator")
    assert "lunch" not in record()
    await house.api.sessions.clear("joe/1", "operator")
    assert house.desk.bodies() == set()
    await house.publish(2)
    await house.api.sessions.kill("joe/1", "operator")
    assert len(house.desk.dead()) == 1


async def test_a_cleared_queue_is_gone_and_leaves_no_letters(house: LiveHouse) -> None:
    client = await house.receiver(maxEntries=1)
    await house.publish(1, 2, 3)
    await house.connect(client)
    assert await house.api.sessions.clear("joe/1", "operator") == ClearedQueue(3)
    await house.desk.answered()
    assert house.desk.queue("joe/1") == {}
    assert await house.dead() == []
    (entry,) = await house.audited()
    assert entry.detail == {"discarded": 3}
    assert house.balances()


async def test_requests_for_missing_things_say_that_they_are_unknown(house: LiveHouse) -> None:
    api = house.api
    for asked in (
        api.sessions.session("joe/1"),
        api.sessions.peek("joe/1", 1),
        api.sessions.kill("joe/1", "operator"),
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
    assert [entry.outcome for entry in await house.audited()] == [
        "user.oid.unknown",
        "user.notConnected",
    ]


@pytest.mark.parametrize("cursor", ["", "5", "x" * 19, "1-1-1", "+", "0-0", "00-0"])
async def test_an_invalid_cursor_is_refused(house: LiveHouse, cursor: str) -> None:
    with refused_with("user.illegalArgument"):
        await house.api.letters.letters(LetterFilter(), cursor, 10)
    with refused_with("user.illegalArgument"):
        await house.api.system.audit(cursor, 10)


async def test_a_held_channel_is_shown_and_released(house: LiveHouse) -> None:
    clients = [await house.receiver(f"{name}/1") for name in ("joe", "ann", "eve")]
    await house.publish(0)
    for client in clients:
        await house.connect(client)
    # Each receiver has acked a message, and refuses all others from now on.
    for number in range(20):
        await house.publish(number)
        house.now += 0.5
        for client in clients:
            await house.refuse(client, REFUSED)
        if house.bayeux.state.guard.held:
            break
    (held,) = await house.api.system.held_channels()
    assert held.channel == "/a"
    assert held.reason.startswith("3 of 3 receivers refused ")
    assert abs(held.since - time.time() * 1000) < 60_000
    assert held.attempts == 0
    assert held.next_attempt is not None
    assert 4000 <= held.next_attempt - held.since <= 6000
    for client in clients:
        house.bayeux.life.clear(client.session)
    await house.publish("later")
    assert (await house.connect(clients[0])).data == []
    await house.api.system.release("/a", "operator")
    assert await house.api.system.held_channels() == []
    assert (await house.connect(clients[0])).data == ["later"]


# Commands


async def test_a_command_that_changes_something_is_audited(house: LiveHouse) -> None:
    await house.receiver()
    ask = house.api.system.command
    assert (await ask("client/joe/1/?dispatcherActive", who="reader")).value == "true"
    await ask("client/joe/1/?dispatcherActive=false", who="operator")
    assert not (await house.api.sessions.session("joe/1")).active
    with pytest.raises(CommandRefused):
        await ask("client/ann/1/?killSession", who="operator")
    refused, done = await house.audited()
    assert (done.action, done.target, done.outcome) == (
        "command",
        "/node/test/client/joe/1/?dispatcherActive",
        "ok",
    )
    assert done.detail == {"argument": False}
    assert refused.outcome == "user.illegalArgument"


async def test_a_reader_of_a_queue_may_wait_for_its_first_entry(house: LiveHouse) -> None:
    await house.receiver()
    text = "client/joe/1/?callbackQueueEntries=waitingDelay=5000"
    asking = asyncio.create_task(house.api.system.command(text, who="reader"))
    await asyncio.sleep(0.05)
    await house.publish({"n": 1})
    result = await asyncio.wait_for(asking, 5)
    assert result.entries == [{"channel": "/a", "data": {"n": 1}}]


async def test_reading_a_queue_ends_with_its_session(house: LiveHouse) -> None:
    client = await house.receiver()
    text = "client/joe/1/?callbackQueueEntries=waitingDelay=-1"
    asking = asyncio.create_task(house.api.system.command(text, who="reader"))
    await asyncio.sleep(0.05)
    await house.api.sessions.kill("joe/1", "operator")
    with pytest.raises(CommandRefused):
        await asyncio.wait_for(asking, 5)
    assert client.session.is_gone


# The store


async def test_requests_that_need_no_store_are_answered_while_it_is_away() -> None:
    with ValkeyServer() as server:
        async with house_at(server) as house:
            client = await house.receiver()
            await house.publish(1)
            server.kill()
            await until(lambda: not house.desk.link.is_up)
            api = house.api
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
            with refused_with("resource.db.unavailable"):
                await api.letters.purge(LetterFilter(), all=True, dry_run=False, who="operator")
            session = await api.sessions.hold("joe/1", "no store", None, who="operator")
            assert (session.active, session.waiting, session.dead) == (False, 1, 0)
            server.start()
            await until(lambda: house.desk.link.is_up)
            assert client.session.dispatcher is not None
            outcomes = {entry.action: entry.outcome for entry in await house.audited()}
            assert outcomes["session.hold"] == "ok"
            assert outcomes["dead.purge"] == "resource.db.unavailable"


async def test_an_operator_holds_a_channel_back_for_a_time(house: LiveHouse) -> None:
    joe = await house.receiver("joe/1")
    until = house.bayeux.state.node.now_ms() + 60_000
    held = await house.api.system.hold_channel("/a", "stock-taking", until, who="operator/ann")
    assert (held.who, held.reason, held.until) == ("operator/ann", "stock-taking", until)
    assert (held.attempts, held.next_attempt) == (0, None)
    await house.publish("waits")
    assert (await house.connect(joe)).data == []
    house.bayeux.life.channel_holds.tick(until - 1)
    assert [each.channel for each in await house.api.system.held_channels()] == ["/a"]
    house.bayeux.life.channel_holds.tick(until)
    assert await house.api.system.held_channels() == []
    assert (await house.connect(joe)).data == ["waits"]


@pytest.mark.parametrize("channel", ["/a/*", "/service/ptp", "/meta/connect"])
async def test_only_channels_that_can_be_published_to_can_be_held_back(
    house: LiveHouse, channel: str
) -> None:
    with pytest.raises(CommandRefused, match=ILLEGAL):
        await house.api.system.hold_channel(channel, who="operator")
    with pytest.raises(CommandRefused, match=ILLEGAL):
        await house.api.system.hold_channel("/a", until=1, who="operator")
    assert await house.api.system.held_channels() == []
