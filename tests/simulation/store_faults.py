"""What goes wrong with the machines of a store, each for a limited time."""

from functools import partial

from tests.simulation.faults import Fault, Stage, fill_disk, kill_server, part
from tests.simulation.store.groups import Group
from tests.simulation.store.node import LAG_S

# How much of the time of a fault passes before a replica takes the primary's place.
_NOTICED = 0.3
# Long enough for another server to find the new primary and to open it.
_OPENED_S = 8.0


def cut_power_of_store(stage: Stage, duration_s: float) -> None:
    """Cut the power of the store's machine: its file lacks the last second, or a part of it.

    Servers live, and tell it again what they know.
    """
    site, primary = stage.site, stage.store().primary
    site.cut_power(primary, stage.random)
    stage.world.later(duration_s, partial(site.start, primary))


def cut_power(stage: Stage, duration_s: float) -> None:
    """Cut the power of a machine on which a server is with its store."""
    post = stage.machine()
    post.pause_s = duration_s
    store = stage.struck[stage.begun_at_s] = stage.site.store_of(stage.places.index(post))
    primary = store.primary
    stage.site.cut_power(primary, stage.random)
    post.process.kill()
    stage.world.later(duration_s * stage.random.random(), partial(stage.site.start, primary))


def fail_over(stage: Stage, _: float) -> None:
    """Let an operator replace the primary, which goes on for a moment."""
    stage.site.fail_over(stage.store(), stage.random)


def freeze_and_replace_primary(stage: Stage, duration_s: float) -> None:
    """Freeze the primary. When it thaws, it answers what waited, and then forgets it."""
    group = stage.store()
    primary = group.primary
    if primary.is_running:
        primary.freeze()
        _replace(stage, group, duration_s)
        stage.world.later(duration_s, lambda: primary.thaw() if primary.is_running else None)


def cut_off_and_replace_primary(stage: Stage, duration_s: float) -> None:
    """Let the primary reach its clients only. It goes on until it learns that it is replaced."""
    _cut_off(stage, stage.store(), duration_s)


def _cut_off(stage: Stage, group: Group, duration_s: float) -> None:
    primary = group.primary
    primary.cut_off()
    _replace(stage, group, duration_s)
    stage.world.later(duration_s, primary.rejoin)


def cut_off_server_with_primary(stage: Stage, duration_s: float) -> None:
    """Let the primary, which is replaced, and one server reach nobody else of the store."""
    group, kept = stage.store(), stage.machine()
    primary = group.primary.host
    for machine in stage.site.machines:
        if machine != primary:
            part(stage, kept.name, machine, duration_s)
    for place in stage.places:
        if place.name != kept.name:
            stage.oracle.cut_off.append((place.process, stage.world.now))
            part(stage, place.name, primary, duration_s)
    _cut_off(stage, group, duration_s)


def fill_disk_and_cut_off_server_with_primary(stage: Stage, duration_s: float) -> None:
    """Let the primary, which is replaced and whose disk is full, reach one server only."""
    duration_s = max(duration_s, _OPENED_S)
    fill_disk(stage, duration_s)
    cut_off_server_with_primary(stage, duration_s)


def end_and_replace_primary(stage: Stage, duration_s: float) -> None:
    """End the primary, perhaps between a command and its answer."""
    site, group = stage.site, stage.store()
    primary = group.primary
    if primary.is_running:
        site.end(primary)
        _replace(stage, group, duration_s)
        stage.world.later(duration_s, partial(site.start, primary))


def cut_off_primary_and_kill_server(stage: Stage, duration_s: float) -> None:
    """Lose whatever only the primary has: the server cannot tell it again."""
    cut_off_and_replace_primary(stage, duration_s)
    noticed_s = _NOTICED * duration_s
    stage.world.later(noticed_s, partial(kill_server, stage, duration_s - noticed_s))


def _replace(stage: Stage, group: Group, duration_s: float) -> None:
    stage.world.later(_NOTICED * duration_s, partial(stage.site.fail_over, group, stage.random))


def slow_replica(stage: Stage, duration_s: float) -> None:
    """Let changes take longer to the replica than anybody waits for them."""
    for replica in stage.store().replicas:
        replica.lag_s = duration_s * stage.random.random()
        stage.world.later(duration_s, partial(setattr, replica, "lag_s", LAG_S))


def cut_off_replica(stage: Stage, duration_s: float) -> None:
    for replica in stage.store().replicas:
        replica.cut_off()
        stage.world.later(duration_s, replica.rejoin)


def move_slot(stage: Stage, duration_s: float) -> None:
    stage.site.move_slot(stage.random, duration_s)


# Those of a store without replicas.
FAULTS_OF_FILES: tuple[Fault, ...] = (cut_power_of_store, cut_power)
# Those of a store beside its servers, whose machine fails with them: see `lose_machine`.
FAULTS_OF_EMBEDDED: tuple[Fault, ...] = (cut_power_of_store,)
FAULTS_OF_PAIRS: tuple[Fault, ...] = (
    fail_over,
    freeze_and_replace_primary,
    cut_off_and_replace_primary,
    cut_off_server_with_primary,
    fill_disk_and_cut_off_server_with_primary,
    end_and_replace_primary,
    cut_off_primary_and_kill_server,
    slow_replica,
    cut_off_replica,
)
FAULTS_OF_CLUSTERS: tuple[Fault, ...] = (*FAULTS_OF_PAIRS, move_slot)
