"""How the supervisor becomes a new program: under its pid, with its descriptors and children."""

import json
import os
import signal
import time

from holdfast.supervisor.control import CONTROL, STATE_VARIABLE, STATE_VERSION, Channel, Say
from holdfast.supervisor.log import log
from holdfast.supervisor.processes import OURS, Importer, Process, Server, command
from holdfast.supervisor.running import Supervisor


def become_new(supervisor: Supervisor) -> None:
    """Run the code that is on the disk now; returns if that is impossible."""
    # From here on, a signal waits until the new program is ready for it.
    signal.pthread_sigmask(signal.SIG_BLOCK, OURS)
    # And clients wait in the queue of the socket for it.
    supervisor.control.listen(None)
    try:
        supervisor.turn(0.0)
        if supervisor.stop_signal == 0:
            _run_new_code(supervisor)
    except OSError as error:
        log("error", f"the supervisor goes on with its old code: {error}")
    finally:
        supervisor.control.listen(supervisor.kept.get(CONTROL))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, OURS)


def _run_new_code(supervisor: Supervisor) -> None:
    importer, server = supervisor.importer, supervisor.server
    is_known = importer is not None and importer.state == STATE_VERSION
    if importer is None or server is None or not is_known or not _are_heard(importer, server):
        raise OSError("the new code cannot go on with this state, or a process has just ended")
    going = {each: each.ends_by for each in supervisor.servers if each.ends_by and _are_heard(each)}
    left = {
        "importer": _handle(importer),
        "server": _handle(server),
        "going": [(_handle(each), by - time.monotonic()) for each, by in going.items()],
        "kept": supervisor.kept,
        "restart_timeout": supervisor.restart_timeout_s,
    }
    channels = [each.channel.fileno() for each in (importer, server, *going)]
    for each in (*channels, *supervisor.kept.values()):
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
    supervisor.control.listen(supervisor.kept.get(CONTROL))
    importer = supervisor.importer = Importer(*_channel_and_pid(left["importer"]))
    server = supervisor.server = Server(
        *_channel_and_pid(left["server"]), supervisor.kept, importer
    )
    server.said = Say.READY
    supervisor.servers = [server]
    for handle, left_s in left["going"]:
        going = Server(*_channel_and_pid(handle), {}, None)
        going.ends_by = time.monotonic() + left_s
        supervisor.servers.append(going)
    supervisor.importers = [importer]
    for process in (importer, *supervisor.servers):
        supervisor.listen_to(process)


def _are_heard(*processes: Process) -> bool:
    return all(not each.is_over and each.channel.fileno() >= 0 for each in processes)


def _handle(process: Process) -> tuple[int, int]:
    return process.channel.fileno(), process.pid


def _channel_and_pid(handle: tuple[int, int]) -> tuple[Channel, int]:
    return Channel.of_descriptor(handle[0]), handle[1]
