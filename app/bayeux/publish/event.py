"""The publish of an event: what a client, an extension or the server wants to publish."""

from holdfast.bayeux.publish.qos import Qos
from holdfast.bayeux.session import Session
from holdfast.bayeux.wire.codec import Json
from holdfast.delivery.basics.channels import Channel
from holdfast.delivery.routing.publishes import Publish


class EventPublish(Publish[Session]):
    """Passed from its publisher to `Publishing`, which creates the message, and then to the hub."""

    __slots__ = ("event", "lazy_s", "now", "qos", "sender")

    def __init__(
        self,
        channel: Channel,
        event: Json,
        now: float,
        *,
        sender: Session | None = None,
        qos: Qos | None = None,
    ) -> None:
        super().__init__(channel)
        self.event = event
        self.now = now
        # None if the server publishes.
        self.sender = sender
        self.qos = qos
        # How long it may wait for other messages; overrides the channel's rule.
        self.lazy_s: float | None = None
