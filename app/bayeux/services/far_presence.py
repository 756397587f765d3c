"""Tells the other shards who is on channels here, and hears it from them.

Each shard tells each other one all members that it has, in parts, and then what changes: one letter
after the other. Without the right answer to one of them it begins again. So does a shard that
has started, which also asks the others to tell it everything.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, Final

from orjson import loads

from holdfast.bayeux.session import Session
from holdfast.bayeux.state.far_members import FarMembers
from holdfast.bayeux.state.presence_events import FarMember, state_of
from holdfast.bayeux.state.server_state import ServerState
from holdfast.delivery.basics.json_text import to_json
from holdfast.delivery.messages.shard_letter import ShardLetter
from holdfast.delivery.ports.homes import NO_ANSWER, HomesPort
from holdfast.delivery.ports.other_shards import OthersPort

# What the letter is called in the log.
PRESENCE: Final = "presence"
# How many members one letter names, and how many bytes their names have.
_MOST: Final = 500
_MOST_BYTES: Final = 128 * 1024
# After a letter that was not taken.
_PAUSE_S: Final = 1.0
# When the members at a shard leave that cannot be reached.
_LOST_S: Final = 10.0
_TAKEN: Final = b'{"taken":true}'

# A channel, and a session that was or is on it.
Place = tuple[str, Session]
Row = list[Any]


class FarPresence:
    """Who is on channels at all shards."""

    def __init__(self, state: ServerState, homes: HomesPort, others: OthersPort) -> None:
        self.state = state
        self.homes = homes
        self._others = others
        self.members = FarMembers()
        state.presence_events.go_among(self.members, self._changed)
        shards = homes.other_shards()
        self._tellers = {shard: _Teller(self, shard) for shard in shards}
        self._heard = {shard: _Heard(self, shard) for shard in shards}
        # Since when shards cannot be reached; infinite once their members have left.
        self._away: dict[int, float] = {}
        self._has_begun = self._is_due = False

    def _changed(self, channel: str, session: Session) -> None:
        for teller in self._tellers.values():
            teller.pending[channel, session] = None
        if not self._is_due:
            self._is_due = True
            self.state.backlog.at_turn_end(self._tell)

    def _tell(self, now: float) -> None:
        self._is_due = False
        for teller in self._tellers.values():
            teller.go_on()

    def tick(self, now: float, _: int) -> None:
        """Begin, begin again, and let members leave whose shard is lost."""
        if not self.state.presence.is_used:
            return
        if not self._has_begun:
            self._has_begun = True
            for teller in self._tellers.values():
                teller.asks = True
                teller.begin()
        for shard, teller in self._tellers.items():
            teller.tick(now)
            self._look(shard, teller, now)

    def _look(self, shard: int, teller: "_Teller", now: float) -> None:
        if not self.is_away(shard):
            if self._away.pop(shard, 0.0) == _GONE:
                teller.asks = True
                teller.begin()
            return
        since = self._away.setdefault(shard, now)
        if since != _GONE and now - since >= _LOST_S:
            self._away[shard] = _GONE
            self._heard[shard].lose()

    def is_away(self, shard: int) -> bool:
        """Return whether a shard cannot be reached."""
        return self._others.is_away(shard)

    def carry_out(self, letter: ShardLetter, _: float) -> None:
        """Hear from another shard."""
        told = loads(letter.data)
        if told["asks"]:
            self._tellers[letter.sender].begin()
        is_taken = self._heard[letter.sender].take(told)
        self.homes.answer(letter, _TAKEN if is_taken else NO_ANSWER)


_GONE: Final = -1.0


class _Teller:
    """Tells one other shard."""

    def __init__(self, far: FarPresence, shard: int) -> None:
        self._far = far
        self._shard = shard
        # Whether that shard is to tell everything, too.
        self.asks = False
        # What has changed since it was told.
        self.pending: dict[Place, None] = {}
        # All members, while these are told; numbers of this beginning, and of the next letter.
        self._whole: Iterator[Place] | None = None
        self._series = self._part = 0
        self._is_sent = False
        # When to begin, if it is to begin again.
        self._again_at: float | None = None

    def begin(self) -> None:
        """Tell everything, behind the letter that was sent last."""
        self._again_at = None
        self.pending.clear()
        presence = self._far.state.presence
        places = [
            (channel, session)
            for channel in presence.channels()
            for session, _ in presence.members(channel)
        ]
        self._whole = iter(places)
        self._series, self._part = self._far.state.node.stamp(), 0
        self.go_on()

    def tick(self, now: float) -> None:
        """Begin again, if that is due."""
        if self._again_at is not None and not self._far.is_away(self._shard):
            if not self._again_at:
                self._again_at = now + _PAUSE_S
            elif now >= self._again_at:
                self.begin()

    def go_on(self) -> None:
        """Send the next letter, if there is one and the last one was answered."""
        if self._is_sent or self._again_at is not None or not self._part_is_due():
            return
        homes = self._far.homes
        if not homes.may_send(self._shard):
            self._again_at = 0.0
            return
        whole = self._whole
        rows = self._rows_of_whole(whole) if whole is not None else self._rows_of_changes()
        told = {
            "series": self._series,
            "part": self._part,
            "asks": self.asks,
            "is_whole": whole is not None,
            "is_last": whole is None or self._whole is None,
            "rows": rows,
        }
        self._part += 1
        self._is_sent = True
        answered = partial(self._answered, self._series, self.asks)
        homes.send(self._shard, PRESENCE, to_json(told), answered)

    def _part_is_due(self) -> bool:
        # Before everything was told, a change says nothing.
        return self._whole is not None or bool(self._part and self.pending)

    def _rows_of_whole(self, whole: Iterator[Place]) -> list[Row]:
        rows: list[Row] = []
        size = 0
        for channel, session in whole:
            row = self._row(channel, session)
            if len(row) > _ENDS:
                rows.append(row)
                size += len(channel) + len(session.name)
            if len(rows) >= _MOST or size >= _MOST_BYTES:
                return rows
        self._whole = None
        return rows

    def _rows_of_changes(self) -> list[Row]:
        places = [*islice(self.pending, _MOST)]
        for place in places:
            del self.pending[place]
        return [self._row(*place) for place in places]

    def _row(self, channel: str, session: Session) -> Row:
        since = self._far.state.presence.since(channel, session)
        if since is None:
            return [channel, session.name]
        return [channel, session.name, session.subject, since, state_of(session).value]

    def _answered(self, series: int, asked: bool, answer: bytes | None) -> None:
        self._is_sent = False
        if answer == _TAKEN:
            self.asks &= not asked
        elif series == self._series:
            self._again_at = 0.0
        self.go_on()


# The row of a member that has left has a channel and a name.
_ENDS: Final = 2


class _Heard:
    """What one other shard has told."""

    def __init__(self, far: FarPresence, shard: int) -> None:
        self._far = far
        self._shard = shard
        self._series = self._part = 0
        # The members so far while everything is told.
        self._fresh: dict[tuple[str, str], FarMember] | None = None

    def take(self, told: Mapping[str, Any]) -> bool:
        """Take a letter. Returns whether it is the next one."""
        if told["is_whole"] and not told["part"]:
            self._series, self._part, self._fresh = told["series"], 0, {}
        if (told["series"], told["part"]) != (self._series, self._part):
            return False
        self._part += 1
        if self._fresh is None:
            for row in told["rows"]:
                self._take(row)
            return True
        for row in told["rows"]:
            self._fresh[row[0], row[1]] = _member(row)
        if told["is_last"]:
            fresh, self._fresh = self._fresh, None
            self._replace(fresh)
        return True

    def lose(self) -> None:
        """Let all members of the shard leave; it has to tell everything again."""
        self._series, self._fresh = 0, None
        self._replace({})

    def _replace(self, fresh: Mapping[tuple[str, str], FarMember]) -> None:
        for channel, name in self._far.members.of_shard(self._shard):
            if (channel, name) not in fresh:
                self._leave(channel, name)
        for (channel, _), member in fresh.items():
            self._put(channel, member)

    def _take(self, row: Sequence[Any]) -> None:
        if len(row) == _ENDS:
            self._leave(row[0], row[1])
        else:
            self._put(row[0], _member(row))

    def _leave(self, channel: str, name: str) -> None:
        gone = self._far.members.remove(self._shard, channel, name)
        if gone is not None:
            gone.has_left = True
            self._note(channel, gone, has_moved=True)

    def _put(self, channel: str, member: FarMember) -> None:
        members = self._far.members
        before = members.get(self._shard, channel, member.name)
        members.put(self._shard, channel, member)
        if before is None or before.state != member.state:
            self._note(channel, member, has_moved=before is None)

    def _note(self, channel: str, member: FarMember, *, has_moved: bool) -> None:
        state = self._far.state
        state.presence_events.note(state.presence, channel, member, has_moved)


def _member(row: Sequence[Any]) -> FarMember:
    return FarMember(row[1], row[2], row[3], row[4])
