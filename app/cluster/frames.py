"""The form of a frame: what one turn of a shard has for other shards.

A frame is one byte with the version of the form, the size of the head and the number of entries;
the head, as JSON: the names of channels and publishers, facts, and places in other logs; a row of
fixed size for each entry; and the data of the entries, one behind the other. So a reader looks up
each channel once, and does not touch the data of what it has no receiver for.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from struct import Struct
from typing import Any, Final, NamedTuple

import orjson

from holdfast.cluster.places import Place, PlaceUnreadable, place_of

# The version that is written, and the ones that are read: a release reads the form of the one
# before it, and writes that until all shards have the release.
VERSION: Final = 1
READABLE: Final = frozenset({1})
# A frame has at most so many bytes, unless a single entry is larger; and so many entries.
MOST_BYTES: Final = 256 * 1024
MOST_ENTRIES: Final = 10_000

# Kinds of entries: a message for all shards; for one shard, a call (see `calls.py`) and its answer.
MESSAGE: Final = 1
CALL: Final = 2
ANSWER: Final = 3
_KINDS: Final = frozenset({MESSAGE, CALL, ANSWER})
# A flag: the message is stored for durable receivers.
DURABLE: Final = 1

# What stands among the facts of a frame but is not stored: the cursor up to which the log has all
# messages that enter histories.
COMPLETE: Final = "complete"

_START: Final = Struct("<BII")
# Id, size of the data, places of channel and publisher in the head, kind, flags.
_ROW: Final = Struct("<QIHHBB")
# What the names of an entry cost in the head besides their characters.
_NAMES: Final = 8


class FrameUnreadable(ValueError):
    """Bytes are no frame, or a frame of a version that this release does not read."""


class LogEntry(NamedTuple):
    """What a shard has for others: a message, or a call or an answer for one of them."""

    kind: int
    channel: str
    id: int
    publisher: str
    flags: int
    data: bytes

    @property
    def size(self) -> int:
        """The bytes that it takes in a frame, at most, if its names are plain."""
        return _ROW.size + _NAMES + len(self.channel) + len(self.publisher) + len(self.data)


# By name of a fact, its value; an empty one says that the fact holds no more.
Facts = Mapping[str, str]
# By number of a shard, how far the sender has taken its log.
Seen = Mapping[int, Place]
# What its reader must have shown before: of the log, or of what came to this shard directly.
Behind = Mapping[str, str]
_NO_FACTS: Final[Facts] = {}
_NOTHING_SEEN: Final[Seen] = {}
_NOTHING_BEFORE: Final[Behind] = {}


def write(
    entries: Collection[LogEntry],
    facts: Facts = _NO_FACTS,
    seen: Seen = _NOTHING_SEEN,
    behind: Behind = _NOTHING_BEFORE,
) -> bytes:
    """Return a frame with these entries, facts and places, which comes behind others."""
    channels: dict[str, int] = {}
    publishers: dict[str, int] = {}
    rows: list[bytes] = []
    pack = _ROW.pack
    for kind, channel, id, publisher, flags, data in entries:
        channel_at = channels.setdefault(channel, len(channels))
        publisher_at = publishers.setdefault(publisher, len(publishers))
        rows.append(pack(id, len(data), channel_at, publisher_at, kind, flags))
    head: dict[str, Any] = {"c": list(channels), "p": list(publishers)}
    if facts:
        head["f"] = dict(facts)
    if seen:
        head["s"] = {str(shard): str(place) for shard, place in seen.items()}
    if behind:
        head["b"] = dict(behind)
    names = orjson.dumps(head)
    start = _START.pack(VERSION, len(names), len(rows))
    return b"".join([start, names, *rows, *[entry.data for entry in entries]])


def split(entries: Iterable[LogEntry], most: int = MOST_BYTES) -> Iterator[list[LogEntry]]:
    """Yield the entries in parts that each fit into a frame, in order."""
    part: list[LogEntry] = []
    size = 0
    for entry in entries:
        if part and (size + entry.size > most or len(part) >= MOST_ENTRIES):
            yield part
            part, size = [], 0
        part.append(entry)
        size += entry.size
    if part:
        yield part


class Frame:
    """A frame that was read. `read` makes it."""

    __slots__ = (
        "_at",
        "_bytes",
        "_rows",
        "behind",
        "channels",
        "facts",
        "has_only_messages",
        "newest",
        "publishers",
        "seen",
    )

    def __init__(
        self, frame: bytes, head: Mapping[str, Any], rows: Sequence[tuple[int, ...]], at: int
    ) -> None:
        self._bytes = frame
        self._rows = rows
        self._at = at
        # Whether none of its entries is a call or an answer.
        self.has_only_messages = True
        # The highest id of its entries.
        self.newest = 0
        self.channels: Sequence[str] = _names(head, "c")
        self.publishers: Sequence[str] = _names(head, "p")
        self.facts: Facts = _texts(head, "f")
        self.seen: Seen = {
            _shard(shard): _place(place) for shard, place in _texts(head, "s").items()
        }
        self.behind: Behind = _texts(head, "b")

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def is_awaited(self) -> bool:
        """Whether its sender may wait until others have taken it: it has stored facts."""
        return bool(self.facts) and any(name != COMPLETE for name in self.facts)

    def entries(self, is_wanted: Sequence[object]) -> list[LogEntry]:
        """Return the entries on the channels for which this list has something true."""
        found: list[LogEntry] = []
        frame, at = self._bytes, self._at
        channels, publishers = self.channels, self.publishers
        for id, size, channel, publisher, kind, flags in self._rows:
            if is_wanted[channel]:
                data = frame[at : at + size]
                entry = LogEntry(kind, channels[channel], id, publishers[publisher], flags, data)
                found.append(entry)
            at += size
        return found

    def all_entries(self) -> list[LogEntry]:
        """Return all entries."""
        return self.entries((True,) * len(self.channels))

    def check(self) -> None:
        """Raise `FrameUnreadable` if the rows do not fit the names and the data."""
        size = len(self._bytes) - self._at
        if not self._rows:
            if size:
                raise FrameUnreadable("a frame without entries has data")
            return
        ids, sizes, channels, publishers, kinds, _ = zip(*self._rows, strict=True)
        if sum(sizes) != size:
            raise FrameUnreadable(f"a frame has {size} bytes of data instead of {sum(sizes)}")
        if max(channels) >= len(self.channels) or max(publishers) >= len(self.publishers):
            raise FrameUnreadable("an entry of a frame has a name that is not there")
        if not _KINDS.issuperset(kinds):
            raise FrameUnreadable("an entry of a frame has an unknown kind")
        self.has_only_messages = {MESSAGE}.issuperset(kinds)
        self.newest = max(ids)


def read(frame: bytes) -> Frame:
    """Return what the bytes say. Raises `FrameUnreadable`."""
    if not frame:
        raise FrameUnreadable("a frame is empty")
    if frame[0] not in READABLE:
        raise FrameUnreadable(f"a frame has version {frame[0]}, which this release does not read")
    if len(frame) < _START.size:
        raise FrameUnreadable("a frame ends in its first bytes")
    _, head_size, count = _START.unpack_from(frame)
    rows_at = _START.size + head_size
    data_at = rows_at + count * _ROW.size
    if data_at > len(frame):
        raise FrameUnreadable("a frame ends before its data")
    try:
        head = orjson.loads(frame[_START.size : rows_at])
    except orjson.JSONDecodeError as error:
        raise FrameUnreadable(f"the head of a frame is no JSON: {error}") from error
    if not isinstance(head, dict):
        raise FrameUnreadable("the head of a frame is no object")
    found = Frame(frame, head, list(_ROW.iter_unpack(frame[rows_at:data_at])), data_at)
    found.check()
    return found


def _names(head: Mapping[str, Any], key: str) -> Sequence[str]:
    found = head.get(key)
    if not isinstance(found, list) or not all(type(each) is str for each in found):
        raise FrameUnreadable(f"the names {key!r} of a frame are no list of texts")
    return found


def _texts(head: Mapping[str, Any], key: str) -> Mapping[str, str]:
    found = head.get(key, {})
    if not isinstance(found, dict) or not all(type(each) is str for each in found.values()):
        raise FrameUnreadable(f"{key!r} of a frame is no object with texts")
    return found


def _shard(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 5):
        raise FrameUnreadable(f"{text[:20]!r} is no number of a shard")
    return int(text)


def _place(text: str) -> Place:
    try:
        return place_of(text)
    except PlaceUnreadable as error:
        raise FrameUnreadable(f"a frame has seen no place: {error}") from error
