"""`/sys/login` and `/sys/logout`: sessions begin and end, regardless of connections."""

from holdfast.bayeux.session import Session
from holdfast.bayeux.state.system_events import SystemEvents
from holdfast.bayeux.wire.codec import Json
from holdfast.delivery.basics.channels import Channels
from holdfast.delivery.basics.node import Node
from holdfast.delivery.shared_queues.unclaimed_names import is_unclaimed

LOGIN = "/sys/login"
LOGOUT = "/sys/logout"


class LoginEvents:
    """Reports which sessions begin and end."""

    def __init__(self, channels: Channels, *, node: Node, events: SystemEvents) -> None:
        self._node = node
        self._events = events
        self._login, self._logout = channels.named(LOGIN), channels.named(LOGOUT)

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
        self._events.publish_later(event)
