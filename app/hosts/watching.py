"""What a host sees of shards and of other hosts, look by look, on its own clock."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from math import inf
from typing import Final

from holdfast.hosts.rows import HostRow, HostState
from holdfast.store.opening.lease import BLIND_S, LEASE_S, RivalLease

# A host whose row stood for so long is away. A lease that ends with its host was raised half a
# second before the row, at most: when it may be claimed, its host is known to be away.
_AWAY_S: Final = LEASE_S - 0.5
# Where machines are busy, answers come late: a lease stands meanwhile, too. A script has the last
# word about that.
_BLIND_S: Final = 2.0
# A lease that was not raised for so long is no reason to claim its shard, but one to wait with
# everything that can wait.
_UNSURE_S: Final = 1.5


@dataclass(frozen=True, slots=True)
class ShardSeen:
    """What the meta of a shard says; fields are empty if it does not have them."""

    epoch: str
    # The counter that the holder raises.
    lease: str
    # Which host opened it last.
    host: str
    # The host to which the holder offers the shard.
    offer: str
    # The name of the server that opened it last, for people.
    node: str = ""
    # The name of the deployment, which a shard that is to begin again has before its first epoch.
    deployment: str = ""


class WatchedShard:
    """One shard, as its store shows it to a host that looks twice a second."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._rival = RivalLease(clock, _BLIND_S)
        self._seen: ShardSeen | None = None
        self._looked_at = -inf

    def saw(self, seen: ShardSeen | None) -> None:
        """Take note of a look. After one that failed, what was seen before counts no more."""
        if seen is None:
            self._rival = RivalLease(self._clock, _BLIND_S)
        else:
            self._rival.saw(f"{seen.epoch} {seen.lease}")
        self._seen, self._looked_at = seen, self._clock()

    @property
    def seen(self) -> ShardSeen | None:
        """What was seen, unless that is too long ago to say anything about now."""
        return self._seen if self._clock() - self._looked_at <= BLIND_S else None

    @property
    def unraised(self) -> str:
        """The epoch and lease that an opening is to replace; empty if there is no lease."""
        seen = self.seen
        return self._rival.unraised if seen is not None and seen.lease else ""

    @property
    def claimable_s(self) -> float:
        """For how long any host could have claimed it; below 0 if none can."""
        seen = self.seen
        if seen is None:
            return -inf
        return self._rival.stood_s - (LEASE_S if seen.lease else 0.0)

    @property
    def is_owned(self) -> bool:
        """Whether its holder is known to live."""
        seen = self.seen
        has_lease = seen is not None and seen.lease != ""
        return has_lease and self._rival.is_raised and self._rival.stood_s < _UNSURE_S


class WatchedHosts:
    """The other hosts of the list, as their rows show them.

    Until they were watched for as long as a lease lasts, all are thought to live: hosts that start
    together leave each other their shards.
    """

    def __init__(self, own: str, others: Collection[str], clock: Callable[[], float]) -> None:
        self._own = own
        self._clock = clock
        self._moving = {name: RivalLease(clock, _BLIND_S) for name in others}
        self._rows: Mapping[str, HostRow] = {}
        self._since: float | None = None
        self._read_at = -inf
        # The last known of each, whether rows can be read or not.
        self.living: frozenset[str] = frozenset({own, *others})
        self.draining: frozenset[str] = frozenset()

    def saw(self, rows: Mapping[str, HostRow], *, is_draining: bool) -> None:
        """Take note of the rows of a look.

        Args:
            is_draining: Whether this host does.
        """
        self._read_at = self._clock()
        if self._since is None:
            self._since = self._read_at
        self._rows = rows
        for name, moving in self._moving.items():
            row = rows.get(name)
            moving.saw(row.sign if row else "")
        self.living = frozenset({self._own, *filter(self._lives, self._moving)})
        draining = {name for name in self.living if self._drains(name)}
        self.draining = frozenset({*draining, self._own} if is_draining else draining)

    @property
    def are_known(self) -> bool:
        """Whether their rows were read a moment ago, so that it is known who lives."""
        return self._clock() - self._read_at <= BLIND_S

    def view_of(self, host: str) -> str | None:
        """Return the view of another host; None if it has no row."""
        row = self._rows.get(host)
        return row.view if row else None

    def refuse(self, shard: int) -> frozenset[str]:
        """Return the other hosts that could not open a shard a moment ago."""
        return frozenset(name for name, row in self._rows.items() if shard in row.refuses)

    def _lives(self, name: str) -> bool:
        moving = self._moving[name]
        if moving.is_raised:
            return name in self._rows and moving.stood_s < _AWAY_S
        return self._since is not None and self._clock() - self._since < LEASE_S

    def _drains(self, name: str) -> bool:
        row = self._rows.get(name)
        return name != self._own and row is not None and row.state is HostState.DRAINING
