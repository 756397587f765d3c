"""A WebSocket whose bytes the server before this one relays, because it has the TLS connection."""

from collections.abc import Callable, Sequence

from holdfast.bayeux.session import Exchange
from holdfast.delivery.basics.ignoring import ignore
from holdfast.delivery.messages.message import Event
from holdfast.web.websockets.open_socket import Socket


class RelayedSocket(Socket):
    """Ends after its next reply: then its client waits for nothing, and returns at once."""

    __slots__ = ("part",)

    # Ends the socket unless there is more to handle.
    part: Callable[[Socket], None]

    def answer(self, exchange: Exchange, messages: Sequence[Event]) -> bool:
        is_taken = super().answer(exchange, messages)
        if is_taken:
            self._loop.call_soon(self.part, self)
        return is_taken

    def leave(self) -> None:
        super().leave()
        self.part = ignore
