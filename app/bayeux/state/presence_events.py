"""`/sys/presence/<channel>`: joins and leaves of a channel's members, and their states."""

from enum import Enum
from functools import partial
from itertools import islice
from typing import Final

from holdfast.bayeux.session import Session
from holdfast.bayeux.state.backlog import Backlog
from holdfast.bayeux.state.system_events import SystemEvents
from holdfast.bayeux.wire.codec import Json
from holdfast.delivery.basics.channels import PRESENCE, Channels
from holdfast.delivery.basics.node import NS_PER_MS
from holdfast.delivery.routing.presence import Presence
from holdfast.delivery.routing.routes import Routes

# How many sessions one event names.
_MOST_NAMED: Final = 100
# Events are useless to watchers that return later: they ask for the current members.
_LIFE_MS: Final = 60_000


class MemberState(Enum):
    """Whether a member receives the channel's messages now."""

    HERE = "here"
    # Its client has left, or was silent for too long.
    ABSENT = "absent"
    # Its queue is held back.
    HELD = "held"


class PresenceEvents:
    """Informs watchers about joins, leaves and new states: one event for all changes of a turn."""

    def __init__(
        self,
        channels: Channels,
        routes: Routes[Session],
        backlog: Backlog,
        events: SystemEvents,
    ) -> None:
        self._channels = channels
        self._routes = routes
        self._backlog = backlog
        self._events = events
        # By channel: the sessions that changed, and whether they joined or left. An event reports
        # their states at the time it is created, so each session is here once, however often it
        # changes.
        self._changes: dict[str, dict[Session, bool]] = {}

    def note(
        self, presence: Presence[Session], name: str, session: Session, has_moved: bool
    ) -> None:
        """Report the change to the channel's watchers, if any, at the end of the turn."""
        channel = self._channels.get(PRESENCE + name[1:])
        # With its prefix, the name may be too long.
        if channel is None or not self._routes.receivers(channel):
            return
        if not self._changes:
            self._backlog.add(partial(self._publish_next, presence))
        sessions = self._changes.setdefault(name, {})
        sessions[session] = has_moved or sessions.get(session, False)

    def _publish_next(self, presence: Presence[Session], now: float) -> bool:
        """Publish one event. Returns whether any are left."""
        if not self._changes:
            # The last one failed.
            return False
        name = next(iter(self._changes))
        sessions = self._changes.pop(name)
        named = dict(islice(sessions.items(), _MOST_NAMED))
        for each in named:
            del sessions[each]
        if sessions:
            # After the other channels.
            self._changes[name] = sessions
        self._events.publish(_event(presence, name, named), life_ms=_LIFE_MS)
        return bool(self._changes)


def _event(presence: Presence[Session], name: str, sessions: dict[Session, bool]) -> Json:
    joined: list[Json] = []
    left: list[Json] = []
    changed: list[Json] = []
    for session, has_moved in sessions.items():
        since = presence.since(name, session)
        if since is None:
            left.append({"subject": session.subject, "session": session.name})
        elif has_moved:
            joined.append(member_of(session, since))
        else:
            changed.append(member_of(session, since))
    moves = {"joined": joined, "left": left, "changed": changed}
    data = {"channel": name, "count": presence.count(name), **moves}
    return {"channel": PRESENCE + name[1:], "data": data}


def member_of(session: Session, since: int) -> Json:
    """Return what clients see of a member."""
    return {
        "subject": session.subject,
        "session": session.name,
        "since": since // NS_PER_MS,
        "state": _state_of(session).value,
    }


def _state_of(session: Session) -> MemberState:
    dispatcher = session.dispatcher
    if dispatcher is not None and dispatcher.hold_record is not None:
        return MemberState.HELD
    return MemberState.ABSENT if session.is_absent else MemberState.HERE
