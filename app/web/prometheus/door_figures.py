"""What a worker has passed on to others."""

from collections.abc import Mapping
from typing import NamedTuple


class DoorFigures(NamedTuple):
    """Exchanges and connections that were for others, by their shards."""

    forwarded: Mapping[int, int]
    given: Mapping[int, int]
    # The name of the host; empty if there is no list of hosts.
    host: str = ""
