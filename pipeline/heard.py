"""When servers were last heard of: an idle server writes no events, only the time.

The tables have all events up to that time, which is kept beside them.
"""

from collections.abc import Mapping

from holdfast.pipeline.digests import read_sealed, write_sealed
from holdfast.pipeline.lake import Lake

_NAME = "_heard.json"


def remember(lake: Lake, heard: Mapping[str, int]) -> None:
    """Store the time of each node, in ms since 1970, replacing earlier ones."""
    if heard != remembered(lake):
        write_sealed(lake.root / _NAME, heard)


def remembered(lake: Lake) -> dict[str, int]:
    """Return the time of each node."""
    try:
        times: dict[str, int] = read_sealed(lake.root / _NAME)
    except FileNotFoundError:
        return {}
    return times
