"""What a server knows of a connection that another process has accepted."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OpenSocket:
    """A WebSocket that the other process has opened."""

    # The identities of its browser.
    browsers: tuple[str, ...] = ()
    # The session that it has named, and whether that got its messages over it.
    client_id: str | None = None
    is_attached: bool = True


@dataclass(frozen=True, slots=True)
class RelayedClient:
    """The client of a TLS connection: the predecessor keeps it, and relays its bytes."""

    # The client's address, as sockets tell it.
    peer: tuple[str, int] | None = None
    # The subject of its certificate, if it has shown one.
    subject: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Arrival:
    """A connection that was handed over."""

    # The listener that accepted it.
    listener: str
    # Whether it has sent a request, and whether it is an operator's.
    is_used: bool = True
    is_kept: bool = False
    relayed: RelayedClient | None = None
    socket: OpenSocket | None = None
    # How often a worker has given it to another one.
    moves: int = 0
