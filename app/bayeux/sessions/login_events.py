"""`/sys/login` and `/sys/logout`: sessions begin and end, regardless of connections."""

from collections import deque

from holdfast.bayeux.session import Session
from holdfast.bayeux.state.backlog import Backlog
from holdfast.bayeux.state.system_events import SystemEvents
from holdfast.bayeux.wire.codec import Json
from holdfast.delivery.basics.channels import Channels
from holdfast.delivery.basics.node import Node
from holdfast.delivery.shared_queues.unclaimed_names import is_unclaimed

LOGIN = "/sys/login"
LOGOUT = "/sys/logout"


class LoginEvents:
    """Reports which sessions begin and end. Many ends at once take several turns."""

    def __init__(
        self,
        channels: Channels,
        *,
        node: Node,
        backlog: Backlog,
        events: SystemEvents,
    ) -> None:
        self._node = node
        self._backlog = backlog
        self._events = events
        self._login, self._logout = channels.named(LOGIN), channels.named(LOGOUT)
        self._unpublished: deque[Json] = deque()

    def began(self, session: Session) -> None:
        """Report a session's first client, but not clients that take it over later."""
        if self._events.has_listeners(self._login):
            self._report(LOGIN, session, {})

    def ended(self, session: Session, how: str) -> None:
        """Report the end of a session, unless it never had a client."""
        if not is_unclaimed(session) and self._events.has_listeners(self._logout):
            self._report(LOGOUT, session, {"how": how})

    def _report(self, channel: str, session: Session, more: Json) -> None:
        event = {
            "channel": channel,
            "data": {"subject": session.subject, "session": session.name, **more},
            # With xmlBlaster's names.
            "ext": {
                "delivery": {
                    "properties": {
                        "_subjectId": session.subject,
                        "_absoluteName": session.name,
                        "_nodeId": self._node.name,
                    }
                }
            },
        }
        if not self._unpublished:
            self._backlog.add(self._publish_next)
        self._unpublished.append(event)

    def _publish_next(self, now: float) -> bool:
        """Publish one event. Returns whether any are left."""
        if self._unpublished:
            self._events.publish(self._unpublished.popleft())
        return bool(self._unpublished)
