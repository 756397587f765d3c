"""Which shard has what: subjects and sessions by buckets, and channels with a home.

Ids of clients name a bucket, and names hash to one. The map says which shard has which bucket, so
that shards can be added without a change of ids.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from zlib import crc32

import orjson

from holdfast.delivery.basics.channels import lookups, overlaps

# As many as ids of clients name.
BUCKETS: Final = 1000
_VERSION: Final = 1
_RULES_VERSION: Final = 1


class MapUnreadable(ValueError):
    """A map of shards or a table of homes cannot be read."""


@dataclass(frozen=True, slots=True)
class ShardMap:
    """The shard of each bucket."""

    # By bucket, the number of its shard.
    of_bucket: Sequence[int]

    @property
    def count(self) -> int:
        """The number of shards."""
        return max(self.of_bucket) + 1

    def to_json(self) -> bytes:
        """Return the map as ranges of buckets: first, last, shard."""
        return orjson.dumps({"v": _VERSION, "ranges": list(_ranges(self.of_bucket))})

    def for_shards(self, count: int) -> "ShardMap":
        """Return a map for another number of shards, which moves as few buckets as possible."""
        room = _sizes(count)
        after: list[int | None] = []
        for shard in self.of_bucket:
            stays = shard < count and room[shard] > 0
            if stays:
                room[shard] -= 1
            after.append(shard if stays else None)
        free = (shard for shard, size in enumerate(room) for _ in range(size))
        return ShardMap(tuple([next(free) if shard is None else shard for shard in after]))


def first_map(count: int) -> ShardMap:
    """Return the map of a new deployment. Its shards have consecutive buckets."""
    sizes = _sizes(count)
    return ShardMap(tuple([shard for shard, size in enumerate(sizes) for _ in range(size)]))


def map_of(record: bytes) -> ShardMap:
    """Undo `ShardMap.to_json`. Raises `MapUnreadable`."""
    try:
        found = orjson.loads(record)
        if found["v"] != _VERSION:
            raise MapUnreadable(f"the map of shards has version {found['v']}")
        of_bucket: list[int] = []
        for first, last, shard in found["ranges"]:
            if first != len(of_bucket) or not first <= last < BUCKETS or shard < 0:
                raise MapUnreadable(f"the map of shards has the range {first} to {last}")
            of_bucket += [int(shard)] * (last + 1 - first)
    except (orjson.JSONDecodeError, LookupError, TypeError, ValueError) as error:
        if isinstance(error, MapUnreadable):
            raise
        raise MapUnreadable(f"the map of shards is unreadable: {error!r}") from error
    if len(of_bucket) != BUCKETS or {*of_bucket} != {*range(max(of_bucket) + 1)}:
        raise MapUnreadable("the map of shards lacks buckets or shards")
    return ShardMap(tuple(of_bucket))


def _sizes(count: int) -> list[int]:
    """Return how many buckets each shard has."""
    if not 1 <= count <= BUCKETS:
        raise ValueError(f"there are 1 to {BUCKETS} shards, not {count}")
    return [BUCKETS // count + (shard < BUCKETS % count) for shard in range(count)]


def _ranges(of_bucket: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    first = 0
    for bucket, shard in enumerate(of_bucket):
        if bucket + 1 == len(of_bucket) or of_bucket[bucket + 1] != shard:
            yield first, bucket, shard
            first = bucket + 1


@dataclass(frozen=True, slots=True)
class Homes:
    """Which channels have a home, by pattern: the number of first segments that decide about it.

    Channels that agree in these have the same home. The table belongs to the deployment: if shards
    had different ones, a channel would have two homes.
    """

    segments: Mapping[str, int]

    def key_of(self, channel: str) -> str | None:
        """Return what the home of a channel is the hash of; None if it has no home."""
        rule = self._nearest(channel)
        return None if rule is None else _first_segments(channel, self.segments[rule])

    def key_of_pattern(self, pattern: str) -> str | None:
        """Return the key of all channels that match a pattern; None if they may have several."""
        if not pattern.endswith("*"):
            return self.key_of(pattern)
        stem = pattern.rpartition("/")[0]
        # Channels without a rule for them alone, and those that have one.
        others = [f"{stem}/x", f"{stem}/x/x"] if pattern.endswith("**") else [f"{stem}/x"]
        nearest = [self._nearest(each) for each in others]
        nearest += [each for each in self.segments if each.startswith(f"{stem}/")]
        known = {None if each is None else self.segments[each] for each in nearest}
        [first, *more] = known
        is_one = first is not None and not more and first <= stem.count("/")
        return _first_segments(stem, first) if first is not None and is_one else None

    def _nearest(self, channel: str) -> str | None:
        return next((each for each in lookups(channel) if each in self.segments), None)

    def to_json(self) -> bytes:
        """Return the table. Equal tables have equal bytes."""
        record = {"v": _RULES_VERSION, "segments": dict(self.segments)}
        return orjson.dumps(record, option=orjson.OPT_SORT_KEYS)


def homes_of(record: bytes) -> Homes:
    """Undo `Homes.to_json`. Raises `MapUnreadable`."""
    try:
        found = orjson.loads(record)
        version, segments = found["v"], found["segments"]
        numbers = {type(number) for number in segments.values()}
    except (orjson.JSONDecodeError, LookupError, TypeError, AttributeError) as error:
        raise MapUnreadable(f"the table of homes is unreadable: {error!r}") from error
    if version != _RULES_VERSION or not numbers <= {int}:
        raise MapUnreadable(f"the table of homes has version {version}")
    return Homes(segments)


class Shards:
    """Answers which shard has a subject, a session or a channel.

    Args:
        bucket_of: Returns the bucket of a name, under the key of the deployment.
    """

    def __init__(self, shards: ShardMap, homes: Homes, bucket_of: Callable[[str], int]) -> None:
        self.map = shards
        self.homes = homes
        self._bucket_of = bucket_of

    @property
    def division(self) -> str:
        """What differs if any channel or subject may have another home."""
        said = [list(self.map.of_bucket), sorted(self.homes.segments.items())]
        return f"{crc32(orjson.dumps(said)):08x}"

    def of_bucket(self, bucket: int) -> int:
        """Return the shard of an id with this bucket."""
        return self.map.of_bucket[bucket]

    def of_subject(self, subject: str) -> int:
        """Return the home of a subject: of its sessions, its queue and its names."""
        return self.map.of_bucket[self._bucket_of(subject)]

    def of_channel(self, channel: str) -> int | None:
        """Return the home of a channel; None if any shard may accept its messages."""
        key = self.homes.key_of(channel)
        # A subject may have the name of a channel, and then another home.
        return None if key is None else self._of_key(key)

    def of_topic(self, channel: str) -> int:
        """Return the home of a channel that is a topic, also if no rule says so."""
        home = self.of_channel(channel)
        return self._of_key(_first_segments(channel, 1)) if home is None else home

    def of_topics(self, pattern: str) -> Sequence[int]:
        """Return the homes of channels that match a pattern, if all of them were topics."""
        [_, first, *_] = pattern.split("/")
        if first.endswith("*"):
            return range(self.map.count)
        return sorted({*self.of_pattern(pattern), self._of_key(f"/{first}")})

    def of_pattern(self, pattern: str) -> Sequence[int]:
        """Return the shards that may be homes of channels that match a pattern."""
        if not any(overlaps(each, pattern) for each in self.homes.segments):
            return ()
        key = self.homes.key_of_pattern(pattern)
        return range(self.map.count) if key is None else (self._of_key(key),)

    def _of_key(self, key: str) -> int:
        return self.map.of_bucket[self._bucket_of(f"channel {key}")]


def _first_segments(channel: str, count: int) -> str:
    return "/".join(channel.split("/")[: count + 1])
