"""Events of the server itself, for operators and webhooks that have subscribed to its channels."""

from collections import deque
from collections.abc import Iterable
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from holdfast.bayeux.session import Session
from holdfast.bayeux.state.backlog import Backlog
from holdfast.bayeux.state.session_registry import Sessions
from holdfast.bayeux.wire.codec import Json
from holdfast.delivery.basics.channels import LISTENS_ROW, Channel, Channels
from holdfast.delivery.basics.json_text import to_json
from holdfast.delivery.basics.node import Node, shard_of
from holdfast.delivery.basics.notices import CHANNEL_FREE, CHANNEL_HELD, HELD, RESUMED, NoticeKind
from holdfast.delivery.letters.exempt import leave_no_letter
from holdfast.delivery.messages.message import Message
from holdfast.delivery.routing.hub import Hub
from holdfast.delivery.routing.publishes import Publish
from holdfast.delivery.routing.selections import Candidate

if TYPE_CHECKING:
    from holdfast.delivery.queues.dispatcher import QueueHold

HOLDBACK: Final = "/sys/holdback"
# Which holds are told again after a kill.
_LATEST_MS: Final = 2000
# What is held back or flows again, by the notice that says so, and whether it is held.
_MEANINGS: Final = {
    HELD: ("session", True),
    RESUMED: ("session", False),
    CHANNEL_HELD: ("channel", True),
    CHANNEL_FREE: ("channel", False),
}


class SystemEvents:
    """Publishes events of the server if their channels have subscribers, here or elsewhere.

    If there are other shards, an event says which one it is of.
    """

    def __init__(
        self, channels: Channels, hub: Hub[Session], *, node: Node, backlog: Backlog
    ) -> None:
        self._channels = channels
        self._hub = hub
        self._node = node
        self._backlog = backlog
        self._unpublished: deque[Json] = deque()

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

    def publish_later(self, event: Json) -> None:
        """Publish the event at the end of the turn. Many at once take several turns."""
        if not self._unpublished:
            self._backlog.add(self._publish_next)
        self._unpublished.append(event)

    def _publish_next(self, now: float) -> bool:
        """Publish one event. Returns whether any are left."""
        if self._unpublished:
            self.publish(self._unpublished.popleft())
        return bool(self._unpublished)


class HoldEvents:
    """Reports on `/sys/holdback` holds and their ends."""

    def __init__(self, channels: Channels, events: SystemEvents, sessions: Sessions) -> None:
        self._channel = channels.named(HOLDBACK)
        self._sessions = sessions
        self._events = events
        # How many holds have begun in this process.
        self.begun = 0

    def noticed(self, kind: NoticeKind, about: str, text: str) -> None:
        """Report a notice if it is about a hold."""
        meaning = _MEANINGS.get(kind)
        if meaning is None:
            return
        _, is_held = meaning
        self.begun += is_held
        self._tell(kind, about, text)

    def _tell(self, kind: NoticeKind, about: str, text: str) -> None:
        if not self._events.has_listeners(self._channel):
            return
        what, is_held = _MEANINGS[kind]
        if kind is HELD:
            text = self._why_held(about, text)
        name = f"client/{about}" if what == "session" else about
        data = {what: name, "held": is_held, "reason": text}
        self._events.publish_later({"channel": HOLDBACK, "data": data})

    def _why_held(self, key: str, who: str) -> str:
        """Return why a session is held, and by whom, in the form that notices of channels have."""
        session = self._sessions.named(key)
        hold = None if session is None else _hold_of(session)
        return who if hold is None or not hold.reason else f"{hold.reason} ({who})"

    def tell_again(self, sessions: Iterable[Session]) -> None:
        """Report the latest holds of sessions again: the process that was killed may not have."""
        held = [(hold.since, each, hold) for each in sessions if (hold := _hold_of(each))]
        newest = max((since for since, _, _ in held), default=0)
        for since, session, hold in sorted(held, key=itemgetter(0)):
            if since > newest - _LATEST_MS:
                self._tell(HELD, session.key, hold.who)


def _hold_of(session: Session) -> "QueueHold | None":
    return None if session.dispatcher is None else session.dispatcher.hold_record
