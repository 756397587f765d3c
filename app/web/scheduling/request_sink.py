"""What front ends pass requests to: this process, or the one that has the session."""

from typing import Protocol

from holdfast.bayeux.session import Exchange, Pipe
from holdfast.bayeux.wire.errors import RequestRefused
from holdfast.web.scheduling.request_scheduler import UnfinishedRequest


class RequestSink(Protocol):
    """Takes requests, and hears what becomes of their connections."""

    def receive(self, body: bytes, exchange: Exchange) -> UnfinishedRequest | None:
        """Handle a request. Returns it if it is unfinished; it then continues by itself.

        Raises `RequestRefused`, without effects, if the body does not contain messages or there is
        no room.
        """
        ...

    def fail(self, exchange: Exchange) -> RequestRefused:
        """Abort an exchange after a server fault; call in `except`. Returns what to send."""
        ...

    def abort(self, exchange: Exchange) -> None:
        """Drop an exchange whose connection is lost."""
        ...

    def detach(self, pipe: Pipe) -> None:
        """Detach a lost socket from its session."""
        ...

    def drained(self, pipe: Pipe) -> None:
        """Let a socket that takes bytes again get more."""
        ...
