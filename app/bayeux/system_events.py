"""Events of the server itself, for operators who have subscribed to its channels."""

from holdfast.bayeux.codec import Json
from holdfast.bayeux.server_state import ServerState
from holdfast.delivery.json_text import to_json
from holdfast.delivery.messages import Message
from holdfast.delivery.selections import Candidate


def publish_event(state: ServerState, event: Json, life_ms: int | None = None) -> None:
    """Publish the event on its channel, if anybody listens; it expires if it has a lifetime."""
    channel = state.channels.named(event["channel"])
    if not state.routes.receivers(channel):
        return
    message = Message(to_json(event), id=state.node.stamp(), channel=channel.name)
    # A dead letter for one of these events would only cause another such event.
    message.leaves_no_letter = True
    if life_ms is not None:
        message.limit_life(life_ms, is_forced=True)
    candidate = Candidate(channel=channel.name, data=event.get("data"))
    state.hub.publish(channel, message, candidate)
