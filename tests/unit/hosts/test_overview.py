"""What operators are shown of hosts and shards, after a few looks."""

from dataclasses import replace

from holdfast.hosts.overview import LOOK_S, Move, Overview
from holdfast.hosts.preference import targets
from holdfast.hosts.rows import HostRow, HostState
from holdfast.hosts.watching import ShardSeen

HOSTS = ("a", "b", "c")
SHARDS = 6
AIMS = targets(SHARDS, HOSTS, HOSTS, None)


class Scene:
    """Hosts that raise their rows, and shards whose leases are raised, unless they are dead."""

    def __init__(self) -> None:
        self.now, self.n = 100.0, 0
        self.rows = {host: HostRow("x", 1) for host in HOSTS}
        self.owners = dict(AIMS)
        self.dead: set[str] = set()
        self.overview = Overview(HOSTS, shards=SHARDS, capacity=None, clock=lambda: self.now)

    def look(self) -> None:
        self.n += 1
        for host in {*HOSTS} - self.dead:
            self.rows[host] = replace(self.rows[host], n=self.n)
        shards = {
            shard: ShardSeen("e1", "1" if owner in self.dead else str(self.n), owner, "")
            for shard, owner in self.owners.items()
        }
        self.overview.see(shards, dict(self.rows))
        self.now += LOOK_S

    def look_until_over(self) -> int:
        """Look until that shows nothing new; returns how often."""
        while not self.overview.is_over:
            self.look()
        return self.n


def test_two_looks_are_enough_while_everything_moves() -> None:
    scene = Scene()
    assert scene.look_until_over() == 2
    assert scene.overview.living == {*HOSTS}
    assert scene.overview.owners == AIMS
    assert not scene.overview.moves()


def test_a_dead_host_is_known_after_a_lease_and_its_shards_have_no_owner() -> None:
    scene = Scene()
    scene.dead.add("a")
    assert scene.look_until_over() * LOOK_S >= 3.0
    assert scene.overview.living == {"b", "c"}
    assert scene.overview.unowned == [shard for shard, host in AIMS.items() if host == "a"]


def test_shards_of_a_draining_host_are_to_move_to_the_others() -> None:
    scene = Scene()
    scene.rows["b"] = replace(scene.rows["b"], state=HostState.DRAINING)
    scene.look_until_over()
    rest = targets(SHARDS, HOSTS, ("a", "c"), None)
    own = [shard for shard, host in AIMS.items() if host == "b"]
    assert scene.overview.draining == {"b"}
    assert scene.overview.moves() == [Move(shard, "b", rest[shard]) for shard in own]


def test_a_shard_that_is_elsewhere_is_to_come_back() -> None:
    scene = Scene()
    shard, home = next(iter(AIMS.items()))
    away = next(host for host in HOSTS if host != home)
    scene.owners[shard] = away
    scene.look_until_over()
    assert scene.overview.moves() == [Move(shard, away, home)]


def test_without_any_answer_of_the_store_nothing_is_known() -> None:
    scene = Scene()
    while not scene.overview.is_over:
        scene.overview.see(dict.fromkeys(range(SHARDS)), None)
        scene.now += LOOK_S
    assert (scene.overview.rows, scene.overview.unowned) == (None, [*range(SHARDS)])


def test_a_shard_that_exists_with_an_empty_store_is_shown() -> None:
    scene = Scene()
    scene.look()
    empty = {2: ShardSeen("", "", "", ""), 3: ShardSeen("", "", "", "")}
    scene.overview.see(empty, dict(scene.rows), {2})
    # The rows of the other one say nothing, but it was there a moment ago.
    assert scene.overview.emptied == [2, 3]


def test_a_living_host_without_a_shard_that_differs_from_all_others_is_shown_as_refused() -> None:
    scene = Scene()
    scene.owners = {shard: "a" if host == "c" else host for shard, host in AIMS.items()}
    scene.rows = {
        host: replace(row, fixed="shards=6 login=none") for host, row in scene.rows.items()
    }
    scene.rows["c"] = replace(scene.rows["c"], fixed="shards=6 login=needed")
    scene.look_until_over()
    assert [scene.overview.refused(host) for host in HOSTS] == [[], [], ["login"]]
    # One that has shards serves, whatever the others have.
    scene.owners = dict(AIMS)
    scene.look()
    assert scene.overview.refused("c") == []
