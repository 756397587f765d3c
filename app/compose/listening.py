"""Opens the listening sockets, or inherits them from the server that this one succeeds."""

import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from errno import EADDRINUSE
from os import strerror
from pathlib import Path

from holdfast.compose.cannot_start import CannotStart
from holdfast.compose.listen_addresses import ListenAddresses
from holdfast.compose.succession import Succession
from holdfast.supervisor.control import CONTROL, CONTROL_FILE, OWN, socket_for_commands
from holdfast.web.http.addresses import Address

log = logging.getLogger(__name__)

# The names of the listeners.
MAIN, ADMIN = "main", "admin"


@dataclass(frozen=True, slots=True)
class ListeningSockets:
    """The sockets of both listeners."""

    main: list[socket.socket]
    admin: list[socket.socket]

    def ports(self, own_port: int | None, shards: int) -> set[int]:
        """Return all ports of the deployment; `own_port` gives each worker a further one."""
        sockets = [each for each in [*self.main, *self.admin] if each.family != socket.AF_UNIX]
        own = () if own_port is None else range(own_port, own_port + shards)
        return {*own, *(each.getsockname()[1] for each in sockets)}


def listen(addresses: ListenAddresses, succession: Succession) -> ListeningSockets:
    """Return the sockets that the addresses need. Raises `CannotStart`."""
    admin: list[socket.socket] = []
    if addresses.admin is not None:
        with naming(addresses.admin, "admin"):
            admin = sockets_of(addresses.admin, ADMIN, succession)
    own: list[socket.socket] = []
    if addresses.own is not None:
        with naming(addresses.own, "own-port"):
            own = sockets_of(addresses.own, OWN, succession)
    with naming(addresses.main, "port"):
        return ListeningSockets(sockets_of(addresses.main, MAIN, succession) + own, admin)


def listen_for_commands(data: Path, succession: Succession) -> None:
    """Open the socket on which the supervisor takes commands, unless it has one."""
    path = data / CONTROL_FILE
    found = succession.descriptors.get(CONTROL)
    if found is not None and path.is_socket():
        succession.keep(CONTROL, found)
        return
    if not succession.is_supervised:
        return
    with socket_for_commands() as control:
        try:
            with suppress(FileNotFoundError):
                path.unlink()
            control.bind(str(path))
            path.chmod(0o600)
        except OSError as error:
            # Mostly, the path is longer than about a hundred bytes.
            log.warning("holdfast restart cannot reach this server: %s: %s", path, error)
        else:
            succession.keep(CONTROL, control.fileno())


@contextmanager
def naming(address: Address, setting: str) -> Iterator[None]:
    """Raise `CannotStart` if the address, whose port this setting has, cannot be listened at."""
    path = address.unix
    place = path or f"{address.url_host}:{address.port}"
    other = "path with --unix" if path else f"port with --{setting}"
    try:
        yield
    except OSError as error:
        if error.errno == EADDRINUSE:
            text = f"{place} is in use: stop what listens there, or choose another {other}"
        elif path is not None and not path.parent.exists():
            text = f"cannot listen on {path}: the directory {path.parent} does not exist: create it"
        else:
            text = f"cannot listen on {place}: {strerror(error.errno) if error.errno else error}"
        if setting == "admin":
            text = f"admin: {text}"
        raise CannotStart(text) from error


def sockets_of(address: Address, name: str, succession: Succession) -> list[socket.socket]:
    """Return the sockets of a listener, inherited by its name or opened. Raises `OSError`."""
    found = inherited(name, succession)
    if not address.is_of(found):
        if found and not succession.is_successor:
            places = ", ".join(str(each.getsockname()) for each in found)
            log.warning(
                "the inherited sockets at %s are not those of the settings, and are closed. If "
                "they are of a socket unit of systemd, write the same address there",
                places,
            )
        for each in found:
            each.close()
        found = address.listen()
    for place, each in enumerate(found):
        succession.keep(f"{name}.{place}", each.fileno())
    return found


def inherited(name: str, succession: Succession) -> list[socket.socket]:
    """Return copies of the inherited sockets of a listener."""
    found: list[socket.socket] = []
    while (descriptor := succession.descriptors.get(f"{name}.{len(found)}")) is not None:
        found.append(socket.socket(fileno=os.dup(descriptor)))
    return found
