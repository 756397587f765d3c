"""Events of the server itself, for operators who have subscribed to its channels."""

from holdfast.bayeux.session import Session
from holdfast.bayeux.wire.codec import Json
from holdfast.delivery.basics.channels import LISTENS_ROW, Channel, Channels
from holdfast.delivery.basics.json_text import to_json
from holdfast.delivery.basics.node import Node, shard_of
from holdfast.delivery.letters.exempt import leave_no_letter
from holdfast.delivery.messages.message import Message
from holdfast.delivery.routing.hub import Hub
from holdfast.delivery.routing.publishes import Publish
from holdfast.delivery.routing.selections import Candidate


class SystemEvents:
    """Publishes events of the server if their channels have subscribers, here or elsewhere.

    If there are other shards, an event says which one it is of.
    """

    def __init__(self, channels: Channels, hub: Hub[Session], node: Node) -> None:
        self._channels = channels
        self._hub = hub
        self._node = node

    def has_listeners(self, channel: Channel) -> bool:
        """Return whether anybody hears the events of a channel, here or elsewhere."""
        if self._hub.routes.receivers(channel):
            return True
        others = self._hub.others
        return others is not None and others.may_have_rows(LISTENS_ROW + channel.name)

    def publish(self, event: Json, life_ms: int | None = None) -> None:
        """Publish the event. With `life_ms`, it expires after that time."""
        channel = self._channels.named(event["channel"])
        if not self.has_listeners(channel):
            return
        id = self._node.stamp()
        if self._hub.others is not None:
            event = {**event, "data": {**event["data"], "shard": shard_of(id)}}
        message = Message(to_json(event), id=id, channel=channel.name)
        # A dead letter for one of these events would only cause another such event.
        leave_no_letter(message)
        if life_ms is not None:
            message.limit_life(life_ms, is_forced=True)
        publish: Publish[Session] = Publish(channel)
        publish.message = message
        publish.candidate = Candidate(channel=channel.name, data=event.get("data"))
        self._hub.publish(publish)
