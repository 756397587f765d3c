"""When servers were last heard of: an idle server writes no events, only the time.

The tables have all events up to that time, which is kept beside them.
"""

import json
from collections.abc import Mapping

from holdfast.pipeline.lake import Lake, write_down

_NAME = "_heard.json"


def remember(lake: Lake, heard: Mapping[str, int]) -> None:
    """Store the time of each node, in ms since 1970, replacing earlier ones."""
    if heard != remembered(lake):
        write_down(lake.root / _NAME, heard)


def remembered(lake: Lake) -> dict[str, int]:
    """Return the time of each node."""
    try:
        times: dict[str, int] = json.loads((lake.root / _NAME).read_bytes())
    except FileNotFoundError:
        return {}
    return times
