"""Frames that were written and were not there when a journal was read to its end.

Where more comes behind them there is a gap among the events; until then only the store's count of
frames tells, so what it said is kept beside the tables.
"""

import json
from collections.abc import Mapping

from pipeline.lake import Lake, write_down
from pipeline.source.outline import Position

_NAME = "_lacking.json"


def remember(lake: Lake, lacking: Mapping[str, int]) -> None:
    """So many frames of each node were not there; what was remembered before is past."""
    numbers = {node: _read(lake, node) + frames for node, frames in lacking.items()}
    write_down(lake.root / _NAME, numbers)


def remembered(lake: Lake) -> dict[str, int]:
    """By node, frames that are lacking still."""
    try:
        numbers = json.loads((lake.root / _NAME).read_text("utf-8"))
    except FileNotFoundError:
        return {}
    lacking = {node: number - _read(lake, node) for node, number in numbers.items()}
    return {node: frames for node, frames in lacking.items() if frames > 0}


def _read(lake: Lake, node: str) -> int:
    """The number of the last frame that was read."""
    return lake.positions().get(node, Position()).seq
