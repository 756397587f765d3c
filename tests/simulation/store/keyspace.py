"""The keys of a store and their values."""

from bisect import bisect_left, insort
from collections.abc import Callable
from typing import TypeVar

from tests.simulation.store.replies import WRONG_TYPE, Refused

StreamId = tuple[int, int]


class Hash(dict[bytes, bytes]):
    """A hash; fields stay in the order in which they came."""

    def copy(self) -> "Hash":
        return Hash(self)


class Set(dict[bytes, None]):
    """A set; members stay in the order in which they came."""

    def copy(self) -> "Set":
        return Set(self)


class List(list[bytes]):
    """A list."""

    def copy(self) -> "List":
        return List(self)


class SortedSet:
    """Members with scores, in order."""

    def __init__(self) -> None:
        self.scores: dict[bytes, float] = {}
        self.order: list[tuple[float, bytes]] = []

    def __len__(self) -> int:
        return len(self.scores)

    def put(self, member: bytes, score: float) -> bool:
        """Set the score of a member. Returns whether it is new."""
        before = self.scores.get(member)
        if before == score:
            return False
        if before is not None:
            del self.order[bisect_left(self.order, (before, member))]
        self.scores[member] = score
        insort(self.order, (score, member))
        return before is None

    def remove(self, member: bytes) -> bool:
        score = self.scores.pop(member, None)
        if score is None:
            return False
        del self.order[bisect_left(self.order, (score, member))]
        return True

    def copy(self) -> "SortedSet":
        other = SortedSet()
        other.scores, other.order = self.scores.copy(), self.order.copy()
        return other


class Stream:
    """Entries in the order of their ids."""

    def __init__(self) -> None:
        self.ids: list[StreamId] = []
        self.entries: dict[StreamId, list[bytes]] = {}
        self.last: StreamId = (0, 0)

    def __len__(self) -> int:
        return len(self.ids)

    def trim(self, count: int) -> int:
        """Remove this many entries from the beginning."""
        for id in self.ids[:count]:
            del self.entries[id]
        del self.ids[:count]
        return count

    def copy(self) -> "Stream":
        other = Stream()
        other.ids, other.entries, other.last = self.ids.copy(), self.entries.copy(), self.last
        return other


Value = bytes | Hash | Set | List | SortedSet | Stream
T = TypeVar("T", Hash, Set, List, SortedSet, Stream)


class Keyspace:
    """All keys. Commands find their values here, and count what they change."""

    def __init__(self, wall: Callable[[], float] = float) -> None:
        self.data: dict[bytes, Value] = {}
        # The store's wall clock: seconds since 1970.
        self.wall = wall
        # How many changes there were.
        self.dirty = 0
        # What the command in progress tells replicas, if not its own words.
        self.effects: list[list[bytes]] | None = None

    def find(self, kind: type[T], key: bytes) -> T | None:
        """Return the value of this kind, if there is one."""
        value = self.data.get(key)
        if value is None or type(value) is kind:
            return value
        raise Refused(WRONG_TYPE)

    def make(self, kind: type[T], key: bytes) -> T:
        """Return the value of this kind; a new one if there is none."""
        value = self.find(kind, key)
        if value is None:
            value = kind()
            self.data[key] = value
        return value

    def text(self, key: bytes) -> bytes | None:
        value = self.data.get(key)
        if value is None or type(value) is bytes:
            return value
        raise Refused(WRONG_TYPE)

    def copy(self) -> "Keyspace":
        other = Keyspace(self.wall)
        other.data = {
            key: value if isinstance(value, bytes) else value.copy()
            for key, value in self.data.items()
        }
        return other

    def shown(self) -> dict[bytes, object]:
        """Return everything in plain values, to compare it."""
        return {key: shown(value) for key, value in sorted(self.data.items())}


def shown(value: Value) -> object:
    """Return a value in plain parts, to compare it."""
    match value:
        case Hash():
            return sorted(value.items())
        case Set():
            return sorted(value)
        case List():
            return list(value)
        case SortedSet():
            return value.order
        case Stream():
            return [(id, value.entries[id]) for id in value.ids], value.last
        case _:
            return value
