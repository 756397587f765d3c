"""What a shard has of the other shards of its deployment."""

from typing import NamedTuple

from holdfast.delivery.ports.homes import HomesPort
from holdfast.delivery.ports.other_shards import OthersPort


class Neighbours(NamedTuple):
    """The other shards. A server alone has none."""

    # The number of this shard.
    shard: int
    homes: HomesPort
    others: OthersPort
