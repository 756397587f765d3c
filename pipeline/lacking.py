"""Frames that were written, but were missing at the end of a journal when it was read.

Once later frames arrive, the events show a gap. Until then only the store's count of frames shows
the loss, so it is kept beside the tables.
"""

from collections.abc import Mapping

from holdfast.pipeline.digests import read_sealed, write_sealed
from holdfast.pipeline.lake import Lake
from holdfast.pipeline.source.outline import Position

_NAME = "_lacking.json"


def remember(lake: Lake, lacking: Mapping[str, int]) -> None:
    """Store the number of missing frames of each node, replacing earlier numbers."""
    numbers = {node: _read(lake, node) + frames for node, frames in lacking.items()}
    if numbers != _numbers(lake):
        write_sealed(lake.root / _NAME, numbers)


def remembered(lake: Lake) -> dict[str, int]:
    """Return the number of frames that are still missing, by node."""
    lacking = {node: number - _read(lake, node) for node, number in _numbers(lake).items()}
    return {node: frames for node, frames in lacking.items() if frames > 0}


def _numbers(lake: Lake) -> dict[str, int]:
    """Return the number of the last frame that each node wrote, where it was missing."""
    try:
        numbers: dict[str, int] = read_sealed(lake.root / _NAME)
    except FileNotFoundError:
        return {}
    return numbers


def _read(lake: Lake, node: str) -> int:
    """Return the number of the last frame that was read."""
    return lake.positions().get(node, Position()).seq
