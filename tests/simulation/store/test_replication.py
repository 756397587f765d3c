"""Primaries, replicas and clusters of the fake store, and what goes wrong with them."""

import heapq
import itertools
from collections.abc import Callable

import pytest
from hiredis import Reader

from holdfast.store.links.resp import Word, pack
from tests.simulation.store.groups import Cluster, Group, Sentinel
from tests.simulation.store.node import Node

KEEP = "redis.call('RPUSH', KEYS[1], ARGV[1]) redis.call('HINCRBY', KEYS[2], 'count', 1)"


class Clock:
    """Time that the test lets pass."""

    def __init__(self) -> None:
        self.now = 1_763_000_000.0
        self._count = itertools.count()
        self._due: list[tuple[float, int, Callable[[], None]]] = []

    def read(self) -> float:
        return self.now

    def later(self, delay_s: float, then: Callable[[], None]) -> None:
        heapq.heappush(self._due, (self.now + delay_s, next(self._count), then))

    def pass_time(self, seconds: float) -> None:
        ends_at = self.now + seconds
        while self._due and self._due[0][0] <= ends_at:
            self.now, _, then = heapq.heappop(self._due)
            then()
        self.now = ends_at


class Client:
    """A client of one server."""

    def __init__(self, node: Node) -> None:
        self.replies: list[object] = []
        self.is_cut = False
        self._reader = Reader()
        self._connection = node.connect(self._heard, self._cut)

    def _heard(self, data: bytes) -> None:
        self._reader.feed(data)
        while (reply := self._reader.gets()) is not False:
            self.replies.append(reply)

    def _cut(self) -> None:
        self.is_cut = True

    def send(self, *words: Word) -> None:
        self._connection.receive(pack(words))

    def ask(self, *words: Word) -> object:
        """The reply, which comes at once."""
        before = len(self.replies)
        self.send(*words)
        [reply] = self.replies[before:]
        return reply

    def keep(self, word: Word) -> object:
        """Write in a script, for which a replica gets two commands or none."""
        return self.ask("EVAL", KEEP, 2, "{t}words", "{t}meta", word)

    def kept(self) -> list[int]:
        words = self.ask("LRANGE", "{t}words", 0, -1)
        assert isinstance(words, list)
        count = self.ask("HGET", "{t}meta", "count")
        assert int(count or 0) == len(words)  # type: ignore[call-overload] # a number
        return [*map(int, words)]

    def error(self, *words: Word) -> str:
        reply = self.ask(*words)
        assert isinstance(reply, Exception)
        return str(reply)


def group(clock: Clock, count: int = 2, **settings: str) -> Group:
    made = Group(clock.read, clock.later, [(f"host{n}", 6379) for n in range(count)])
    for node in made.nodes:
        for name, value in settings.items():
            node.settings.set(name.replace("_", "-"), value)
    return made


@pytest.fixture
def clock() -> Clock:
    return Clock()


# Replicas


def test_a_replica_has_what_has_arrived(clock: Clock) -> None:
    pair = group(clock)
    primary, replica = pair.nodes
    replica.lag_s = 0.5
    writer, reader = Client(primary), Client(replica)
    writer.keep(1)
    assert reader.kept() == []
    clock.pass_time(0.2)
    writer.keep(2)
    clock.pass_time(0.3)
    assert reader.kept() == [1]
    clock.pass_time(0.5)
    assert reader.kept() == [1, 2]
    assert reader.error("SET", "k", "v").startswith("READONLY")


def test_a_client_waits_until_replicas_have_its_writes(clock: Clock) -> None:
    pair = group(clock, 3)
    pair.nodes[1].lag_s, pair.nodes[2].lag_s = 0.1, 0.4
    client = Client(pair.primary)
    assert client.ask("WAIT", 2, 0) == 2
    client.keep(1)
    client.send("WAIT", 1, 1000)
    client.send("PING")
    assert len(client.replies) == 2
    clock.pass_time(0.2)
    assert client.replies[2:] == [1, b"PONG"]
    client.send("WAIT", 2, 100)
    clock.pass_time(0.1)
    assert client.replies[4:] == [1]


def test_a_primary_that_is_cut_off_goes_on_but_no_replica_confirms_its_writes(clock: Clock) -> None:
    pair = group(clock, min_replicas_to_write="1")
    client = Client(pair.primary)
    client.keep(1)
    pair.primary.cut_off()
    client.keep(2)
    client.send("WAIT", 1, 500)
    clock.pass_time(5)
    assert client.replies[2:] == [0]
    role = client.ask("ROLE")
    assert isinstance(role, list)
    assert len(role[2]) == 1
    clock.pass_time(6)
    assert client.error("SET", "k", "v").startswith("NOREPLICAS")
    pair.primary.rejoin()
    client.send("WAIT", 1, 500)
    clock.pass_time(0.1)
    assert client.replies[5:] == [1]


def test_a_failover_loses_what_the_replica_does_not_have(clock: Clock) -> None:
    pair = group(clock)
    writer = Client(pair.primary)
    for n in range(5):
        writer.keep(n)
    clock.pass_time(1)
    pair.replicas[0].lag_s = 60.0
    for n in range(5, 10):
        writer.keep(n)
    pair.primary.crash()
    assert writer.is_cut
    former = pair.fail_over(7)
    client = Client(pair.primary)
    assert client.kept() == [0, 1, 2, 3, 4, 5, 6]
    client.keep(70)
    former.start()
    clock.pass_time(1)
    assert Client(former).kept() == [0, 1, 2, 3, 4, 5, 6, 70]
    assert Client(former).error("SET", "k", "v").startswith("READONLY")


def test_a_replica_keeps_what_it_has_confirmed(clock: Clock) -> None:
    pair = group(clock)
    Client(pair.primary).keep(1)
    clock.pass_time(1)
    with pytest.raises(AssertionError, match="confirmed"):
        pair.fail_over(0)


def test_a_client_waits_until_replicas_have_what_it_published(clock: Clock) -> None:
    pair = group(clock)
    pair.replicas[0].lag_s = 0.1
    client = Client(pair.primary)
    assert client.ask("PUBLISH", "channel", "") == 0
    client.send("WAIT", 1, 1000)
    assert len(client.replies) == 1
    clock.pass_time(0.3)
    assert client.replies[1:] == [1]


def test_a_frozen_primary_confirms_what_waited_in_its_socket_and_forgets_it(clock: Clock) -> None:
    pair = group(clock)
    writer, other = Client(pair.primary), Client(pair.primary)
    writer.keep(1)
    clock.pass_time(1)
    pair.primary.freeze()
    writer.send("EVAL", KEEP, 2, "{t}words", "{t}meta", 2)
    assert len(writer.replies) == 1
    former = pair.fail_over()
    former.thaw()
    assert writer.replies == [None, None]
    assert other.keep(3) is None
    assert other.kept() == [1, 2, 3]
    clock.pass_time(0.05)
    assert (writer.is_cut, other.is_cut) == (True, True)
    assert Client(former).kept() == Client(pair.primary).kept() == [1]


def test_a_primary_that_was_cut_off_forgets_what_nobody_else_has(clock: Clock) -> None:
    pair = group(clock, 3)
    writer = Client(pair.primary)
    writer.keep(1)
    clock.pass_time(1)
    pair.primary.cut_off()
    former = pair.fail_over()
    writer.keep(2)
    Client(pair.primary).keep(20)
    clock.pass_time(10)
    assert writer.kept() == [1, 2]
    former.rejoin()
    clock.pass_time(1)
    assert writer.is_cut
    assert [Client(node).kept() for node in pair.nodes] == [[1, 20]] * 3


def test_a_former_primary_can_be_one_again_only_as_a_replica(clock: Clock) -> None:
    pair = group(clock)
    pair.primary.freeze()
    former = pair.fail_over()
    former.thaw()
    assert pair.replicas == []
    clock.pass_time(0.05)
    assert pair.replicas == [former]
    pair.fail_over()
    assert pair.primary is former


def test_clients_in_wait_are_told_that_their_server_is_no_primary_any_more(clock: Clock) -> None:
    pair = group(clock)
    client = Client(pair.primary)
    client.send("WAIT", 5, 0)
    pair.fail_over()
    clock.pass_time(1)
    assert str(client.replies[0]).startswith("UNBLOCKED")


# Files


def test_a_server_that_ends_loses_what_its_file_does_not_have(clock: Clock) -> None:
    single = group(clock, 1, appendonly="yes")
    node, client = single.primary, Client(single.primary)
    client.keep(1)
    clock.pass_time(1)
    client.keep(2)
    client.keep(3)
    node.crash()
    node.start()
    assert Client(node).kept() == [1]
    assert Client(node).error("EVALSHA", "0" * 40, 0).startswith("NOSCRIPT")


def test_a_file_may_have_more_than_was_synchronised(clock: Clock) -> None:
    single = group(clock, 1, appendonly="yes")
    node, client = single.primary, Client(single.primary)
    for n in range(3):
        client.keep(n)
    node.crash()
    node.start(2)
    assert Client(node).kept() == [0, 1]


def test_a_server_that_synchronises_always_loses_nothing(clock: Clock) -> None:
    single = group(clock, 1, appendonly="yes", appendfsync="always")
    node = single.primary
    Client(node).keep(1)
    node.crash()
    node.start(loading_s=2.0)
    assert Client(node).error("PING").startswith("LOADING")
    clock.pass_time(2)
    assert Client(node).kept() == [1]


def test_a_server_without_a_file_loses_everything(clock: Clock) -> None:
    pair = group(clock)
    Client(pair.primary).keep(1)
    clock.pass_time(1)
    pair.primary.crash()
    pair.primary.start()
    assert [Client(node).kept() for node in pair.nodes] == [[], []]


def test_a_client_can_wait_for_files(clock: Clock) -> None:
    client = Client(group(clock, 1, appendonly="yes").primary)
    client.keep(1)
    client.send("WAITAOF", 1, 0, 5000)
    clock.pass_time(0.5)
    assert len(client.replies) == 1
    clock.pass_time(0.6)
    assert client.replies[1] == [1, 0]


@pytest.mark.parametrize(("sync", "wait_s"), [("always", 0.1), ("everysec", 1.1)])
def test_a_client_can_wait_for_the_files_of_replicas(
    clock: Clock, sync: str, wait_s: float
) -> None:
    client = Client(group(clock, 2, appendonly="yes", appendfsync=sync).primary)
    client.keep(1)
    client.send("WAITAOF", 1, 1, 5000)
    clock.pass_time(wait_s - 0.1)
    assert len(client.replies) == 1
    clock.pass_time(0.1)
    assert client.replies[1] == [1, 1]


def test_a_replica_without_a_file_confirms_nothing_about_it(clock: Clock) -> None:
    pair = group(clock)
    client = Client(pair.primary)
    client.keep(1)
    client.send("WAITAOF", 0, 1, 500)
    clock.pass_time(1)
    assert client.replies[1] == [0, 0]


def test_a_server_can_end_between_a_command_and_its_answer(clock: Clock) -> None:
    single = group(clock, 1, appendonly="yes", appendfsync="always")
    client = Client(single.primary)
    single.primary.crashes_in = 2
    client.keep(1)
    client.send("EVAL", KEEP, 2, "{t}words", "{t}meta", 2)
    assert (client.is_cut, client.replies) == (True, [None])
    single.primary.start()
    assert Client(single.primary).kept() == [1, 2]


def test_a_server_without_disk_space_refuses_writes(clock: Clock) -> None:
    single = group(clock, 1)
    client = Client(single.primary)
    single.primary.is_disk_full = True
    assert client.error("SET", "k", "v").startswith("MISCONF")
    assert client.error("EVAL", f"#!lua flags=allow-oom\n{KEEP}", 0).startswith("MISCONF")
    assert client.ask("GET", "k") is None


def test_without_disk_space_replicas_confirm_anew_what_they_had_or_what_is_published(
    clock: Clock,
) -> None:
    pair = group(clock)
    client = Client(pair.primary)
    client.keep(1)
    clock.pass_time(1)
    pair.primary.is_disk_full = True
    assert client.ask("PUBLISH", "c", "") == 0
    client.send("WAIT", 1, 500)
    clock.pass_time(1)
    pair.primary.cut_off()
    client.send("WAIT", 1, 500)
    client.send("PUBLISH", "c", "")
    client.send("WAIT", 1, 500)
    clock.pass_time(1)
    assert client.replies[2:] == [1, 1, 0, 0]
    pair.primary.rejoin()
    clock.pass_time(1)
    assert Client(pair.fail_over()).ask("GET", "k") is None


# Clusters


def cluster(clock: Clock) -> Cluster:
    places = [[(f"host{n}-{m}", 7000) for m in range(2)] for n in range(3)]
    return Cluster(clock.read, clock.later, places)


def test_a_server_of_a_cluster_names_the_one_that_has_the_keys(clock: Clock) -> None:
    made = cluster(clock)
    here = made.group_of(b"{t}words")
    for node in made.nodes:
        client = Client(node)
        if node is here.primary:
            assert client.keep(1) is None
        else:
            moved = f"MOVED 15891 {here.primary.host}:7000"
            assert client.error("EVAL", KEEP, 2, "{t}words", "{t}meta", 1) == moved
            assert client.error("EVALSHA", "0" * 40, 1, "{t}words") == moved
    client = Client(here.primary)
    assert client.error("EXISTS", "{t}a", "{u}b").startswith("CROSSSLOT")
    slots = client.ask("CLUSTER", "SLOTS")
    assert isinstance(slots, list)
    assert [(first, last) for first, last, *_ in slots] == [
        (0, 5460),
        (5461, 10921),
        (10922, 16383),
    ]


def test_a_cluster_learns_of_a_failover(clock: Clock) -> None:
    made = cluster(clock)
    here = made.group_of(b"{t}words")
    writer = Client(here.primary)
    writer.keep(1)
    clock.pass_time(1)
    here.primary.freeze()
    writer.send("EVAL", KEEP, 2, "{t}words", "{t}meta", 2)
    former = made.fail_over(here)
    clock.pass_time(1)
    assert made.group_of(b"{t}words") is here
    moved = f"MOVED 15891 {here.primary.host}:7000"
    assert Client(made.nodes[0]).error("GET", "{t}words") == moved
    former.thaw()
    assert writer.replies == [None, None]
    clock.pass_time(0.1)
    assert writer.error("GET", "{t}words") == moved
    assert not writer.is_cut
    assert Client(here.primary).kept() == [1]


def test_keys_of_a_slot_move_one_by_one(clock: Clock) -> None:
    made = cluster(clock)
    here, there = made.group_of(b"{t}words"), made.groups[0]
    old, new = Client(here.primary), Client(there.primary)
    old.ask("SET", "{t}a", 1)
    old.ask("SET", "{t}b", 2)
    made.begin_moving(b"{t}a", there)
    ask = f"ASK 15891 {there.primary.host}:7000"
    assert old.ask("EXISTS", "{t}a", "{t}b") == 2
    assert old.error("EXISTS", "{t}a", "{t}z").startswith("TRYAGAIN")
    assert old.error("EXISTS", "{t}y", "{t}z") == ask
    made.move_key(b"{t}a")
    assert old.error("GET", "{t}a") == ask
    assert old.error("EXISTS", "{t}a", "{t}b").startswith("TRYAGAIN")
    assert new.error("GET", "{t}a").startswith("MOVED")
    assert new.ask("ASKING") == b"OK"
    assert new.ask("GET", "{t}a") == b"1"
    assert new.error("GET", "{t}a").startswith("MOVED")
    new.ask("ASKING")
    assert new.error("EXISTS", "{t}a", "{t}b").startswith("TRYAGAIN")
    new.ask("ASKING")
    assert new.ask("GET", "{t}z") is None
    made.end_moving(b"{t}a")
    clock.pass_time(1)
    assert new.ask("EXISTS", "{t}a", "{t}b") == 2
    assert old.error("GET", "{t}a") == f"MOVED 15891 {there.primary.host}:7000"
    assert made.group_of(b"{t}a") is there
    assert [there.nodes[1].keyspace.text(key) for key in (b"{t}a", b"{t}b")] == [b"1", b"2"]


def test_a_slot_moves_at_once(clock: Clock) -> None:
    made = cluster(clock)
    here, there = made.group_of(b"{t}words"), made.groups[0]
    Client(here.primary).keep(1)
    made.migrate(b"{t}words", there)
    assert Client(there.primary).kept() == [1]
    assert here.primary.keyspace.data == {}


def test_a_server_of_a_cluster_that_is_cut_off_stops_before_a_replica_takes_its_place(
    clock: Clock,
) -> None:
    made = cluster(clock)
    here = made.group_of(b"{t}a")
    here.primary.cut_off()
    former = made.fail_over(here)
    assert Client(former).error("GET", "{t}a") == "CLUSTERDOWN The cluster is down"
    former.rejoin()
    clock.pass_time(1)
    assert Client(former).error("GET", "{t}a").startswith("MOVED")


def test_a_cluster_without_a_majority_is_down(clock: Clock) -> None:
    made = cluster(clock)
    primary = made.group_of(b"{t}a").primary
    assert primary.view is not None
    primary.view.is_down = True
    assert Client(primary).error("GET", "{t}a") == "CLUSTERDOWN The cluster is down"
    primary.view.is_down, primary.view.ranges = False, []
    assert Client(primary).error("GET", "{t}a") == "CLUSTERDOWN Hash slot not served"


def test_a_sentinel_names_the_primary(clock: Clock) -> None:
    pair = group(clock)
    client = Client(Sentinel(clock.read, clock.later, pair, "shop"))
    question = ("SENTINEL", "GET-MASTER-ADDR-BY-NAME")
    assert client.ask(*question, "shop") == [b"host0", b"6379"]
    pair.fail_over()
    assert client.ask(*question, "shop") == [b"host1", b"6379"]
    assert client.ask(*question, "market") is None
    hello = client.ask("HELLO", 3)
    assert isinstance(hello, dict)
    assert (hello[b"mode"], b"role" in hello) == (b"sentinel", False)
