"""The importer: it has imported the server, and forks a process of it whenever it is asked.

A fork takes milliseconds, an import most of a second. Before a fork there are no thread, no event
loop and no random numbers, which all servers would share.
"""

import gc
import os
import select
import signal
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module

from holdfast.supervisor.control import (
    STATE_VERSION,
    VARIABLE,
    Channel,
    Do,
    PeerGone,
    Say,
)

# Those that servers handle, and the one of them that waits until they do.
_FOR_SERVERS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_STOP = (signal.SIGTERM,)
# The channels of the servers that live, by pid.
Servers = dict[int, Channel]


def serve_forks(channel: Channel, load: Callable[[int], object]) -> None:
    """Load the server, and fork until the supervisor needs no more; returns in each server.

    There, the channel to the supervisor is the one that `given_channel` returns.

    Args:
        load: Is told how many servers there are to be. Several share what each of them needs.
    """
    # Ctrl-C, a terminal that closes, and `systemctl stop` reach all processes at once. A handler,
    # because macOS drops a signal that is ignored, even while it is blocked.
    before = {each: signal.signal(each, _ignore) for each in _FOR_SERVERS}
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, _ignore)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    load(1)
    # The supervisor is about to become this code: it must be there, without an error.
    import_module("holdfast.supervisor.replacing")
    gc.freeze()
    channel.send(say=Say.IMPORTED, state=STATE_VERSION)
    servers: Servers = {}
    if _fork_on_demand(channel, servers, woken, load):
        signal.set_wakeup_fd(-1)
        for number, handler in {**before, signal.SIGCHLD: signal.SIG_DFL}.items():
            signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOP)
        for each in (woken, wake):
            os.close(each)
        for other in (channel, *servers.values()):
            other.close()
        return
    while servers:
        _report(servers, *os.wait())
    os._exit(0)


def _ignore(*_: object) -> None:
    """Do nothing when a signal comes."""


def _fork_on_demand(
    channel: Channel, servers: Servers, woken: int, load: Callable[[int], object]
) -> bool:
    """Return True in a server, and False once the supervisor has closed the channel."""
    try:
        while True:
            ready, _, _ = select.select([channel.fileno(), woken], [], [])
            if woken in ready:
                os.read(woken, 1024)
                _report_all(servers)
            while (parcel := channel.receive()) is not None:
                if parcel.fields["do"] != Do.FORK:
                    continue
                # A supervisor of earlier code does not say it.
                load(parcel.fields.get("shards", 1))
                if _fork(servers, *parcel.descriptors):
                    return True
    except PeerGone:
        return False


def _fork(servers: Servers, descriptor: int) -> bool:
    """Fork a server with this channel. Returns whether this is the server."""
    # The supervisor says once that a server is to stop. Until the server has its own handlers this
    # waits, instead of being ignored as here.
    signal.pthread_sigmask(signal.SIG_BLOCK, _STOP)
    pid = os.fork()
    if pid == 0:
        os.environ[VARIABLE] = str(descriptor)
        return True
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOP)
    servers[pid] = Channel.of_descriptor(descriptor)
    with suppress(ConnectionError):
        servers[pid].send(say=Say.FORKED, pid=pid)
    return False


def _report_all(servers: Servers) -> None:
    with suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            _report(servers, *found)


def _report(servers: Servers, pid: int, status: int) -> None:
    """Say how a server has ended, as the last thing over its channel."""
    if channel := servers.pop(pid, None):
        with suppress(ConnectionError):
            channel.send(say=Say.ENDED, code=os.waitstatus_to_exitcode(status))
        channel.close()
