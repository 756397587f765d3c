"""Which host is to have which shard: the same for everybody who knows the same hosts.

Each pair of a shard and a host has a weight, and a shard prefers the host with the greatest, so
that no host needs to be asked, and the order of a list changes nothing. No host gets more than its
share.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from hashlib import blake2b


def order_of(shard: int, hosts: Iterable[str]) -> list[str]:
    """Return the hosts, the one that the shard prefers first."""
    return sorted(hosts, key=lambda host: _weight(shard, host), reverse=True)


def targets(
    shards: int, hosts: Collection[str], living: Collection[str], capacity: int | None
) -> Mapping[int, str]:
    """Return the host that each shard is to be on; none if no host lives.

    A shard is at home on one host of the whole list, and stays there for as long as that lives. So
    the only shards that move when a host leaves are its own, and these come back with it. Only
    shards whose home is away may move when another host leaves or comes back, too.

    Args:
        hosts: All hosts of the list.
        living: The hosts that may have shards.
        capacity: How many shards a host may have although others have fewer. Without it, all have
            equally many, or one more.
    """
    homes = _Spread(shards, hosts, capacity)
    homes.fill()
    spread = _Spread(shards, {*living} & {*hosts}, capacity)
    spread.keep(homes.found)
    spread.fill()
    return spread.found


class _Spread:
    """Some shards on some hosts, each of which has its share at most."""

    def __init__(self, shards: int, hosts: Collection[str], capacity: int | None) -> None:
        self._shards = shards
        self._hosts = {*hosts}
        # How many each host has, and how many hosts have one more.
        self._share, self._ones_more = divmod(shards, len(self._hosts) or 1)
        if capacity is not None and capacity > self._share:
            self._share, self._ones_more = capacity, 0
        self._counts: Counter[str] = Counter()
        self.found: dict[int, str] = {}

    def keep(self, found: Mapping[int, str]) -> None:
        """Leave shards where they are, if that host is among ours."""
        for shard, host in found.items():
            if host in self._hosts:
                self._put(shard, host)

    def fill(self) -> None:
        """Put each other shard on a host: the greatest weight of all comes first."""
        left = [shard for shard in range(self._shards) if shard not in self.found]
        pairs = [(_weight(shard, host), shard, host) for shard in left for host in self._hosts]
        for _, shard, host in sorted(pairs, reverse=True):
            if shard not in self.found and self._has_room(host):
                self._put(shard, host)

    def _has_room(self, host: str) -> bool:
        return self._counts[host] < self._share + (self._ones_more > 0)

    def _put(self, shard: int, host: str) -> None:
        self._ones_more -= self._counts[host] == self._share
        self._counts[host] += 1
        self.found[shard] = host


def _weight(shard: int, host: str) -> bytes:
    return blake2b(f"{shard} {host}".encode(), digest_size=16).digest()
