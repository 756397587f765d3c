"""Which shard moves next from one host to another, though nothing is wrong with its holder."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Final

from holdfast.hosts.preference import order_of
from holdfast.hosts.watching import ShardSeen

# A shard has had another target for so long before it moves.
_TARGET_S: Final = 60.0
# A host that did not open what it was offered gets no second offer for so long, then twice as long.
_REFUSED_S: Final = 60.0
_REFUSED_MOST_S: Final = 3600.0
# Nothing moves before what everybody sees has stood for so long: all look within this time, and
# then agree about what is next.
_SETTLED_S: Final = 1.0
# The others wait no longer for a shard whose holder does not offer it.
_PATIENCE_S: Final = 15.0


@dataclass(frozen=True, slots=True)
class Give:
    """A shard of this host is to be offered to another host."""

    shard: int
    host: str


@dataclass(frozen=True, slots=True)
class Scene:
    """What all hosts see alike, except for the time at which they look.

    Attributes:
        shards: What each store shows; None for a store that could not be read.
        owned: The shards whose holders are known to live.
        partners: Hosts that agree with this one about who is to have what.
        refusing: The hosts that could not open a shard a moment ago, by shard.
    """

    shards: Mapping[int, ShardSeen | None]
    owned: frozenset[int]
    targets: Mapping[int, str]
    living: frozenset[str]
    draining: frozenset[str]
    partners: frozenset[str]
    refusing: Mapping[int, frozenset[str]]

    @property
    def is_quiet(self) -> bool:
        """Whether each shard has a holder that lives and does not give it."""
        return all(
            seen is not None and not seen.offer and shard in self.owned
            for shard, seen in self.shards.items()
        )

    def holder_of(self, shard: int) -> str:
        seen = self.shards[shard]
        return seen.host if seen is not None and seen.lease else ""


class Moves:
    """Moves one shard at a time: the lowest that is not on its target, draining hosts first."""

    def __init__(self, own: str, clock: Callable[[], float]) -> None:
        self._own = own
        self._clock = clock
        self._scene: Scene | None = None
        self._settled_at = inf
        # By shard, its target, its holder, and since when.
        self._misplaced: dict[int, tuple[str, str, float]] = {}
        # By shard and host, until when it gets no offer, and how long that is.
        self._refused: dict[tuple[int, str], tuple[float, float]] = {}
        # The next shard to be given, by any host, and since when.
        self._next: tuple[Give | None, float] = (None, -inf)

    def saw(self, scene: Scene | None) -> None:
        """Take note of a look; None if rows could not be read, so that nothing may move."""
        former, self._scene = self._scene, scene
        if scene is None:
            return
        if former is None or _without_leases(former) != _without_leases(scene):
            self._settled_at = self._clock()
        for shard, seen in scene.shards.items():
            before = former.shards.get(shard) if former is not None else None
            if seen is not None and before is not None:
                self._note_offer(shard, before, seen)
            self._note_target(scene, shard)
        self._note_next()

    def refused(self, shard: int, host: str) -> None:
        """Offer the shard to another host meanwhile: this one did not open it."""
        now = self._clock()
        until, last_s = self._refused.get((shard, host), (-inf, 0.0))
        if until <= now:
            wait_s = min(max(_REFUSED_S, 2 * last_s), _REFUSED_MOST_S)
            self._refused[shard, host] = (now + wait_s, wait_s)

    def due(self) -> list[int]:
        """Return all shards that are to move, the next one first; the same for everybody."""
        scene = self._scene
        if scene is None:
            return []
        drained = [shard for shard in sorted(scene.shards) if self._is_drained(scene, shard)]
        if scene.draining:
            # One update at a time, and nothing else meanwhile.
            return drained
        return [shard for shard in sorted(scene.shards) if self._is_misplaced(scene, shard)]

    def next(self) -> Give | None:
        """Return what this host is to give now."""
        give, scene = self._next_of_all(), self._scene
        is_own = give and scene and scene.holder_of(give.shard) == self._own
        return give if is_own else None

    def _next_of_all(self) -> Give | None:
        """Return what is to be given now, by whichever host has it."""
        scene, due = self._scene, self.due()
        is_settled = self._clock() - self._settled_at >= _SETTLED_S
        if scene is None or not due or not is_settled or not scene.is_quiet:
            return None
        host = self._taker_of(scene, due[0])
        return Give(due[0], host) if host is not None else None

    def _note_next(self) -> None:
        give, now = self._next_of_all(), self._clock()
        former, since = self._next
        if give != former:
            self._next = (give, now)
        elif give is not None and now - since > _PATIENCE_S:
            self.refused(give.shard, give.host)

    def _note_offer(self, shard: int, before: ShardSeen, seen: ShardSeen) -> None:
        if before.offer and not seen.offer and seen.epoch == before.epoch:
            self.refused(shard, before.offer)
        elif seen.epoch != before.epoch:
            self._refused.pop((shard, seen.host), None)

    def _note_target(self, scene: Scene, shard: int) -> None:
        target, holder = scene.targets.get(shard, ""), scene.holder_of(shard)
        if self._misplaced.get(shard, ("", "", 0.0))[:2] != (target, holder):
            self._misplaced[shard] = (target, holder, self._clock())

    def _is_drained(self, scene: Scene, shard: int) -> bool:
        is_draining = scene.holder_of(shard) in scene.draining
        return is_draining and self._taker_of(scene, shard) is not None

    def _is_misplaced(self, scene: Scene, shard: int) -> bool:
        target, holder, since = self._misplaced[shard]
        agree = {target, holder} <= scene.partners & scene.living
        is_misplaced = agree and holder != target and not self._is_refused(scene, shard, target)
        return is_misplaced and self._clock() - since >= _TARGET_S

    def _taker_of(self, scene: Scene, shard: int) -> str | None:
        """Return which host is to be offered the shard."""
        takers = scene.living - scene.draining - {scene.holder_of(shard)}
        target = scene.targets.get(shard)
        order = sorted(order_of(shard, takers), key=lambda host: host != target)
        return next((host for host in order if not self._is_refused(scene, shard, host)), None)

    def _is_refused(self, scene: Scene, shard: int, host: str) -> bool:
        until, _ = self._refused.get((shard, host), (-inf, 0.0))
        return host in scene.refusing[shard] or self._clock() < until


def _without_leases(scene: Scene) -> tuple[object, ...]:
    """Return what stands still in a scene unless something happens."""
    shards = {
        shard: seen and (seen.epoch, seen.host, seen.offer, bool(seen.lease))
        for shard, seen in scene.shards.items()
    }
    return (shards, scene.owned, scene.living, scene.draining, scene.partners)
