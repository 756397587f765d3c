"""What goes wrong with supervisors and importers, each for a limited time."""

import signal
from functools import partial

from tests.simulation.faults import Fault, Stage, part_from_store
from tests.simulation.process import Life, Running
from tests.simulation.supervised import Unit

# How many starts fail in a restart with bad settings or code.
_FAILS = 1
# How long a process hangs, if nobody kills it.
_HANGS_S = 10.0
# How often to look whether a server has left, and for how long.
_LOOK_S, _MOST_LOOKS = 0.001, 3_000


def _unit(stage: Stage) -> Unit:
    return stage.random.choice(stage.deployment.units)


def kill_supervisor(stage: Stage, duration_s: float) -> None:
    """Kill a supervisor. Its servers stop; the operator starts another one."""
    unit = _unit(stage)
    unit.pause_s = duration_s
    unit.supervisor.kill()


def stop_supervisor(stage: Stage, duration_s: float) -> None:
    """Have a supervisor stop everything in order."""
    unit = _unit(stage)
    unit.pause_s = duration_s
    unit.supervisor.take_signal(signal.SIGTERM)


def freeze_supervisor(stage: Stage, duration_s: float) -> None:
    _freeze(stage, _unit(stage).supervisor, duration_s)


def _freeze(stage: Stage, process: Running, duration_s: float) -> None:
    process.freeze()
    stage.world.later(duration_s, process.thaw)


def kill_importer(stage: Stage, _: float) -> None:
    for each in _unit(stage).importers:
        each.kill()


def freeze_importer(stage: Stage, duration_s: float) -> None:
    for each in _unit(stage).importers:
        _freeze(stage, each, duration_s)


def lose_machine(stage: Stage, duration_s: float) -> None:
    """End everything on a machine at once; the file of a lone server lacks what was not written."""
    unit = _unit(stage)
    unit.pause_s = duration_s
    for each in unit.living:
        each.kill()
    if unit.count == 1:
        unit.stores.cut_power()
    else:
        unit.stores.end_all()


def ask_for_restart(stage: Stage, _: float) -> None:
    """Replace all servers of a machine, as `holdfast restart` does."""
    _unit(stage).ask_restart()


def ask_by_signal(stage: Stage, _: float) -> None:
    """Replace them as `systemctl reload` does."""
    _unit(stage).supervisor.take_signal(signal.SIGHUP)


def restart_with_bad_settings(stage: Stage, _: float) -> None:
    unit = _unit(stage)
    if unit.supervisor.life is Life.RUNNING:
        unit.bad_settings = _FAILS
        unit.ask_restart()


def restart_with_bad_code(stage: Stage, _: float) -> None:
    unit = _unit(stage)
    if unit.supervisor.life is Life.RUNNING:
        unit.bad_code = _FAILS
        unit.ask_restart()


def restart_and_kill(stage: Stage, duration_s: float) -> None:
    """Replace all servers of a machine, and kill any of its processes meanwhile."""
    unit = _unit(stage)
    unit.pause_s = duration_s
    unit.ask_restart()

    def kill() -> None:
        if living := unit.living:
            stage.random.choice(living).kill()

    stage.world.later(min(duration_s, 1.0) * stage.random.random(), kill)


def restart_and_freeze(stage: Stage, _: float) -> None:
    """Replace the servers of a machine, and freeze a new one when the old one has left.

    The supervisor kills it before it thaws, unless that is killed itself.
    """
    unit = _unit(stage)
    unit.ask_restart()

    def freeze(looks: int) -> None:
        for post in unit.posts:
            if post.server is not None and post.server.has_left and post.process in unit.living:
                _freeze(stage, unit.living[-1], _HANGS_S)
                return
        if looks:
            stage.world.later(_LOOK_S, partial(freeze, looks - 1))

    freeze(_MOST_LOOKS)


FAULTS_OF_SUPERVISORS: tuple[Fault, ...] = (
    kill_supervisor,
    stop_supervisor,
    freeze_supervisor,
    kill_importer,
    freeze_importer,
    lose_machine,
    ask_for_restart,
    ask_by_signal,
    restart_with_bad_settings,
    restart_with_bad_code,
    restart_and_kill,
    restart_and_freeze,
)
# Those of a stand-in for a supervisor.
_INSTEAD = ("restart", "restart_in_vain", "restart_that_hangs")


def below_supervisors(faults: tuple[Fault, ...]) -> tuple[Fault, ...]:
    """Return what may go wrong where servers have the real supervisor."""
    return (*(each for each in faults if each.__name__ not in _INSTEAD), *FAULTS_OF_SUPERVISORS)


def beside_servers(faults: tuple[Fault, ...]) -> tuple[Fault, ...]:
    """Return what may go wrong where the store is on the machine of its servers."""
    return tuple(each for each in faults if each is not part_from_store)
