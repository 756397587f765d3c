"""`/sys/presence/<channel>`: joins and leaves of a channel's members, and their states."""

from collections.abc import Callable, Sequence
from enum import Enum
from functools import partial
from itertools import islice
from typing import Final

from holdfast.bayeux.session import Session
from holdfast.bayeux.state.backlog import Backlog
from holdfast.bayeux.state.far_members import FarMember, FarMembers
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
        self._changes: dict[str, dict[Session | FarMember, bool]] = {}
        # The members at other shards, and what tells these of changes, if there are any.
        self.others = FarMembers()
        self.tell: Callable[[str, Session], None] | None = None

    def count(self, presence: Presence[Session], name: str) -> int:
        """Return the number of members of the channel."""
        return presence.count(name) + self.others.count(name)

    def page(
        self, presence: Presence[Session], name: str, after: int, limit: int
    ) -> Sequence[tuple[Session | FarMember, int]]:
        """Return up to `limit` members that joined after this time, earliest first."""
        found: list[tuple[Session | FarMember, int]] = [*presence.page(name, after, limit)]
        others = self.others.page(name, after, limit)
        if not others:
            return found
        found += [(each, each.since) for each in others]
        found.sort(key=lambda each: each[1])
        return found[:limit]

    def note(
        self,
        presence: Presence[Session],
        name: str,
        session: Session | FarMember,
        has_moved: bool,
    ) -> None:
        """Report the change to the channel's watchers, if any, at the end of the turn."""
        if self.tell is not None and isinstance(session, Session):
            self.tell(name, session)
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
        event = _event(presence, name, named, self.count(presence, name))
        self._events.publish(event, life_ms=_LIFE_MS)
        return bool(self._changes)


def _event(
    presence: Presence[Session], name: str, sessions: dict[Session | FarMember, bool], count: int
) -> Json:
    joined: list[Json] = []
    left: list[Json] = []
    changed: list[Json] = []
    for session, has_moved in sessions.items():
        since = _since(presence, name, session)
        if since is None:
            left.append({"subject": session.subject, "session": session.name})
        elif has_moved:
            joined.append(member_of(session, since))
        else:
            changed.append(member_of(session, since))
    moves = {"joined": joined, "left": left, "changed": changed}
    data = {"channel": name, "count": count, **moves}
    return {"channel": PRESENCE + name[1:], "data": data}


def _since(presence: Presence[Session], name: str, member: Session | FarMember) -> int | None:
    """Return when the member joined, or None if it has left."""
    if isinstance(member, FarMember):
        return None if member.has_left else member.since
    return presence.since(name, member)


def member_of(session: Session | FarMember, since: int) -> Json:
    """Return what clients see of a member."""
    return {
        "subject": session.subject,
        "session": session.name,
        "since": since // NS_PER_MS,
        "state": session.state if isinstance(session, FarMember) else state_of(session).value,
    }


def state_of(session: Session) -> MemberState:
    """Return whether a member receives the channel's messages now."""
    dispatcher = session.dispatcher
    if dispatcher is not None and dispatcher.hold_record is not None:
        return MemberState.HELD
    return MemberState.ABSENT if session.is_absent else MemberState.HERE
