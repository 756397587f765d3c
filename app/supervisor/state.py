"""How the supervisor becomes a new program: under its pid, with its descriptors and children."""

import json
import os
import signal

from holdfast.supervisor.control import STATE_VARIABLE, STATE_VERSION, Channel, Say
from holdfast.supervisor.log import log
from holdfast.supervisor.processes import OURS, Process, command
from holdfast.supervisor.running import Supervisor


def become_new(supervisor: Supervisor) -> None:
    """Run the code that is on the disk now; returns if that is impossible."""
    # From here on, a signal waits until the new program is ready for it.
    signal.pthread_sigmask(signal.SIG_BLOCK, OURS)
    try:
        supervisor.obey()
        if not supervisor.is_stopping:
            _run_new_code(supervisor)
    except OSError as error:
        log("error", f"the supervisor goes on with its old code: {error}")
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, OURS)


def _run_new_code(supervisor: Supervisor) -> None:
    importer, servers = supervisor.importer, [place.server for place in supervisor.places]
    present = [
        each for each in (importer, *servers) if each is not None and each in supervisor.processes
    ]
    if importer is None or len(present) <= len(servers):
        raise OSError("a process has just ended")
    if importer.told.get("state") != STATE_VERSION:
        raise OSError("the new code cannot go on with this state")
    going = [each for each in supervisor.processes if each not in present and each.importer]
    processes = [*present, *going]
    left = {
        "processes": [(each.channel.fileno(), each.pid) for each in processes],
        "kept": supervisor.kept,
        "restart_timeout": supervisor.restart_timeout_s,
        "shards": len(servers),
        "links": supervisor.links,
    }
    for each in (*(each.channel.fileno() for each in processes), *supervisor.kept.values()):
        os.set_inheritable(each, True)
    program = command(supervisor.words)
    os.execve(program[0], program, {**os.environ, STATE_VARIABLE: json.dumps(left)})  # noqa: S606


def resume(supervisor: Supervisor, text: str) -> None:
    """Go on where the program before this one has left off."""
    left = json.loads(text)
    supervisor.has_served = True
    supervisor.restart_timeout_s = left["restart_timeout"]
    supervisor.kept = left["kept"]
    for each in supervisor.kept.values():
        os.set_inheritable(each, False)
    supervisor.take_commands()
    # Earlier releases had one server.
    supervisor.spread_over(left.get("shards", 1))
    supervisor.links = left.get("links", "")
    handles = [(Channel.of_descriptor(number), pid) for number, pid in left["processes"]]
    importer = supervisor.importer = supervisor.add(Process(*handles[0]))
    for handle in handles[1:]:
        server = supervisor.add(Process(*handle, importer))
        server.title = "a former server"
        server.hurry()
    for place, server in zip(supervisor.places, supervisor.processes[1:], strict=False):
        # Clients wait for it until it says that it is alive.
        server.title = "the server"
        server.shard = supervisor.shard_text(place)
        server.told = {"say": Say.READY}
        place.server = server
