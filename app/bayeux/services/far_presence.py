"""Tells the other shards who is on channels here, and hears it from them."""

from collections.abc import Iterator, Sequence
from typing import Final

from holdfast.bayeux.session import Session
from holdfast.bayeux.state.far_members import FarMember
from holdfast.bayeux.state.presence_events import state_of
from holdfast.bayeux.state.server_state import ServerState
from holdfast.bayeux.state.shared import Row, Shared
from holdfast.delivery.ports.homes import HomesPort
from holdfast.delivery.ports.other_shards import OthersPort

# What the operation is called.
PRESENCE: Final = "presence"
# When the members at a shard leave that cannot be reached.
_LOST_S: Final = 10.0
_GONE: Final = -1.0
# The row of a member that has left has a channel and a name.
_ENDS: Final = 2

# A channel, and a session that was or is on it.
Place = tuple[str, Session]


class FarPresence:
    """Who is on channels at all shards."""

    def __init__(self, state: ServerState, homes: HomesPort, others: OthersPort) -> None:
        self._state = state
        self._others = others
        self.members = state.presence_events.others
        self._shared: Shared[Place] = Shared(self, state, homes, others, what=PRESENCE)
        # Since when shards cannot be reached; infinite once their members have left.
        self._away: dict[int, float] = {}

    def changed(self, channel: str, session: Session) -> None:
        """Tell other shards about a session here that is on the channel, or was."""
        for shard in self._shared.shards:
            self._shared.note(shard, (channel, session))
        self._shared.tell_soon()

    def tick(self, now: float, _: int) -> None:
        """Tell what has changed, and let members leave whose shard is lost."""
        if not self._state.presence.is_used:
            return
        self._shared.tick(now)
        for shard in self._shared.shards:
            self._look(shard, now)

    def _look(self, shard: int, now: float) -> None:
        if not self._others.is_away(shard):
            if self._away.pop(shard, 0.0) == _GONE:
                self._shared.ask(shard)
            return
        since = self._away.setdefault(shard, now)
        if since != _GONE and now - since >= _LOST_S:
            self._away[shard] = _GONE
            self._shared.lose(shard)

    # What is told

    def everything_for(self, _: int) -> Iterator[Place]:
        presence = self._state.presence
        return iter(
            [
                (channel, session)
                for channel in presence.channels()
                for session, _ in presence.members(channel)
            ]
        )

    def row_of(self, place: Place) -> Row:
        channel, session = place
        since = self._state.presence.since(channel, session)
        if since is None:
            return [channel, session.name]
        return [channel, session.name, session.subject, since, state_of(session).value]

    def is_nothing(self, row: Row) -> bool:
        return len(row) == _ENDS

    # What is heard

    def replace(self, shard: int, rows: Sequence[Row]) -> None:
        fresh = {(row[0], row[1]) for row in rows}
        for channel, name in self.members.of_shard(shard):
            if (channel, name) not in fresh:
                self._leave(shard, channel, name)
        for row in rows:
            self._put(shard, row[0], _member(row))

    def take(self, shard: int, row: Row) -> None:
        if len(row) == _ENDS:
            self._leave(shard, row[0], row[1])
        else:
            self._put(shard, row[0], _member(row))

    def _leave(self, shard: int, channel: str, name: str) -> None:
        gone = self.members.remove(shard, channel, name)
        if gone is not None:
            gone.has_left = True
            self._note(channel, gone, has_moved=True)

    def _put(self, shard: int, channel: str, member: FarMember) -> None:
        before = self.members.get(shard, channel, member.name)
        self.members.put(shard, channel, member)
        if before is None or before.state != member.state:
            self._note(channel, member, has_moved=before is None)

    def _note(self, channel: str, member: FarMember, *, has_moved: bool) -> None:
        state = self._state
        state.presence_events.note(state.presence, channel, member, has_moved)


def _member(row: Row) -> FarMember:
    return FarMember(row[1], row[2], row[3], row[4])
