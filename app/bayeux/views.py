"""This server, its subjects and their sessions, as administrative commands see them."""

from collections.abc import Sequence
from typing import Protocol

from app.bayeux.codec import Json


class NodeView(Protocol):
    """This server, as commands see it. Times are milliseconds since 1970."""

    id: str
    version: str
    hostname: str
    # None: it listens on no port.
    port: int | None
    started_ms: int
    # 9: at work; 6: it is about to stop, and lets nobody in.
    runlevel: int
    subjects: Sequence[str]
    sessions: Sequence[str]
    connected: Sequence[str]
    channels: Sequence[str]
    subscriptions: Sequence[str]
    subscribed: int
    published: int
    acked: int


class ClientView(Protocol):
    """A subject with at least one session."""

    created_ms: int
    sessions: Sequence[str]
    max_sessions: int
    acked: int
    waiting: int

    def end(self, who: str) -> None:
        """End all its sessions."""


class SessionView(Protocol):
    """One session. What is not known is None, or 0."""

    name: str
    subject: str
    number: int
    state: str
    is_active: bool
    is_durable: bool
    # What was sent last is still on its way.
    is_stalled: bool
    takes_ptp: bool
    created_ms: int
    expires_ms: int | None
    alive_since_ms: int | None
    polling_since_ms: int | None
    timeout_ms: int
    max_sessions: int
    # What was agreed on at handshake, as JSON.
    qos: str
    entries: int
    max_entries: int
    bytes: int
    channels: Sequence[str]
    subscriptions: Sequence[str]
    published: int
    subscribed: int
    unsubscribed: int
    acked: int
    exceptions: int
    last_exception: str

    def activate(self, active: bool, who: str) -> None: ...
    def set_timeout(self, timeout_ms: int, who: str) -> None: ...
    def refresh(self) -> None: ...
    def end(self, who: str) -> None: ...

    def send_away(self) -> None:
        """Let its client handshake again; the session waits for that."""

    def subscribe(self, channel: str) -> None: ...
    def unsubscribe(self, channel: str) -> None: ...
    def clear(self, who: str) -> int: ...

    def remove(self, count: int, who: str) -> int:
        """Discard the first entries; says how many there were."""
        ...

    def peek(self, count: int) -> Sequence[Json]:
        """The first entries as events."""
        ...

    def take(self, count: int, who: str) -> Sequence[Json]:
        """The first entries as events; they are gone then."""
        ...

    def forget_exception(self) -> None: ...
