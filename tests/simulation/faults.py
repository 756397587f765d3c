"""What goes wrong in a simulated deployment, each for a limited time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random

from tests.simulation.deployment import Deployment
from tests.simulation.judges.excuses import HEALS_S, Excuses
from tests.simulation.network import End, Weather
from tests.simulation.oracle import CLIENTS, Oracle
from tests.simulation.process import Process
from tests.simulation.restarting import Restart, kill_successor
from tests.simulation.server import Served
from tests.simulation.store.groups import Group
from tests.simulation.store.node import Node
from tests.simulation.store_site import Kind, StoreSite
from tests.simulation.world import World

# How long faults last, in seconds. Half are short; the others outlast a lease.
_SHORTEST_S, _SHORT_S, _LONGEST_S = 0.02, 2.0, 7.0
# In some worlds, some last much longer.
LONG_WORLDS, _LONG, _LONG_S = 0.06, 0.3, (10.0, 90.0)
# How often a fault concerns the server that speaks, if there are several.
_AT_SPEAKER = 0.75
# For so long a lease is in force, and in what raises it there is this.
_LEASE_S, _RAISE = 3.0, b"Raises the lease"
# How often a server crashes at its start.
_CRASHES = 3
# The command that reads a log.
_READ = b"XREAD"
# The longest that a step takes on a busy machine, and bytes in a bad network, in seconds.
_SLOW_STEP_S, _SLOW_NETWORK_S = 0.03, 0.4
_JUMP_S = 3_600.0
# How often a connection breaks when its machines are parted.
_BREAKS = 0.8
# How many bytes a connection carries at most before it breaks.
_LAST_BYTES = 3_000


@dataclass(slots=True)
class Stage:
    """Everything that can fail."""

    world: World
    oracle: Oracle
    deployment: Deployment
    site: StoreSite
    excuses: Excuses
    # Whether some faults outlast sessions, the lives of logs, and everybody's patience.
    has_long_faults: bool = False
    # When the fault began that begins now, and which store each fault concerns, by that.
    begun_at_s: float = 0.0
    struck: dict[float, Group] = field(default_factory=dict)

    @property
    def places(self) -> Sequence[Served]:
        """Where servers are."""
        return self.deployment.places

    @property
    def random(self) -> Random:
        return self.world.random

    def duration_s(self) -> float:
        """Return how long a fault lasts."""
        random = self.random
        if self.has_long_faults and random.random() < _LONG:
            return random.uniform(*_LONG_S)
        if random.random() < 0.5:
            return random.uniform(_SHORT_S, _LONGEST_S)
        return float(_SHORTEST_S * (_SHORT_S / _SHORTEST_S) ** random.random())

    def machine(self) -> Served:
        """Return the place of a server, mostly of the one that speaks to clients."""
        random, speaker = self.random, self.oracle.speaker
        if random.random() < _AT_SPEAKER:
            for place in self.places:
                if place.process is speaker:
                    return place
        return random.choice(self.places)

    def pair(self) -> tuple[str, str]:
        """Return two machines that talk to each other."""
        if self.site.kind is Kind.EMBEDDED:
            # A Unix socket leads to the store.
            return self.machine().name, CLIENTS
        return self.machine().name, self.random.choice((CLIENTS, self.store().primary.host))

    def store(self) -> Group:
        """Return a server of the store that has data of the deployment, with its replicas."""
        groups = self.site.groups
        found = groups[0] if len(groups) == 1 else self.random.choice(groups)
        self.struck[self.begun_at_s] = found
        return found

    def connection(self) -> End | None:
        """Return one end of a connection."""
        one, other = self.pair()
        ends = self.world.network.open_connections(one, other)
        end = self.random.choice(ends) if ends else None
        return end if end is None or self.random.random() < 0.5 else end.peer


Fault = Callable[[Stage, float], None]


def freeze_server(stage: Stage, duration_s: float) -> None:
    process = stage.machine().process
    process.freeze()
    stage.world.later(duration_s, process.thaw)


def freeze_server_for_long(stage: Stage, duration_s: float) -> None:
    """For so long that others go on without it."""
    freeze_server(stage, duration_s)


def suspend_server(stage: Stage, duration_s: float) -> None:
    _suspend(stage, stage.machine().process, duration_s)


def _suspend(stage: Stage, process: Process, duration_s: float) -> None:
    """Suspend the machine of a process with all servers on it."""
    world, clocks = stage.world, process.clocks
    world.note(process.name, "suspended")
    clocks.suspend(world.now)
    world.later(duration_s, lambda: clocks.resume(world.now))


def freeze_server_in_call(stage: Stage, duration_s: float) -> None:
    """Freeze a server as soon as the store has a call of it, so that its answer comes late."""
    process = stage.machine().process

    def freeze() -> None:
        process.freeze()
        stage.world.later(duration_s, process.thaw)

    _at_next_call(stage, process, "freeze_server_in_call", duration_s, lambda _: freeze())


def suspend_server_in_raise(stage: Stage, duration_s: float) -> None:
    """Suspend a machine as soon as the store is asked to raise its server's lease.

    The server then has the answer when the lease is over, and no timeout of its own has passed.
    """
    process, lasts_s = stage.machine().process, _LEASE_S + duration_s / 2

    def freeze(_: End) -> None:
        _suspend(stage, process, lasts_s)

    _at_next_call(stage, process, "suspend_server_in_raise", lasts_s, freeze, having=_RAISE)


def kill_server_in_call(stage: Stage, duration_s: float) -> None:
    """Kill a server as soon as the store has a call of it, which is carried out."""
    post = stage.machine()
    post.pause_s = duration_s
    process = post.process
    _at_next_call(stage, process, "kill_server_in_call", duration_s, lambda _: process.kill())


def hold_reading(stage: Stage, duration_s: float) -> None:
    """Hold back what the store answers to a server that reads the log of another one."""
    began_at_s = stage.begun_at_s

    def hold(asking: End) -> None:
        stage.struck[began_at_s] = stage.site.group_at(asking.peer.name[0])
        asking.peer.hold()
        stage.world.later(duration_s, asking.peer.let_go)

    process = stage.machine().process
    _at_next_call(stage, process, "hold_reading", duration_s, hold, having=_READ)


def _at_next_call(
    stage: Stage,
    process: Process,
    fault: str,
    duration_s: float,
    then: Callable[[End], None],
    *,
    having: bytes = b"",
) -> None:
    """Let a fault begin, with its excuse, when a process next calls the store with these bytes."""
    write = process.loop.on_write
    is_over = False

    def watch(end: End, data: bytes) -> None:
        nonlocal is_over
        write(end, data)
        # Others may watch, too, and call it again.
        if not is_over and stage.site.is_primary(end.peer.name[0]) and having in data:
            is_over = True
            process.loop.on_write = write
            stage.excuses.add(fault, stage.world.now, duration_s)
            # Not before the callback has ended that calls.
            stage.world.later(0.0, partial(then, end))

    process.loop.on_write = watch


def kill_server(stage: Stage, duration_s: float) -> None:
    post = stage.machine()
    post.pause_s = duration_s
    post.process.kill()


def terminate_server(stage: Stage, duration_s: float) -> None:
    post = stage.machine()
    post.pause_s = duration_s
    post.process.terminate()


def crash_server_often(stage: Stage, duration_s: float) -> None:
    """Kill a server, and each that is started for it for some time."""
    post = stage.machine()
    post.pause_s = duration_s / _CRASHES
    post.crashes = _CRASHES
    post.process.kill()


def restart(stage: Stage, _: float) -> None:
    """Replace all servers, as an operator does."""
    Restart(stage.world, stage.deployment.posts).begin()


def restart_in_vain(stage: Stage, duration_s: float) -> None:
    """Replace all servers, one of which ends before it serves."""
    attempt = Restart(stage.world, stage.deployment.posts)
    attempt.begin()
    delay_s = min(duration_s, _SHORT_S) * stage.random.random()
    stage.world.later(delay_s, partial(kill_successor, attempt, stage.random.choice))


def restart_that_hangs(stage: Stage, _: float) -> None:
    """Replace all servers, one of which freezes before it opens its store, until it is killed."""
    Restart(stage.world, stage.deployment.posts, hangs=True).begin()


def slow_server(stage: Stage, duration_s: float) -> None:
    process = stage.machine().process
    process.slowness_s = stage.random.random() * _SLOW_STEP_S
    stage.world.later(min(duration_s, 1.0), partial(setattr, process, "slowness_s", 0.0))


def set_clock(stage: Stage, duration_s: float) -> None:
    clocks = stage.machine().process.clocks
    jump_s = stage.random.uniform(-_JUMP_S, _JUMP_S)
    clocks.jump(jump_s)
    stage.world.later(duration_s, partial(clocks.jump, -jump_s))


def freeze_store(stage: Stage, duration_s: float) -> None:
    primary = stage.store().primary
    if primary.is_running:
        primary.freeze()
        stage.world.later(duration_s, partial(_thaw, primary))


def _thaw(node: Node) -> None:
    if node.is_running and node.is_frozen:
        node.thaw()


def end_store(stage: Stage, duration_s: float) -> None:
    """End the store, which keeps what it has."""
    site, primary = stage.site, stage.store().primary
    if primary.is_running:
        site.end(primary)
        stage.world.later(duration_s, partial(site.start, primary))


def crash_store_soon(stage: Stage, duration_s: float) -> None:
    """End the store between carrying out a command and answering it."""
    primary = stage.store().primary
    primary.crashes_in = stage.random.randint(1, 10)
    stage.world.later(duration_s, partial(stage.site.start, primary))


def cut_connection(stage: Stage, duration_s: float) -> None:
    """Break a connection within some bytes, or when this is over."""
    if (end := stage.connection()) is not None:
        end.breaks_after = stage.random.randrange(_LAST_BYTES)
        stage.world.later(duration_s, end.break_at_last)


def lose_connection(stage: Stage, duration_s: float) -> None:
    """Leave a connection half open, until it breaks while this is still an excuse."""
    if (end := stage.connection()) is not None:
        end.lose()
        end.peer.lose()
        stage.world.later(duration_s + HEALS_S / 2, end.break_both)


def lose_direction(stage: Stage, duration_s: float) -> None:
    """Let nothing arrive any more that one end sends; it goes on hearing the other one."""
    if (end := stage.connection()) is not None:
        end.lose()
        stage.world.later(duration_s + HEALS_S / 2, end.break_both)


def hold_connection(stage: Stage, duration_s: float) -> None:
    """Hold back what one end sends."""
    if (end := stage.connection()) is not None:
        end.hold()
        stage.world.later(duration_s, end.let_go)


def part_from_clients(stage: Stage, duration_s: float) -> None:
    part(stage, stage.machine().name, CLIENTS, duration_s)


def part_from_store(stage: Stage, duration_s: float) -> None:
    post = stage.machine()
    stage.oracle.cut_off += [
        (each.process, stage.world.now) for each in stage.places if each.name == post.name
    ]
    part(stage, post.name, stage.store().primary.host, duration_s)


def part(
    stage: Stage, one: str, other: str, duration_s: float, *, is_one_way: bool = False
) -> None:
    """Let nothing pass between two machines, or only from the first one to the other."""
    network = stage.world.network
    pair = frozenset((one, other))
    # Who hears no answer is not connected, either.
    network.parted.add(pair)
    ends = [each for end in network.open_connections(one, other) for each in (end, end.peer)]
    if is_one_way:
        ends = [each for each in ends if each.name[0] == one]
    for end in ends:
        end.hold()

    def join() -> None:
        network.parted.discard(pair)
        for end in ends:
            end.let_go()

    stage.world.later(duration_s, join)


def part_from_server(stage: Stage, duration_s: float) -> None:
    """Let nothing pass between two servers, and perhaps break their connections."""
    if len(stage.deployment.machines) == 1:
        return
    one, other = stage.random.sample(stage.deployment.machines, 2)
    part(stage, one, other, duration_s)
    for end in stage.world.network.open_connections(one, other):
        if stage.random.random() < _BREAKS:
            end.breaks_after = stage.random.randrange(_LAST_BYTES)
            stage.world.later(duration_s, end.break_at_last)


def fill_store(stage: Stage, duration_s: float) -> None:
    """Leave the store no memory."""
    primary = stage.store().primary
    _set_memory(primary, 1)
    stage.world.later(duration_s, partial(_set_memory, primary, 0))


def _set_memory(node: Node, most: int) -> None:
    node.settings.set("maxmemory", str(most))


def fill_disk(stage: Stage, duration_s: float) -> None:
    """Let the store accept no changes, because it cannot write them to its disk."""
    primary = stage.store().primary
    primary.is_disk_full = True
    # Until they hear of it, servers hand out what the store does not take note of.
    stage.oracle.cut_off += [(place.process, stage.world.now) for place in stage.places]
    stage.world.later(duration_s, partial(setattr, primary, "is_disk_full", False))


def slow_network(stage: Stage, duration_s: float) -> None:
    weather = stage.world.network.weather(*stage.pair())
    weather.longest_s = stage.random.random() * _SLOW_NETWORK_S
    stage.world.later(duration_s, partial(setattr, weather, "longest_s", Weather().longest_s))


# Those that leave the way to the store open, while the server runs.
SUDDEN = frozenset(
    (kill_server, kill_server_in_call, terminate_server, set_clock, part_from_clients)
)
# Those after which servers may give up the links between them.
LOSE_LINKS = frozenset(
    (
        *(freeze_server, freeze_server_in_call, suspend_server, suspend_server_in_raise),
        *(cut_connection, lose_connection, lose_direction, hold_connection, part_from_server),
    )
)
# Those through which all sessions stay live, and shards in contact.
KEEP_CONTACTS = frozenset((restart, set_clock))
# Those that happen only if they are named, and how much longer they last than others, in seconds.
FAULTS_BY_NAME: dict[Fault, float] = {freeze_server_for_long: 8.0}
# Those of several shards, besides all others.
FAULTS_OF_SHARDS: tuple[Fault, ...] = (
    part_from_server,
    hold_reading,
    fill_store,
    fill_disk,
    crash_server_often,
    restart,
    restart_in_vain,
    restart_that_hangs,
)
FAULTS: tuple[Fault, ...] = (
    freeze_server,
    freeze_server_in_call,
    suspend_server_in_raise,
    suspend_server,
    kill_server,
    kill_server_in_call,
    terminate_server,
    slow_server,
    set_clock,
    freeze_store,
    end_store,
    crash_store_soon,
    cut_connection,
    lose_connection,
    lose_direction,
    hold_connection,
    part_from_clients,
    part_from_store,
    slow_network,
)
