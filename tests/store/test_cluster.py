"""A store in a real cluster: any node leads to it, slots move, and primaries fail."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from itertools import count

import pytest

from holdfast.client import Client, ReplyError
from holdfast.delivery.messages.storing import PersistOutcome
from holdfast.pipeline.source.outline import Position, stream_entries
from holdfast.pipeline.source.readers import Readers
from holdfast.pipeline.source.streams import Journals
from holdfast.store.format.keys import RedisKeys
from holdfast.store.links.connection import StoreUnavailable
from holdfast.store.links.failover_risks import failover_risks
from holdfast.store.links.primary import Primary
from holdfast.store.links.reader import Reader
from holdfast.store.writing import replicas
from tests.serving import Server
from tests.store.caller import calling, until
from tests.store.cluster import NODE_TIMEOUT_MS, Cluster, Node, cluster
from tests.store.servers import TAG, primary_at
from tests.store.store_process import ids, message, session
from tests.store.traffic import assert_kept, lost_by_failover, publishing, storing, traffic

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def _running() -> Iterator[Cluster]:
    with cluster() as running:
        yield running


@pytest.fixture
def nodes(_running: Cluster) -> Cluster:
    """The cluster of this module, empty and with all of its nodes."""
    _running.heal()
    _running.owner.ask("FLUSHALL")
    return _running


async def test_any_node_leads_to_the_store(nodes: Cluster) -> None:
    urls = [node.url for node in nodes.nodes]
    urls += [
        f"redis://{nodes.nodes[0].place}",
        f"redis+cluster://127.0.0.1:1,{nodes.nodes[1].place}",
    ]
    for url in urls:
        async with calling(url) as caller:
            caller.note(1)
            assert await caller.answered() == [b"0"]
            assert caller.states == []
    assert nodes.owner.ask("SCARD", f"{TAG}set") == 1


async def test_a_slot_that_moves_at_once_delays_calls_and_nothing_else(nodes: Cluster) -> None:
    async with calling(nodes.url) as caller, traffic(caller) as running:
        for _ in range(3):
            await asyncio.to_thread(nodes.migrate, nodes.other_primary())
            await running.for_a_moment()
    assert_kept(nodes.owner, caller, set())
    assert caller.states == []


async def test_calls_keep_their_order_while_keys_move_one_by_one(nodes: Cluster) -> None:
    there = nodes.other_primary()
    async with calling(nodes.url) as caller, traffic(caller) as running:
        owner = nodes.begin_moving(there)
        await running.for_a_moment()
        # From now on, each call has one key here and one there.
        nodes.move_key(owner, there, f"{TAG}list")
        noted = caller.noted
        await asyncio.sleep(0.3)
        assert len(caller.answers) < noted + 100
        assert caller.link.is_up
        assert caller.link.silence_s > 0.1
        # From now on, all keys are there, but the slot is here.
        nodes.move_key(owner, there, f"{TAG}set")
        await running.for_a_moment()
        assert nodes.owner == owner
        nodes.end_moving(owner, there)
        await running.for_a_moment()
    assert_kept(nodes.owner, caller, set())
    assert caller.states == []


async def test_a_publish_that_later_calls_overtake_while_keys_move_is_kept(
    nodes: Cluster,
) -> None:
    there = nodes.other_primary()
    outcomes: list[PersistOutcome] = []
    async with storing(nodes.url) as store:
        store.save(session("joe/1"))
        await store.answered()
        # A call with a new key must wait from now on. One whose keys are all here need not.
        owner = nodes.begin_moving(there)
        store.keep(message(1), ["joe/1"], outcomes.append)
        store.flush()
        store.save(session("ann/1"))
        store.flush()
        sessions = RedisKeys("test").sessions
        await until(lambda: owner.ask("HLEN", sessions) == 2)
        nodes.end_moving(owner, there)
        await until(lambda: bool(outcomes))
        assert store.takes_messages
    assert outcomes == [PersistOutcome.KEPT]


async def test_the_risks_of_a_failover_are_read_from_the_primary(nodes: Cluster) -> None:
    primary = primary_at(nodes.url)
    nodes.owner.set(cluster_node_timeout=str(NODE_TIMEOUT_MS))
    [lossy] = await failover_risks(primary, "everysec")
    assert "Only durability replicas:n" in lossy
    nodes.owner.set(cluster_node_timeout="15000")
    [slow] = await failover_risks(primary, "replicas:1")
    assert slow.startswith("cluster-node-timeout is 15000:")
    nodes.heal()


async def test_a_reader_follows_a_slot_that_moves(nodes: Cluster) -> None:
    nodes.owner.ask("SET", f"{TAG}word", "found")
    reader = Reader(primary_at(nodes.url))
    assert await reader.ask("GET", f"{TAG}word") == b"found"
    nodes.migrate(nodes.other_primary())
    assert await reader.ask("GET", f"{TAG}word") == b"found"
    there = nodes.other_primary()
    owner = nodes.begin_moving(there)
    nodes.move_key(owner, there, f"{TAG}word")
    asking = asyncio.create_task(reader.ask("GET", f"{TAG}word"))
    await asyncio.sleep(0.1)
    assert not asking.done()
    nodes.end_moving(owner, there)
    assert await asking == b"found"
    reader.close()


async def test_the_pipeline_reads_a_journal_in_a_cluster_and_follows_its_slot(
    nodes: Cluster,
) -> None:
    urls = (nodes.url, f"redis://{nodes.nodes[0].place}", f"redis://{nodes.nodes[1].place}")
    connected = [Journals(url, "test") for url in urls]
    nodes.owner.ask("HSET", f"{TAG}meta", connected[0].stream("n1"), 1, "epoch", "seed-1")
    nodes.owner.ask("XADD", connected[0].stream("n1"), "1-1", "seq", 1, "frame", "f")
    for _ in range(2):
        for journals in connected:
            assert journals.nodes() == ["n1"]
            assert journals.are_small()
            [entry] = stream_entries(journals.redis("n1"), journals.stream("n1"), "0-0", "+")
            assert entry.id == "1-1"
            Readers(journals).report("lake", "here:/lake", {"n1": Position("1-1")})
            assert Readers(journals).drop("lake")
        nodes.migrate(nodes.other_primary())


async def test_a_primary_that_is_cut_off_or_restarted_gets_the_calls_again(nodes: Cluster) -> None:
    owner = nodes.owner
    nodes.replica.set(cluster_replica_no_failover="yes")
    async with calling(nodes.url) as caller, traffic(caller) as running:
        owner.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        await running.for_a_moment()
        owner.restart()
        await running.for_a_moment()
    assert [is_up for is_up, _ in caller.states] == [False, True] * 2
    assert_kept(nodes.owner, caller, set())
    nodes.replica.set(cluster_replica_no_failover="no")


async def test_a_failover_loses_at_most_the_last_moment_and_keeps_the_order(
    nodes: Cluster,
) -> None:
    owner = nodes.owner
    async with calling(nodes.url) as caller, traffic(caller):
        # It may be the first one to find the new primary, and the link must notice even so.
        reading = asyncio.create_task(read_until_found(caller.primary, owner))
        may_lack = await lost_by_failover(caller, owner.freeze)
        await reading
        owner.thaw()
    assert nodes.owner != owner
    assert_kept(nodes.owner, caller, may_lack)
    assert caller.states == [(False, "another server has taken its place"), (True, "")]


async def read_until_found(primary: Primary, former: Node) -> None:
    """Read until another server than the former primary answers."""
    reader = Reader(primary)
    while str(primary) == former.place:
        with suppress(StoreUnavailable, TimeoutError):
            await asyncio.wait_for(reader.ask("PING"), 0.5)
        await asyncio.sleep(0.1)
    reader.close()


async def test_no_message_that_a_replica_has_confirmed_is_lost_by_a_failover(
    nodes: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replicas, "_TIMEOUT_MS", 300)
    owner = nodes.owner
    async with publishing(nodes.url) as publisher:
        owner.kill()
        await publisher.gets(PersistOutcome.REFUSED)
        # The new primary has no replica yet.
        await publisher.gets(PersistOutcome.UNKNOWN)
        nodes.revive()
        await publisher.gets(PersistOutcome.KEPT)
    assert nodes.owner != owner
    there = nodes.owner.ask("HKEYS", RedisKeys("test").bodies)
    assert {*ids(*publisher.kept)} <= {*map(int, there)}


def has_taken_over(replica: Node) -> bool:
    return bool(replica.info["role"] == "master")


async def test_a_planned_failover_loses_no_message_and_delays_publishers_for_a_moment(
    nodes: Cluster,
) -> None:
    async with publishing(nodes.url) as publisher:
        for _ in range(2):
            former, replica = nodes.owner, nodes.replica
            replica.ask("CLUSTER", "FAILOVER")
            async with asyncio.timeout(20):
                await until(partial(has_taken_over, replica))
                await publisher.gets(PersistOutcome.KEPT)
            await asyncio.to_thread(nodes.heal)
            assert nodes.owner is replica
            assert nodes.replica is former
    there = nodes.owner.ask("HKEYS", RedisKeys("test").bodies)
    assert {*ids(*publisher.kept)} <= {*map(int, there)}
    # The primary pauses until its replica has everything, and then sends its clients there.
    assert [PersistOutcome.REFUSED] not in publisher.outcomes


async def test_a_living_server_writes_again_what_a_failover_has_lost(nodes: Cluster) -> None:
    received: list[int] = []
    owner = nodes.owner
    server = Server({"redis": nodes.url, "namespace": "test"})
    try:
        async with Client(server.url, session="joe/1") as joe:
            await joe.subscribe("/orders")
        async with Client(server.url) as ann:
            orders = Orders(ann)
            await until(lambda: len(orders.accepted) > 10)
            # From now on, its replica cannot follow it.
            owner.set(requirepass="secret")
            owner.ask("CLIENT", "KILL", "TYPE", "replica")
            unique = len(orders.accepted)
            await until(lambda: len(orders.accepted) > unique + 10)
            owner.kill()
            await until(lambda: bool(orders.errors))
            accepted = len(orders.accepted)
            await until(lambda: len(orders.accepted) > accepted)
            await orders.end()
        assert "the store has lost changes" in server.log()
        async with Client(server.url, session="joe/1") as joe:
            await joe.subscribe("/orders", lambda order: received.append(order.data))
            await until(lambda: {*orders.accepted} <= {*received})
    finally:
        server.stop()
    assert received == sorted({*received})


async def test_clients_get_all_accepted_messages_once_and_in_order_over_a_failover(
    nodes: Cluster,
) -> None:
    owner = nodes.owner
    server = Server({"redis": nodes.url, "namespace": "test", "durability": "replicas:1"})
    received: list[int] = []
    try:
        async with Client(server.url, session="joe/1") as joe, Client(server.url) as ann:
            await joe.subscribe("/orders", lambda order: received.append(order.data))
            orders = Orders(ann)
            await until(lambda: len(orders.accepted) > 10)
            # It confirms what it gets from now on when it thaws, and then forgets it.
            owner.freeze()
            await until(lambda: bool(orders.errors) and nodes.owner != owner)
            nodes.revive()
            accepted = len(orders.accepted)
            await until(lambda: len(orders.accepted) > accepted + 10)
            await orders.end()
            await until(lambda: {*orders.accepted} <= {*received})
    finally:
        server.stop()
    assert received == sorted({*received})
    unavailable = "/orders: 503:communication.noConnection:store_unavailable"
    assert orders.errors
    for error in orders.errors:
        assert error.replace(",unknown", "").startswith(unavailable)


class Orders:
    """Publishes numbers one by one, and remembers which were accepted."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.accepted: list[int] = []
        self.errors: list[str] = []
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        for number in count():
            try:
                await self._client.publish("/orders", number)
            except ReplyError as error:
                self.errors.append(str(error))
            else:
                self.accepted.append(number)
            await asyncio.sleep(0.01)

    async def end(self) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])
