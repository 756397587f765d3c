"""The supervisor: it starts servers, keeps their descriptors, and starts others when they end."""

import signal
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from holdfast.supervisor.claimed import Claimed
from holdfast.supervisor.control import CONTROL, Channel, Do, Parcel, Say, is_own, reason
from holdfast.supervisor.endings import ends_of, tell_ends
from holdfast.supervisor.log import log
from holdfast.supervisor.packets import PacketRefused, PeerGone
from holdfast.supervisor.places import Place
from holdfast.supervisor.processes import Process
from holdfast.supervisor.requests import Request, request_of
from holdfast.supervisor.system import System
from holdfast.supervisor.systemd import Systemd, given_sockets
from holdfast.supervisor.watching import Watch

TICK_S = 1.0
# What is waited for.
_TOLD = {
    Say.LISTENING,
    Say.IMPORTED,
    Say.WAITING,
    Say.PREPARED,
    Say.OPENED,
    Say.READY,
    Say.SETTLED,
    Say.LEFT,
    Say.BACK,
}
# What has a meaning only from the server of a place.
_HEEDED = {Say.FENCED, Say.CLAIM, Say.GIVE}


class Supervisor:
    """Waits in `turn` for everything; what waits for something in particular calls it again."""

    # The one that forks; None before the first.
    importer: Process | None = None
    # The one that refuses all requests until the next server is ready; None before the first.
    stand_in: Process | None = None
    # The directory of the links between several servers.
    links = ""
    # How many shards all hosts have together; 0 without a list of hosts.
    shards = 0
    # What somebody has asked for, until it is begun.
    request: Request | None = None
    is_restarting = False
    is_stopping = False
    has_served = False
    # Whether its settings are known to be good: a server has served, or waited for another one.
    has_started = False
    restart_timeout_s = 60.0
    _commands: Channel | None = None

    def __init__(self, words: list[str], system: System) -> None:
        self.words = words
        self.system = system
        # The first server says whether there are others. None of their places is ever given up.
        self.places = [Place(0, given_sockets(), system)]
        # All that live, importers and servers.
        self.processes: list[Process] = []
        self.systemd = Systemd()
        self.watch = Watch(system, TICK_S)
        self.claimed = Claimed(self)
        self._has_terminal = system.has_terminal()
        system.adopt_orphans()
        system.hear_signals()

    def turn(self, limit_s: float = TICK_S) -> None:
        """Handle what has happened; if nothing has, wait for it."""
        self.system.wait(max(0.0, min(limit_s, TICK_S)))
        self._reap()
        # Ctrl-C reaches all at once, so the end of a server may be known before it.
        self.obey()
        self._watch()

    # Starting

    def begin(self) -> None:
        """Start all servers, none of which takes the place of another."""
        for place in self.places:
            self._begin_at(place)

    def _begin_at(self, place: Place) -> None:
        if self.importer is None or self.importer.code is not None:
            self.importer = self.begin_importer()
        place.begin(self.begin_server(self.importer, place))

    def begin_importer(self) -> Process:
        """Start an importer of the code that is on the disk now; raises `OSError`."""
        return self.add(Process(self.system, *self.system.start(self.words)))

    def begin_server(
        self,
        importer: Process,
        place: Place,
        door: Channel | None = None,
        *,
        first: Process | None = None,
        is_stand_in: bool = False,
        must_wait: bool = False,
    ) -> Process:
        """Have a server forked, with all kept descriptors; with a door, it succeeds another.

        Args:
            first: The first of the new servers; it has given what all of them inherit.
            must_wait: Whether it is to wait, even if no other server has the store.
        """
        ours, theirs = self.system.channel_pair()
        server = self.add(Process(self.system, ours, importer=importer))
        server.shard = self.shard_text(place)
        shards = self.shards or len(self.places)
        importer.tell([theirs.fileno()], do=Do.FORK, shards=shards)
        theirs.close()
        given = place.given(self.places[0].kept if first is None else first.kept)
        if door is not None:
            given["door"] = door.fileno()
        server.tell(
            [*given.values()],
            do=Do.START,
            names=[*given],
            successor=door is not None,
            first=not self.has_served,
            stand_in=is_stand_in,
            waits=must_wait,
            shard=place.number,
            shards=shards,
            links=self.links,
            claim=place.claim if door is None and place.ends == 0 else None,
            # One that succeeds another counts from zero, as the supervisor does then.
            ends=ends_of(self.places, self.claimed.shard_of) if door is None else {},
        )
        return server

    def add(self, process: Process) -> Process:
        self.processes.append(process)
        self.system.listen(process.channel, lambda: self._hear(process))
        return process

    def revive(self) -> float:
        """Have a server forked in each empty place, after a pause if many have ended there.

        Returns for how long none is to be forked. Raises `OSError` if none can be at the start.
        """
        pauses_s = [TICK_S]
        for place in [*self.places]:
            pause_s = place.pause_s()
            if pause_s is not None and place.server is not None:
                if not place.is_lost:
                    log(
                        "error",
                        f"{place.server.name} has ended ({place.last_end}): another is started",
                    )
                tell_ends(self.places, self.claimed.shard_of)
                if pause_s and all(each.is_empty for each in self.places):
                    self._stand_in(place)
            if place.is_lost:
                self.claimed.leave(place)
            elif place.is_empty:
                left_s = place.resumes_at - self.system.now()
                if left_s > 0:
                    pauses_s.append(left_s)
                else:
                    self.begin_again_at(place)
        return min(pauses_s)

    def begin_again_at(self, place: Place) -> None:
        try:
            self._begin_at(place)
        except OSError as error:
            if not self.has_started:
                raise
            # The machine has no memory, or its administrator is replacing the program.
            log("error", f"no server can be started, which is tried again: {error}")
            place.resumes_at = self.system.now() + TICK_S

    def _stand_in(self, place: Place) -> None:
        """Tell clients and probes to try again, as long as no server does."""
        is_refusing = self.stand_in is not None and self.stand_in.code is None
        if not is_refusing and self.importer is not None and self.importer.code is None:
            self.stand_in = self.begin_server(self.importer, place, is_stand_in=True)
            self.stand_in.title = "the stand-in"

    # Serving and ending

    def adopt(self, place: Place, server: Process) -> None:
        """Have a server that is ready be the one that serves, and keep what it keeps."""
        self._settle_in(place, server)
        self.take_limits(server.told)
        self.let_serve()
        if not all(each.is_serving for each in self.places):
            return
        is_first, self.has_served = not self.has_served, True
        self.systemd.tell_ready(f"STATUS=serving {server.told['url']}")
        if is_first and len(self.places) > 1 and (first := self.places[0].server) is not None:
            first.tell(do=Do.WELCOME)

    def let_wait(self, place: Place, server: Process) -> None:
        """Have a server wait until another one, elsewhere, has the store no more."""
        if place.number == 0:
            self._spread(server)
            self._end_all(but=server)
        self._settle_in(place, server)
        self.systemd.tell_ready("STATUS=standby: another server has the store")
        server.tell(do=Do.OPEN)

    def _settle_in(self, place: Place, server: Process) -> None:
        """Have a server be the one of its place, and keep what it keeps."""
        place.server, self.importer = server, server.importer
        self.has_started = True
        if self.stand_in is not None:
            self.stand_in.signal(signal.SIGTERM)
        server.title = "the server"
        self._keep(place, server)

    def _end_all(self, but: Process) -> None:
        """End the others of several that are open: all start again, and wait for the other server.

        A server takes all shards or none.
        """
        for place in self.places:
            if place.is_open and place.living is not None and place.living is not but:
                log("error", f"{place.living.name} ends, because {but.name} has lost its store")
                place.living.signal(signal.SIGTERM)

    def take_limits(self, told: Mapping[str, Any]) -> None:
        """Go by the settings of a server, as far as it has told them."""
        watch = self.watch
        self.restart_timeout_s = told.get("restart_timeout", self.restart_timeout_s)
        watch.frozen_s = told.get("frozen_timeout", watch.frozen_s)
        watch.killed_after_s = told.get("silent_timeout", watch.killed_after_s)

    @property
    def limits(self) -> Mapping[str, float]:
        """What `take_limits` gets, in seconds."""
        return {
            "restart_timeout": self.restart_timeout_s,
            "frozen_timeout": self.watch.frozen_s,
            "silent_timeout": self.watch.killed_after_s,
        }

    def _keep(self, place: Place, server: Process) -> None:
        """Keep what a server gave, if it did, in place of what earlier ones of this place gave."""
        names = {name for name in (*place.kept, *server.kept) if not is_own(name)}
        if not server.kept:
            return
        place.keep(server)
        if place.number == 0:
            for name in names:
                self.systemd.store(name, place.kept.get(name))
            self.take_commands()

    def _spread(self, first: Process) -> None:
        """Make places for the others of several servers: the first one gives what all inherit."""
        self.links, self.shards = first.links, first.shards
        self._keep(self.places[0], first)
        more = range(len(self.places), first.workers)
        self.places += [Place(number, {}, self.system) for number in more]
        first.shard = self.shard_text(self.places[0])

    def shard_text(self, place: Place) -> str:
        """Return which one of several servers has this place, for people."""
        if self.shards:
            return self.claimed.text_of(place)
        return f" of shard {place.number}" if len(self.places) > 1 else ""

    def let_serve(self) -> None:
        """Have servers that are open serve: at the first start, when all are."""
        if self.has_served or all(place.is_open for place in self.places):
            for place in self.places:
                if place.server is not None:
                    place.server.let_serve()

    def _let_rest(self) -> None:
        """Have servers that have settled come to rest, once none that lives needs another one."""
        if all(place.is_empty or place.has_settled for place in self.claimed.places):
            for place in self.claimed.places:
                if place.living is not None:
                    place.living.let_rest()

    def take_commands(self) -> None:
        """Take them at the kept socket."""
        if self._commands is not None:
            self.system.forget(self._commands)
            self._commands = None
        if (kept := self.places[0].kept.get(CONTROL)) is not None:
            commands = self._commands = self.system.channel(self.system.copy(kept))
            self.system.listen(commands, lambda: self._hear_command(commands))

    def stop(self) -> int:
        """End all servers in order; returns the exit code of the program."""
        self.systemd.tell("STOPPING=1")
        told: set[Process] = set()
        while living := [each for each in self.processes if each.importer]:
            for each in living:
                if not each.is_forked and each.importer:
                    each.importer.signal(signal.SIGKILL)
                elif each.pid and each not in told:
                    each.signal(signal.SIGTERM)
                    told.add(each)
                # It stops in order once it serves.
                each.let_serve()
            self.turn()
        # An importer without its channel forks no more, and ends with its servers.
        for importer in self.processes:
            self.system.forget(importer.channel)
        while self.processes:
            self.turn()
        codes = [place.server.code or 0 for place in self.places if place.server in told]
        # A server that has no handler yet ends by the signal.
        code = next((each for each in codes if each not in (0, -signal.SIGTERM)), 0)
        # As shells have it.
        return code if code >= 0 else 128 - code

    # Hearing

    def _hear(self, process: Process) -> None:
        """Note everything that a process has said."""
        try:
            while process.channel.fileno() >= 0 and (parcel := process.channel.receive()):
                try:
                    self._note(process, parcel)
                finally:
                    parcel.close()
        except (ValueError, LookupError, TypeError) as error:
            log("error", f"process {process.pid} sent something unknown: {error!r}")
        except PeerGone:
            # It is about to end. What an importer has not forked ends with it.
            self.system.forget(process.channel)

    def _note(self, process: Process, parcel: Parcel) -> None:
        fields = parcel.fields
        match fields["say"]:
            case Say.ALIVE:
                process.note_alive()
            case Say.FORKED:
                process.pid = fields["pid"]
            case Say.ENDED:
                self._is_over(process, fields["code"])
            case Say.FAILED:
                process.why, process.is_lost = reason(str(fields["why"])), "ends" in fields
            case word if word in _TOLD:
                process.note_told(fields)
            case word if word not in _HEEDED:
                raise LookupError(word)
            case _:
                pass
        if parcel.descriptors:
            process.keep(parcel)
        for place in [*self.places]:
            if process is place.server:
                self._heed(place, process, fields)

    def _heed(self, place: Place, server: Process, fields: Mapping[str, Any]) -> None:
        """Do what follows from what the server of a place has said."""
        match fields["say"]:
            case Say.CLAIM if place.number == 0:
                self.claimed.claim(fields["shards"])
            case Say.GIVE if place.number == 0:
                self.claimed.give(fields["shard"], fields["host"])
            case Say.LISTENING if place.number == 0:
                self._spread(server)
            case Say.WAITING:
                self.let_wait(place, server)
            case Say.FENCED:
                place.is_fenced = True
                if not self.claimed.takes_fenced(place, server):
                    self._end_all(but=server)
            case Say.OPENED:
                self.let_serve()
            case Say.READY:
                self.adopt(place, server)
            case Say.SETTLED | Say.LEFT:
                self._let_rest()
            case _:
                pass

    def _hear_command(self, commands: Channel) -> None:
        # A server that was heard just before may have replaced the socket.
        with suppress(OSError, PacketRefused):
            while parcel := commands.receive():
                try:
                    if request := request_of(parcel, self.system):
                        self._ask(request)
                finally:
                    parcel.close()

    def _ask(self, request: Request) -> None:
        """Have this done, unless something else is."""
        if self.request is None and not self.is_restarting:
            self.request = request
        else:
            request.end(failed="a restart is under way: wait until it has ended")

    def ask_by_signal(self) -> None:
        """Have a restart done, after one that is under way: that may have read what was before."""
        self.request = self.request or Request()

    def take_request(self) -> Request | None:
        """Return what somebody has asked for, to begin it."""
        request, self.request = self.request, None
        self.is_restarting = request is not None
        return request

    def _reap(self) -> None:
        for pid, code in self.system.ended():
            for each in [each for each in self.processes if each.pid == pid]:
                each.code = code
                # Its last words may still be unread.
                self._hear(each)
                self._is_over(each, code)
        for each in [each for each in self.processes if each.pid and each.channel.fileno() < 0]:
            if (found := self.system.code_of(each.pid)) is not None:
                self._is_over(each, found)

    def _is_over(self, process: Process, code: int) -> None:
        if process not in self.processes:
            return
        self.processes.remove(process)
        self.system.forget(process.channel)
        process.code = code
        if code and process.has_left:
            lost = "clients that it has not handed over connect again"
            log("error", f"{process.name} has ended ({process.ending}): {lost}")
        for each in [each for each in self.processes if each.importer is process and not each.pid]:
            self._is_over(each, code)
        if any(place.has_settled for place in self.places):
            self._let_rest()

    def _watch(self) -> None:
        """Kill what is silent for too long; feed systemd's watchdog as long as all is well."""
        self.watch.look(self.processes)
        if self.watch.hears(place.server for place in self.places):
            self.systemd.feed(self.system.now())
        self.claimed.tell()

    # Signals

    def obey(self) -> None:
        """Note the signals that have arrived."""
        for number in self.system.signals():
            # Without its terminal, a server ends as other programs do.
            if number == signal.SIGHUP and (self.system.has_terminal() or not self._has_terminal):
                self.ask_by_signal()
            elif number != signal.SIGCHLD:
                self.is_stopping = True
