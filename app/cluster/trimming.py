"""Decides which frames of the log no shard needs any more, and who is too far behind.

Frames stay for ten seconds after all shards have taken them: the store of a shard may go back by a
moment, and then takes them again. If a shard says nothing in this time, they stay until it does:
its process and the primary of its store may have ended together. A shard that falls behind, or that
no process has, keeps only what it needs: frames with parts for it, or with durable messages that it
has subscriptions to. If even that is too much, publishes that it would need are refused; all others
go on.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import accumulate, islice
from typing import Final, NamedTuple

from holdfast.cluster.places import NOWHERE, Place

# How long frames stay after they were taken.
KEEP_S: Final = 10.0
# How often places are remembered, and the log is trimmed.
_BEAT_S: Final = 1.0
# How much of what it needs a shard may leave in the log: bytes, and seconds.
MOST_BYTES: Final = 64 * 1024 * 1024
MOST_S: Final = 60.0
# What a small frame takes if its neighbours in the stream were removed.
_LEAST_BYTES: Final = 4096
# How many frames one call removes apart from the beginning.
_MOST_REMOVED: Final = 1000


class _Kept(NamedTuple):
    """A frame in the log."""

    place: Place
    # Where it is linked: others may have been there that were removed.
    before: Place
    has_entries: bool
    at: float
    size: int
    # The shards that need it; None if that is unknown, because an earlier process wrote it.
    needed_by: frozenset[int] | None

    def is_needed(self, shard: int) -> bool:
        return self.needed_by is None or shard in self.needed_by


class Trim(NamedTuple):
    """What is to be removed."""

    # The id of the first frame that stays.
    first: str
    # Ids of further frames.
    removed: Sequence[str]
    # By the id of a frame, the place from which readers go on with it; '' for no link.
    links: Mapping[str, str]


class Trimming:
    """Which frames of this shard's log others need.

    Args:
        others: The numbers of all other shards.
        keep_s: How long frames stay after they were taken.
    """

    def __init__(
        self,
        others: Collection[int],
        *,
        keep_s: float = KEEP_S,
        beat_s: float = _BEAT_S,
        most_bytes: int = MOST_BYTES,
        most_s: float = MOST_S,
    ) -> None:
        self._others = sorted(others)
        self._keep_s, self._beat_s = keep_s, beat_s
        self._most_bytes, self._most_s = most_bytes, most_s
        self._frames: deque[_Kept] = deque()
        self._end = NOWHERE
        self._incarnation = (NOWHERE.nonce, 0)
        self._seen: dict[int, Place] = {}
        # By shard, when it last said where it is, and where it was at some moments, oldest first.
        self._heard_at: dict[int, float] = {}
        self._history: dict[int, deque[tuple[float, Place]]] = {
            shard: deque() for shard in self._others
        }
        self._beat_at = 0.0
        # Since when the store has been there: before, the log could not be read.
        self._there_since = 0.0
        self._linked: dict[str, str] = {}
        # The shards that need too much, and how much those need that are far behind.
        self.overflowing: frozenset[int] = frozenset()
        self.needed_bytes: dict[int, int] = {}
        # By shard, for how many seconds the first entry that it has not taken has been there.
        self.behind_s: dict[int, float] = {}

    def begin(
        self,
        nonce: str,
        fence: int,
        end: Place,
        frames: Iterable[tuple[Place, Place, int]],
        links: Mapping[str, str],
        now: float,
    ) -> None:
        """Start with the end, the frames and the links that the log has after an incarnation.

        Of each frame, it needs the places before and behind it, and the size.
        """
        self._frames.clear()
        for before, place, size in frames:
            has_entries = place.total > before.total
            self._frames.append(_Kept(place, before, has_entries, now, size, None))
        self._linked, self._end = dict(links), end
        self._incarnation = (nonce, fence)

    def appended(
        self, n: int, entries: int, size: int, needed_by: Iterable[int], now: float
    ) -> None:
        """Take note of a frame that the log has now, in the order of the log.

        `n` is the number of the call that appended it.
        """
        place = Place(*self._incarnation, n, self._end.total + entries)
        kept = _Kept(place, self._end, entries > 0, now, size, frozenset(needed_by))
        self._frames.append(kept)
        self._end = place

    @property
    def end(self) -> Place:
        """The place behind the last frame."""
        return self._end

    def saw(self, shard: int, place: Place, now: float) -> None:
        """Take note of how far a shard has taken the log, in its store."""
        self._heard_at[shard] = now
        if place.total < self._seen.get(shard, NOWHERE).total:
            # Its store went back, so it takes frames again.
            self._history[shard].clear()
        self._seen[shard] = place

    def refuses(self, shards: Collection[int]) -> bool:
        """Return whether a publish is refused that these shards need."""
        return bool(self.overflowing) and not self.overflowing.isdisjoint(shards)

    def tick(self, now: float) -> Trim | None:
        """Return what is to be removed, if it is time and there is something.

        Call it several times a second, as long as the store is there.
        """
        if now < self._beat_at:
            return None
        if now > self._beat_at + self._beat_s:
            self._there_since = now
        self._beat_at = now + self._beat_s
        numbers = {kept.place: number for number, kept in enumerate(self._frames, 1)}
        taken = {
            shard: self._taken(self._seen.get(shard, NOWHERE), numbers) for shard in self._others
        }
        long_taken = {
            shard: self._taken(self._long_ago(shard, now), numbers) for shard in self._others
        }
        self._measure(taken, now)
        gone = min(long_taken.values(), default=len(self._frames))
        removed = [self._frames.popleft() for _ in range(gone)]
        thinned = self._thin({shard: number - gone for shard, number in long_taken.items()}, now)
        if not (removed or thinned):
            return None
        links = self._links(thinned)
        first = self._frames[0].place.id if self._frames else f"{self._end.fence}-{self._end.n + 1}"
        return Trim(first, [each.place.id for each in thinned], links)

    def _taken(self, place: Place, numbers: Mapping[Place, int]) -> int:
        """Return how many of the frames a shard at this place has taken."""
        found = numbers.get(place)
        if found is not None:
            return found
        # The frame was removed, or the log has lost it; then the next incarnation follows.
        nonces = [kept.place.nonce for kept in self._frames]
        if place.nonce not in nonces:
            return 0
        own = [kept.place.n for kept in self._frames if kept.place.nonce == place.nonce]
        return nonces.index(place.nonce) + bisect_right(own, place.n)

    def _long_ago(self, shard: int, now: float) -> Place:
        """Return where a shard was some time before it last said where it is."""
        history, place = self._history[shard], self._seen.get(shard, NOWHERE)
        if not history or history[-1][1] != place:
            history.append((now, place))
        until = self._heard_at.get(shard, now) - self._keep_s
        while len(history) > 1 and history[1][0] <= until:
            history.popleft()
        at, place = history[0]
        return place if at <= until else NOWHERE

    def _measure(self, taken: Mapping[int, int], now: float) -> None:
        """Find out who needs too much."""
        sums = [0, *accumulate(max(_LEAST_BYTES, kept.size) for kept in self._frames)]
        self.needed_bytes = {}
        overflowing = set()
        for shard, number in taken.items():
            self.behind_s[shard] = 0.0
            # No shard tells that it has taken a frame without entries.
            waiting = (kept for kept in islice(self._frames, number, None) if kept.has_entries)
            first = next(waiting, None)
            if first is None:
                continue
            self.behind_s[shard] = now - first.at
            is_old = self.behind_s[shard] > self._most_s
            # Counting what it needs of all that is behind it takes longer.
            if is_old or sums[-1] - sums[number] > self._most_bytes:
                needed = [
                    kept for kept in islice(self._frames, number, None) if kept.is_needed(shard)
                ]
                size = sum(max(_LEAST_BYTES, kept.size) for kept in needed)
                self.needed_bytes[shard] = size
                if size > self._most_bytes or (needed and now - needed[0].at > self._most_s):
                    overflowing.add(shard)
        self.overflowing = frozenset(overflowing)

    def _thin(self, long_taken: Mapping[int, int], now: float) -> list[_Kept]:
        """Remove frames that no shard needs which is before them; return these."""
        thinned: list[_Kept] = []
        is_new = not self._frames or self._frames[0].at > now - self._keep_s
        if is_new or self._there_since > now - self._keep_s:
            return thinned
        stay: deque[_Kept] = deque()
        # The newest one stays: the next frame will be linked to it.
        newest = len(self._frames) - 1
        at = 0
        for number, kept in enumerate(self._frames):
            is_old = number < newest and kept.at <= now - self._keep_s
            if not is_old or len(thinned) == _MOST_REMOVED:
                break
            at = number + 1
            before = [shard for shard, taken in long_taken.items() if taken <= number]
            if any(map(kept.is_needed, before)):
                stay.append(kept)
            else:
                thinned.append(kept)
        if thinned:
            stay.extend(islice(self._frames, at, None))
            self._frames = stay
        return thinned

    def _links(self, thinned: Sequence[_Kept]) -> Mapping[str, str]:
        """Return the links that change: each frame behind removed ones has one."""
        if not (thinned or self._linked):
            return {}
        gone = {kept.place: kept for kept in thinned}
        links: dict[str, str] = {}
        there = {kept.place.id for kept in self._frames}
        for number, kept in enumerate(self._frames):
            if kept.before in gone:
                before = kept.before
                while before in gone:
                    before = gone[before].before
                self._frames[number] = kept._replace(before=before)
                links[kept.place.id] = str(before)
        links |= {id: "" for id in self._linked if id not in there}
        self._linked = {id: place for id, place in (self._linked | links).items() if place}
        return links
