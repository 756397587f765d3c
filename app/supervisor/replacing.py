"""Restarts that clients do not notice: a server of new code, or with new settings, takes over.

Until the new one says that it is ready, the old one can take everything back, and does.
"""

import signal
import sys
from collections.abc import Iterable, Mapping

from holdfast.supervisor.control import Channel, Do, Say
from holdfast.supervisor.log import log
from holdfast.supervisor.places import SERVING, Place
from holdfast.supervisor.processes import FORMER, Process, close_all
from holdfast.supervisor.requests import Request
from holdfast.supervisor.running import Supervisor
from holdfast.supervisor.state import become_new, resume
from holdfast.supervisor.system import System

# Elsewhere, a restart is a stop and a start.
HANDS_OVER = sys.platform == "linux"
# For the old server to become still, or to take back. Clients wait meanwhile.
_LEAVING_S = 10.0
# Each restart leaves an old server that hands over its connections. More would fill the memory.
_MOST_GOING = 16
_TOO_LATE = {
    Say.WAITING: "the new server was not ready to wait in time",
    Say.PREPARED: "the new server has not read its settings and the stored records in time",
    Say.LEFT: "the server did not become still in time",
    Say.OPENED: "the new server has not opened its store in time",
    Say.READY: "the new server was not ready in time",
    Say.BACK: "it did not take everything back in time",
}


class Failed(Exception):
    """A server did not do what it was told; the text says why."""


def supervise(words: list[str], left: str, system: System) -> int:
    """Run until the end; returns the exit code. With what it left, go on as the former program."""
    supervisor = Supervisor(words, system)
    if left:
        resume(supervisor, left)
    while not supervisor.is_stopping:
        if _may_begin(supervisor) and (request := supervisor.take_request()) is not None:
            restart(supervisor, request)
        elif (code := _refusal(supervisor)) is not None:
            supervisor.stop()
            return code
        else:
            supervisor.turn(supervisor.revive())
    return supervisor.stop()


def _may_begin(supervisor: Supervisor) -> bool:
    """Return whether there is a request for a restart that may begin now."""
    request, places = supervisor.request, [each for each in supervisor.places if each.living]
    # A server that gives its shard away cannot leave it to another process.
    if request is None or supervisor.claimed.is_giving:
        return False
    if all(each.is_serving for each in places) or all(each.is_waiting for each in places):
        return True
    # One that starts is about to serve.
    now = supervisor.system.now()
    request.waits_until = request.waits_until or now + _limit_s(supervisor, request)
    return now >= request.waits_until


def _limit_s(supervisor: Supervisor, request: Request) -> float:
    """Return within which time servers must be ready."""
    return request.timeout_s or supervisor.restart_timeout_s


def _refusal(supervisor: Supervisor) -> int | None:
    """Return the exit code of a server that has said why it cannot start; None if there is none."""
    if supervisor.has_started:
        return None
    codes = [place.server.code for place in supervisor.places if place.server is not None]
    return next((code for code in codes if code is not None and code >= 0), None)


def restart(supervisor: Supervisor, request: Request) -> None:
    """Replace the server, and then this program; tell who asked for it how it went."""
    log("info", "a restart begins")
    supervisor.systemd.tell_reloading()
    olds = {place: each for place in supervisor.places if (each := place.living)}
    for old in olds.values():
        old.title = "the old server"
    try:
        _replace(supervisor, request)
    except (Failed, OSError) as error:
        log("error", f"the restart has failed: {error}")
        supervisor.systemd.tell("READY=1", f"STATUS=the restart has failed: {error}")
        is_another = _start_others(supervisor, olds)
        goes_on = any(place.is_serving or place.is_waiting for place in supervisor.places)
        request.end(failed=str(error), serving=goes_on, another=is_another)
    else:
        log("info", "the restart is done")
        request.end(done=True)
        become_new(supervisor)
    supervisor.is_restarting = False


def _start_others(supervisor: Supervisor, olds: Mapping[Place, Process]) -> bool:
    """Start servers in the places of old ones that have ended; returns whether there are any.

    Who asked for the restart is told after that, so this waits until they serve, within a limit.
    """
    for old in olds.values():
        old.title = "the server"
    places = [place for place, old in olds.items() if old.code is not None]
    until = supervisor.system.now() + _LEAVING_S
    # The place of a shard that another host has got meanwhile is given up.
    while places_left := [each for each in places if each in supervisor.places]:
        if all(place.is_serving or place.is_waiting for place in places_left):
            break
        if supervisor.is_stopping or supervisor.system.now() > until:
            break
        supervisor.turn(supervisor.revive())
    return bool(places)


def _replace(supervisor: Supervisor, request: Request) -> None:
    timeout_s = _limit_s(supervisor, request)
    livings = [place for place in supervisor.places if not place.is_empty]
    if livings and all(place.is_waiting for place in livings):
        _WaitAnew(supervisor, request, timeout_s).run()
    elif HANDS_OVER and livings:
        _HandOver(supervisor, request, timeout_s).run()
    else:
        _start_anew(supervisor, timeout_s)


class _Change:
    """New servers take the places of all that live, or end before anybody notices them."""

    def __init__(self, supervisor: Supervisor, request: Request, timeout_s: float) -> None:
        self._supervisor = supervisor
        self._request = request
        self._until = supervisor.system.now() + timeout_s
        self._olds = {place: each for place in supervisor.places if (each := place.living)}
        self._news: dict[Place, Process] = {}
        # The old code, and the new one.
        self._former, self._importer = supervisor.importer, supervisor.begin_importer()

    def _begin_all(self) -> None:
        """Start a new server in each place, and have all of them get ready."""
        places = self._supervisor.places
        self._request.tell(step="starting")
        for place in places:
            self._begin(place)
            # The first one gives the others what all inherit.
            if place in (places[0], places[-1]):
                words = {new: self._word(each) for each, new in self._news.items()}
                _await(self._supervisor, words, self._olds.values(), until=self._until)
            self._check_count(self._news[places[0]])

    def _check_count(self, first: Process) -> None:
        """Refuse another number of servers than there are, as the new first one wants it."""
        there, wanted, what = len(self._supervisor.places), first.workers, "servers"
        if self._supervisor.shards or first.shards:
            there, wanted, what = self._supervisor.shards, first.shards, "shards on all hosts"
        if wanted != there:
            raise Failed(
                f"there are {there} {what}, and the new settings want {wanted}: stop the server, "
                "and start it again"
            )

    def _begin(self, place: Place) -> None:
        raise NotImplementedError

    def _word(self, place: Place) -> Say:
        """Return what the new server of a place says when it is ready to go on."""
        raise NotImplementedError

    def _forget_former(self) -> None:
        """Let the old code end."""
        if self._former is not None:
            self._supervisor.system.forget(self._former.channel)

    def _end_news(self) -> None:
        ending = (*self._news.values(), self._importer)
        while any(each.code is None for each in ending):
            for each in ending:
                each.signal(signal.SIGKILL)
            self._supervisor.turn()
        for new in self._news.values():
            close_all(new.kept, self._supervisor.system)


class _WaitAnew(_Change):
    """Servers that wait for another one, elsewhere, are replaced by new ones that do."""

    def run(self) -> None:
        """Raises `Failed` or `OSError` when the old servers go on."""
        supervisor = self._supervisor
        try:
            self._begin_all()
            if any(old.said != Say.WAITING for old in self._olds.values()):
                raise Failed("the server has just taken over: restart it again")
        except (Failed, OSError):
            self._end_news()
            raise
        self._end_olds()
        for place, new in self._news.items():
            supervisor.let_wait(place, new)
        self._forget_former()

    def _begin(self, place: Place) -> None:
        first = self._news.get(self._supervisor.places[0])
        new = self._supervisor.begin_server(self._importer, place, first=first, must_wait=True)
        new.title = "the new server"
        self._news[place] = new

    def _word(self, _: Place) -> Say:
        return Say.WAITING

    def _end_olds(self) -> None:
        """Both hold one lock, so the old ones must have ended before the new ones go on."""
        until = self._supervisor.system.now() + _LEAVING_S
        for old in self._olds.values():
            old.signal(signal.SIGTERM)
        while any(old.code is None for old in self._olds.values()):
            if self._supervisor.system.now() > until:
                for old in self._olds.values():
                    old.signal(signal.SIGKILL)
            self._supervisor.turn()


class _HandOver(_Change):
    """All servers leave their places to new ones, or take them back."""

    def __init__(self, supervisor: Supervisor, request: Request, timeout_s: float) -> None:
        self._check_quiet(supervisor)
        super().__init__(supervisor, request, timeout_s)
        # By which each old server hands its connections over.
        self._doors: dict[Process, Channel] = {}

    def run(self) -> None:
        """Raises `Failed` or `OSError` when the old servers go on, as far as they can."""
        supervisor, olds = self._supervisor, self._olds
        try:
            self._lead()
        except (Failed, OSError):
            self._return()
            raise
        finally:
            for door in self._doors.values():
                door.close()
        for old in olds.values():
            old.title = FORMER
            old.tell(do=Do.GO)
        for place, new in self._news.items():
            supervisor.adopt(place, new)
        self._forget_former()

    @staticmethod
    def _check_quiet(supervisor: Supervisor) -> None:
        """Raise `Failed` while something earlier is not over."""
        olds = [each for place in supervisor.places if (each := place.living)]
        if any(old.said not in SERVING for old in olds):
            raise Failed("the server before was not ready in time: see its log")
        servers = [each for each in supervisor.processes if each.importer]
        if len(servers) > _MOST_GOING * len(supervisor.places):
            raise Failed("former servers still hand over their connections: wait for a minute")
        for old in olds:
            # Of something earlier, which it survived.
            old.why = ""

    def _lead(self) -> None:
        """Take all servers to the point from which there is no way back."""
        olds, news = self._olds.values(), self._news.values()
        self._begin_all()
        self._request.tell(step=Say.PREPARED)
        for old in olds:
            old.told = {}
            old.hurry()
            old.tell([self._doors[old].fileno()], do=Do.LEAVE)
        leaving_until = min(self._until, self._supervisor.system.now() + _LEAVING_S)
        _await(self._supervisor, dict.fromkeys(olds, Say.LEFT), news, until=leaving_until)
        self._request.tell(step=Say.LEFT)
        for new in news:
            if new.said == Say.PREPARED:
                new.hurry()
                new.tell(do=Do.OPEN)
        # The old ones may die now: the new ones need nothing of them.
        is_one = len(news) == 1 and not self._supervisor.shards
        self._await_news(Say.READY if is_one else Say.OPENED)
        if not is_one:
            self._serve()
        self._request.tell(step=Say.READY)

    def _begin(self, place: Place) -> None:
        its_door = None
        if place in self._olds:
            self._doors[self._olds[place]], its_door = self._supervisor.system.channel_pair()
        first = self._news.get(self._supervisor.places[0])
        new = self._supervisor.begin_server(self._importer, place, its_door, first=first)
        new.title = "the new server"
        self._news[place] = new
        if its_door is not None:
            its_door.close()

    def _word(self, place: Place) -> Say:
        # Where an old one serves, the new one prepares to succeed it.
        return Say.PREPARED if place in self._olds else Say.OPENED

    def _await_news(self, word: Say) -> None:
        words = dict.fromkeys(self._news.values(), word)
        _await(self._supervisor, words, until=self._until)

    def _serve(self) -> None:
        """Have all new servers serve. Clients may notice at once, so there is no way back."""
        for new in self._news.values():
            new.let_serve()
        for new in self._news.values():
            try:
                _await(self._supervisor, {new: Say.READY}, until=self._until)
            except Failed as error:
                log("error", f"{new.name} is started again: {error}")
                new.signal(signal.SIGKILL)

    def _return(self) -> None:
        """Kill the new servers, and only then have the old ones go on; one that cannot dies."""
        self._end_news()
        for place, old in self._olds.items():
            if old.said not in SERVING:
                _take_back(old, self._news.get(place))
        until = self._supervisor.system.now() + _LEAVING_S
        for old in self._olds.values():
            _await_back(self._supervisor, old, until=until)


def _take_back(old: Process, new: Process | None) -> None:
    if old.is_lost or (new is not None and new.said == Say.READY):
        # It ends anyway. Or the new one may have served, too late: the old one does not know what.
        old.signal(signal.SIGKILL)
    elif old.why:
        # It could not leave, and has gone on since.
        old.told = {"say": Say.BACK}
    else:
        old.tell(do=Do.TAKE_BACK)


def _await_back(supervisor: Supervisor, old: Process, *, until: float) -> None:
    try:
        if old.said not in SERVING:
            _await(supervisor, {old: Say.BACK}, until=until)
    except Failed as error:
        log("error", f"the old server cannot go on: {error}")
        while old.code is None:
            old.signal(signal.SIGKILL)
            supervisor.turn()
    old.is_awaited = False


def _await(
    supervisor: Supervisor,
    words: Mapping[Process, Say],
    others: Iterable[Process] = (),
    *,
    until: float,
) -> None:
    """Wait until servers say this; raises `Failed` if they do not, or one of them has ended."""
    while late := [word for each, word in words.items() if not _has_said(each, word)]:
        for each in (*words, *others):
            if each.why or each.code is not None:
                raise Failed(each.why or f"{each.name} has ended ({each.ending}): see the log")
        if supervisor.is_stopping and late[0] != Say.BACK:
            raise Failed("the supervisor was told to stop")
        if (left_s := until - supervisor.system.now()) <= 0:
            raise Failed(_TOO_LATE[late[0]])
        supervisor.turn(left_s)


def _has_said(process: Process, word: Say) -> bool:
    """Return whether it has said this. A standby that waits is as ready as it can be."""
    return process.said == word or (word == Say.READY and process.said == Say.WAITING)


def _start_anew(supervisor: Supervisor, timeout_s: float) -> None:
    """Restart where nothing can be handed over, or no server runs."""
    system = supervisor.system
    until = system.now() + timeout_s
    olds = [place.server for place in supervisor.places if place.server is not None]
    for old in olds:
        old.signal(signal.SIGTERM)
    while any(old.code is None for old in olds):
        if system.now() > until:
            for old in olds:
                old.signal(signal.SIGKILL)
        supervisor.turn()
    if supervisor.importer is not None:
        supervisor.system.forget(supervisor.importer.channel)
        supervisor.importer = None
    supervisor.begin()
    news = {place.server: Say.READY for place in supervisor.places if place.server is not None}
    _await(supervisor, news, until=system.now() + timeout_s)
