"""Which shards a host is to open, and which it is to give: who tries first, no more.

The store alone decides who has a shard. What is wrong here costs balance, or time.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from math import inf
from typing import Final

from holdfast.hosts.existing import Existing
from holdfast.hosts.moving import Give, Moves, Scene
from holdfast.hosts.naming import OwnName
from holdfast.hosts.preference import order_of, targets
from holdfast.hosts.rows import HostRow, HostState
from holdfast.hosts.watching import ShardSeen, WatchedHosts, WatchedShard
from holdfast.store.opening.lease import LEASE_S

# Each host in a shard's order waits so much longer than the one before it, which lives, and needs a
# part of that to open the shard.
_PLACE_S: Final = 5.0
# A host that could not open a shard leaves it to others for so long.
_FAILED_S: Final = 60.0
# A host that was to be stopped, and still runs after so long, has shards again.
_DRAIN_S: Final = 600.0


@dataclass(frozen=True, slots=True)
class Claim:
    """A shard that this host is to open.

    Attributes:
        unraised: The epoch and lease that stood for so long that the holder is silent; empty if
            there is no lease, and for an offer.
        offered_epoch: The epoch whose holder offers the shard to this host; empty for none.
    """

    shard: int
    unraised: str = ""
    offered_epoch: str = ""


@dataclass(frozen=True, slots=True)
class Shown:
    """What operators are shown.

    Attributes:
        owners: The host of each shard that has a living holder.
        targets: The host that each shard is to be on.
        unowned: Shards whose holder is not known to live, or whose store cannot be read.
        moves: Shards that are about to move, the next one first.
    """

    owners: dict[int, str]
    targets: dict[int, str]
    living: list[str]
    draining: list[str]
    unowned: list[int]
    moves: list[int]


class Claims:
    """What one host makes of what it reads.

    Args:
        own: The name of this host, one of `hosts`.
        nonce: What no other process of this name has.
        capacity: As in `targets`.
        clock: Must not stop while the process or the machine does.
    """

    def __init__(
        self,
        own: str,
        nonce: str,
        hosts: Sequence[str],
        *,
        shards: int,
        capacity: int | None,
        clock: Callable[[], float],
    ) -> None:
        self._own, self._nonce = own, nonce
        self._hosts = sorted(hosts)
        self._capacity = capacity
        self._clock = clock
        self._shards = {shard: WatchedShard(clock) for shard in range(shards)}
        self._others = WatchedHosts(own, {*hosts} - {own}, clock)
        self._existing = Existing(shards)
        self._name = OwnName(nonce, clock)
        self._moves = Moves(own, clock)
        # When this host first looked.
        self._begun = inf
        self._here: frozenset[int] = frozenset()
        # Whether hosts have the deployment, or no server has yet; None if that was never read.
        self._is_of_hosts: bool | None = None
        self._view = _digest([*self._hosts, str(shards), str(capacity)])
        self._n = 0
        self._drain_ends = -inf
        # By shard, until when it is not claimed.
        self._failed: dict[int, float] = {}
        # By the hosts that may have shards, what each is to have: they seldom change.
        self._targets: tuple[frozenset[str], Mapping[int, str]] = (frozenset(), {})

    # What is read

    def see(
        self,
        shards: Mapping[int, ShardSeen | None],
        rows: Mapping[str, HostRow] | None,
        here: Collection[int],
        recorded: Collection[int] = (),
    ) -> None:
        """Take note of what has answered since the last call. Read everything twice a second.

        Args:
            shards: Nothing for a shard whose store has not answered yet; None for one that could
                not be read, or was read over a connection that is new.
            rows: As they were before this host wrote its own; None if they were not read.
            here: The shards that have a worker on this host, or are about to: whatever that does,
                they are not claimed again.
            recorded: The shards that were opened once, as far as the rows say it.
        """
        self._begun = min(self._begun, self._clock())
        self._here = frozenset(here)
        for shard, seen in shards.items():
            self._shards[shard].saw(seen)
        self._existing.saw(shards, None if rows is None else recorded)
        if (first := self._shards[0].seen) is not None:
            self._is_of_hosts = first.host != "" or first.epoch == ""
        if rows is not None:
            self._name.saw(rows.get(self._own))
            self._others.saw(rows, is_draining=self.is_draining)
        self._moves.saw(self._scene() if rows is not None else None)

    @property
    def is_twin(self) -> bool:
        """Whether another host uses the name of this one, which must not serve."""
        return self._name.is_taken

    @property
    def other_server(self) -> str:
        """The name of a living server without a list of hosts, which has the deployment, or ''."""
        if self._is_of_hosts is not False:
            return ""
        watched = (each for shard, each in self._shards.items() if shard not in self._here)
        return next((each.seen.node for each in watched if each.is_owned and each.seen), "")

    @property
    def other_holders(self) -> frozenset[str]:
        """The other hosts that may have shards: it is not long since a lease of theirs moved."""
        watched = (each for each in self._shards.values() if each.seen and each.seen.lease)
        found = {each.seen.host for each in watched if each.seen and each.claimable_s < 0}
        return frozenset(found - {self._own, ""})

    @property
    def emptied(self) -> list[int]:
        """The shards that exist, and whose store is empty for longer than a living holder needs."""
        empty = self._existing.emptied
        return [shard for shard in empty if self._shards[shard].claimable_s >= LEASE_S]

    @property
    def unrecorded(self) -> list[int]:
        """The shards of which the rows are to say that they were opened once."""
        return self._existing.unrecorded

    # What to do

    def row(self) -> HostRow | None:
        """Return the row to write in this look, after reading; None while none may be written."""
        if self.is_twin or not self._name.is_ours:
            return None
        self._n += 1
        state = HostState.DRAINING if self.is_draining else HostState.SERVING
        refuses = tuple(sorted(shard for shard in self._shards if self._has_failed(shard)))
        return HostRow(self._nonce, self._n, state, self._view, refuses=refuses)

    def to_claim(self) -> list[Claim]:
        """Return the shards to open now. Ask several times between two looks."""
        if self.is_twin or not self._name.is_ours:
            return []
        found = [
            self._claim_of(shard, self._shards[shard])
            for shard in self._that_hosts_may_have()
            if shard not in self._here and not self._has_failed(shard)
            if self._existing.may_open(shard)
        ]
        return [claim for claim in found if claim is not None]

    def to_give(self) -> Give | None:
        """Return what to offer to another host, the same until the store shows the offer."""
        give = None if self.is_twin else self._moves.next()
        if give is None or give.shard not in self._here:
            return None
        return give if self._shards[give.shard].seen is not None else None

    def failed(self, shard: int) -> None:
        """Leave the shard to others for a minute: it could not be opened here."""
        self._failed[shard] = self._clock() + _FAILED_S

    def not_given(self, shard: int, host: str) -> None:
        """Take note that an offer was not made, or taken back."""
        self._moves.refused(shard, host)

    # What operators ask

    def drain(self) -> None:
        """Give all shards to other hosts, one after the other, and be the last to claim any."""
        self._drain_ends = self._clock() + _DRAIN_S

    def uncordon(self) -> None:
        """Have shards again."""
        self._drain_ends = -inf

    @property
    def is_draining(self) -> bool:
        return self._clock() < self._drain_ends

    @property
    def is_drained(self) -> bool:
        """Whether every store could be read, and none says that this host has its shard."""
        seen = [watched.seen for watched in self._shards.values()]
        return all(each and not (each.lease and each.host == self._own) for each in seen)

    def shown(self) -> Shown:
        """Return how things are, for operators."""
        owned = {
            shard: watched.seen.host
            for shard, watched in self._shards.items()
            if watched.is_owned and watched.seen is not None
        }
        return Shown(
            owners=owned,
            targets=dict(self._aims()),
            living=sorted(self._others.living),
            draining=sorted(self._others.draining),
            unowned=sorted(self._shards.keys() - owned.keys()),
            moves=self._moves.due(),
        )

    def _that_hosts_may_have(self) -> Iterable[int]:
        """Return the shards that are no other server's, which would have all or none of them."""
        if self._is_of_hosts:
            return self._shards
        # A host that opens the first shard makes the deployment one of hosts from then on.
        is_left = all(each.claimable_s >= 0 for each in self._shards.values())
        return (0,) if self._is_of_hosts is False and is_left else ()

    def _claim_of(self, shard: int, watched: WatchedShard) -> Claim | None:
        seen = watched.seen
        if seen is None:
            return None
        if seen.offer == self._own:
            return Claim(shard, offered_epoch=seen.epoch)
        claimable_s = watched.claimable_s
        if claimable_s < 0:
            return None
        place = self._place_in(shard, seen.host)
        if place > 0:
            # Who has just begun to look does not know yet which hosts live.
            claimable_s = min(claimable_s, self._clock() - self._begun - LEASE_S)
        return Claim(shard, watched.unraised) if claimable_s >= place * _PLACE_S else None

    def _has_failed(self, shard: int) -> bool:
        return self._clock() < self._failed.get(shard, -inf)

    def _place_in(self, shard: int, former: str) -> int:
        """Return how many hosts come before this one.

        Args:
            former: The host that had the shard.
        """
        last = self._others.draining | self._others.refuse(shard)
        if not self._others.are_known:
            # It may have died with its lease.
            last |= {former}
        target = self._aims().get(shard)
        order = order_of(shard, self._others.living)
        return sorted(order, key=lambda host: (host in last, host != target)).index(self._own)

    def _aims(self) -> Mapping[int, str]:
        """Return which host each shard is to be on."""
        living, draining = self._others.living, self._others.draining
        takers = living - draining or living
        if self._targets[0] != takers:
            found = targets(len(self._shards), self._hosts, takers, self._capacity)
            self._targets = (takers, found)
        return self._targets[1]

    def _scene(self) -> Scene:
        others = self._others
        partners = {host for host in others.living if others.view_of(host) == self._view}
        return Scene(
            shards={shard: watched.seen for shard, watched in self._shards.items()},
            owned=frozenset(shard for shard, each in self._shards.items() if each.is_owned),
            targets=self._aims(),
            living=others.living,
            draining=others.draining,
            partners=frozenset({*partners, self._own}),
            refusing={shard: others.refuse(shard) for shard in self._shards},
        )


def _digest(words: Sequence[str]) -> str:
    return blake2b("\n".join(words).encode(), digest_size=8).hexdigest()
