"""Waits until all shards know facts of this one.

A fact is appended to the log; each shard tells how far it has read that. One whose store is away
says so on a link, where it is asked. A shard that tells nothing is left out only if no process can
speak for it: the store of that shard names none, or one whose lease was not raised for so long that
it must be silent. A process that opens that shard later reads the facts after its opening, so it
finds this one. So does the silent one, if it can raise its lease again: before it speaks, it must
read all facts as after an opening.

An embedded store has a counter for a lease. Its process may speak without a raise, for example
while that store cannot write. Then it says on links that it lives, and is not left out; see
`inclusion.py`.
"""

from collections.abc import Callable, Collection, Mapping
from math import inf
from typing import Final

from holdfast.cluster.frames import Facts
from holdfast.cluster.places import NOWHERE, Place

# How long a lease must stand before its holder is silent, and how often to look.
SILENT_S: Final = 3.0
_LOOK_S: Final = 0.25
# Looks further apart prove nothing.
_LONGEST_LOOK_S: Final = 0.5
# Until when a subscription waits.
_PATIENCE_S: Final = 5.0
# How long a shard may stay quiet before it is looked at and asked, and how often it is asked.
_QUIET_S: Final = 0.1
_ASK_S: Final = 0.5
# For how long looks go on when nothing waits any more: what waits next is answered sooner.
_LOOK_ON_S: Final = 10.0

# Called with the place behind the frame of the facts, or a later one; or with None if the log does
# not have them.
Stated = Callable[[Place | None], None]


class _Holder:
    """What was seen of the lease of a shard."""

    __slots__ = ("asked_at", "heard_at", "lease", "needed_at", "since")

    def __init__(self) -> None:
        self.lease: str | None = None
        # When the first answer with this lease came, when the last one did.
        self.since = 0.0
        self.heard_at = -inf
        # When a look began that has no answer yet; negative if there is none.
        self.asked_at = -1.0
        # When something last waited for the shard.
        self.needed_at = 0.0

    def is_due(self, now: float) -> bool:
        """Whether to look now."""
        has_stood = self.lease is not None and self.heard_at < self.since + SILENT_S <= now
        return has_stood or now - self.heard_at >= _LOOK_S

    def read(self, lease: str | None, now: float) -> bool:
        """Take note of what a look has found. Returns whether no process can speak."""
        asked_at, self.asked_at = self.asked_at, -1.0
        is_gapless = asked_at - self.heard_at <= _LONGEST_LOOK_S
        if lease is None:
            self.lease = None
        elif lease != self.lease or not is_gapless:
            self.lease, self.since = lease, now
        self.heard_at = now
        return lease == "" or (lease is not None and asked_at - self.since >= SILENT_S)


class _Waiting:
    """Facts that not all shards know yet."""

    __slots__ = ("deadline", "done", "facts", "missing", "place", "stated_at")

    def __init__(self, facts: Facts, deadline: float, done: Callable[[bool], None]) -> None:
        self.facts = facts
        self.deadline = deadline
        self.done = done
        self.begin_again()

    def begin_again(self) -> None:
        self.place: Place | None = None
        self.stated_at = 0.0
        self.missing: set[int] = set()


class Agreements:
    """Facts of this shard that others are to know.

    Args:
        others: The numbers of all other shards of the deployment.
        state: Appends facts to the log.
    """

    def __init__(self, others: Collection[int], state: Callable[[Facts, Stated], None]) -> None:
        self._others = frozenset(others)
        self._state = state
        # How far each shard has read this shard's log.
        self._seen: dict[int, Place] = {}
        self._waiting: list[_Waiting] = []
        self._holders: dict[int, _Holder] = {}
        # By shard, about which place it was asked, and when.
        self._asked: dict[int, tuple[Place, float]] = {}
        self._now = 0.0

    def __len__(self) -> int:
        return len(self._waiting)

    def agree(self, facts: Facts, now: float, done: Callable[[bool], None]) -> None:
        """Tell the facts. `done` hears whether all shards know them, after 5 s at most.

        If they do not, the facts hold nevertheless until they are withdrawn.
        """
        self._now = now
        waiting = _Waiting(facts, now + _PATIENCE_S, done)
        self._waiting.append(waiting)
        self._tell(waiting)

    def _tell(self, waiting: _Waiting) -> None:
        def stated(place: Place | None) -> None:
            # A later incarnation has told them again if a reply to an earlier one comes now.
            if place is not None and waiting.place is None:
                waiting.place, waiting.stated_at = place, self._now
                waiting.missing = {each for each in self._others if not self._knows(each, place)}
                self._end_complete()

        self._state(waiting.facts, stated)

    def begin_again(self) -> None:
        """Tell all facts again that are waiting: this shard was opened again."""
        self._seen.clear()
        for waiting in self._waiting:
            waiting.begin_again()
            self._tell(waiting)

    def saw(self, shard: int, place: Place) -> None:
        """Take note of how far a shard has read this shard's log."""
        self._seen[shard] = place
        for waiting in self._waiting:
            if waiting.place is not None and self._knows(shard, waiting.place):
                waiting.missing.discard(shard)
        self._end_complete()

    def _knows(self, shard: int, place: Place) -> bool:
        seen = self._seen.get(shard, NOWHERE)
        return seen.nonce == place.nonce and seen.n >= place.n

    def holders_to_read(self, now: float) -> list[int]:
        """Return the shards whose holder and lease are to be read now, one look at a time."""
        self._now = now
        for shard in self._quiet(now):
            self._holders.setdefault(shard, _Holder()).needed_at = now
        wanted: list[int] = []
        for shard, holder in [*self._holders.items()]:
            if holder.asked_at >= 0:
                continue
            if now - holder.needed_at > _LOOK_ON_S:
                del self._holders[shard]
            elif holder.is_due(now):
                holder.asked_at = now
                wanted.append(shard)
        return sorted(wanted)

    def _quiet(self, now: float) -> Mapping[int, Place]:
        """Return for which shards something has waited, and for the last place that each needs."""
        return {
            shard: waiting.place
            for waiting in self._waiting
            if waiting.place is not None and now - waiting.stated_at >= _QUIET_S
            for shard in waiting.missing
        }

    def read(self, shard: int, lease: str | None, now: float) -> None:
        """Take note of a holder's epoch and lease; '' if there is none, None if unreadable."""
        self._now = now
        holder = self._holders.get(shard)
        if holder is None or holder.asked_at < 0:
            return
        asked_at = holder.asked_at
        if holder.read(lease, now):
            for waiting in self._waiting:
                # A look that began before the facts were in the log says nothing about them.
                if waiting.place is not None and asked_at > waiting.stated_at:
                    waiting.missing.discard(shard)
            self._end_complete()

    def lives(self, shard: int, now: float) -> None:
        """Take note that a shard lives, although its lease may stand: it has said so."""
        self._now = now
        holder = self._holders.get(shard)
        if holder is not None:
            holder.lease = None

    def to_ask(self, now: float) -> Mapping[int, Place]:
        """Return which shards to ask on a link, and up to which place they must know all facts."""
        due: dict[int, Place] = {}
        for shard, place in self._quiet(now).items():
            asked = self._asked.get(shard)
            if asked is None or asked[0] != place or now - asked[1] >= _ASK_S:
                self._asked[shard] = place, now
                due[shard] = place
        return due

    def tick(self, now: float) -> None:
        """Give up what has waited for too long."""
        self._now = now
        late = [waiting for waiting in self._waiting if now >= waiting.deadline]
        self._waiting = [waiting for waiting in self._waiting if now < waiting.deadline]
        for waiting in late:
            waiting.done(False)

    def _end_complete(self) -> None:
        complete = [each for each in self._waiting if each.place is not None and not each.missing]
        if complete:
            self._waiting = [each for each in self._waiting if each not in complete]
            for waiting in complete:
                waiting.done(True)
