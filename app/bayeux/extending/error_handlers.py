"""Error handlers by channel. They decide on failed deliveries before the table does."""

from collections.abc import Sequence

from holdfast.bayeux.wire.hooks import check_hook
from holdfast.delivery.basics.channels import Channels
from holdfast.delivery.ports.error_handler import PartialErrorHandler


class ErrorHandlers:
    """The registered error handlers."""

    def __init__(self, channels: Channels) -> None:
        self._channels = channels
        self._handlers: dict[str, list[PartialErrorHandler]] = {}

    def add(self, pattern: str, handler: PartialErrorHandler) -> None:
        """Ask the handler about all failures on channels that the pattern matches."""
        check_hook(f"{type(handler).__name__}.react", handler.react)
        self._handlers.setdefault(self._channels.named(pattern).name, []).append(handler)

    def find(self, name: str) -> Sequence[PartialErrorHandler]:
        """Return a channel's handlers in the order of asking, the most specific pattern first."""
        channel = self._channels.get(name) if self._handlers else None
        if channel is None:
            return ()
        return [handler for name in channel.lookups for handler in self._handlers.get(name, ())]
