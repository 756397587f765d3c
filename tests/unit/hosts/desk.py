"""One host that looks twice a second at stores and rows that a test writes."""

from dataclasses import replace

from holdfast.hosts.claims import Claim, Claims
from holdfast.hosts.preference import order_of, targets
from holdfast.hosts.rows import HostRow, HostState
from holdfast.hosts.watching import ShardSeen

HOSTS = ["a", "b", "c"]
SHARDS = 6
TARGETS = targets(SHARDS, HOSTS, HOSTS, None)


class Desk:
    """What host `a` sees; the other hosts live, and so do all holders.

    Args:
        holders: The host of each shard; its target, unless it is given.
    """

    def __init__(self, holders: dict[int, str] | None = None, own: str = "a") -> None:
        self.now = 1000.0
        self.claims = Claims(
            own, "n-" + own, HOSTS, shards=SHARDS, capacity=None, clock=lambda: self.now
        )
        self.own = own
        self.view = ""
        self.shards: dict[int, ShardSeen | None] = {
            shard: ShardSeen(f"e{shard}", "0", holder, "")
            for shard, holder in {**TARGETS, **(holders or {})}.items()
        }
        self.rows: dict[str, HostRow] | None = {
            host: HostRow("n-" + host, 0) for host in HOSTS if host != own
        }
        # The shards that the rows say were opened once.
        self.recorded: set[int] = set()
        # Whose leases and rows are raised.
        self.raised = {*range(SHARDS)}
        self.living = {*HOSTS} - {own}

    def look(self, after_s: float = 0.5) -> None:
        """Let time pass, in which the living raise what is theirs, and look."""
        self.now += after_s
        for shard in self.raised:
            seen = self.shards[shard]
            if seen is not None and seen.lease:
                self.shards[shard] = replace(seen, lease=str(int(seen.lease) + 1))
        if self.rows is not None:
            for host in self.living:
                row = self.rows[host]
                self.rows[host] = replace(row, n=row.n + 1, view=self.view or row.view)
        here = {shard for shard, seen in self.shards.items() if seen and seen.host == self.own}
        self.claims.see(self.shards, self.rows, here & self.raised, self.recorded)
        own = self.claims.row()
        if own is not None and self.rows is not None:
            self.rows[self.own] = own
            # The others agree with this host about everything.
            self.view = own.view

    def looks(self, seconds: float) -> None:
        for _ in range(round(seconds * 2)):
            self.look()

    def wait(self, seconds: float) -> None:
        """Let time pass without a look."""
        self.now += seconds

    def kill(self, host: str) -> None:
        """End a host with its shards."""
        self.living.discard(host)
        for shard, seen in self.shards.items():
            if seen is not None and seen.host == host:
                self.raised.discard(shard)

    def free(self, shard: int) -> None:
        """End a lease in an orderly way."""
        self.change(shard, lease="")

    def change(self, shard: int, **fields: str) -> None:
        seen = self.shards[shard]
        assert seen is not None
        self.shards[shard] = replace(seen, **fields)

    def open(self, shard: int, host: str) -> None:
        """Let a host open a shard."""
        seen = self.shards[shard]
        assert seen is not None
        self.shards[shard] = ShardSeen(seen.epoch + "'", "0", host, "")
        self.raised.add(shard)

    def set_state(self, host: str, state: HostState) -> None:
        assert self.rows is not None
        self.rows[host] = replace(self.rows[host], state=state)

    def claimed(self) -> set[int]:
        return {claim.shard for claim in self.claims.to_claim()}

    def claim_of(self, shard: int) -> Claim | None:
        return next((each for each in self.claims.to_claim() if each.shard == shard), None)


def shard_of(target: str) -> int:
    """The first shard with this target."""
    return next(shard for shard in range(SHARDS) if TARGETS[shard] == target)


def place_of(shard: int, host: str) -> int:
    """How many hosts come before this one while all live."""
    others = [each for each in order_of(shard, HOSTS) if each != TARGETS[shard]]
    return [TARGETS[shard], *others].index(host)
