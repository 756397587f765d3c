"""The importer: it has imported the server, and forks a process of it whenever it is asked.

A fork takes milliseconds, an import most of a second. Before a fork there are no thread, no event
loop and no random numbers, which all servers would share.
"""

from collections.abc import Callable
from contextlib import suppress

from holdfast.supervisor.control import STATE_VERSION, Channel, Do, Say
from holdfast.supervisor.packets import PeerGone
from holdfast.supervisor.system import System

# The channels of the servers that live, by pid.
Servers = dict[int, Channel]


def serve_forks(channel: Channel, load: Callable[[int], object], system: System) -> None:
    """Load the server, and fork until the supervisor needs no more; returns in each server.

    There, the channel to the supervisor is the one that `given_channel` returns.

    Args:
        load: Is told how many servers there are to be. Several share what each of them needs.
    """
    # Ctrl-C, a terminal that closes, and `systemctl stop` reach all processes at once.
    system.hear_signals()
    load(1)
    system.prepare_forks()
    # Without a supervisor, the first look at the channel ends this.
    with suppress(ConnectionError):
        channel.send(say=Say.IMPORTED, state=STATE_VERSION)
    if not _Importer(channel, load, system).run():
        system.end()


class _Importer:
    """Forks servers on demand, and says how they end."""

    def __init__(self, channel: Channel, load: Callable[[int], object], system: System) -> None:
        self._channel = channel
        self._load = load
        self._system = system
        self._servers: Servers = {}
        # Whether this is a server now, and whether the supervisor needs no more of them.
        self._is_server = self._is_last = False

    def run(self) -> bool:
        """Return True in a server, and False once the supervisor has gone and all have ended."""
        system = self._system
        system.listen(self._channel, self._hear)
        while not self._is_last or self._servers:
            system.wait()
            if self._is_server:
                for each in (self._channel, *self._servers.values()):
                    each.close()
                return True
            # They are for servers.
            system.signals()
            for pid, code in system.ended():
                self._report(pid, code)
        return False

    def _hear(self) -> None:
        try:
            while not self._is_server and (parcel := self._channel.receive()) is not None:
                if parcel.fields["do"] == Do.FORK:
                    # A supervisor of earlier code does not say it.
                    self._load(parcel.fields.get("shards", 1))
                    self._fork(*parcel.descriptors)
        except PeerGone:
            self._is_last = True
            self._system.forget(self._channel)

    def _fork(self, descriptor: int) -> None:
        pid = self._system.fork(descriptor)
        if pid == 0:
            self._is_server = True
            return
        server = self._servers[pid] = self._system.channel(descriptor)
        with suppress(ConnectionError):
            server.send(say=Say.FORKED, pid=pid)

    def _report(self, pid: int, code: int) -> None:
        """Say how a server has ended, as the last thing over its channel."""
        if channel := self._servers.pop(pid, None):
            with suppress(ConnectionError):
                channel.send(say=Say.ENDED, code=code)
            channel.close()
