"""Addresses to listen at: whether other machines reach them, and their listening sockets."""

import asyncio
import contextlib
import errno
import ipaddress
import os
import socket
import ssl
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

# Connections that wait until they are accepted, at each listening socket.
BACKLOG = 4096
# Attempts to find a port that is free at all addresses of a name.
_TRIES = 10


@dataclass(frozen=True, slots=True)
class Address:
    """A Unix socket if one is named, else all addresses of a host."""

    host: str
    port: int
    unix: Path | None = None
    tls: ssl.SSLContext | None = None
    # The addresses that the host resolves to; these are bound, and decide who can connect.
    ips: tuple[str, ...] = ()

    @property
    def is_private(self) -> bool:
        """Whether only this machine can connect."""
        return self.unix is not None or (bool(self.ips) and all(map(_is_loopback, self.ips)))

    @property
    def url_host(self) -> str:
        """The host as it is written in URLs."""
        return f"[{self.host}]" if ":" in self.host else self.host

    def listen(self) -> list[socket.socket]:
        """Open the listening sockets; raises `OSError`."""
        if self.unix is not None:
            return [_listen_at_path(self.unix, BACKLOG)]
        return listen_at(self.ips or [self.host], self.port, BACKLOG)

    def is_of(self, listening: Sequence[socket.socket]) -> bool:
        """Return whether these listening sockets are all that the address needs."""
        if self.unix is not None:
            # A server that stopped removed the file, but systemd may still have the socket.
            names = [each.getsockname() for each in listening]
            return names == [str(self.unix)] and self.unix.is_socket()
        if not listening or any(each.family == socket.AF_UNIX for each in listening):
            return False
        names = [each.getsockname() for each in listening]
        if {name[0] for name in names} != set(self.ips or [self.host]):
            return False
        return self.port in (0, names[0][1]) and len({name[1] for name in names}) == 1

    def url(self, listening: socket.socket) -> str:
        """Return the URL of a server that listens here by this socket."""
        if self.unix is not None:
            return f"unix:{self.unix}"
        port = listening.getsockname()[1]
        return f"{'https' if self.tls else 'http'}://{self.url_host}:{port}"


async def resolve(host: str) -> tuple[str, ...]:
    """Return the distinct addresses of a host; of an empty name, every address of this machine."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(
        host or None, 0, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    return tuple(dict.fromkeys(str(address[0]) for *_, address in found))


def _is_loopback(ip: str) -> bool:
    try:
        return ipaddress.ip_address(ip).is_loopback
    except ValueError:
        return False


def listen_at(ips: Sequence[str], port: int, backlog: int) -> list[socket.socket]:
    """Open a socket at each address, all with the same port; raises `OSError`.

    For port 0 the system chooses a port at the first address. If another address has it in use,
    another port is tried, a few times.
    """
    for _ in range(0 if port else _TRIES - 1):
        with contextlib.suppress(OSError):
            return _listen_once(ips, port, backlog)
    return _listen_once(ips, port, backlog)


def _listen_once(ips: Sequence[str], port: int, backlog: int) -> list[socket.socket]:
    with contextlib.ExitStack() as opened:
        sockets: list[socket.socket] = []
        for ip in ips:
            family = socket.AF_INET6 if ":" in ip else socket.AF_INET
            listening = socket.create_server((ip, port), family=family, backlog=backlog)
            sockets.append(opened.enter_context(listening))
            port = listening.getsockname()[1]
        opened.pop_all()
    return sockets


def _listen_at_path(path: Path, backlog: int) -> socket.socket:
    """Open a Unix socket, replacing a dead one; raises `OSError`."""
    _check_free(path)
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISSOCK(path.stat().st_mode):
            path.unlink()
    listening = socket.socket(socket.AF_UNIX)
    try:
        listening.bind(str(path))
        listening.listen(backlog)
    except OSError:
        listening.close()
        raise
    return listening


def _check_free(path: Path) -> None:
    """Raise `OSError` if another process listens at the path."""
    with socket.socket(socket.AF_UNIX) as client:
        client.setblocking(False)
        try:
            client.connect(str(path))
        except BlockingIOError:
            # The backlog is full, so another process listens.
            pass
        except OSError:
            # No process listens, or there is no socket. Other errors appear when it is created.
            return
    raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))


class SocketFile:
    """The file of a listening socket."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._number = path.stat().st_ino

    def give_up(self) -> None:
        """Remove the file, unless another process has replaced it."""
        try:
            if self._path.stat().st_ino == self._number:
                self._path.unlink()
        except OSError:
            # It is gone or may not be removed. The next server to start here can handle both.
            return
