"""Channel names: which are legal, which are patterns, and what matches what."""

import re
from collections.abc import Iterator
from enum import Enum
from typing import Final

# Events of the server itself.
SYSTEM: Final = "/sys/"
# Followed by the name of a channel. Its events say who joins and leaves that channel.
PRESENCE: Final = "/sys/presence/"
SERVICES: Final = "/service/"
# Replies to requests. Only the requester receives them.
REPLIES: Final = "/ret/"

# What stands in front of a channel or a pattern in a row that shards tell each other: see
# `OthersPort.add_row`. The channel is a topic, although no rule says so; it is held; somebody
# listens there to events of all servers.
TOPIC_ROW: Final = "topic"
HELD_ROW: Final = "held"
LISTENS_ROW: Final = "listens"

# Bayeux 1.0 allows less; CometD's clients use these characters.
_LEGAL: Final = re.compile(r"/[A-Za-z0-9 !#$()*+\-./@_{~}]+")

# Lookups of channels with more segments are computed on demand: subscribing does not need them, and
# for ten thousand of the longest names they would take half a second.
_FEW_SEGMENTS: Final = 8

# The default limits of a channel name.
MAX_LENGTH: Final = 1024
MAX_SEGMENTS: Final = 64

# The cache is dropped when it exceeds this number of names, or the number of characters below.
_CACHED_NAMES = 20_000
_CACHED_CHARACTERS = 8_000_000


class Kind(Enum):
    """The purpose of a channel, known by its first segment."""

    BROADCAST = "broadcast"
    SERVICE = "service"
    META = "meta"


class Channel:
    """A legal channel name, parsed once."""

    __slots__ = ("_lookups", "is_reserved", "is_system", "is_wild", "kind", "name")

    def __init__(
        self,
        name: str,
        kind: Kind,
        *,
        is_wild: bool,
        is_system: bool,
        is_reserved: bool,
        lookups: tuple[str, ...] | None,
    ) -> None:
        self.name = name
        self.kind = kind
        self.is_wild = is_wild
        # Whether it belongs to the server; reading it needs a right.
        self.is_system = is_system
        # Whether only the server may publish to it.
        self.is_reserved = is_reserved
        # None if the channel has too many segments to store its lookups.
        self._lookups = lookups

    @property
    def lookups(self) -> tuple[str, ...]:
        """Every name under which a matching subscription can be registered."""
        return lookups(self.name) if self._lookups is None else self._lookups


class Channels:
    """A cache of parsed channel names; dropped when it is full."""

    def __init__(self, max_length: int = MAX_LENGTH, max_segments: int = MAX_SEGMENTS) -> None:
        self._max_length, self._max_segments = max_length, max_segments
        self._seen: dict[str, Channel | None] = {}
        self._characters = 0
        self._reserved: tuple[str, ...] = (SYSTEM, REPLIES)

    def reserve(self, prefix: str) -> None:
        """Reserve the channels with this prefix for the server's own publishes."""
        self._reserved = (*self._reserved, prefix)
        self._seen.clear()
        self._characters = 0

    def get(self, name: str) -> Channel | None:
        """Return the channel with this name, or None if the name is illegal."""
        try:
            return self._seen[name]
        except KeyError:
            return self._learn(name)

    def _learn(self, name: str) -> Channel | None:
        if len(name) > self._max_length:
            return None
        if name.startswith(REPLIES):
            # The channel serves one request; caching it would only evict others.
            return self._parse(name)
        if len(self._seen) >= _CACHED_NAMES or self._characters >= _CACHED_CHARACTERS:
            self._seen.clear()
            self._characters = 0
        channel = self._seen[name] = self._parse(name)
        self._characters += len(name)
        if channel is not None and channel._lookups is not None:
            self._characters += sum(map(len, channel._lookups))
        return channel

    def named(self, name: str) -> Channel:
        """Return the channel for a configured name. Raises `ValueError` if it is illegal."""
        channel = self.get(name)
        if channel is None:
            raise ValueError(f"{name!r} is neither a channel nor a pattern")
        return channel

    def _parse(self, name: str) -> Channel | None:
        if _LEGAL.fullmatch(name) is None:
            return None
        kind = _kind(name)
        name = canonical(name)
        segments = name.split("/")[1:]
        if not 1 <= len(segments) <= self._max_segments or "" in segments:
            return None
        last = segments.pop()
        if "*" in segments or "**" in segments:
            return None
        is_wild, is_system = last in ("*", "**"), name.startswith(SYSTEM)
        is_reserved = name.startswith(self._reserved)
        is_looked_up = len(segments) < _FEW_SEGMENTS and not name.startswith(REPLIES)
        known = lookups(name) if is_looked_up else None
        return Channel(
            name,
            kind,
            is_wild=is_wild,
            is_system=is_system,
            is_reserved=is_reserved,
            lookups=known,
        )


def canonical(name: str) -> str:
    """Return the name under which the server knows a channel that has several legal names."""
    return name.strip().removesuffix("/")


def _kind(name: str) -> Kind:
    # `/meta` and `/metafoo` are ordinary channels: only the slash makes a meta channel.
    if name.startswith("/meta/"):
        return Kind.META
    if name.startswith(SERVICES):
        return Kind.SERVICE
    return Kind.BROADCAST


def lookups(name: str) -> tuple[str, ...]:
    """Return every name under which a matching subscription can be registered."""
    parents = list(_parents(name))
    found = [name, f"{parents[0]}/*", *[f"{parent}/**" for parent in parents]]
    return tuple(dict.fromkeys(found))


def _parents(name: str) -> Iterator[str]:
    """Yield the channel's parents, nearest first."""
    # Clients' patterns do not match the server's own channels.
    outermost = len(SYSTEM) - 1 if name.startswith(SYSTEM) else 0
    end = len(name)
    while end > outermost:
        end = name.rfind("/", 0, end)
        if end >= outermost:
            yield name[:end]


def covers(pattern: str, channel: str) -> bool:
    """Return whether `pattern` matches everything that `channel` can match."""
    if pattern == channel:
        return True
    if channel.startswith(SYSTEM) and not pattern.startswith(SYSTEM):
        return False
    stem, _, last = pattern.rpartition("/")
    if last == "**":
        return channel.startswith(stem + "/")
    if last == "*":
        parent, _, name = channel.rpartition("/")
        return parent == stem and name != "**"
    return False


def overlaps(one: str, other: str) -> bool:
    """Return whether some channel matches both patterns. If so, one pattern covers the other."""
    return covers(one, other) or covers(other, one)
