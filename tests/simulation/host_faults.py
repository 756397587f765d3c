"""What goes wrong with hosts of several, and what operators do with them, each for some time."""

import signal
from functools import partial

from holdfast.store.format.keys import RedisKeys
from tests.simulation.faults import Fault, Stage, part
from tests.simulation.process import Life
from tests.simulation.supervised import Unit
from tests.simulation.supervisor_faults import lose_machine

_NAMESPACE = "holdfast"
# The longest that a step takes on a busy machine, in seconds, and for how long.
_SLOW_STEP_S, _SLOW_S = 0.01, 2.0
# How soon after the begin of a move one of its processes is killed, at most.
_MOVE_S = 4.0
# How often to look whether a host has no shard, and for how long.
_LOOK_S, _MOST_LOOKS = 0.5, 40


def _unit(stage: Stage) -> Unit:
    return stage.random.choice(stage.deployment.units)


def freeze_host(stage: Stage, duration_s: float) -> None:
    """Freeze all processes of a host; what they had begun to write comes late."""
    for each in _unit(stage).living:
        each.freeze()
        stage.world.later(duration_s, each.thaw)


def slow_host(stage: Stage, duration_s: float) -> None:
    """Let all processes of a host run slowly: it is neither dead nor alive."""
    slowness_s = stage.random.random() * _SLOW_STEP_S
    for each in _unit(stage).living:
        each.slowness_s = slowness_s
        stage.world.later(min(duration_s, _SLOW_S), partial(setattr, each, "slowness_s", 0.0))


def kill_claimer(stage: Stage, _: float) -> None:
    if (claimer := _unit(stage).claimer) is not None:
        claimer.kill()


def freeze_claimer(stage: Stage, duration_s: float) -> None:
    if (claimer := _unit(stage).claimer) is not None:
        claimer.freeze()
        stage.world.later(duration_s, claimer.thaw)


def part_hosts(stage: Stage, duration_s: float) -> None:
    """Let nothing pass between two hosts, both of which reach the store."""
    one, other = stage.random.sample(stage.deployment.machines, 2)
    part(stage, one, other, duration_s)


def part_hosts_one_way(stage: Stage, duration_s: float) -> None:
    """Let nothing pass from one host to another, which is heard; none connects to the other."""
    one, other = stage.random.sample(stage.deployment.machines, 2)
    part(stage, one, other, duration_s, is_one_way=True)


def drain_host(stage: Stage, duration_s: float) -> None:
    """Let a host give its shards to others, one after the other, until this is over."""
    unit = _unit(stage)
    _drain(stage, unit)
    stage.world.later(duration_s, partial(_uncordon, stage, unit))


def drain_host_and_kill(stage: Stage, duration_s: float) -> None:
    """Kill a process of any host while one gives its shards away."""
    drain_host(stage, duration_s)

    def kill() -> None:
        living = [each for unit in stage.deployment.units for each in unit.living]
        if living:
            stage.random.choice(living).kill()

    stage.world.later(_MOVE_S * stage.random.random(), kill)


def drain_host_and_freeze(stage: Stage, duration_s: float) -> None:
    """Freeze a process that has a shard, or is about to, while a host gives its shards away."""
    drain_host(stage, duration_s)

    def freeze() -> None:
        shards = [
            each
            for unit in stage.deployment.units
            for each in unit.workers
            if each.life is Life.RUNNING
        ]
        if shards:
            process = stage.random.choice(shards)
            process.freeze()
            stage.world.later(duration_s, process.thaw)

    stage.world.later(_MOVE_S * stage.random.random(), freeze)


def update_host(stage: Stage, duration_s: float) -> None:
    """Drain a host, start everything on it again, and let it have shards again."""
    unit = _unit(stage)
    _drain(stage, unit)
    unit.pause_s = min(duration_s, 1.0)

    def look(looks: int) -> None:
        has_shards = any(post.unit is unit and post.is_serving for post in unit.posts)
        if has_shards and looks:
            stage.world.later(_LOOK_S, partial(look, looks - 1))
            return
        if not has_shards:
            stage.world.coverage.mark("a host was drained and updated")
            unit.supervisor.take_signal(signal.SIGTERM)
        stage.world.later(duration_s, partial(_uncordon, stage, unit))

    look(_MOST_LOOKS)


def _drain(stage: Stage, unit: Unit) -> None:
    _do(stage, b"SET", _drained(unit), b"{}")


def _uncordon(stage: Stage, unit: Unit) -> None:
    _do(stage, b"DEL", _drained(unit))


def _drained(unit: Unit) -> bytes:
    return RedisKeys(_NAMESPACE).drained(unit.host).encode()


def _do(stage: Stage, *words: bytes) -> None:
    stage.site.first.primary.do(*words)


FAULTS_OF_HOSTS: tuple[Fault, ...] = (
    freeze_host,
    slow_host,
    kill_claimer,
    freeze_claimer,
    part_hosts,
    part_hosts_one_way,
    drain_host,
    drain_host_and_kill,
    drain_host_and_freeze,
    update_host,
)
# Those that break links between hosts, with what was on its way.
LOSE_LINKS_OF_HOSTS = frozenset(
    (
        *(freeze_host, part_hosts, part_hosts_one_way),
        *(drain_host_and_kill, drain_host_and_freeze, lose_machine),
    )
)
