"""Restarts that clients do not notice: a server of new code, or with new settings, takes over.

Until the new one says that it is ready, the old one can take everything back, and does.
"""

import signal
import sys
import time

from holdfast.supervisor.control import Channel, Do, Say, channel_pair
from holdfast.supervisor.log import log
from holdfast.supervisor.processes import Process, close_all
from holdfast.supervisor.requests import Request
from holdfast.supervisor.running import Supervisor
from holdfast.supervisor.state import become_new, resume

# Elsewhere, a restart is a stop and a start.
HANDS_OVER = sys.platform == "linux"
# A server that last said this is open to clients.
_SERVING = (Say.READY, Say.BACK)
# For the old server to become still, or to take back. Clients wait meanwhile.
_LEAVING_S = 10.0
# Each restart leaves an old server that hands over its connections. More would fill the memory.
_MOST_GOING = 16
_TOO_LATE = {
    Say.PREPARED: "the new server has not read its settings and the stored records in time",
    Say.LEFT: "the server did not become still in time",
    Say.READY: "the new server was not ready in time",
    Say.BACK: "it did not take everything back in time",
}


class Failed(Exception):
    """A server did not do what it was told; the text says why."""


def supervise(words: list[str], left: str) -> int:
    """Run until the end; returns the exit code. With what it left, go on as the former program."""
    supervisor = Supervisor(words)
    if left:
        resume(supervisor, left)
    else:
        supervisor.begin()
    while not supervisor.is_stopping:
        server = supervisor.server
        if supervisor.request is not None:
            restart(supervisor, supervisor.request)
            supervisor.request = None
        elif server is None or server.code is None:
            supervisor.turn()
        elif not supervisor.has_served and server.code >= 0:
            # It has said why it cannot start.
            supervisor.stop()
            return server.code
        else:
            supervisor.revive()
    return supervisor.stop()


def restart(supervisor: Supervisor, request: Request) -> None:
    """Replace the server, and then this program; tell who asked for it how it went."""
    log("info", "a restart begins")
    supervisor.systemd.tell_reloading()
    try:
        _replace(supervisor, request)
    except (Failed, OSError) as error:
        log("error", f"the restart has failed: {error}")
        supervisor.systemd.tell("READY=1", f"STATUS=the restart has failed: {error}")
        old = supervisor.server
        is_serving = old is not None and old.code is None and old.said in _SERVING
        request.end(failed=str(error), serving=is_serving)
    else:
        log("info", "the restart is done")
        request.end(done=True)
        become_new(supervisor)


def _replace(supervisor: Supervisor, request: Request) -> None:
    timeout_s = request.timeout_s or supervisor.restart_timeout_s
    old, former = supervisor.server, supervisor.importer
    if old is None or old.code is not None or not HANDS_OVER:
        _start_anew(supervisor, timeout_s)
        return
    if old.said not in _SERVING:
        raise Failed("the server is still starting: wait until it is ready")
    if len([each for each in supervisor.processes if each.importer]) > _MOST_GOING:
        raise Failed("former servers still hand over their connections: wait for a minute")
    until = time.monotonic() + timeout_s
    # Of something earlier, which it survived.
    old.why = ""
    importer = supervisor.begin_importer()
    door, its_door = channel_pair()
    new = supervisor.begin_server(importer, its_door)
    new.title = "the new server"
    its_door.close()
    try:
        _hand_over(supervisor, request, old=old, new=new, door=door, until=until)
    except Failed:
        _return(supervisor, old=old, new=new, importer=importer)
        raise
    finally:
        door.close()
    old.title = "a former server"
    old.tell(do=Do.GO)
    supervisor.adopt(new)
    if former is not None:
        supervisor.forget(former.channel)


def _hand_over(
    supervisor: Supervisor,
    request: Request,
    *,
    old: Process,
    new: Process,
    door: Channel,
    until: float,
) -> None:
    """Take both servers to the point from which there is no way back."""
    request.tell(step="starting")
    _await(supervisor, Say.PREPARED, new, old, until=until)
    request.tell(step=Say.PREPARED)
    old.told = {}
    old.hurry()
    old.tell([door.fileno()], do=Do.LEAVE)
    _await(supervisor, Say.LEFT, old, new, until=min(until, time.monotonic() + _LEAVING_S))
    request.tell(step=Say.LEFT)
    new.hurry()
    new.tell(do=Do.OPEN)
    # The old one may die now: the new one needs nothing of it.
    _await(supervisor, Say.READY, new, until=until)
    request.tell(step=Say.READY)


def _await(
    supervisor: Supervisor, word: Say, server: Process, *others: Process, until: float
) -> None:
    """Wait until the server says this; raises `Failed` if it, or another of them, does not."""
    while server.said != word:
        for each in (server, *others):
            if each.why or each.code is not None:
                raise Failed(each.why or f"{each.title} has ended ({each.ending}): see the log")
        if supervisor.is_stopping and word != Say.BACK:
            raise Failed("the supervisor was told to stop")
        if (left_s := until - time.monotonic()) <= 0:
            raise Failed(_TOO_LATE[word])
        supervisor.turn(left_s)


def _return(supervisor: Supervisor, *, old: Process, new: Process, importer: Process) -> None:
    """Kill the new server, and only then have the old one go on; if it cannot, it dies, too."""
    importer.signal(signal.SIGKILL)
    while new.code is None or importer.code is None:
        new.signal(signal.SIGKILL)
        supervisor.turn()
    close_all(new.kept)
    if new.said == Say.READY:
        # Too late, but it may have served meanwhile: the old one does not know what.
        old.signal(signal.SIGKILL)
    elif old.why and old.said not in _SERVING:
        # It could not leave, and has gone on since.
        old.told = {"say": Say.BACK}
    elif old.said not in _SERVING:
        old.tell(do=Do.TAKE_BACK)
        try:
            _await(supervisor, Say.BACK, old, until=time.monotonic() + _LEAVING_S)
        except Failed as error:
            log("error", f"the old server cannot go on: {error}")
            old.signal(signal.SIGKILL)
    old.is_awaited = False


def _start_anew(supervisor: Supervisor, timeout_s: float) -> None:
    """Restart where nothing can be handed over, or no server runs."""
    until = time.monotonic() + timeout_s
    if (old := supervisor.server) is not None:
        old.signal(signal.SIGTERM)
        while old.code is None:
            if time.monotonic() > until:
                old.signal(signal.SIGKILL)
            supervisor.turn()
    if supervisor.importer is not None:
        supervisor.forget(supervisor.importer.channel)
        supervisor.importer = None
    server = supervisor.begin()
    _await(supervisor, Say.READY, server, until=time.monotonic() + timeout_s)
