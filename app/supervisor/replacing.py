"""Restarts that clients do not notice: a server of new code, or with new settings, takes over.

Until the new one says that it is ready, the old one can take everything back, and does.
"""

import os
import signal
import sys
import time

from holdfast.supervisor.control import Channel, Do, Say, channel_pair
from holdfast.supervisor.log import log
from holdfast.supervisor.processes import Importer, Server, close_all
from holdfast.supervisor.requests import Request
from holdfast.supervisor.running import Failed, Supervisor
from holdfast.supervisor.state import become_new, resume

# Elsewhere, a restart is a stop and a start.
HANDS_OVER = sys.platform == "linux"
# A server that last said this is open to clients.
_SERVING = (Say.READY, Say.BACK)
# For the old server to become still, or to take back. Clients wait meanwhile.
_LEAVING_S = 10.0
# For the old server to hand over its connections and end: it has 75 s for that.
_GOING_S = 90.0
# Each restart leaves an old server that hands over its connections. More would fill the memory.
_MOST_GOING = 16


def supervise(words: list[str], left: str) -> int:
    """Run until the end; returns the exit code. With what it left, go on as the former program."""
    supervisor = Supervisor(words)
    if left:
        resume(supervisor, left)
    else:
        supervisor.begin()
    while not supervisor.stop_signal:
        server = supervisor.server
        if supervisor.control.request is not None:
            answer(supervisor, supervisor.control.request)
        elif server is None or server.code is None:
            supervisor.turn()
        elif not supervisor.has_served and server.code >= 0:
            # It has said why it cannot start.
            supervisor.stop()
            return server.code
        else:
            supervisor.revive()
    return supervisor.stop()


def answer(supervisor: Supervisor, request: Request) -> None:
    """Do what somebody asked for, and tell them how it went."""
    try:
        match request.fields.get("do"):
            case "restart":
                _restart(supervisor, request)
            case "reload" if supervisor.server is not None:
                supervisor.server.tell(do=Do.RELOAD)
                request.end(done=True)
            case _:
                raise Failed("the supervisor does not know this request")
    except (Failed, OSError, TypeError, ValueError) as error:
        old = supervisor.server
        is_serving = old is not None and not old.is_over and old.said in _SERVING
        request.end(failed=str(error), serving=is_serving)
    supervisor.control.request = None


def _restart(supervisor: Supervisor, request: Request) -> None:
    timeout_s = float(request.fields.get("timeout") or supervisor.restart_timeout_s)
    log("info", "a restart begins")
    supervisor.systemd.tell_reloading()
    try:
        _replace(supervisor, request, timeout_s)
    except (Failed, OSError) as error:
        log("error", f"the restart has failed: {error}")
        supervisor.systemd.tell("READY=1", f"STATUS=the restart has failed: {error}")
        raise
    log("info", "the restart is done")
    request.end(done=True)
    become_new(supervisor)


def _replace(supervisor: Supervisor, request: Request, timeout_s: float) -> None:
    until = time.monotonic() + timeout_s
    old, former = supervisor.server, supervisor.importer
    if old is None or old.is_over or not HANDS_OVER:
        _stop_and_start(supervisor, timeout_s)
        return
    if old.said not in _SERVING:
        raise Failed("the server is still starting: wait until it is ready")
    if len(supervisor.servers) > _MOST_GOING:
        raise Failed("former servers still hand over their connections: wait for a minute")
    # Of something earlier, which it survived.
    old.why = ""
    importer = supervisor.begin_importer()
    door, its_door = channel_pair()
    kept = {name: os.dup(each) for name, each in old.kept.items()}
    new = supervisor.begin_server(importer, kept, its_door)
    its_door.close()
    try:
        _hand_over(supervisor, request, old=old, new=new, door=door, until=until)
    except Failed:
        _kill(supervisor, new, importer)
        if new.said == Say.READY:
            # Too late, but it may have served meanwhile: the old one does not know what.
            old.signal(signal.SIGKILL)
        else:
            _return_to(supervisor, old)
        raise
    finally:
        door.close()
    old.tell(do=Do.GO)
    old.ends_by = time.monotonic() + _GOING_S
    supervisor.server, supervisor.importer, supervisor.kept = new, importer, new.kept
    if former is not None:
        # It ends when the old server has ended.
        supervisor.forget(former)
    supervisor.store({*old.kept, *new.kept})
    close_all(old.kept)


def _hand_over(
    supervisor: Supervisor,
    request: Request,
    *,
    old: Server,
    new: Server,
    door: Channel,
    until: float,
) -> None:
    """Take both servers to the point from which there is no way back."""
    request.tell(step="starting")
    supervisor.await_word(Say.PREPARED, new, old, until=until)
    request.tell(step=Say.PREPARED)
    old.said = ""
    old.tell([door.fileno()], do=Do.LEAVE)
    still_by = min(until, time.monotonic() + _LEAVING_S)
    supervisor.await_word(Say.LEFT, old, new, until=still_by)
    request.tell(step=Say.LEFT)
    new.tell(do=Do.OPEN)
    # The old one may die now: the new one needs nothing of it.
    supervisor.await_word(Say.READY, new, until=until)
    request.tell(step=Say.READY)


def _return_to(supervisor: Supervisor, old: Server) -> None:
    """Have the old server go on, now that the new one is dead; if it cannot, it dies, too."""
    if old.is_over or old.said in _SERVING:
        return
    if old.why:
        # It could not leave, and has gone on since.
        old.said = Say.BACK
        return
    old.tell(do=Do.TAKE_BACK)
    try:
        supervisor.await_word(Say.BACK, old, until=time.monotonic() + _LEAVING_S)
    except Failed as error:
        log("error", f"the old server cannot go on: {error}")
        old.signal(signal.SIGKILL)


def _kill(supervisor: Supervisor, new: Server, importer: Importer) -> None:
    """Kill the new server with its importer; returns when both are over."""
    importer.signal(signal.SIGKILL)
    while not (new.is_over and importer.is_over):
        new.signal(signal.SIGKILL)
        supervisor.turn()


def _stop_and_start(supervisor: Supervisor, timeout_s: float) -> None:
    """Restart where nothing can be handed over, or no server runs."""
    until = time.monotonic() + timeout_s
    if (old := supervisor.server) is not None:
        old.signal(signal.SIGTERM)
        # What it keeps passes to the new one only when it is over.
        while not old.is_over:
            if time.monotonic() > until:
                old.signal(signal.SIGKILL)
            supervisor.turn()
    if supervisor.importer is not None:
        supervisor.forget(supervisor.importer)
        supervisor.importer = None
    server = supervisor.begin()
    supervisor.await_word(Say.READY, server, until=time.monotonic() + timeout_s)
