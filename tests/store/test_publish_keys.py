"""Publish keys: of messages with the same key the store keeps one, whatever happens."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis import Redis

from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.outcomes import ACKED
from holdfast.delivery.messages.publish_key import KEY_LIFE_S, publish_key_of
from holdfast.delivery.messages.storing import PersistOutcome
from holdfast.store.format import scripts
from holdfast.store.format.layouts import NEWEST
from holdfast.store.format.publish_keys import KeyLimits
from holdfast.store.format.publish_keys import first_of as found_first
from holdfast.store.links.connection import StoreUnavailable
from holdfast.store.writing.reconciliation import Knowledge, KnownQueue
from tests.effort import TIMES
from tests.store.model import Room
from tests.store.servers import ValkeyServer
from tests.store.store_process import BASE, KEYS, StoreProcess, message, store_process, until


def keyed(at: StoreProcess) -> dict[str, int]:
    """The remembered keys, each with the number of its message."""
    return {key: int(found.split(":")[0]) - BASE for key, found in at.hash(KEYS.keyed).items()}


def first_of(again: Message) -> int:
    key = publish_key_of(again)
    assert key is not None
    return key.first - BASE


async def test_the_message_with_a_key_is_found(shared_valkey: ValkeyServer) -> None:
    found: list[int | None] = []
    async with store_process(shared_valkey, has_log=True) as at:
        log = at.store.shard_log
        assert log is not None
        at.keep(message(1, key="k"), "joe/1")
        await at.answered()
        for key in ("k", "l"):
            log.find_key(key, found.append)
        await until(lambda: len(found) == 2)
    log.find_key("k", found.append)
    await until(lambda: len(found) == 3)
    assert found == [BASE + 1, 0, None]


def test_a_key_is_found_for_a_day() -> None:
    for clock, first in ((KEY_LIFE_S, 5), (KEY_LIFE_S + 1, 0)):
        assert found_first(b"5:0", clock) == first
    # An earlier release has its time elsewhere.
    assert found_first(b"5", KEY_LIFE_S + 1) == 5
    assert found_first(StoreUnavailable(), 0) is None


async def test_only_the_first_message_with_a_key_is_kept_and_repeats_get_its_id(
    at: StoreProcess,
) -> None:
    again = message(2, key="k")
    at.keep(message(1, key="k"), "joe/1", "ann/1")
    at.keep(again, "joe/1", "eve/1")
    await at.answered()
    at.keep(later := message(3, key="k"), "joe/1")
    at.keep(message(4, key="l"), "joe/1")
    await at.answered()
    assert at.kept == {
        1: [PersistOutcome.KEPT],
        2: [PersistOutcome.REPEATED],
        3: [PersistOutcome.REPEATED],
        4: [PersistOutcome.KEPT],
    }
    assert (first_of(again), first_of(later)) == (1, 1)
    assert (at.queue("joe/1"), at.queue("ann/1"), at.queue("eve/1")) == (
        {1: "", 4: ""},
        {1: ""},
        {},
    )
    assert (at.bodies(), keyed(at)) == ({1, 4}, {"k": 1, "l": 4})


async def test_a_key_is_kept_even_if_its_message_has_no_receivers(at: StoreProcess) -> None:
    at.keep(message(1, key="k"))
    await at.answered()
    assert (at.bodies(), keyed(at)) == (set(), {"k": 1})
    at.keep(message(2, key="k"), "joe/1")
    await at.answered()
    assert (at.kept[2], at.queue("joe/1")) == ([PersistOutcome.REPEATED], {})


async def test_a_key_outlives_its_message_and_its_process(shared_valkey: ValkeyServer) -> None:
    async with store_process(shared_valkey) as at:
        at.keep(message(1, key="k"), "joe/1")
        await at.answered()
        at.store.settle("joe/1", [BASE + 1], ACKED)
        await at.answered()
    async with store_process(shared_valkey) as other:
        other.keep(message(2, key="k"), "joe/1")
        await other.answered()
        assert (other.kept[2], other.bodies()) == ([PersistOutcome.REPEATED], set())


async def test_a_killed_store_has_both_a_message_and_its_key_or_neither() -> None:
    with ValkeyServer(appendonly="yes", appendfsync="always") as valkey:
        async with store_process(valkey) as at:
            for n in range(200):
                at.keep(message(n, key=f"k{n}"), "joe/1")
                at.store.flush()
            await asyncio.sleep(0)
            valkey.kill()
            valkey.start()
            await at.answered()
            kept = {n for n, answers in at.kept.items() if answers == [PersistOutcome.KEPT]}
            assert set(at.queue("joe/1")) == set(keyed(at).values()) == kept


async def test_a_call_repeated_after_a_lost_connection_is_not_a_repeat_of_its_own_message(
    at: StoreProcess,
) -> None:
    for n in range(200):
        at.keep(message(2 * n, key=f"k{n}"), "joe/1")
        at.keep(message(2 * n + 1, key=f"k{n}"), "ann/1")
        if n % 10 == 0:
            at.store.flush()
        if n % 50 == 20:
            at.server.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            await asyncio.sleep(0)
    await at.answered()
    even = {n for n, answers in at.kept.items() if answers == [PersistOutcome.KEPT]}
    # While the connection is away both of a pair may be refused, and then neither is kept.
    assert even == set(at.queue("joe/1")) == set(keyed(at).values())
    assert all(n % 2 == 0 for n in even)
    assert at.queue("ann/1") == {}


async def test_a_message_that_a_full_store_refuses_does_not_take_its_key(
    valkey: ValkeyServer,
) -> None:
    async with store_process(valkey) as at:
        valkey.set(maxmemory="1", maxmemory_policy="noeviction")
        at.keep(message(1, key="k"), "joe/1")
        await at.answered()
        valkey.set(maxmemory="0")
        at.keep(message(2, key="k"), "joe/1")
        await at.answered()
        assert at.kept == {1: [PersistOutcome.REFUSED], 2: [PersistOutcome.KEPT]}


async def test_an_unanswered_publish_is_unknown_first_and_kept_or_repeated_later(
    valkey: ValkeyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.store.writing.pending_publishes._WAIT_LIMIT_S", 0.1)
    async with store_process(valkey) as at:
        valkey.freeze()
        at.keep(message(1, key="k"), "joe/1")
        at.store.flush()
        at.keep(message(2, key="k"), "joe/1")
        await until(lambda: at.kept == {key: [PersistOutcome.UNKNOWN] for key in (1, 2)})
        valkey.thaw()
        await at.answered()
        assert at.kept == {
            1: [PersistOutcome.UNKNOWN, PersistOutcome.KEPT],
            2: [PersistOutcome.UNKNOWN, PersistOutcome.REPEATED],
        }


async def test_an_emptied_store_gets_the_keys_of_messages_that_are_kept_again(
    at: StoreProcess,
) -> None:
    at.keep(kept := message(1, key="k"), "joe/1")
    await at.answered()
    at.known = Knowledge(queues=[KnownQueue(key, [kept], tuple) for key in ("joe/1", "ann/1")])
    at.server.ask("FLUSHALL")
    at.keep(message(2, key="k"), "joe/1")
    await at.answered()
    assert at.events == ["emptied"]
    assert (at.kept[2], at.queue("joe/1"), at.queue("ann/1")) == (
        [PersistOutcome.REPEATED],
        {1: ""},
        {1: ""},
    )


async def test_messages_without_keys_are_never_repeats(at: StoreProcess) -> None:
    at.keep(message(1), "joe/1")
    at.keep(message(2, key="k"), "joe/1")
    at.keep(message(3), "joe/1")
    await at.answered()
    assert (at.queue("joe/1"), keyed(at)) == ({1: "", 2: "", 3: ""}, {"k": 2})


async def test_a_process_without_the_write_right_takes_no_key(shared_valkey: ValkeyServer) -> None:
    async with store_process(shared_valkey) as old, store_process(shared_valkey) as new:
        old.keep(message(1, key="k"), "joe/1")
        await until(lambda: bool(old.kept.get(1)))
        new.keep(message(2, key="k"), "joe/1")
        await new.answered()
        assert (old.kept[1], new.kept[2]) == ([PersistOutcome.REFUSED], [PersistOutcome.KEPT])
        with pytest.raises(StoreUnavailable):
            await old.store.run(scripts.advance_clock(KEYS, 1, given=0))


# Clocks

_HOUR_NS = 3600 * 1_000_000_000


async def test_a_wall_clock_that_jumps_forgets_no_key(shared_valkey: ValkeyServer) -> None:
    """Message ids follow the wall clock: it jumps before, between and after restarts."""
    at_hour = [0, 25, 50, 25, 75, 0, 100]
    for n, hour in enumerate(at_hour):
        async with store_process(shared_valkey) as at:
            jumped = message(hour * _HOUR_NS + n, key="k")
            at.keep(jumped, "joe/1")
            await at.answered()
            assert at.queue("joe/1") == {0: ""}
            at.keep(message((hour + 25) * _HOUR_NS + n, key="k"), "joe/1")
            await at.answered()
            assert (first_of(jumped), at.queue("joe/1")) == (0 if n else -BASE, {0: ""})


async def test_a_key_lives_for_a_day_in_which_servers_run(shared_valkey: ValkeyServer) -> None:
    """The time between servers does not count, however each of them ends."""
    since_boot = [0.0]
    for n in range(8):
        async with store_process(shared_valkey, monotonic=lambda: since_boot[0]) as at:
            at.keep(again := message(n, key="k"), "joe/1")
            await at.answered()
            assert first_of(again) == (0 if n else -BASE)
            since_boot[0] += KEY_LIFE_S / 8
            if n % 2:
                at.store.probe()
                await at.answered()
                # Killed: it says no more.
                await at.link.close()
        # Down for a month; and the machine starts, so its clock begins anew.
        since_boot[0] = n * 30 * KEY_LIFE_S
    async with store_process(shared_valkey, monotonic=lambda: since_boot[0]) as at:
        at.keep(again := message(8, key="k"), "joe/1")
        await at.answered()
        assert first_of(again) == 0
        since_boot[0] += 1.0
        at.keep(message(9, key="k"), "joe/1")
        await at.answered()
        assert at.kept[9] == [PersistOutcome.KEPT]


# How long and how many


@pytest.fixture
def room(shared_valkey: ValkeyServer) -> Room:
    room = Room(Redis.from_url(shared_valkey.url))
    room.open()
    return room


def keep(
    room: Room,
    *pairs: tuple[int, str],
    clock: int = 0,
    most: int = 1000,
    are_timed: bool = True,
) -> list[Any]:
    """Keep messages with these numbers and keys at a time of the store's clock; the answers."""
    messages = [(message(n, key=key), ["joe/1"]) for n, key in pairs]
    limits = KeyLimits(clock, most, replace(NEWEST, has_key_times=are_timed))
    return list(room.call(scripts.keep_keyed(KEYS, messages, limits)))


def remembered(room: Room) -> dict[str, int]:
    found = room.hash(KEYS.keyed).items()
    return {key: int(each.split(":")[0]) - BASE for key, each in found}


def order(room: Room) -> list[str]:
    found: Any = room.redis.lrange(KEYS.keyed_order, 0, -1)
    return [each.decode().partition(":")[2] for each in found]


def test_only_the_first_message_with_a_key_stores_its_request(room: Room) -> None:
    for number, field in ((1, "first"), (2, "again")):
        messages = [(message(number, key="k"), ["joe/1"]), (message(number + 2, key=field), [])]
        fields = [{field: b"asked"}, {}]
        room.call(scripts.keep_keyed(KEYS, messages, KeyLimits(0, 9), fields))
    assert room.hash(KEYS.requests).keys() == {"first"}
    assert remembered(room) == {"k": 1, "first": 3, "again": 4}
    room.call(
        scripts.keep_keyed(KEYS, [(message(5, key="l"), [])], KeyLimits(0, 9), [{"first": b""}])
    )
    assert room.hash(KEYS.requests) == {}


def test_a_key_is_remembered_for_a_day(room: Room) -> None:
    assert keep(room, (1, "k"), clock=5) == [0, b""]
    assert keep(room, (2, "k"), clock=5 + KEY_LIFE_S) == [0, str(BASE + 1).encode()]
    assert keep(room, (3, "k"), clock=6 + KEY_LIFE_S) == [0, b""]
    assert keep(room, (4, "k"), clock=7 + KEY_LIFE_S) == [0, str(BASE + 3).encode()]
    assert remembered(room) == {"k": 3}
    assert order(room) == ["k"]


def test_a_key_is_remembered_for_a_day_when_its_time_is_apart_for_an_older_release(
    room: Room,
) -> None:
    assert keep(room, (1, "k"), (2, "l"), clock=5, are_timed=False) == [0, b"", b""]
    assert room.hash(KEYS.keyed) == {"k": str(BASE + 1), "l": str(BASE + 2)}
    late = 5 + KEY_LIFE_S
    assert keep(room, (3, "k"), clock=late, are_timed=False) == [0, str(BASE + 1).encode()]
    # A key that is stored again has one time only, whatever the layout was before.
    assert keep(room, (4, "k"), clock=late + 1, are_timed=False) == [0, b""]
    assert room.hash(KEYS.keyed_times) == {"k": str(late + 1)}
    assert keep(room, (5, "k"), clock=late + 1 + KEY_LIFE_S) == [0, str(BASE + 4).encode()]
    assert keep(room, (6, "k"), clock=late + 2 + KEY_LIFE_S) == [0, b""]
    assert (room.hash(KEYS.keyed_times), remembered(room)) == ({}, {"k": 6})


def test_the_oldest_keys_are_forgotten_with_their_times_apart(room: Room) -> None:
    for n in range(5):
        keep(room, (n, f"k{n}"), most=2, are_timed=False)
    assert room.hash(KEYS.keyed).keys() == room.hash(KEYS.keyed_times).keys() == {"k3", "k4"}


def test_a_key_that_the_last_release_stored_is_remembered_for_a_day_from_now_on(room: Room) -> None:
    room.redis.hset(KEYS.keyed, "k", str(BASE + 1))
    room.redis.rpush(KEYS.keyed_order, f"{BASE + 1}:k")
    assert keep(room, (2, "k"), clock=KEY_LIFE_S) == [0, str(BASE + 1).encode()]
    assert keep(room, (3, "k"), clock=KEY_LIFE_S + 1) == [0, b""]
    assert (remembered(room), order(room)) == ({"k": 3}, ["k"])


def test_the_clock_of_the_store_never_goes_back(room: Room) -> None:
    keep(room, (1, "k"), clock=20)
    room.call(scripts.advance_clock(KEYS, 10, given=0))
    assert room.hash(KEYS.meta)["clock"] == "20"
    room.call(scripts.advance_clock(KEYS, 30, given=0))
    keep(room, (2, "k"), clock=25)
    assert room.hash(KEYS.meta)["clock"] == "30"


def test_expired_keys_are_removed_when_new_ones_arrive(room: Room) -> None:
    keep(room, *((n, f"k{n}") for n in range(50)))
    assert keep(room, (50, "new"), clock=KEY_LIFE_S + 1) == [0, b""]
    assert (remembered(room), order(room)) == ({"new": 50}, ["new"])


def test_the_oldest_of_too_many_keys_are_removed_and_counted(room: Room) -> None:
    assert keep(room, (1, "a"), (2, "b"), (3, "c"), most=2) == [1, b"", b"", b""]
    assert remembered(room) == {"b": 2, "c": 3}
    assert keep(room, (4, "b"), (5, "a"), most=2) == [1, str(BASE + 2).encode(), b""]
    assert remembered(room) == {"c": 3, "a": 5}


def test_a_lowered_limit_on_keys_is_reached_in_several_steps(room: Room) -> None:
    keep(room, *((n, f"k{n}") for n in range(1000)))
    dropped = sum(keep(room, (2000 + n, f"n{n}"), most=10)[0] for n in range(20))
    assert len(remembered(room)) == len(order(room)) == 10
    assert dropped == 1010


@pytest.mark.valkey
def test_a_key_takes_less_than_150_bytes(room: Room) -> None:
    def used() -> int:
        sizes: Any = [
            room.redis.memory_usage(key, samples=0) for key in (KEYS.keyed, KEYS.keyed_order)
        ]
        return sum(size or 0 for size in sizes)

    count = 10_000
    for start in range(0, count, 1000):
        room.call(
            scripts.keep_keyed(
                KEYS,
                [(message(n, key=f"{n:020}"), []) for n in range(start, start + 1000)],
                KeyLimits(clock=10_000_000, most=count),
            )
        )
    assert used() / count < 150


def test_publish_keys_have_no_time_to_live_in_the_store(room: Room) -> None:
    keep(room, (1, "k"))
    assert room.redis.ttl(KEYS.keyed) == room.redis.ttl(KEYS.keyed_order) == -1


def expected_again(call: list[tuple[int, str]], model: dict[str, int]) -> list[bytes]:
    found = [(model.get(key), id) for id, key in call]
    return [b"" if first == id else str(BASE + (first or 0)).encode() for first, id in found]


# Messages by the numbers of their keys, and how far the wall clock jumps before each.
sends = st.lists(
    st.tuples(st.integers(0, 6), st.sampled_from([1000, 1_000_000, 25 * 3600 * 1_000_000_000])),
    min_size=1,
    max_size=6,
)
# Calls, how long after the one before, and how often each is repeated because its answer was lost.
calls = st.lists(
    st.tuples(sends, st.sampled_from([0, 1, KEY_LIFE_S // 3]), st.integers(0, 2)), max_size=12
)


@pytest.mark.slow
@settings(
    max_examples=30 * TIMES,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(calls, st.integers(1, 8))
def test_the_script_for_keys_agrees_with_a_dictionary(
    shared_valkey: ValkeyServer, given_calls: list[tuple[Any, int, int]], most: int
) -> None:
    with Redis.from_url(shared_valkey.url) as redis:
        room = Room(redis)
        room.open()
        # The message of each key, and when it was stored.
        model: dict[str, tuple[int, int]] = {}
        queue: set[int] = set()
        id = clock = 0
        for pairs, pause, repeats in given_calls:
            clock += pause
            expected, call = [], []
            for number, jump in pairs:
                id += jump
                key = f"k{number}"
                call.append((id, key))
                first, since = model.get(key, (0, -KEY_LIFE_S - 1))
                if since + KEY_LIFE_S >= clock:
                    expected.append(str(BASE + first).encode())
                else:
                    model[key] = (id, clock)
                    queue.add(id)
                    expected.append(b"")
            newest = dict(sorted(model.items(), key=lambda item: item[1][0])[-most:])
            model = {key: found for key, found in newest.items() if found[1] + KEY_LIFE_S >= clock}
            assert keep(room, *call, clock=clock, most=most)[1:] == expected
            owners = {key: first for key, (first, _) in model.items()}
            if expected_again(call, owners) == expected:
                # No key that the answers depend on was forgotten meanwhile.
                for _ in range(repeats):
                    assert keep(room, *call, clock=clock, most=most)[1:] == expected
            assert remembered(room) == owners
            assert {id - BASE for id in room.queue("joe/1")} == queue
