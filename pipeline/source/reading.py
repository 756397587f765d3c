"""The work of one task: reads a part of a stream and turns it into columns."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from holdfast.journal.frame import Frame, FrameUnreadable, decode, decode_head
from holdfast.journal.schema import MOVES_APART, VERSION
from holdfast.pipeline.arrow import batch
from holdfast.pipeline.failures import PipelineFailed
from holdfast.pipeline.incidents import Incident
from holdfast.pipeline.source.moves import NEEDED, taken_back
from holdfast.pipeline.source.outline import Finding, Position
from holdfast.pipeline.source.streams import Journals
from holdfast.pipeline.source.table import NumberedFrame, tables

if TYPE_CHECKING:
    from redis import Redis

# Frames per request: half a megabyte.
_PAGE = 64
# Entries with these incidents have no readable events.
_PASSED = (Incident.REPEAT, Incident.UNREADABLE)


@dataclass(frozen=True, slots=True)
class Piece:
    """Frames of a stream, one after the other, and the incidents among them."""

    node: str
    stream: str
    # The ids of the frame before them, of the first and of the last.
    after: str
    first: str
    last: str
    frames: int
    # As many as the frames say they have.
    events: int
    # How far the stream is read with these.
    position: Position
    findings: tuple[Finding, ...] = ()


def covered_s(pieces: Iterable[Piece]) -> float:
    """Return the time in which the store got these frames."""
    ms = [ms_of(id) for piece in pieces for id in (piece.first, piece.last)]
    return (max(ms) - min(ms)) / 1000


def ms_of(id: str) -> int:
    """Return the time of a frame: ms since 1970."""
    return int(id.partition("-")[0])


@dataclass(frozen=True, slots=True)
class _Entry:
    id: str
    epoch: str
    seq: int
    frame: bytes


def read_piece(journals: Journals, piece: Piece, *, accepts_loss: bool) -> Iterator[pa.RecordBatch]:
    """Yield the events of a piece, and a row for each incident."""
    findings = [*piece.findings]
    passed = {each.id for each in findings if each.kind in _PASSED}
    frames = 0
    for page in _pages(journals.redis(piece.node), piece):
        frames += len(page)
        fresh = [entry for entry in page if entry.id not in passed]
        made, unreadable = _unfold(fresh, piece.node, accepts_loss=accepts_loss)
        yield from made
        findings += unreadable
    if frames != piece.frames:
        raise PipelineFailed(
            f"the journal of node {piece.node} was trimmed while it was read: "
            f"{piece.frames - frames} of the frames up to {piece.last} are gone. "
            "Run it again; if frames are missing then, it says which"
        )
    if findings:
        yield _rows(piece.node, findings)


def _pages(redis: "Redis", piece: Piece) -> Iterator[list[_Entry]]:
    begin = piece.first
    while True:
        found: Any = redis.xrange(piece.stream, begin, piece.last, count=_PAGE)
        if not found:
            return
        yield [_entry(id, fields) for id, fields in found]
        if len(found) < _PAGE:
            return
        begin = f"({found[-1][0].decode()}"


def _entry(id: bytes, fields: dict[bytes, bytes]) -> _Entry:
    seq = fields.get(b"seq", b"")
    number = int(seq) if seq.isdigit() else 0
    epoch = fields.get(b"epoch", b"").decode("utf-8", "replace")
    return _Entry(id.decode(), epoch, number, fields.get(b"frame", b""))


def _unfold(
    entries: Sequence[_Entry], node: str, *, accepts_loss: bool
) -> tuple[list[pa.RecordBatch], list[Finding]]:
    """Unfold all frames together; if that fails, one by one without the unreadable ones."""
    frames: list[NumberedFrame] = []
    findings: list[Finding] = []
    for entry in entries:
        try:
            frames.append(NumberedFrame(_decode(entry.frame, node), entry.epoch, entry.seq))
        except FrameUnreadable as error:
            findings.append(_finding(entry, error, accepts_loss=accepts_loss))
    try:
        return _events(frames), findings
    except FrameUnreadable as error:
        if len(entries) == 1:
            return [], [_finding(entries[0], error, accepts_loss=accepts_loss)]
    made: list[pa.RecordBatch] = []
    findings = []
    for entry in entries:
        tables_of_one, found = _unfold([entry], node, accepts_loss=accepts_loss)
        made += tables_of_one
        findings += found
    return made, findings


def _events(frames: Sequence[NumberedFrame]) -> list[pa.RecordBatch]:
    if not frames:
        return []
    made = [*tables(frames)]
    if older := [each for each in frames if each.frame.head.v < MOVES_APART]:
        added = taken_back(pa.Table.from_batches(tables(older)).select(NEEDED.names))
        made += [added] if len(added) else []
    return made


def _decode(packed: bytes, node: str) -> Frame:
    frame = decode(packed)
    if frame.head.node != node:
        # Its events are, or were, in another stream too, so they would count twice.
        raise FrameUnreadable(f"a frame of node {frame.head.node} is in another node's journal")
    return frame


def _finding(entry: _Entry, error: FrameUnreadable, *, accepts_loss: bool) -> Finding:
    is_newer = _is_newer(entry.frame)
    if is_newer and not accepts_loss:
        # No events are lost: a newer holdfast can continue from here.
        raise PipelineFailed(f"frame {entry.seq}: {error}")
    kind = Incident.NEWER if is_newer else Incident.UNREADABLE
    return Finding(kind, entry.id, entry.epoch, entry.seq, 1, str(error))


def _is_newer(frame: bytes) -> bool:
    try:
        return decode_head(frame).v > VERSION
    except FrameUnreadable as error:
        return "newer" in str(error)


def _rows(node: str, findings: Sequence[Finding]) -> pa.RecordBatch:
    ms = [ms_of(each.id) for each in findings]
    columns = {
        "node": pa.repeat(node, len(findings)),
        "ts": pa.array([each * 1000 for each in ms], pa.timestamp("us", "UTC")),
        "kind": pa.array([each.kind.value for each in findings]),
        "what": pa.array([each.text for each in findings]),
        "number": pa.array([each.number for each in findings]),
        "epoch": pa.array([each.epoch for each in findings]),
        "seq": pa.array([each.seq for each in findings]),
        # Not the position of an event in its frame.
        "pos": pa.array([-1] * len(findings)),
    }
    return batch(columns, len(findings))
