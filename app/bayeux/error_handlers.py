"""Who is asked about failed deliveries before the table is, by channel."""

from collections.abc import Sequence

from app.bayeux.hooks import check_hook
from app.delivery.channels import Channel, Channels
from app.delivery.reactions import PartialErrorHandler


class ErrorHandlers:
    """Those that were plugged in."""

    def __init__(self, channels: Channels) -> None:
        self._channels = channels
        self._handlers: dict[str, list[PartialErrorHandler]] = {}

    def add(self, pattern: str, handler: PartialErrorHandler) -> None:
        """Ask the handler about all failures on channels of the pattern."""
        check_hook(f"{type(handler).__name__}.react", handler.react)
        self._handlers.setdefault(self._channels.named(pattern).name, []).append(handler)

    def find(self, channel: Channel) -> Sequence[PartialErrorHandler]:
        """Those of the channel, in the order in which they are asked: the most exact ones first."""
        if not self._handlers:
            return ()
        return [handler for name in channel.lookups for handler in self._handlers.get(name, ())]
