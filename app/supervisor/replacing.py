"""Restarts that clients do not notice: a server of new code, or with new settings, takes over.

Until the new one says that it is ready, the old one can take everything back, and does.
"""

import signal
import sys
import time
from collections.abc import Sequence

from holdfast.supervisor.control import Channel, Do, Say, channel_pair
from holdfast.supervisor.log import log
from holdfast.supervisor.places import SERVING, Place
from holdfast.supervisor.processes import Process, close_all
from holdfast.supervisor.requests import Request
from holdfast.supervisor.running import Supervisor
from holdfast.supervisor.state import become_new, resume

# Elsewhere, a restart is a stop and a start.
HANDS_OVER = sys.platform == "linux"
# For the old server to become still, or to take back. Clients wait meanwhile.
_LEAVING_S = 10.0
# Each restart leaves an old server that hands over its connections. More would fill the memory.
_MOST_GOING = 16
_TOO_LATE = {
    Say.PREPARED: "the new server has not read its settings and the stored records in time",
    Say.LEFT: "the server did not become still in time",
    Say.OPENED: "the new server has not opened its store in time",
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
        if supervisor.request is not None:
            restart(supervisor, supervisor.request)
            supervisor.request = None
        elif (code := _refusal(supervisor)) is not None:
            supervisor.stop()
            return code
        else:
            supervisor.turn(supervisor.revive())
    return supervisor.stop()


def _refusal(supervisor: Supervisor) -> int | None:
    """Return the exit code of a server that has said why it cannot start; None if there is none."""
    if supervisor.has_served:
        return None
    codes = [place.server.code for place in supervisor.places if place.server is not None]
    return next((code for code in codes if code is not None and code >= 0), None)


def restart(supervisor: Supervisor, request: Request) -> None:
    """Replace the server, and then this program; tell who asked for it how it went."""
    log("info", "a restart begins")
    supervisor.systemd.tell_reloading()
    try:
        _replace(supervisor, request)
    except (Failed, OSError) as error:
        log("error", f"the restart has failed: {error}")
        supervisor.systemd.tell("READY=1", f"STATUS=the restart has failed: {error}")
        is_serving = any(place.is_serving for place in supervisor.places)
        request.end(failed=str(error), serving=is_serving)
    else:
        log("info", "the restart is done")
        request.end(done=True)
        become_new(supervisor)


class _Move:
    """A place, the server that leaves it, if one lives there, and the one that takes it."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.old = None if place.is_empty else place.server
        self.new: Process | None = None
        # By which the old server hands its connections over.
        self.door: Channel | None = None

    def begin(self, supervisor: Supervisor, importer: Process, first: Process | None) -> Process:
        """Have the new server forked."""
        self.door, its_door = channel_pair() if self.old is not None else (None, None)
        self.new = supervisor.begin_server(importer, self.place, its_door, first=first)
        self.new.title = "the new server"
        if its_door is not None:
            its_door.close()
        return self.new

    def close(self) -> None:
        if self.door is not None:
            self.door.close()


def _replace(supervisor: Supervisor, request: Request) -> None:
    timeout_s = request.timeout_s or supervisor.restart_timeout_s
    moves = [_Move(place) for place in supervisor.places]
    olds = [move.old for move in moves if move.old is not None]
    if not olds or not HANDS_OVER:
        _start_anew(supervisor, timeout_s)
        return
    _check_quiet(supervisor, olds)
    until = time.monotonic() + timeout_s
    former, importer = supervisor.importer, supervisor.begin_importer()
    try:
        _hand_over(supervisor, request, importer, moves, until=until)
    except Failed:
        _return(supervisor, moves, importer)
        raise
    finally:
        for move in moves:
            move.close()
    for old in olds:
        old.title = "a former server"
        old.tell(do=Do.GO)
    for move in moves:
        if move.new is not None:
            supervisor.adopt(move.place, move.new)
    if former is not None:
        supervisor.forget(former.channel)


def _check_quiet(supervisor: Supervisor, olds: Sequence[Process]) -> None:
    """Raise `Failed` while something earlier is not over."""
    if any(old.said not in SERVING for old in olds):
        raise Failed("the server is still starting: wait until it is ready")
    servers = [each for each in supervisor.processes if each.importer]
    if len(servers) > _MOST_GOING * len(supervisor.places):
        raise Failed("former servers still hand over their connections: wait for a minute")
    for old in olds:
        # Of something earlier, which it survived.
        old.why = ""


def _hand_over(
    supervisor: Supervisor,
    request: Request,
    importer: Process,
    moves: Sequence[_Move],
    *,
    until: float,
) -> None:
    """Take all servers to the point from which there is no way back."""
    request.tell(step="starting")
    olds = [move.old for move in moves if move.old is not None]
    news = _prepared(supervisor, importer, moves, olds, until=until)
    request.tell(step=Say.PREPARED)
    for move in moves:
        if move.old is not None and move.door is not None:
            move.old.told = {}
            move.old.hurry()
            move.old.tell([move.door.fileno()], do=Do.LEAVE)
    leaving_until = min(until, time.monotonic() + _LEAVING_S)
    _await_all(supervisor, Say.LEFT, olds, news, until=leaving_until)
    request.tell(step=Say.LEFT)
    for new in news:
        if new.said == Say.PREPARED:
            new.hurry()
            new.tell(do=Do.OPEN)
    # The old ones may die now: the new ones need nothing of them.
    if len(moves) > 1:
        _await_all(supervisor, Say.OPENED, news, until=until)
        _serve(supervisor, news, until=until)
    else:
        _await_all(supervisor, Say.READY, news, until=until)
    request.tell(step=Say.READY)


def _prepared(
    supervisor: Supervisor,
    importer: Process,
    moves: Sequence[_Move],
    olds: Sequence[Process],
    *,
    until: float,
) -> list[Process]:
    """Start a new server in each place. Where an old one serves, it is prepared to succeed it."""
    news: list[Process] = []
    for move in moves:
        new = move.begin(supervisor, importer, news[0] if news else None)
        news.append(new)
        # The first one gives the others what all inherit.
        if len(news) == 1 or len(news) == len(moves):
            _await_prepared(supervisor, moves, [*news, *olds], until=until)
        if news[0].workers != len(moves):
            raise Failed(
                f"there are {len(moves)} servers, and the new settings want {news[0].workers}: "
                "stop the server, and start it again"
            )
    return news


def _await_prepared(
    supervisor: Supervisor, moves: Sequence[_Move], others: Sequence[Process], *, until: float
) -> None:
    for move in moves:
        if move.new is not None:
            word = Say.OPENED if move.old is None else Say.PREPARED
            _await(supervisor, word, move.new, *others, until=until)


def _serve(supervisor: Supervisor, news: Sequence[Process], *, until: float) -> None:
    """Have all new servers serve. Clients may notice at once, so there is no way back."""
    for new in news:
        new.let_serve()
    for new in news:
        try:
            _await(supervisor, Say.READY, new, until=until)
        except Failed as error:
            log("error", f"{new.name} is started again: {error}")
            new.signal(signal.SIGKILL)


def _await_all(
    supervisor: Supervisor,
    word: Say,
    servers: Sequence[Process],
    others: Sequence[Process] = (),
    *,
    until: float,
) -> None:
    for each in servers:
        _await(supervisor, word, each, *servers, *others, until=until)


def _await(
    supervisor: Supervisor, word: Say, server: Process, *others: Process, until: float
) -> None:
    """Wait until the server says this; raises `Failed` if it, or another of them, does not."""
    while server.said != word:
        for each in (server, *others):
            if each.why or each.code is not None:
                raise Failed(each.why or f"{each.name} has ended ({each.ending}): see the log")
        if supervisor.is_stopping and word != Say.BACK:
            raise Failed("the supervisor was told to stop")
        if (left_s := until - time.monotonic()) <= 0:
            raise Failed(_TOO_LATE[word])
        supervisor.turn(left_s)


def _return(supervisor: Supervisor, moves: Sequence[_Move], importer: Process) -> None:
    """Kill the new servers, and only then have the old ones go on; one that cannot dies, too."""
    news = [move.new for move in moves if move.new is not None]
    importer.signal(signal.SIGKILL)
    while any(each.code is None for each in (*news, importer)):
        for new in news:
            new.signal(signal.SIGKILL)
        supervisor.turn()
    for move in moves:
        if move.old is not None and move.old.said not in SERVING:
            _take_back(move.old, move.new)
        if move.new is not None:
            close_all(move.new.kept)
    until = time.monotonic() + _LEAVING_S
    for move in moves:
        if move.old is not None:
            _await_back(supervisor, move.old, until=until)


def _take_back(old: Process, new: Process | None) -> None:
    if new is not None and new.said == Say.READY:
        # Too late, but it may have served meanwhile: the old one does not know what.
        old.signal(signal.SIGKILL)
    elif old.why:
        # It could not leave, and has gone on since.
        old.told = {"say": Say.BACK}
    else:
        old.tell(do=Do.TAKE_BACK)


def _await_back(supervisor: Supervisor, old: Process, *, until: float) -> None:
    try:
        if old.said not in SERVING:
            _await(supervisor, Say.BACK, old, until=until)
    except Failed as error:
        log("error", f"the old server cannot go on: {error}")
        old.signal(signal.SIGKILL)
    old.is_awaited = False


def _start_anew(supervisor: Supervisor, timeout_s: float) -> None:
    """Restart where nothing can be handed over, or no server runs."""
    until = time.monotonic() + timeout_s
    olds = [place.server for place in supervisor.places if place.server is not None]
    for old in olds:
        old.signal(signal.SIGTERM)
    while any(old.code is None for old in olds):
        if time.monotonic() > until:
            for old in olds:
                old.signal(signal.SIGKILL)
        supervisor.turn()
    if supervisor.importer is not None:
        supervisor.forget(supervisor.importer.channel)
        supervisor.importer = None
    supervisor.begin()
    until = time.monotonic() + timeout_s
    for place in supervisor.places:
        if place.server is not None:
            _await(supervisor, Say.READY, place.server, until=until)
