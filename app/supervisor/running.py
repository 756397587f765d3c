"""The supervisor: it starts a server, keeps its descriptors, and starts another when that ends."""

import os
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from selectors import EVENT_READ, DefaultSelector
from typing import Any

from holdfast.supervisor.control import (
    CONTROL,
    MOST_DESCRIPTORS,
    Channel,
    Do,
    ParcelRefused,
    PeerGone,
    Say,
    channel_pair,
)
from holdfast.supervisor.log import log
from holdfast.supervisor.processes import (
    OURS,
    Importer,
    Process,
    Server,
    become_subreaper,
    close_all,
    ending,
    exit_code,
    has_terminal,
    started_importer,
)
from holdfast.supervisor.requests import ControlSocket, Request
from holdfast.supervisor.systemd import Systemd, given_sockets

TICK_S = 1.0
# A server that says nothing for so long is logged, and systemd's watchdog is fed no more.
SILENT_S = 10.0
# And then killed: a long collection of garbage, or a busy disk, is over by then.
KILLED_AFTER_S = 60.0
# Five servers that live no longer are five in a minute: then there are pauses, which grow.
_SHORT_LIFE_S = 12.0
_SHORT_LIVES = 5
_LONGEST_PAUSE_S = 30.0
# Names that may be kept, with room for the door of a hand-over.
_MOST_KEPT = MOST_DESCRIPTORS - 4
_TOO_LATE = {
    Say.PREPARED: "the new server has not read its settings and the stored records in time",
    Say.LEFT: "the server did not become still in time",
    Say.READY: "the new server was not ready in time",
    Say.BACK: "it did not take everything back in time",
}


class Failed(Exception):
    """A server did not do what it was told; the text says why."""


class Supervisor:
    """Waits in `turn` for everything; what waits for something in particular calls it again."""

    def __init__(self, words: list[str]) -> None:
        self.words = words
        self.servers: list[Server] = []
        self.importers: list[Importer] = []
        # The one that serves or is about to, and the one that forks; None before the first.
        self.server: Server | None = None
        self.importer: Importer | None = None
        self.stop_signal = 0
        self.restart_timeout_s = 60.0
        self.systemd = Systemd()
        self.kept = given_sockets()
        self.has_served = False
        self._selector = DefaultSelector()
        self.control = ControlSocket(self._selector)
        self._short_lives = 0
        self._began = self._ticked = time.monotonic()
        self._has_terminal = has_terminal()
        become_subreaper()
        self._hear_signals()

    def turn(self, limit_s: float = TICK_S) -> None:
        """Handle what has happened; if nothing has, wait for it."""
        for key, _ in self._selector.select(max(0.0, min(limit_s, TICK_S))):
            key.data()
        with suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                self._ended(found[0], os.waitstatus_to_exitcode(found[1]))
        self._tick()

    def begin_importer(self) -> Importer:
        """Start an importer of the code that is on the disk now; raises `OSError`."""
        importer = started_importer(self.words)
        self.importers.append(importer)
        self.listen_to(importer)
        return importer

    def begin_server(
        self, importer: Importer, kept: dict[str, int], door: Channel | None
    ) -> Server:
        """Have a server forked, with these descriptors; with a door, it succeeds another."""
        ours, theirs = channel_pair()
        server = Server(ours, 0, kept, importer)
        self.servers.append(server)
        self.listen_to(server)
        importer.tell([theirs.fileno()], do=Do.FORK)
        theirs.close()
        given = kept if door is None else {**kept, "door": door.fileno()}
        server.tell(
            [*given.values()],
            do=Do.START,
            names=[*given],
            successor=door is not None,
            first=not self.has_served,
        )
        return server

    def revive(self) -> None:
        """Have a server forked in place of the one that is over, after a pause if many were."""
        is_short = time.monotonic() - self._began < _SHORT_LIFE_S
        self._short_lives = self._short_lives + 1 if is_short else 1
        if self.server is not None:
            log("error", f"the server has ended ({ending(self.server)}): another is started")
        pause_s = min(2.0 ** (self._short_lives - _SHORT_LIVES), _LONGEST_PAUSE_S)
        until = time.monotonic() + (pause_s if self._short_lives >= _SHORT_LIVES else 0.0)
        while (left_s := until - time.monotonic()) > 0:
            if self.stop_signal or self.control.request:
                return
            self.turn(left_s)
        self.begin()

    def begin(self) -> Server:
        """Start a server that takes the place of no other."""
        if self.importer is None or self.importer.is_over:
            self.importer = self.begin_importer()
        self._began = time.monotonic()
        self.server = self.begin_server(self.importer, self.kept, None)
        return self.server

    def stop(self) -> int:
        """End all servers in order; returns the exit code of the program."""
        self.systemd.tell("STOPPING=1")
        told: set[Server] = set()
        while self.servers:
            for each in self.servers:
                if not each.pid and each.importer is not None:
                    each.importer.signal(signal.SIGKILL)
                elif each not in told:
                    each.signal(self.stop_signal)
                    told.add(each)
            self.turn()
        for importer in self.importers:
            importer.channel.close()
            if not importer.is_over:
                os.waitpid(importer.pid, 0)
        return max((exit_code(each) for each in told), default=0)

    def await_word(self, word: Say, server: Server, *others: Server, until: float) -> None:
        """Wait until the server says this; raises `Failed` if it, or another of them, does not."""
        while server.said != word:
            for each in (server, *others):
                who = "the server" if each is self.server else "the new server"
                if each.why or each.is_over:
                    raise Failed(each.why or f"{who} has ended ({ending(each)}): see the log")
            if self.stop_signal and word != Say.BACK:
                raise Failed("the supervisor was told to stop")
            if (left_s := until - time.monotonic()) <= 0:
                raise Failed(_TOO_LATE[word])
            self.turn(left_s)

    def listen_to(self, process: Process) -> None:
        self._selector.register(process.channel, EVENT_READ, lambda: self._hear(process))

    def forget(self, process: Process) -> None:
        """Close the channel of a process."""
        with suppress(KeyError, ValueError):
            self._selector.unregister(process.channel)
        process.channel.close()

    def _hear(self, process: Process) -> None:
        try:
            while process.channel.fileno() >= 0 and (parcel := process.channel.receive()):
                try:
                    if isinstance(process, Server):
                        self._hear_server(process, parcel.fields, parcel.descriptors)
                    elif isinstance(process, Importer):
                        self._hear_importer(process, parcel.fields)
                finally:
                    for each in parcel.descriptors:
                        os.close(each)
        except (ParcelRefused, LookupError, TypeError, StopIteration) as error:
            log("error", f"process {process.pid} sent something unknown: {error!r}")
        except PeerGone:
            self.forget(process)

    def _hear_importer(self, importer: Importer, fields: dict[str, Any]) -> None:
        match fields["say"]:
            case Say.IMPORTED:
                importer.state = fields["state"]
            case Say.FORKED:
                # It forks in the order in which it was asked.
                next(each for each in self._of(importer) if not each.pid).pid = fields["pid"]
            case Say.ENDED:
                self._ended(fields["pid"], fields["code"])
            case word:
                raise LookupError(word)

    def _hear_server(self, server: Server, fields: dict[str, Any], descriptors: list[int]) -> None:
        match fields["say"]:
            case Say.ALIVE:
                server.silent_s = 0.0
            case Say.KEEP:
                self._keep(server, fields["name"], descriptors.pop())
            case Say.DROP:
                self._keep(server, fields["name"], None)
            case Say.FAILED:
                server.why = str(fields["why"])
            case word:
                server.said = word
                if word == Say.READY:
                    self.restart_timeout_s = fields.get("restart_timeout", self.restart_timeout_s)
                    self._is_ready(server, fields["url"])

    def _keep(self, server: Server, name: str, descriptor: int | None) -> None:
        """Keep a descriptor for the servers after this one, or no longer."""
        if descriptor is not None and len(server.kept) >= _MOST_KEPT:
            os.close(descriptor)
            raise LookupError(f"{name} is one more than can be kept")
        if (old := server.kept.pop(name, None)) is not None:
            os.close(old)
        if descriptor is not None:
            server.kept[name] = descriptor
        if server is self.server:
            self.store([name])

    def store(self, names: Iterable[str]) -> None:
        """Have systemd keep the sockets of these names too, as they are now."""
        for name in names:
            descriptor = self.kept.get(name)
            if name == CONTROL:
                self.control.listen(descriptor)
            if name != "lock":
                self.systemd.store(name, descriptor)

    def _is_ready(self, server: Server, url: str) -> None:
        self.has_served = True
        self.systemd.tell("READY=1", f"MAINPID={os.getpid()}", f"STATUS=serving {url}")

    def _of(self, importer: Process) -> list[Server]:
        return [each for each in self.servers if each.importer is importer]

    def _ended(self, pid: int, code: int) -> None:
        # The last words of a process may still be unread, and which process that pid is.
        for each in (*self.importers, *self.servers):
            self._hear(each)
        for importer in [each for each in self.importers if each.pid == pid]:
            self.importers.remove(importer)
            self._is_over(importer, code)
            for server in self._of(importer):
                if not server.pid:
                    self._is_over(server, code)
        for server in [each for each in self.servers if each.pid == pid]:
            self._is_over(server, code)

    def _is_over(self, process: Process, code: int) -> None:
        process.code = code
        self.forget(process)
        if isinstance(process, Server):
            self.servers.remove(process)
            if process is not self.server:
                close_all(process.kept)

    def _tick(self) -> None:
        now = time.monotonic()
        # While the machine, or this process, was suspended, no server could say anything.
        passed_s = min(now - self._ticked, 2 * TICK_S)
        self._ticked = now
        for server in [*self.servers]:
            if server.ends_by is not None and now > server.ends_by:
                log("error", f"process {server.pid} has not left in time: it is killed")
                server.signal(signal.SIGKILL)
                server.ends_by = None
            elif (not server.importer or server.importer.is_over) and not server.exists():
                # Somebody else has reaped it.
                self._ended(server.pid, 0)
        if self._is_heard(passed_s):
            self.systemd.feed(now)

    def _is_heard(self, passed_s: float) -> bool:
        """Whether the server has said lately that it is alive; one that never does is killed."""
        server = self.server
        if server is None or server.is_over or server.silent_s is None:
            return True
        before_s, server.silent_s = server.silent_s, server.silent_s + passed_s
        if before_s <= SILENT_S < server.silent_s:
            log("error", f"the server has said nothing for {SILENT_S:.0f} s")
        if server.silent_s > KILLED_AFTER_S:
            log("error", f"the server has said nothing for {KILLED_AFTER_S:.0f} s: it is killed")
            server.signal(signal.SIGKILL)
            server.silent_s = None
        return before_s <= SILENT_S

    def _hear_signals(self) -> None:
        woken, wake = os.pipe()
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        for each in OURS:
            # Under nohup it is ignored.
            if each != signal.SIGHUP or signal.getsignal(each) != signal.SIG_IGN:
                signal.signal(each, lambda *_: None)
        self._selector.register(woken, EVENT_READ, lambda: self._obey(os.read(woken, 1024)))
        # The program that this one was before may have blocked them.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, OURS)

    def _obey(self, numbers: bytes) -> None:
        for number in numbers:
            is_hangup = number == signal.SIGHUP
            if is_hangup and (has_terminal() or not self._has_terminal):
                self.control.ask(Request({"do": "restart"}))
            elif is_hangup or number in (signal.SIGTERM, signal.SIGINT):
                # Without its terminal, a server ends as other programs do.
                self.stop_signal = self.stop_signal or signal.SIGTERM
