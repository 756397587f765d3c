"""The outline of a stream, without the content of its frames: enough to plan the pieces."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import orjson

from holdfast.journal.schema import MOST_EVENTS
from holdfast.pipeline.epochs import seed_of
from holdfast.pipeline.incidents import Incident

if TYPE_CHECKING:
    from redis import Redis

BEGIN = "0-0"
# The maximum number of entries per call; Valkey serves no other client meanwhile.
_PAGE = 200
_HEAD = 400
# KEYS 1 stream   ARGV after id, up to id, most entries; replies of each frame id, epoch, number,
# digest of the one before, length, beginning, and own digest, as app/store/lua/frame.lua computes
# it. Frames of older servers carry no digest, and have none here.
_LOOK = """
local found = redis.call('XRANGE', KEYS[1], ARGV[1], ARGV[2], 'COUNT', ARGV[3])
for n, entry in ipairs(found) do
    local given = {}
    for i = 1, #entry[2], 2 do given[entry[2][i]] = entry[2][i + 1] end
    local frame, before, digest = given.frame or '', given.before, ''
    local epoch, seq = given.epoch or '', given.seq or ''
    if before then
        local signed = table.concat({before, epoch, seq, frame}, '\\n')
        digest = string.sub(redis.sha1hex(signed), 1, 20)
    end
    found[n] = {entry[1], epoch, seq, before or '', #frame, string.sub(frame, 1, ARGV[4]), digest}
end
return found
"""


@dataclass(frozen=True, slots=True)
class Position:
    """How far a stream was read: the id and number of the last frame.

    `digests` has the digests of the latest frames as they were written, to recognise repeated and
    altered ones.
    """

    id: str = BEGIN
    epoch: str = ""
    seq: int = 0
    digests: tuple[str, ...] = ()

    @property
    def seed(self) -> str:
        return seed_of(self.epoch)

    @property
    def digest(self) -> str:
        return self.digests[-1] if self.digests else ""

    def as_written(self, digest: str) -> Self:
        """Return the position with the last frame's digest as the store knows it."""
        return replace(self, digests=(*self.digests[:-1], digest)) if digest else self

    def as_json(self) -> dict[str, Any]:
        return {"id": self.id, "epoch": self.epoch, "seq": self.seq, "digests": [*self.digests]}

    @classmethod
    def of(cls, given: dict[str, Any] | None) -> Self:
        if given is None:
            return cls()
        return cls(given["id"], given["epoch"], given["seq"], tuple(given["digests"]))


@dataclass(frozen=True, slots=True)
class StreamEntry:
    """One entry of a stream."""

    id: str
    epoch: str
    # None if the entry is not a frame.
    seq: int | None
    # The digest of the frame before it, as this one carries it.
    before: str
    size: int
    events: int
    digest: str


@dataclass(frozen=True, slots=True)
class Finding:
    """An incident at an entry of a stream."""

    kind: Incident
    id: str
    epoch: str
    seq: int
    number: int
    text: str


# How many frames back a repeat is recognised.
_REMEMBERED = 64


def stream_entries(redis: "Redis", stream: str, after: str, upto: str) -> Iterator[StreamEntry]:
    """Yield the entries after one id, up to another."""
    look = redis.register_script(_LOOK)
    while True:
        begin = "-" if after == BEGIN else f"({after}"
        page = look(keys=[stream], args=[begin, upto, _PAGE, _HEAD])
        for entry in page:
            yield _stream_entry(entry)
        if len(page) < _PAGE:
            return
        after = page[-1][0].decode()


def _stream_entry(entry: list[Any]) -> StreamEntry:
    id, epoch, seq, before, size, begin, digest = entry
    number = int(seq) if seq.isdigit() and int(seq) < 2**63 else None
    return StreamEntry(
        id.decode(),
        epoch.decode("utf-8", "replace"),
        number,
        before.decode("utf-8", "replace"),
        size,
        _events(begin),
        digest.decode(),
    )


def _events(begin: bytes) -> int:
    """Return the number of events that a frame declares; it is checked later."""
    line, _, _ = begin.partition(b"\n")
    try:
        number = orjson.loads(line)["n"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return 1
    return number if isinstance(number, int) and 0 < number <= MOST_EVENTS else 1


def advance(at: Position, seen: StreamEntry) -> tuple[Position, Finding | None]:
    """Return the position after an entry, and the incident there, if any."""
    if seen.seq is None:
        text = "an entry that Holdfast did not write"
        finding = Finding(Incident.UNREADABLE, seen.id, seen.epoch, at.seq, 1, text)
        return replace(at, id=seen.id), finding
    if seen.digest and seen.digest in at.digests and seen.seq <= at.seq:
        text = f"frame {seen.seq} is in the journal twice"
        finding = Finding(Incident.REPEAT, seen.id, seen.epoch, seen.seq, 1, text)
        return replace(at, id=seen.id), finding
    digests = (*at.digests, seen.digest)[-_REMEMBERED:]
    return Position(seen.id, seen.epoch, seen.seq, digests), _strange(at, seen, seen.seq)


def _strange(at: Position, seen: StreamEntry, seq: int) -> Finding | None:
    last = seq - 1
    is_new = at.id != BEGIN and seed_of(seen.epoch) != at.seed
    if seq == at.seq + 1 and not is_new:
        return None if seen.before == at.digest else altered(at, seen)

    def finding(kind: Incident, number: int, text: str) -> Finding:
        return Finding(kind, seen.id, seen.epoch, seq, number, text)

    if at.id == BEGIN:
        return finding(
            Incident.BEGINNING, last, f"frames 1 to {last} were removed before the first ingest"
        )
    if is_new:
        text = f"the store was emptied after frame {at.seq}; it now begins with frame {seq}"
        return finding(Incident.RESTART, seq, text)
    if seq > at.seq:
        text = f"frames {at.seq + 1} to {last} are missing"
        return finding(Incident.GAP, last - at.seq, text)
    text = f"the store lost frames {seq} to {at.seq}; others have their numbers now"
    return finding(Incident.REWIND, at.seq - last, text)


def beginning(found: Finding, trimmed: int | None) -> Finding:
    """Return the finding about a missing beginning; the server counts what it removed."""
    if trimmed is None or found.number <= trimmed:
        return found
    text = f"{found.text}; the server removed only {trimmed} of them"
    return replace(found, kind=Incident.GAP, number=found.number - trimmed, text=text)


def altered(at: Position, seen: StreamEntry) -> Finding:
    """Return the finding, at an entry, that the frame before was changed after it was written."""
    text = f"frame {at.seq} was changed after it was written: its digest differs"
    return Finding(Incident.ALTERED, seen.id, seen.epoch, at.seq, 1, text)
