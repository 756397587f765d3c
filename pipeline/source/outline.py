"""What is in a stream of frames, without the frames: enough to plan who reads what."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import orjson

from pipeline.incidents import Incident

if TYPE_CHECKING:
    from redis import Redis

BEGIN = "0-0"
# Valkey works for nobody else while it looks at so many.
_PAGE = 200
_HEAD = 400
# KEYS 1 stream   ARGV behind which id, up to which, how many: id, epoch, number, length, beginning
# and digest of each frame.
_LOOK = """
local found = redis.call('XRANGE', KEYS[1], ARGV[1], ARGV[2], 'COUNT', ARGV[3])
for n, entry in ipairs(found) do
    local given = {}
    for i = 1, #entry[2], 2 do given[entry[2][i]] = entry[2][i + 1] end
    local frame = given.frame or ''
    found[n] = {entry[1], given.epoch or '', given.seq or '', #frame, string.sub(frame, 1, ARGV[4]),
        string.sub(redis.sha1hex(frame), 1, 12)}
end
return found
"""


@dataclass(frozen=True, slots=True)
class Position:
    """How far a stream was read: the id of the frame that was read last, and its number.

    `digests` are those of the latest frames, by which a repeated one is known.
    """

    id: str = BEGIN
    epoch: str = ""
    seq: int = 0
    digests: tuple[str, ...] = ()

    @property
    def seed(self) -> str:
        return seed_of(self.epoch)

    def as_json(self) -> dict[str, Any]:
        return {"id": self.id, "epoch": self.epoch, "seq": self.seq, "digests": [*self.digests]}

    @classmethod
    def of(cls, given: dict[str, Any] | None) -> Self:
        if given is None:
            return cls()
        return cls(given["id"], given["epoch"], given["seq"], tuple(given["digests"]))


@dataclass(frozen=True, slots=True)
class Sight:
    """One entry of a stream."""

    id: str
    epoch: str
    # None if it is not one of ours.
    seq: int | None
    size: int
    events: int
    digest: str


@dataclass(frozen=True, slots=True)
class Finding:
    """Something to be told of a stream at an entry of it."""

    kind: Incident
    id: str
    epoch: str
    seq: int
    number: int
    text: str


# How many frames back a repeated one is known.
_REMEMBERED = 16


def sights(redis: "Redis", stream: str, after: str, upto: str) -> Iterator[Sight]:
    """The entries behind one id, up to another."""
    look = redis.register_script(_LOOK)
    while True:
        begin = "-" if after == BEGIN else f"({after}"
        page = look(keys=[stream], args=[begin, upto, _PAGE, _HEAD])
        for entry in page:
            yield _sight(entry)
        if len(page) < _PAGE:
            return
        after = page[-1][0].decode()


def _sight(entry: list[Any]) -> Sight:
    id, epoch, seq, size, begin, digest = entry
    number = int(seq) if seq.isdigit() and int(seq) < 2**63 else None
    return Sight(
        id.decode(), epoch.decode("utf-8", "replace"), number, size, _events(begin), digest.decode()
    )


def _events(begin: bytes) -> int:
    """How many events a frame has, as it says itself; whether that is true is seen later."""
    line, _, _ = begin.partition(b"\n")
    try:
        told = orjson.loads(line)["n"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return 1
    return told if isinstance(told, int) and 0 < told < 10**6 else 1


def advance(at: Position, seen: Sight) -> tuple[Position, Finding | None]:
    """The position behind an entry, and what is strange about it there."""
    if seen.seq is None:
        text = "an entry that holdfast did not write"
        finding = Finding(Incident.UNREADABLE, seen.id, seen.epoch, at.seq, 1, text)
        return replace(at, id=seen.id), finding
    if seen.digest in at.digests and seen.seq <= at.seq:
        text = f"frame {seen.seq} is there once more"
        finding = Finding(Incident.REPEAT, seen.id, seen.epoch, seen.seq, 1, text)
        return replace(at, id=seen.id), finding
    digests = (*at.digests, seen.digest)[-_REMEMBERED:]
    return Position(seen.id, seen.epoch, seen.seq, digests), _strange(at, seen, seen.seq)


def _strange(at: Position, seen: Sight, seq: int) -> Finding | None:
    last = seq - 1
    is_new = at.id != BEGIN and seed_of(seen.epoch) != at.seed
    if seq == at.seq + 1 and not is_new:
        return None

    def finding(kind: Incident, number: int, text: str) -> Finding:
        return Finding(kind, seen.id, seen.epoch, seq, number, text)

    if at.id == BEGIN:
        return finding(Incident.BEGINNING, last, f"frames 1 to {last} were cut off long ago")
    if is_new:
        text = f"the store was emptied some time after frame {at.seq}; its first is {seq}"
        return finding(Incident.RESTART, seq, text)
    if seq > at.seq:
        text = f"frames {at.seq + 1} to {last} are missing"
        return finding(Incident.GAP, last - at.seq, text)
    text = f"the store forgot frames {seq} to {at.seq} and wrote others"
    return finding(Incident.REWIND, at.seq - last, text)


def seed_of(epoch: str) -> str:
    """What stays the same over restarts of the server, until the store is emptied."""
    return epoch.rpartition("-")[0]
