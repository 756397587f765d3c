"""A store behind three real Sentinels, and its failovers."""

import asyncio
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from holdfast.delivery.messages.storing import PersistOutcome
from holdfast.pipeline.failures import PipelineFailed
from holdfast.pipeline.source.clients import answering
from holdfast.pipeline.source.streams import Journals
from holdfast.store.format.keys import RedisKeys
from holdfast.store.links.connection import StoreUnavailable
from holdfast.store.links.failover_risks import failover_risks
from holdfast.store.links.reader import Reader
from holdfast.store.opening.lease import SPEAK_S
from holdfast.store.writing import replicas
from tests.slowness import times_slower
from tests.store.caller import Caller, calling, until
from tests.store.sentinels import CALM_MS, DOWN_AFTER_MS, SERVICE, Trio, Watched, trio
from tests.store.servers import TAG, ValkeyServer, primary_at
from tests.store.store_process import ids
from tests.store.test_lease_keeper import EPOCH, KEYS, holding
from tests.store.traffic import assert_kept, lost_by_failover, publishing, traffic

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def _running() -> Iterator[Trio]:
    with trio() as running:
        yield running


@pytest.fixture
def sentinels(_running: Trio) -> Trio:
    _running.primary.ask("FLUSHALL")
    return _running


async def test_any_sentinel_leads_to_the_store(sentinels: Trio) -> None:
    sentinels.sentinels[0].freeze()
    async with calling(sentinels.url) as caller, traffic(caller) as running:
        # A call after the connection was lost needs a Sentinel again.
        sentinels.primary.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        await running.for_a_moment()
    sentinels.sentinels[0].thaw()
    assert_kept(sentinels.primary, caller, set())
    assert [is_up for is_up, _ in caller.states] == [False, True]


async def test_a_dead_sentinel_hides_no_failover_from_those_who_ask_whether_there_was_one(
    sentinels: Trio,
) -> None:
    loop = asyncio.get_running_loop()
    sentinels.sentinels[0].freeze()
    try:
        primary = primary_at(sentinels.url)
        other = next(each for each in sentinels.servers if each != sentinels.sentinels[1].primary)
        began = loop.time()
        for _ in range(3):
            assert await primary.is_replaced(primary.address.at("127.0.0.1", other), 5.0)
        assert loop.time() - began < 5.0 * times_slower()
    finally:
        sentinels.sentinels[0].thaw()


async def test_a_service_that_no_sentinel_knows_is_refused(sentinels: Trio) -> None:
    with pytest.raises(StoreUnavailable, match="does not know the service market"):
        await Caller(f"redis+sentinel://{sentinels.hosts}/market").link.open()


async def test_the_error_for_a_wrong_kind_of_url_says_what_to_write(sentinels: Trio) -> None:
    sentinel, server = sentinels.sentinels[0].port, sentinels.sentinels[0].primary
    with pytest.raises(StoreUnavailable, match=r"is a Sentinel: write redis\+sentinel://"):
        await Caller(f"redis://127.0.0.1:{sentinel}").link.open()
    with pytest.raises(StoreUnavailable, match="is no Sentinel: write redis://"):
        await Caller(f"redis+sentinel://127.0.0.1:{server}/{SERVICE}").link.open()


async def test_the_risks_of_a_failover_are_read_from_servers_and_sentinels(
    sentinels: Trio,
) -> None:
    sentinels.wait_for_servers(DOWN_AFTER_MS)
    found = await failover_risks(primary_at(sentinels.url), "always")
    assert [each.partition(":")[0] for each in found] == [
        "durability is always, and the store has replicas",
        "min-replicas-to-write is 0",
    ]
    sentinels.wait_for_servers(5000)
    [slow] = await failover_risks(primary_at(sentinels.url), "replicas:1")
    assert slow.startswith("down-after-milliseconds is 5000:")
    sentinels.wait_for_servers(CALM_MS)


async def test_without_a_replica_the_lease_is_raised_as_long_as_most_sentinels_name_the_primary(
    sentinels: Trio,
) -> None:
    primary = sentinels.primary
    [replica] = [each for each in sentinels.servers.values() if each is not primary]
    primary.ask("HSET", KEYS.meta, "epoch", EPOCH)
    async with holding(Reader(primary_at(sentinels.url))) as holder:
        await holder.speaks()
        replica.kill()
        # With the one that is left, nobody can let a replica take the primary's place.
        for each in sentinels.sentinels[1:]:
            each.freeze()
        assert not holder.wait(SPEAK_S + 0.2)
        await asyncio.sleep(1.0)
        assert not holder.lease.may_speak()
        sentinels.sentinels[1].thaw()
        await holder.speaks()
        sentinels.sentinels[2].thaw()
    replica.start()
    sentinels.rejoin(replica)


async def test_the_pipeline_reads_a_journal_behind_sentinels(sentinels: Trio) -> None:
    journals = Journals(f"{sentinels.url}/0?sentinel_username=default", "test")
    sentinels.primary.ask("HSET", f"{TAG}meta", journals.stream("n1"), 1, "epoch", "seed-1")
    assert journals.nodes() == ["n1"]
    with pytest.raises(PipelineFailed, match="No master found for 'market'"), answering("url"):
        Journals(f"redis+sentinel://{sentinels.hosts}/market", "test").nodes()


@pytest.mark.parametrize("accident", [Watched.kill, Watched.freeze])
async def test_a_failover_loses_at_most_the_last_moment_and_keeps_the_order(
    sentinels: Trio, accident: Callable[[Watched], None]
) -> None:
    primary = sentinels.primary
    async with calling(sentinels.url) as caller, traffic(caller) as running:
        may_lack = await lost_by_failover(caller, lambda: accident(primary))
        if accident is Watched.kill:
            primary.start()
        else:
            # It takes itself for the primary, until Sentinels find it again.
            primary.thaw()
        await running.for_a_moment()
    assert sentinels.primary != primary
    assert_kept(sentinels.primary, caller, may_lack)
    assert [is_up for is_up, _ in caller.states] == [False, True]
    sentinels.rejoin(primary)


def is_left(server: ValkeyServer) -> bool:
    return b" name=holdfast " not in server.ask("CLIENT", "LIST")


async def test_a_planned_failover_loses_no_message_and_is_followed_before_the_former_primary_learns(
    sentinels: Trio,
) -> None:
    async with publishing(sentinels.url) as publisher:
        for _ in range(2):
            former = sentinels.primary
            sentinels.sentinels[0].ask("SENTINEL", "FAILOVER", SERVICE)
            # It accepts messages for ten seconds more, which only its clients would have.
            async with asyncio.timeout(60):
                await until(partial(is_left, former))
            assert former.ask("ROLE")[0] == b"master"
            await asyncio.to_thread(sentinels.rejoin, former)
            await publisher.gets(PersistOutcome.KEPT)
            assert sentinels.primary is not former
    there = sentinels.primary.ask("HKEYS", RedisKeys("test").bodies)
    assert {*ids(*publisher.kept)} <= {*map(int, there)}


async def test_no_message_that_a_replica_has_confirmed_is_lost_by_a_failover(
    sentinels: Trio, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replicas, "_TIMEOUT_MS", 300)
    primary = sentinels.primary
    async with publishing(sentinels.url) as publisher:
        primary.kill()
        await publisher.gets(PersistOutcome.REFUSED)
        # A link that opens during the failover waits for its end.
        async with calling(sentinels.url) as late:
            assert late.link.is_up
        await publisher.gets(PersistOutcome.UNKNOWN)
        primary.start()
        sentinels.rejoin(primary)
        await publisher.gets(PersistOutcome.KEPT)
    assert sentinels.primary != primary
    there = sentinels.primary.ask("HKEYS", RedisKeys("test").bodies)
    assert {*ids(*publisher.kept)} <= {*map(int, there)}
