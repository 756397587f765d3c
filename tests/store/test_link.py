"""The store link to a real Valkey: the order of calls and answers, under faults too."""

import asyncio
import time

import pytest

from holdfast.store.links.reply_errors import LinkClosed, ScriptFailed, StoreRefused
from tests.slowness import times_slower
from tests.store.caller import FAIL, calling, until
from tests.store.servers import ValkeyServer

pytestmark = pytest.mark.valkey

# Answers and errors


async def test_answers_come_in_the_order_of_the_calls(shared_valkey: ValkeyServer) -> None:
    async with calling(shared_valkey.url) as caller:
        caller.note(500)
        caller.link.flush()
        caller.note(500)
        assert await caller.answered() == [b"%d" % number for number in range(1000)]
        assert await caller.kept() == list(range(1000))
        assert caller.states == []


async def test_the_time_of_each_answer_is_counted_once_also_after_a_lost_connection(
    shared_valkey: ValkeyServer,
) -> None:
    async with calling(shared_valkey.url) as caller:
        caller.note(50)
        caller.link.flush()
        shared_valkey.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        caller.note(50)
        await caller.answered()
        times = caller.link.times.answers
        assert times.read()[-1] == 100
        assert 0 < times.total_ns < 100 * 60 * 1_000_000_000


async def test_a_call_is_not_answered_in_its_own_turn(shared_valkey: ValkeyServer) -> None:
    async with calling(shared_valkey.url) as caller:
        caller.note(1)
        caller.link.flush()
        caller.link.flush()
        assert caller.answers == []
        assert caller.link.unanswered == 1
        assert await caller.answered() == [b"0"]


async def test_answers_have_the_types_of_the_redis_protocol(shared_valkey: ValkeyServer) -> None:
    async with calling(shared_valkey.url) as caller:
        ask = caller.link.ask
        assert await ask("SET", "key", b"\x00\xff") == b"OK"
        assert await ask("GET", "key") == b"\x00\xff"
        assert await ask("GET", "other") is None
        assert await ask("HSET", "hash", "one", 1) == 1
        assert await ask("HGETALL", "hash") == {b"one": b"1"}
        assert await ask("ZADD", "scores", 1.5, "one") == 1
        assert await ask("ZSCORE", "scores", "one") == 1.5


async def test_errors_of_the_store_are_answers_with_a_code(shared_valkey: ValkeyServer) -> None:
    async with calling(shared_valkey.url) as caller:
        caller.link.script(FAIL, [], [], caller.answers.append)
        caller.link.call(["NONSENSE"], caller.answers.append)
        caller.note(1)
        epoch, nonsense, noted = await caller.answered()
        assert isinstance(epoch, ScriptFailed)
        assert (epoch.code, str(epoch)) == ("EPOCH", "EPOCH 7 is newer")
        assert isinstance(nonsense, ScriptFailed)
        assert nonsense.code == "ERR"
        assert noted == b"0"
        with pytest.raises(ScriptFailed, match="wrong number of arguments"):
            await caller.link.ask("GET")


async def test_a_callback_that_raises_does_not_affect_other_calls(
    shared_valkey: ValkeyServer, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: object) -> None:
        raise ValueError("a fault of ours")

    async with calling(shared_valkey.url) as caller:
        caller.link.call(["PING"], fail)
        caller.note(1)
        assert await caller.answered() == [b"0"]
        assert "a fault of ours" in caplog.text


async def test_a_callback_may_make_further_calls(shared_valkey: ValkeyServer) -> None:
    async with calling(shared_valkey.url) as caller:
        caller.link.call(["PING"], lambda _: caller.note(3))
        await until(lambda: len(caller.answers) == 3)
        assert await caller.kept() == [0, 1, 2]


async def test_a_cancelled_call_does_not_affect_the_answers_of_others(
    shared_valkey: ValkeyServer,
) -> None:
    async with calling(shared_valkey.url) as caller:
        asking = asyncio.create_task(caller.link.ask("PING"))
        await asyncio.sleep(0)
        asking.cancel()
        caller.note(1)
        assert await caller.answered() == [b"0"]


# Bounds and ends


async def test_a_link_with_too_many_calls_is_full(shared_valkey: ValkeyServer) -> None:
    async with calling(shared_valkey.url, calls=3) as caller:
        caller.note(3)
        assert not caller.link.is_full
        caller.note(1)
        assert caller.link.is_full
        await caller.answered()
        assert not caller.link.is_full


async def test_a_link_with_too_many_bytes_is_full(shared_valkey: ValkeyServer) -> None:
    async with calling(shared_valkey.url, bytes=100_000) as caller:
        caller.link.call(["ECHO", b"x" * 100_000], caller.answers.append)
        assert caller.link.is_full
        await caller.answered()
        assert not caller.link.is_full


async def test_calls_on_a_link_that_is_closed_fail(valkey: ValkeyServer) -> None:
    async with calling(valkey.url) as caller:
        valkey.freeze()
        caller.note(1)
        caller.link.flush()
        caller.note(1)
        await caller.link.close()
        assert [type(answer) for answer in caller.answers] == [LinkClosed, LinkClosed]
        with pytest.raises(LinkClosed):
            await caller.link.ask("PING")
        assert (caller.link.is_up, caller.states) == (False, [])


# Connections that are lost


@pytest.mark.slow
async def test_a_killed_store_loses_no_answered_call_and_gets_the_others_in_order(
    valkey: ValkeyServer,
) -> None:
    valkey.kill()
    valkey.start(appendonly="yes", appendfsync="always")
    async with calling(valkey.url) as caller:
        for _ in range(3):
            caller.note(300)
            await until(lambda: len(caller.answers) > caller.noted - 250)
            caller.note(100)
            caller.link.flush()
            valkey.kill()
            caller.note(100)
            await caller.is_away()
            valkey.start()
            await caller.answered()
        assert caller.answers == [b"%d" % number for number in range(caller.noted)]
        assert await caller.kept() == list(range(caller.noted))
        assert [is_up for is_up, _ in caller.states] == [False, True] * 3


async def test_calls_on_a_killed_connection_are_repeated(shared_valkey: ValkeyServer) -> None:
    async with calling(shared_valkey.url) as caller:
        for _ in range(5):
            caller.note(200)
            caller.link.flush()
            shared_valkey.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        assert len(await caller.answered()) == 1000
        assert await caller.kept() == list(range(1000))


async def test_scripts_that_the_store_has_lost_are_loaded_again(
    shared_valkey: ValkeyServer,
) -> None:
    async with calling(shared_valkey.url) as caller:
        for _ in range(3):
            caller.note(10)
            caller.link.call(["SCRIPT", "FLUSH"], lambda _: None)
            caller.note(10)
        assert len(await caller.answered()) == 60
        assert await caller.kept() == list(range(60))
        assert caller.states == []
        shared_valkey.ask("SCRIPT", "FLUSH")
        caller.note(1)
        caller.link.flush()
        while caller.link.unanswered:
            # Whoever calls meanwhile does not notice.
            assert caller.link.has_room
            await asyncio.sleep(0)
        assert caller.states == []


async def test_a_store_that_keeps_no_scripts_counts_as_away(shared_valkey: ValkeyServer) -> None:
    async with calling(shared_valkey.url) as caller:
        shared_valkey.ask("SCRIPT", "FLUSH")
        shared_valkey.ask("ACL", "SETUSER", "default", "-script")
        caller.note(5)
        await until(lambda: bool(caller.states))
        shared_valkey.ask("ACL", "SETUSER", "default", "+script")
        assert await caller.answered() == [b"%d" % number for number in range(5)]
        assert await caller.kept() == list(range(5))
        assert caller.states[0][1].startswith("NOSCRIPT")


@pytest.mark.slow
async def test_a_store_that_does_not_answer_counts_as_away_and_gets_the_calls_again_later(
    valkey: ValkeyServer,
) -> None:
    async with calling(valkey.url, timeout_s=0.2) as caller:
        valkey.freeze()
        caller.note(20)
        await until(lambda: bool(caller.states))
        assert caller.states == [(False, "does not answer")]
        caller.note(20)
        valkey.thaw()
        assert await caller.answered() == [b"%d" % number for number in range(40)]
        assert await caller.kept() == list(range(40))


async def test_a_process_that_was_suspended_reads_answers_before_it_gives_up_the_store(
    shared_valkey: ValkeyServer,
) -> None:
    async with calling(shared_valkey.url, timeout_s=0.2) as caller:
        caller.note(1)
        caller.link.flush()
        time.sleep(1.0)  # noqa: ASYNC251 - the process does not run
        # As if the event loop ran its timers first.
        caller.link.check()
        assert await caller.answered() == [b"0"]
        assert caller.states == []


@pytest.mark.slow
async def test_a_store_that_freezes_is_noticed_without_a_call(valkey: ValkeyServer) -> None:
    limit_s = 0.5 * times_slower(most=5.0)
    async with calling(valkey.url, timeout_s=limit_s) as caller:
        await asyncio.sleep(2 * limit_s)
        assert caller.states == []
        valkey.freeze()
        await caller.is_away()
        valkey.thaw()
        await caller.is_up()
        assert [is_up for is_up, _ in caller.states] == [False, True]


async def test_a_paused_store_answers_late_on_the_same_connection(
    shared_valkey: ValkeyServer,
) -> None:
    async with calling(shared_valkey.url) as caller:
        shared_valkey.ask("CLIENT", "PAUSE", 100, "ALL")
        caller.note(10)
        assert len(await caller.answered()) == 10
        assert caller.states == []


# Stores that are there and refuse calls


async def test_a_full_store_refuses_calls_that_may_be_refused(valkey: ValkeyServer) -> None:
    async with calling(valkey.url) as caller:
        valkey.set(maxmemory="1")
        caller.note(1, may_be_refused=True)
        (refused,) = await caller.answered()
        assert isinstance(refused, StoreRefused)
        assert str(refused).startswith("OOM ")
        assert caller.states == []
        with pytest.raises(StoreRefused):
            await caller.link.ask("SET", "key", "value")


@pytest.mark.slow
async def test_a_full_store_does_not_refuse_a_call_that_may_have_taken_effect(
    valkey: ValkeyServer,
) -> None:
    async with calling(valkey.url, timeout_s=0.2) as caller:
        valkey.ask("CLIENT", "PAUSE", 10_000, "WRITE")
        caller.note(1, may_be_refused=True)
        await caller.is_away()
        valkey.set(maxmemory="1")
        valkey.ask("CLIENT", "UNPAUSE")
        await asyncio.sleep(0.5)
        assert caller.answers == []
        valkey.set(maxmemory="0")
        assert await caller.answered() == [b"0"]


@pytest.mark.slow
async def test_calls_to_a_full_store_wait_in_order_until_there_is_room(
    valkey: ValkeyServer,
) -> None:
    async with calling(valkey.url) as caller:
        valkey.set(maxmemory="1")
        caller.note(1)
        await caller.is_away()
        caller.note(20)
        await asyncio.sleep(0.3)
        assert not caller.link.is_up
        assert caller.answers == []
        valkey.set(maxmemory="0")
        assert len(await caller.answered()) == 21
        assert await caller.kept() == list(range(21))
        assert [is_up for is_up, _ in caller.states] == [False, True]


async def test_a_store_with_too_few_replicas_refuses_calls_that_may_be_refused(
    valkey: ValkeyServer,
) -> None:
    async with calling(valkey.url) as caller:
        valkey.set(min_replicas_to_write="1")
        caller.note(1, may_be_refused=True)
        (refused,) = await caller.answered()
        assert isinstance(refused, StoreRefused)
        assert str(refused).startswith("NOREPLICAS ")


@pytest.mark.slow
async def test_calls_wait_until_a_store_that_became_a_replica_is_a_primary_again(
    valkey: ValkeyServer,
) -> None:
    async with calling(valkey.url) as caller:
        valkey.ask("REPLICAOF", "127.0.0.1", "1")
        caller.note(20)
        await caller.is_away()
        await asyncio.sleep(0.2)
        assert caller.answers == []
        valkey.ask("REPLICAOF", "NO", "ONE")
        assert len(await caller.answered()) == 20
        assert await caller.kept() == list(range(20))


@pytest.mark.slow
async def test_calls_wait_while_a_script_keeps_the_store_busy(valkey: ValkeyServer) -> None:
    valkey.set(busy_reply_threshold="10")
    async with calling(valkey.url) as caller:
        long_script = "local i = 0 while i < 3e7 do i = i + 1 end return 1"
        valkey.start_asking("EVAL", long_script, 0)
        await asyncio.sleep(0.1)
        caller.note(20)
        assert len(await caller.answered()) == 20
        assert await caller.kept() == list(range(20))
