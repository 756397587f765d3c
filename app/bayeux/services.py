"""Service channels: requests to the server itself, CometD's remote calls among them."""

from collections.abc import Callable
from typing import Any

from app.bayeux.hooks import check_hook
from app.bayeux.sessions import Session
from app.delivery.channels import Channel, Channels

# Gives an event to one session alone.
Deliver = Callable[[Session, dict[str, Any]], None]


class Call:
    """One request to a service; it may be answered at once, later, or never."""

    def __init__(
        self, deliver: Deliver, session: Session, channel: str, message: dict[str, Any]
    ) -> None:
        self.session = session
        self.channel = channel
        self.message = message
        # Whether the reply waits until the store has what the call changed.
        self.is_kept = False
        self._deliver = deliver

    @property
    def data(self) -> object:
        """What the caller sent."""
        return self.message["data"]

    def answer(self, data: object) -> None:
        """Give the caller its result."""
        self._answer(data, successful=True)

    def fail(self, data: object) -> None:
        """Tell the caller that there is no result, and why."""
        self._answer(data, successful=False)

    def _answer(self, data: object, *, successful: bool) -> None:
        event = {"channel": self.channel, "data": data, "successful": successful}
        # The client finds its call by this id, and tells the answer from the reply by its data.
        message_id = self.message.get("id")
        if message_id is not None:
            event["id"] = str(message_id)
        self._deliver(self.session, event)


Service = Callable[[Call], None]
# As it is called: whatever it returns is looked at.
_Served = Callable[[Call], object]


class Services:
    """Which function serves which channel; patterns are allowed."""

    def __init__(self, channels: Channels) -> None:
        self._channels = channels
        self._services: dict[str, _Served] = {}

    def add(self, pattern: str, service: Service) -> None:
        check_hook(f"the service of {pattern}", service)
        self._services[self._channels.named(pattern).name] = service

    def find(self, channel: Channel) -> _Served | None:
        """The most exact service for the channel."""
        for name in channel.lookups:
            if name in self._services:
                return self._services[name]
        return None
