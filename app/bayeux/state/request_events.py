"""What requesters receive: replies, and the events that say how requests ended."""

from collections.abc import Callable

from holdfast.bayeux.extending.installed import InstalledExtensions
from holdfast.bayeux.session import Session
from holdfast.bayeux.wire.codec import Json
from holdfast.bayeux.wire.errors import ErrorReply
from holdfast.delivery.basics.channels import Channel, Channels
from holdfast.delivery.basics.json_text import to_json
from holdfast.delivery.basics.node import Node
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.storing import PersistOutcome, RequestStep
from holdfast.delivery.ports.store_port import StorePort
from holdfast.delivery.requests.request import Request, RequestEnd
from holdfast.delivery.routing.hub import Hub
from holdfast.delivery.routing.publishes import Publish

# What an event to the requester is: an error, or the end of the replies, which only the server
# knows.
STATUS = "status"
ERROR = "ERROR"
END = "END"


class RequestEvents:
    """Delivers replies to requesters, and informs them how their requests ended."""

    def __init__(
        self,
        hub: Hub[Session],
        store: StorePort,
        *,
        channels: Channels,
        installed: InstalledExtensions,
        node: Node,
    ) -> None:
        self._hub = hub
        self._store = store
        self._channels = channels
        self._installed = installed
        self._node = node

    def message(self, request: Request[Session], wire: bytes, sender: str) -> Message:
        """Return the message that brings this event to the requester."""
        stamp = self._node.stamp()
        message = Message(wire, id=stamp, channel=request.reply_to, sender=sender)
        message.is_direct = True
        message.addressed = (request.requester.key,)
        return message

    def deliver(
        self,
        request: Request[Session],
        channel: Channel,
        *,
        message: Message,
        step: RequestStep,
        done: Callable[[PersistOutcome], None] | None = None,
    ) -> PersistOutcome | None:
        """Deliver the message to the requester.

        Returns the outcome, or None if the step and `done` will be called with it later.
        """
        publish: Publish[Session] = Publish(channel)
        publish.message = message
        publish.addressed, publish.is_subscribable = (request.requester,), False
        publish.done, publish.step = done, step
        return self._hub.publish(publish)

    def announce_end(self, request: Request[Session], step: RequestStep) -> None:
        """Inform the requester how its request ended, once the store can keep the event."""
        if request.requester.is_durable and not self._store.takes_messages:
            step.known(PersistOutcome.REFUSED)
            return
        event: Json = {"channel": request.reply_to}
        if request.end is RequestEnd.ANSWERED:
            event["data"] = {"replies": request.replies, "missing": len(request.responders)}
            event["ext"] = {STATUS: END}
        else:
            error = _error(request)
            event |= {"data": {"error": error, **_reason(request)}, "error": error}
            event["ext"] = {STATUS: ERROR}
        if request.call is not None:
            event |= call_fields(request.call, successful=False)
        self._installed.complete(event)
        channel = self._channels.named(request.reply_to)
        outcome = self.deliver(
            request, channel, message=self.message(request, to_json(event), ""), step=step
        )
        if outcome is not None:
            step.known(outcome)


def call_fields(call: tuple[str, str], *, successful: bool) -> Json:
    """Return the fields by which cometd.js finds its remote call."""
    channel, id = call
    return {"channel": channel, "id": id, "successful": successful}


def _error(request: Request[Session]) -> str:
    """Return the error that ended a request."""
    if request.end is RequestEnd.REFUSED and request.refusal is not None:
        return ErrorReply.RESPONDER_ERROR.wire(request.channel, request.refusal[0])
    is_over = request.end is RequestEnd.TIMEOUT
    return (ErrorReply.TIMEOUT if is_over else ErrorReply.NO_RESPONDERS).wire(request.channel)


def _reason(request: Request[Session]) -> Json:
    """Return the known facts about the refusal that ended a request."""
    if request.end is not RequestEnd.REFUSED or request.refusal is None:
        return {}
    code, text = request.refusal
    return {"code": code, "message": text}
