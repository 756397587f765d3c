"""The stores of shards, with the scripts that decide who has them, and the way there."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from holdfast.hosts.rows import HostRow
from holdfast.hosts.watching import ShardSeen
from tests.unit.hosts.worlds.events import Events, Process

# A caller waits no longer for an answer.
_TIMEOUT_S = 2.0


class Refused(Exception):
    """What a script answers to those that have no right."""


@dataclass
class Meta:
    """What the store of a shard knows of its holder."""

    epoch: str = ""
    lease: int | None = None
    # Of the process that opened it.
    lock: str = ""
    host: str = ""
    offer: str = ""
    openings: int = 0
    # How many offers were opened.
    moves: int = 0

    @property
    def held(self) -> str:
        return f"{self.epoch} {self.lease}"

    def seen(self) -> ShardSeen:
        lease = "" if self.lease is None else str(self.lease)
        return ShardSeen(self.epoch, lease, self.host, self.offer)

    def open(self, opener: "Opener") -> str:
        """Make the caller the only writer, or refuse."""
        if self.epoch.endswith(f".{opener.nonce}"):
            return self.epoch
        if opener.offered:
            self.check_offer(opener)
            self.moves += 1
        elif self.lease is not None and not self.is_replaced_by(opener):
            raise Refused(self.held)
        self.openings += 1
        self.epoch = f"{self.openings}.{opener.nonce}"
        self.lease, self.lock, self.host, self.offer = 0, opener.nonce, opener.host, ""
        return self.epoch

    def check_offer(self, opener: "Opener") -> None:
        if (self.offer, self.epoch) != (opener.host, opener.offered):
            raise Refused(self.held)

    def is_replaced_by(self, opener: "Opener") -> bool:
        """Whether its holder is silent or has ended."""
        return self.held == opener.unraised or self.epoch == opener.ended

    def raise_(self, epoch: str) -> bool:
        self.check(epoch)
        self.lease = (self.lease or 0) + 1
        return True

    def offer_to(self, epoch: str, host: str) -> bool:
        self.check(epoch)
        self.offer = host
        return True

    def retract(self, epoch: str) -> bool:
        self.check(epoch)
        self.offer = ""
        return True

    def release(self, epoch: str) -> bool:
        self.check(epoch)
        self.lease, self.lock = None, ""
        return True

    def check(self, epoch: str) -> None:
        if self.epoch != epoch:
            raise Refused(self.held)


@dataclass(frozen=True)
class Opener:
    """Who opens a store, and by which right.

    Attributes:
        ended: The epoch of a process of this host that is known to have ended.
    """

    nonce: str
    host: str
    unraised: str = ""
    offered: str = ""
    ended: str = ""


@dataclass
class Stores:
    """All stores, the rows of hosts in the first, and the network between."""

    events: Events
    random: Random
    metas: list[Meta]
    rows: dict[str, HostRow] = field(default_factory=dict)
    # How long one way takes at most.
    slow_s: float = 0.005
    # Until when a host does not reach a shard's store, or no host does.
    cut_until: dict[tuple[str, int], float] = field(default_factory=dict)
    away_until: dict[int, float] = field(default_factory=dict)

    def call(
        self,
        caller: tuple[Process, str],
        shard: int,
        script: Callable[[], object],
        then: Callable[[object], None],
    ) -> None:
        """Run a script. The caller hears the answer once, or None when it waits no longer."""
        process, host = caller
        heard: list[object] = []

        def hear(reply: object) -> None:
            if not heard:
                heard.append(reply)
                then(reply)

        def arrive() -> None:
            if self._is_lost(host, shard):
                return
            try:
                reply = script()
            except Refused as refused:
                reply = refused
            if not self._is_lost(host, shard):
                back = self.events.now + self._delay_s()
                self.events.at(back, lambda: process.run(lambda: hear(reply)))

        at = self.events.now + self._delay_s()
        away = self.away_until.get(shard, 0.0)
        if away > at and self.random.random() < 0.5:
            # It waits in a socket of the store until that goes on.
            at = away
        self.events.at(at, arrive)
        process.after(_TIMEOUT_S, lambda: hear(None))

    def _delay_s(self) -> float:
        return self.slow_s * self.random.random()

    def _is_lost(self, host: str, shard: int) -> bool:
        cut = max(self.cut_until.get((host, shard), 0.0), self.away_until.get(shard, 0.0))
        return cut > self.events.now
