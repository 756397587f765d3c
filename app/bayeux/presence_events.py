"""`/sys/presence/<channel>`: who joins a channel, and who leaves it."""

from itertools import islice
from typing import Final

from holdfast.bayeux.codec import Json
from holdfast.bayeux.server_state import ServerState
from holdfast.bayeux.sessions import Session
from holdfast.bayeux.system_events import publish_event
from holdfast.delivery.channels import PRESENCE

# Sessions that one event names.
_MOST_NAMED: Final = 100
_NS_PER_MS: Final = 1_000_000


class PresenceEvents:
    """Tells watchers who has joined or left: one event for all changes of a turn."""

    def __init__(self, state: ServerState) -> None:
        self._state = state
        # By channel, sessions that have joined or left. Events tell what is the case when they are
        # made, so a session is here once, however often it joins and leaves.
        self._untold: dict[str, dict[Session, None]] = {}

    def note(self, name: str, session: Session) -> None:
        """Tell the channel's watchers, if there are any, at the end of the turn."""
        channel = self._state.channels.get(PRESENCE + name[1:])
        # With its prefix, the name may be too long.
        if channel is None or not self._state.routes.receivers(channel):
            return
        if not self._untold:
            self._state.backlog.add(self._tell_next)
        self._untold.setdefault(name, {})[session] = None

    def _tell_next(self, now: float) -> bool:
        """Publish one event; return whether any are left."""
        name = next(iter(self._untold))
        sessions = self._untold.pop(name)
        told = list(islice(sessions, _MOST_NAMED))
        for each in told:
            del sessions[each]
        if sessions:
            # After the other channels.
            self._untold[name] = sessions
        publish_event(self._state, self._event(name, told))
        return bool(self._untold)

    def _event(self, name: str, sessions: list[Session]) -> Json:
        presence = self._state.presence
        joined, left = [], []
        for session in sessions:
            since = presence.since(name, session)
            if since is None:
                left.append({"subject": session.subject, "session": session.name})
            else:
                joined.append(member_of(session, since))
        data = {"channel": name, "count": presence.count(name), "joined": joined, "left": left}
        return {"channel": PRESENCE + name[1:], "data": data}


def member_of(session: Session, since: int) -> Json:
    """Return what clients learn of a member."""
    return {
        "subject": session.subject,
        "session": session.name,
        "since": since // _NS_PER_MS,
    }
