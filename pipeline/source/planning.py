"""Plans bounded batches of a journal, in pieces of similar size."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from holdfast.pipeline.failures import FramesGone, JournalTrimmed
from holdfast.pipeline.incidents import Incident
from holdfast.pipeline.source.outline import (
    BEGIN,
    Finding,
    Position,
    StreamEntry,
    advance,
    altered,
    beginning,
    stream_entries,
)
from holdfast.pipeline.source.reading import Piece
from holdfast.pipeline.source.streams import Journals

# How far all streams were read: by node, as JSON.
Offset = dict[str, dict[str, Any]]
# The least number of events in a piece: smaller ones cost more to start than they save.
_SMALLEST = 100_000
_FATAL = (Incident.GAP, Incident.REWIND)


class _Step(NamedTuple):
    """A frame, how far the stream is read with it, and the incident there, if any."""

    seen: StreamEntry
    position: Position
    finding: Finding | None


class Planner:
    """Plans batches of a bounded number of events, each in about as many pieces as there are cores.

    The same offsets always give the same pieces.
    """

    def __init__(self, journals: Journals, *, cores: int, accepts_loss: bool) -> None:
        self._journals = journals
        self._cores = cores
        self._accepts_loss = accepts_loss

    def newest(self) -> dict[str, str]:
        """Return the ids of the newest frames of all nodes."""
        found = {node: self._journals.newest(node) for node in self._journals.nodes()}
        return {node: id for node, id in found.items() if id is not None}

    def waiting(self, start: Offset, lacking: Mapping[str, int]) -> int:
        """Return the number of frames written since the start; of all, in an emptied store.

        Args:
            lacking: By node, the number of frames that are known to be missing.
        """
        found = 0
        for node, number in self._journals.numbered().items():
            read = Position.of(start.get(node)).seq + lacking.get(node, 0)
            found += number - read if number >= read else number
        return found

    def advance(self, start: Offset, goal: Mapping[str, str], most: int | None) -> Offset:
        """Return the end of a batch that begins at `start`: the goal, or after `most` events.

        Raises:
            FramesGone: Loss is not accepted.
        """
        end = dict(start)
        share = None if most is None else max(1, most // max(1, len(goal)))
        for node, upto in goal.items():
            at = Position.of(start.get(node))
            after = self._after(node, at)
            if order(after) < order(upto):
                end[node] = self._walk(node, at, after, upto, share).as_json()
        return end

    def _after(self, node: str, at: Position) -> str:
        """Return the id behind which to read on: the ids of an emptied store may be lower ones."""
        is_emptied = at.id != BEGIN and at.seed not in self._journals.seeds(node)
        return BEGIN if is_emptied else at.id

    def _walk(self, node: str, at: Position, after: str, upto: str, most: int | None) -> Position:
        events = 0
        for seen in self._entries(node, after, upto):
            if most is not None and events and events + seen.events > most:
                break
            at, _ = self._advance(node, at, seen)
            events += seen.events
        ends = self._journals.ends(node)
        # No later frame carries the digest of the newest one: only the store has it.
        return at.as_written(ends.digest) if at.seq == ends.seq else at

    def _advance(
        self, node: str, at: Position, seen: StreamEntry
    ) -> tuple[Position, Finding | None]:
        at, finding = advance(at, seen)
        if finding is not None and finding.kind is Incident.BEGINNING:
            # Read after the frames, because the server may be trimming them.
            finding = beginning(finding, self._journals.ends(node).trimmed)
        self._check(node, finding)
        return at, finding

    def _check(self, node: str, finding: Finding | None) -> None:
        if finding is not None and finding.kind in _FATAL and not self._accepts_loss:
            raise FramesGone(f"the journal of node {node}: {finding.text}")

    def pieces(self, start: Offset, end: Offset) -> list[Piece]:
        """Divide the frames between the offsets into pieces."""
        begins = {
            node: Position.of(start.get(node))
            for node, given in end.items()
            if start.get(node) != given
        }
        afters = {node: self._after(node, at) for node, at in begins.items()}
        walks = {
            node: self._steps(node, at, afters[node], Position.of(end[node]))
            for node, at in begins.items()
        }
        events = sum(step.seen.events for steps in walks.values() for step in steps)
        size = max(_SMALLEST, -(-events // max(1, self._cores)))
        return [
            piece
            for node, steps in walks.items()
            for piece in self._cut(node, afters[node], steps, size)
        ]

    def _steps(self, node: str, at: Position, after: str, end: Position) -> list[_Step]:
        steps = []
        for seen in self._entries(node, after, end.id):
            at, finding = self._advance(node, at, seen)
            steps.append(_Step(seen, at, finding))
        if at.id != end.id:
            raise JournalTrimmed(
                f"the journal of node {node} no longer reaches back to {end.id}: it was trimmed "
                "before it was read"
            )
        if at.digest != end.digest:
            newest = steps[-1]
            found = newest.finding or altered(at, newest.seen)
            steps[-1] = newest._replace(position=end, finding=found)
        return steps

    def _entries(self, node: str, after: str, upto: str) -> Iterator[StreamEntry]:
        journals = self._journals
        return stream_entries(journals.redis(node), journals.stream(node), after, upto)

    def _cut(self, node: str, after: str, steps: Sequence[_Step], size: int) -> list[Piece]:
        ends, events = [0], 0
        for number, step in enumerate(steps, 1):
            events += step.seen.events
            if events >= size or number == len(steps):
                ends.append(number)
                events = 0
        pieces = []
        for first, last in pairwise(ends):
            pieces.append(_piece(node, self._journals.stream(node), after, steps[first:last]))
            after = pieces[-1].last
        return pieces


def _piece(node: str, stream: str, after: str, steps: Sequence[_Step]) -> Piece:
    return Piece(
        node,
        stream,
        after,
        first=steps[0].seen.id,
        last=steps[-1].seen.id,
        frames=len(steps),
        events=sum(step.seen.events for step in steps),
        position=steps[-1].position,
        findings=tuple(step.finding for step in steps if step.finding is not None),
    )


def order(id: str) -> tuple[int, int]:
    """Return what ids in a stream are compared by."""
    ms, _, number = id.partition("-")
    return int(ms), int(number)
