"""Channel names: which are legal, which are patterns, what matches what."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

# What the server itself has to tell.
SYSTEM = "/sys/"
# Where replies to requests will travel.
REPLIES = "/ret/"

# Bayeux 1.0 allows less; CometD's clients use what stands here.
_LEGAL = re.compile(r"/[A-Za-z0-9 !#$()*+\-./@_{~}]+")

# Of channels with more segments than these, what could match them is found out when it is asked:
# subscribing does not ask, and for ten thousand of the longest it would take half a second.
_FEW_SEGMENTS = 8

# What is remembered is dropped when it holds more names, or more characters in all, than this.
_CACHED_NAMES = 20_000
_CACHED_CHARACTERS = 8_000_000


class Kind(Enum):
    """What a channel is for, told by its first segment."""

    BROADCAST = "broadcast"
    SERVICE = "service"
    META = "meta"


@dataclass(frozen=True, slots=True)
class Channel:
    """A legal channel name, taken apart once."""

    name: str
    kind: Kind
    is_wild: bool
    # One of the system's own: who may read it is asked.
    is_system: bool
    # Nobody but the server writes it.
    is_reserved: bool
    # As below; none if they are too many to be remembered.
    _lookups: tuple[str, ...] | None

    @property
    def lookups(self) -> tuple[str, ...]:
        """Every name under which a subscription that matches this channel can stand."""
        return lookups(self.name) if self._lookups is None else self._lookups


@dataclass(frozen=True, slots=True)
class ChannelLimits:
    """Bounds of a single channel name."""

    length: int = 1024
    segments: int = 64


class Channels:
    """Channel names as seen so far; the cache is dropped when it is full."""

    def __init__(self, limits: ChannelLimits | None = None) -> None:
        self._limits = limits or ChannelLimits()
        self._seen: dict[str, Channel | None] = {}
        self._characters = 0
        self._reserved: tuple[str, ...] = (SYSTEM, REPLIES)

    def reserve(self, prefix: str) -> None:
        """From now on nobody but the server publishes on channels that begin so."""
        self._reserved = (*self._reserved, prefix)
        self._seen.clear()
        self._characters = 0

    def get(self, name: str) -> Channel | None:
        """Return the channel of this name, None if the name is illegal."""
        try:
            return self._seen[name]
        except KeyError:
            return self._learn(name)

    def _learn(self, name: str) -> Channel | None:
        if len(name) > self._limits.length:
            return None
        if len(self._seen) >= _CACHED_NAMES or self._characters >= _CACHED_CHARACTERS:
            self._seen.clear()
            self._characters = 0
        channel = self._seen[name] = self._parse(name)
        self._characters += len(name)
        if channel is not None and channel._lookups is not None:
            self._characters += sum(map(len, channel._lookups))
        return channel

    def named(self, name: str) -> Channel:
        """The channel of a name that the operator wrote: an illegal one is a mistake to be told."""
        channel = self.get(name)
        if channel is None:
            raise ValueError(f"{name!r} is no channel and no pattern")
        return channel

    def _parse(self, name: str) -> Channel | None:
        if _LEGAL.fullmatch(name) is None:
            return None
        kind = _kind(name)
        name = name.strip().removesuffix("/")
        segments = name.split("/")[1:]
        if not 1 <= len(segments) <= self._limits.segments or "" in segments:
            return None
        last = segments.pop()
        if "*" in segments or "**" in segments:
            return None
        is_wild, is_system = last in ("*", "**"), name.startswith(SYSTEM)
        is_reserved = name.startswith(self._reserved)
        known = lookups(name) if len(segments) < _FEW_SEGMENTS else None
        return Channel(name, kind, is_wild, is_system, is_reserved, known)


def _kind(name: str) -> Kind:
    # `/meta` and `/metafoo` are ordinary channels: only the slash behind makes the difference.
    if name.startswith("/meta/"):
        return Kind.META
    if name.startswith("/service/"):
        return Kind.SERVICE
    return Kind.BROADCAST


def lookups(name: str) -> tuple[str, ...]:
    """Every name under which a subscription that matches this channel can stand."""
    parents = list(_parents(name))
    found = [name, f"{parents[0]}/*", *[f"{parent}/**" for parent in parents]]
    return tuple(dict.fromkeys(found))


def _parents(name: str) -> Iterator[str]:
    """What the channel is in, the nearest first."""
    # The system's own channels are not reached by patterns from outside.
    outermost = len(SYSTEM) - 1 if name.startswith(SYSTEM) else 0
    end = len(name)
    while end > outermost:
        end = name.rfind("/", 0, end)
        if end >= outermost:
            yield name[:end]


def covers(pattern: str, channel: str) -> bool:
    """Whether everything that `channel` can match is matched by `pattern` too."""
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
    """Whether some channel is matched by both patterns: then one covers the other."""
    return covers(one, other) or covers(other, one)
