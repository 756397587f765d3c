"""Loading: what the next process finds in the store, and which process may open it."""

import asyncio
import logging
from collections.abc import Sequence
from operator import attrgetter

import pytest

from holdfast.delivery.guard.holds import ChannelHold
from holdfast.delivery.messages.former_attempts import FormerAttempts, former_of
from holdfast.delivery.messages.former_attempts import tried as moved
from holdfast.delivery.messages.keeping import HistoryDepth
from holdfast.delivery.messages.marks import Mark
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.outcomes import ACKED, Move
from holdfast.delivery.messages.storing import PersistOutcome
from holdfast.delivery.messages.trails import Attempt
from holdfast.delivery.topics.configured import TopicConfig, TopicRecord
from holdfast.store.format import records
from holdfast.store.format.layouts import LAYOUT, OLDEST_LAYOUT
from holdfast.store.links.connection import StoreUnavailable
from tests.store.servers import ValkeyServer
from tests.store.store_process import (
    BASE,
    KEYS,
    StoreProcess,
    batch,
    ids,
    letter,
    mark,
    message,
    session,
    store_process,
    until,
)

# Texts that are no record: no JSON, another version, JSON of another shape.
UNREADABLE = ["no json", '{"v": 99}', "{}", '{"v": 1}', "[]", "7"]

# Loading


async def test_another_process_finds_sessions_and_entries_in_their_order(
    shared_valkey: ValkeyServer,
) -> None:
    async with store_process(shared_valkey) as at:
        at.store.save(session("joe/1", subscriptions=["/orders/*"], batch=3, seq=9))
        urgent = message(4)
        urgent.priority = 9
        urgent.properties = {"shop": "north"}
        urgent.life_ms = 60_000
        for each in (message(1), message(2), message(3), urgent, message(5)):
            at.keep(each, "joe/1")
        at.store.mark("joe/1", [mark(5, 7, batch=2), mark(3, position=6)])
        await at.answered()
    async with store_process(shared_valkey) as other:
        [loaded] = (await other.loaded()).values()
    assert loaded.record == session("joe/1", subscriptions=["/orders/*"], batch=3, seq=9)
    assert [entry.id - BASE for entry, _ in loaded.entries] == [3, 5, 4, 1, 2]
    assert loaded.entries[1][0] == mark(5, 7, batch=2)
    found = loaded.entries[2][1]
    assert (found.wire, found.channel, found.sender) == (urgent.wire, "/orders/new", "client/ann/2")
    assert (found.priority, found.properties, found.life_ms) == (9, {"shop": "north"}, 60_000)
    assert found.is_durable


async def test_a_replayed_entry_does_not_expire_with_its_message(at: StoreProcess) -> None:
    at.store.save(session("joe/1"))
    at.store.save(session("ann/1"))
    mortal = message(1)
    mortal.limit_life(1000, is_forced=True)
    at.keep(mortal, "joe/1", "ann/1")
    await at.answered()
    at.server.ask("HSET", KEYS.marks("joe/1"), str(BASE + 1), "g1")
    loaded = await at.loaded()
    lives = {key: bool(each.entries[0][1].expires_ms) for key, each in loaded.items()}
    assert lives == {"joe/1": False, "ann/1": True}


async def test_another_process_finds_the_channels_that_are_held_back(
    at: StoreProcess, shared_valkey: ValkeyServer
) -> None:
    why = ChannelHold(1_763_000_000_000, "3 of 3 receivers refused 11 of 11 messages")
    at.store.save_channel_hold("/a", why)
    by_hand = ChannelHold(1_763_000_000_000, "", "operator/ann", 1_763_000_060_000)
    at.store.save_channel_hold("/\N{LATIN SMALL LETTER E WITH ACUTE}", by_hand)
    at.store.save_channel_hold("/b", why)
    at.store.release("/b")
    at.server.ask("HSET", KEYS.held, "/newer", '{"v": 99}')
    at.server.ask("HSET", KEYS.held, "/rotten", "{")
    await at.answered()
    async with store_process(shared_valkey) as other:
        found = await other.store.loading().held_channels()
    assert found == {"/a": why, "/\N{LATIN SMALL LETTER E WITH ACUTE}": by_hand}


async def test_another_process_finds_the_topics(
    at: StoreProcess, shared_valkey: ValkeyServer
) -> None:
    own = TopicRecord(TopicConfig(destroy_delay_ms=-1, is_readonly=True))
    deep = TopicRecord(TopicConfig(depth=HistoryDepth(3, 5000)))
    erased = TopicRecord(is_erased=True)
    at.store.save_topics({"/own": own, "/gone": own, "/erased": erased, "/deep": deep})
    at.store.save_topics({"/gone": None})
    at.server.ask("HSET", KEYS.topics, "/newer", '{"v": 99}')
    at.server.ask("HSET", KEYS.topics, "/rotten", "{")
    await at.answered()
    async with store_process(shared_valkey) as other:
        found = await other.store.loading().topics()
    assert found == {"/own": own, "/erased": erased, "/deep": deep}


async def test_sessions_that_wait_for_the_same_message_share_one_object(at: StoreProcess) -> None:
    for n in range(250):
        at.store.save(session(f"joe/{n + 1}"))
    at.keep(message(1), *(f"joe/{n + 1}" for n in range(250)))
    await at.answered()
    loaded = await at.loaded()
    assert len(loaded) == 250
    assert len({id(each.entries[0][1]) for each in loaded.values()}) == 1


async def test_a_long_queue_is_loaded_whole(at: StoreProcess) -> None:
    at.store.save(session("joe/1"))
    at.store.save(session("ann/1"))
    for n in range(5000):
        at.keep(message(n), "joe/1", "ann/1")
    await at.answered()
    loaded = await at.loaded()
    for key in ("joe/1", "ann/1"):
        assert [entry.id - BASE for entry, _ in loaded[key].entries] == [*range(5000)]


async def test_messages_for_thousands_of_sessions_are_loaded_for_each(at: StoreProcess) -> None:
    keys = [f"joe/{n + 1}" for n in range(4000)]
    for key in keys:
        at.store.save(session(key))
    for n in range(5):
        at.keep(message(n), *keys)
    await at.answered()
    loaded = await at.loaded()
    assert {len(loaded[key].entries) for key in keys} == {5}


async def test_a_subject_queue_keeps_the_attempts_of_ended_sessions(
    at: StoreProcess, shared_valkey: ValkeyServer
) -> None:
    for n in (1, 2):
        at.keep(message(n), "joe/-7")
    lost = (Attempt(1, 1_763_000_000_000, outcome="lost reply"),)
    tried = moved(message(1), FormerAttempts(3, 2, lost, was_alone=True))
    tried.generation = 5
    at.store.move([Move(each, "joe/-7", ["joe/0"], 1, 1) for each in (tried, message(2))])
    await at.answered()
    at.server.ask("HSET", KEYS.marks("joe/0"), BASE + 9, "0 0 0 1 1")
    async with store_process(shared_valkey) as other:
        orphans = dict[str, Sequence[Message]]()
        async for _ in other.store.load(orphans.__setitem__):
            pass
        first, second = sorted(orphans["joe/0"], key=attrgetter("id"))
        former = former_of(first)
        assert former is not None
        assert (former.attempts, former.redelivered, former.trail) == (3, 2, lost)
        assert (former.was_alone, first.generation) == (True, 5)
        assert (former_of(second), second.generation) == (None, 0)
        other.store.settle("joe/0", ids(1), ACKED)
        await other.answered()
    assert at.server.ask("HKEYS", KEYS.marks("joe/0")) == []


async def test_leftovers_of_a_killed_process_are_removed_and_counted(
    at: StoreProcess, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    at.store.save(session("joe/1"))
    for n in (1, 2, 3):
        at.keep(message(n), "joe/1", "ann/1")
    await at.answered()
    for key in ("joe/1", "ann/1"):
        at.server.ask("SREM", KEYS.receivers(BASE + 1), key)
    at.server.ask("HSET", KEYS.marks("joe/1"), BASE + 1, "1 1 1 1 0")
    loaded = await at.loaded()
    assert [entry.id for entry, _ in loaded["joe/1"].entries] == ids(2, 3)
    # A message without receivers, its mark, and two entries of a session that is gone.
    assert "removed 4 leftovers of a killed process" in caplog.text
    await at.answered()
    assert (at.queue("joe/1"), at.queue("ann/1"), at.bodies()) == ({2: "", 3: ""}, {}, {2, 3})
    assert KEYS.marks("joe/1") not in at.names()


async def test_a_single_leftover_is_logged_as_one(
    at: StoreProcess, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    at.keep(message(1), "ann/1")
    await at.answered()
    await at.loaded()
    assert "removed 1 leftover of a killed process" in caplog.messages


async def test_entries_of_a_subject_queue_are_not_leftovers(
    at: StoreProcess, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    at.keep(message(1), "joe/0")
    await at.answered()
    await at.loaded()
    assert "leftover" not in caplog.text


async def test_another_process_finds_which_entries_were_handed_over_last(
    shared_valkey: ValkeyServer,
) -> None:
    async with store_process(shared_valkey) as at:
        at.store.save(session("joe/1"))
        for n in (1, 2, 3):
            at.keep(message(n), "joe/1", "ann/1")
        at.store.mark_batch("joe/1", batch(1, 2, number=4, seq=7))
        at.store.mark("joe/1", [mark(2, 0, position=8)])
        await at.answered()
    async with store_process(shared_valkey) as other:
        [loaded] = (await other.loaded()).values()
        assert [entry for entry, _ in loaded.entries] == [
            mark(1, 7, batch=4, position=7),
            mark(2, 0, position=8),
            Mark(BASE + 3),
        ]
        other.store.settle("joe/1", ids(1, 2), ACKED)
        await other.answered()
        assert (other.queue("joe/1"), other.hash(KEYS.marks("joe/1"))) == ({3: ""}, {})


async def test_a_message_that_comes_again_from_another_session_is_new_to_one_that_has_acked_it(
    at: StoreProcess,
) -> None:
    for name in ("joe/1", "joe/3"):
        at.store.save(session(name))
    at.keep(message(1), "joe/1", "joe/3")
    at.keep(message(2), "joe/1")
    at.store.mark_batch("joe/1", batch(1, 2))
    await at.answered()
    at.store.settle("joe/1", ids(1), ACKED)
    await at.answered()
    at.store.move([Move(message(1), "joe/3", ["joe/1"], 1, 1)])
    await at.answered()
    loaded = await at.loaded()
    assert [entry for entry, _ in loaded["joe/1"].entries] == [
        mark(2, 2, batch=1, position=2),
        Mark(BASE + 1),
    ]


@pytest.mark.parametrize(("name", "value"), [("marks", "x"), ("handed", "x y")])
async def test_an_entry_with_an_unreadable_mark_is_loaded_as_if_never_handed_over(
    at: StoreProcess, name: str, value: str
) -> None:
    at.store.save(session("joe/1"))
    at.keep(message(1), "joe/1")
    await at.answered()
    if name == "marks":
        at.server.ask("HSET", KEYS.marks("joe/1"), BASE + 1, value)
    else:
        at.server.ask("HSET", KEYS.handed, "joe/1", value)
    loaded = await at.loaded()
    assert [entry for entry, _ in loaded["joe/1"].entries] == [Mark(BASE + 1)]


@pytest.mark.parametrize("head", UNREADABLE)
async def test_an_unreadable_message_stays_in_the_store(at: StoreProcess, head: str) -> None:
    at.store.save(session("joe/1"))
    at.keep(message(1), "joe/1")
    at.store.mark("joe/1", [mark(1, 1)])
    await at.answered()
    name = records.name_with_sum(BASE + 1, "joe/1")
    record = b"@12345678%b\n%b\n{}" % (name, head.encode())
    at.server.ask("HSET", KEYS.bodies, BASE + 1, record)
    loaded = await at.loaded()
    await at.answered()
    assert loaded["joe/1"].entries == []
    assert at.queue("joe/1") == {1: "0 1 0 1 0"}


@pytest.mark.parametrize("record", UNREADABLE)
async def test_an_unreadable_session_stays_in_the_store(at: StoreProcess, record: str) -> None:
    at.store.save(session("joe/1"))
    await at.answered()
    at.server.ask("HSET", KEYS.sessions, "eve/1", record)
    assert set(await at.loaded()) == {"joe/1"}
    assert set(at.hash(KEYS.sessions)) == {"joe/1", "eve/1"}


@pytest.mark.parametrize("record", UNREADABLE)
async def test_an_unreadable_hold_or_topic_is_ignored_and_logged_by_its_name(
    at: StoreProcess, caplog: pytest.LogCaptureFixture, record: str
) -> None:
    at.server.ask("HSET", KEYS.held, "/held", record)
    at.server.ask("HSET", KEYS.topics, "/topic", record)
    assert await at.store.loading().held_channels() == {}
    assert await at.store.loading().topics() == {}
    assert "channel /held is unreadable" in caplog.text
    assert "topic /topic is unreadable" in caplog.text


# Opening


async def test_ids_of_messages_that_were_not_stored_are_not_given_again_after_a_kill(
    shared_valkey: ValkeyServer,
) -> None:
    async with store_process(shared_valkey) as killed:
        killed.keep(message(1), "joe/1")
        killed.newest = BASE + 5_000_000_000
        killed.store.probe()
        # The next probe comes after a second.
        given = killed.newest + 1_100_000_000
        await killed.answered_line()
        await killed.link.close()
    async with store_process(shared_valkey, is_open=False) as at:
        # So they continue above those, although the wall clock may have been set back.
        assert given <= await at.store.open() < given + 1_000_000_000


async def test_ids_of_a_process_that_is_killed_at_once_are_not_given_again(
    shared_valkey: ValkeyServer,
) -> None:
    async with store_process(shared_valkey) as first:
        first.newest = BASE + 5_000_000_000
        first.store.probe()
        await first.answered_line()
        await first.link.close()
    opened = []
    for _ in range(2):
        async with store_process(shared_valkey, is_open=False) as killed:
            opened.append(await killed.store.open())
            await killed.link.close()
    # The first of them has no time to note which ones it gives: the wall clock is behind.
    assert opened[0] + 100_000_000 <= opened[1]


async def test_ids_by_a_wall_clock_that_is_set_back_meanwhile_are_not_given_again_either(
    shared_valkey: ValkeyServer,
) -> None:
    async with store_process(shared_valkey, is_open=False) as killed:
        killed.newest = BASE + 5_000_000_000
        await killed.store.open()
        await killed.link.close()
    async with store_process(shared_valkey, is_open=False) as at:
        assert await at.store.open() == BASE + 6_000_000_000


async def test_ids_continue_after_the_last_one_if_the_server_ended_in_order(
    shared_valkey: ValkeyServer,
) -> None:
    async with store_process(shared_valkey) as first:
        first.newest = BASE + 5_000_000_000
        first.store.probe()
        first.newest += 7_000_000
        await first.store.close(5)
    async with store_process(shared_valkey, is_open=False) as at:
        assert await at.store.open() == BASE + 5_007_000_000


async def test_the_newest_id_is_remembered_over_restarts(shared_valkey: ValkeyServer) -> None:
    async with store_process(shared_valkey, is_open=False) as at:
        assert await at.store.open() == 0
        at.keep(message(5), "joe/1")
        at.keep(message(3), "joe/1")
        await at.answered()
    async with store_process(shared_valkey, is_open=False) as at:
        assert await at.store.open() == BASE + 5
        at.store.dead_letter([letter(9)], None)
        await at.answered()
    async with store_process(shared_valkey, is_open=False) as at:
        assert await at.store.open() == BASE + 9


@pytest.mark.parametrize("version", [OLDEST_LAYOUT - 1, LAYOUT + 1])
async def test_a_store_of_another_version_is_refused(
    shared_valkey: ValkeyServer, version: int
) -> None:
    shared_valkey.ask("HSET", KEYS.meta, "version", version)
    async with store_process(shared_valkey, is_open=False) as at:
        with pytest.raises(StoreUnavailable, match="another version of holdfast"):
            await at.store.open()


async def test_a_server_that_may_evict_messages_is_refused(valkey: ValkeyServer) -> None:
    valkey.set(maxmemory="100mb", maxmemory_policy="allkeys-lru")
    async with store_process(valkey, is_open=False) as at:
        with pytest.raises(StoreUnavailable, match="noeviction"):
            await at.store.open()
        valkey.set(maxmemory_policy="volatile-lru")
        await at.store.open()


async def test_a_process_cannot_write_after_another_has_opened_the_store(
    shared_valkey: ValkeyServer,
) -> None:
    async with store_process(shared_valkey) as old, store_process(shared_valkey) as new:
        old.keep(message(1), "joe/1")
        old.store.settle("joe/1", ids(9), ACKED)
        await until(lambda: old.events == ["fenced"])
        assert old.kept == {1: [PersistOutcome.REFUSED]}
        assert not old.store.is_available
        old.keep(message(2), "joe/1")
        await asyncio.sleep(0.01)
        assert old.kept[2] == [PersistOutcome.REFUSED]
        old.store.settle("joe/1", ids(3), ACKED)
        old.store.after(lambda: old.events.append("answered"))
        await asyncio.sleep(0.01)
        assert old.events == ["fenced"]
        new.keep(message(3), "joe/1")
        await new.answered()
        assert (new.kept[3], new.queue("joe/1")) == ([PersistOutcome.KEPT], {3: ""})
