"""Pieces as rows: what one task would read, without the events."""

import json
from dataclasses import asdict
from typing import Any

import pyarrow as pa

from holdfast.pipeline.arrow import arrow_of
from holdfast.pipeline.incidents import Incident
from holdfast.pipeline.source.outline import Finding, Position
from holdfast.pipeline.source.reading import Piece
from holdfast.pipeline.source.streams import stream_of

# The epoch belongs to the last frame. The position is the node's in an offset that ends here, and
# incidents are the planner's; both are JSON.
RANGE = (
    "node string, epoch string, after string, first string, last string, frames bigint, "
    "events bigint, position string, incidents string"
)
_RANGE = arrow_of(RANGE)


def range_of(piece: Piece) -> pa.RecordBatch:
    """Return a piece as a row: RANGE."""
    position = piece.position
    row = {
        **{name: getattr(piece, name) for name in _SAME},
        "epoch": position.epoch,
        "position": json.dumps(position.as_json()),
        "incidents": json.dumps([asdict(finding) for finding in piece.findings]),
    }
    return pa.RecordBatch.from_pylist([row], _RANGE)


def piece_of(row: dict[str, Any], namespace: str) -> Piece:
    """Return the piece of a row."""
    findings = json.loads(row["incidents"])
    return Piece(
        stream=stream_of(namespace, row["node"]),
        position=Position.of(json.loads(row["position"])),
        findings=tuple(Finding(**{**found, "kind": Incident(found["kind"])}) for found in findings),
        **{name: row[name] for name in _SAME},
    )


_SAME = ("node", "after", "first", "last", "frames", "events")
