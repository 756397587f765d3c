"""`/sys/login` and `/sys/logout`: sessions begin and end, whatever their connections do."""

from collections import deque

from holdfast.bayeux.codec import Json
from holdfast.bayeux.server_state import ServerState
from holdfast.bayeux.sessions import Session
from holdfast.bayeux.system_events import publish_event

LOGIN = "/sys/login"
LOGOUT = "/sys/logout"


class LoginEvents:
    """Reports which sessions begin and end; thousands that end at once, over some turns."""

    def __init__(self, state: ServerState) -> None:
        self._state = state
        self._login, self._logout = state.channels.named(LOGIN), state.channels.named(LOGOUT)
        self._unpublished: deque[Json] = deque()

    def began(self, session: Session) -> None:
        """Report a session's first client, but not those that take it over later."""
        if self._state.routes.receivers(self._login):
            self._report(LOGIN, session, {})

    def ended(self, session: Session, how: str) -> None:
        """Report the end of a session, unless it never had a client."""
        if not session.is_unclaimed and self._state.routes.receivers(self._logout):
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
                        "_nodeId": self._state.node.name,
                    }
                }
            },
        }
        if not self._unpublished:
            self._state.backlog.add(self._publish_next)
        self._unpublished.append(event)

    def _publish_next(self, now: float) -> bool:
        """Publish one event; return whether any are left."""
        publish_event(self._state, self._unpublished.popleft())
        return bool(self._unpublished)
