"""What an operator is shown of all hosts and shards, by a few looks of any process."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, NamedTuple

from holdfast.hosts.existing import Existing
from holdfast.hosts.fixed_settings import differing
from holdfast.hosts.preference import targets
from holdfast.hosts.rows import HostRow, HostState
from holdfast.hosts.watching import ShardSeen, WatchedShard
from holdfast.store.opening.lease import LEASE_S, RivalLease

# How often to look: a lease that stands is seen to do so only by who looks often.
LOOK_S: Final = 0.25


class Move(NamedTuple):
    """A shard that is to move, or does."""

    shard: int
    # The host that has it, and the one that is to have it.
    holder: str
    target: str


class Overview:
    """Looks a few times a second, until everything has moved or is known to be away.

    Args:
        capacity: As in `targets`.
        clock: Must not stop while the process or the machine does.
    """

    def __init__(
        self,
        hosts: Sequence[str],
        *,
        shards: int,
        capacity: int | None,
        clock: Callable[[], float],
    ) -> None:
        self._hosts, self._capacity, self._clock = hosts, capacity, clock
        self._shards = {shard: WatchedShard(clock) for shard in range(shards)}
        self._existing = Existing(shards)
        self._moving = {host: RivalLease(clock) for host in hosts}
        self._ends_at = clock() + LEASE_S
        # The rows that were read last; None if none were.
        self.rows: Mapping[str, HostRow] | None = None

    def see(
        self,
        shards: Mapping[int, ShardSeen | None],
        rows: Mapping[str, HostRow] | None,
        recorded: Collection[int] = (),
    ) -> None:
        """Take note of a look: None for what could not be read.

        Args:
            recorded: The shards that were opened once, as far as the rows say it.
        """
        self._existing.saw(shards, None if rows is None else recorded)
        for shard, seen in shards.items():
            self._shards[shard].saw(seen)
        if rows is None:
            return
        self.rows = rows
        for host, moving in self._moving.items():
            row = rows.get(host)
            moving.saw(row.sign if row is not None else "")

    @property
    def is_over(self) -> bool:
        """Whether another look shows nothing new."""
        is_whole = len(self.living) == len(self._hosts) and not self.unowned
        return is_whole or self._clock() >= self._ends_at

    @property
    def living(self) -> frozenset[str]:
        """The hosts whose rows move."""
        rows = self.rows or {}
        return frozenset(host for host in rows if self._moving[host].is_raised)

    @property
    def draining(self) -> frozenset[str]:
        """The living hosts that are to have no shards."""
        rows = self.rows or {}
        return frozenset(host for host in self.living if rows[host].state is HostState.DRAINING)

    @property
    def owners(self) -> Mapping[int, str]:
        """The host of each shard whose holder is known to live."""
        return {
            shard: each.seen.host
            for shard, each in self._shards.items()
            if each.is_owned and each.seen is not None
        }

    @property
    def unowned(self) -> list[int]:
        """The shards whose holder is not known to live, or whose store cannot be read."""
        return sorted(self._shards.keys() - self.owners.keys())

    def refused(self, host: str) -> list[str]:
        """Return the settings because of which a living host without a shard takes none."""
        holders = {*self.owners.values()}
        if self.rows is None or host not in self.living or host in holders:
            return []
        return differing(self.rows[host].fixed, self.rows, holders)

    @property
    def emptied(self) -> list[int]:
        """The shards that exist, and whose store is empty: no host opens them."""
        return self._existing.emptied

    def moves(self) -> list[Move]:
        """Return what is to move between hosts that live, in the order in which it does."""
        owners, draining = self.owners, self.draining
        takers = self.living - draining or self.living
        aims = targets(len(self._shards), self._hosts, takers, self._capacity)
        found = [Move(shard, owners[shard], aims.get(shard, "")) for shard in sorted(owners)]
        moves = [each for each in found if each.target not in ("", each.holder)]
        # Nothing else moves meanwhile.
        return [each for each in moves if each.holder in draining] if draining else moves
