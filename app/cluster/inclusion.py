"""Whether other shards wait for this one, or may have left it out of what they agree on.

They wait as long as something shows that its process lives: the counter in its store, or what it
says on a link. A shard that may have been left out does not know all facts of the others: it reads
them again, and until then expects anything of them.
"""

from collections.abc import Callable, Collection
from math import inf
from typing import Final

from holdfast.cluster.rows import OthersRows

# Others leave a shard out that has shown nothing for 3 s: see `agreement.py`.
_WAITED_FOR_S: Final = 2.5
# A shard that has shown nothing for so long says on links that it lives.
_QUIET_S: Final = 1.0
_SAY_EVERY_S: Final = 0.5


class Inclusion:
    """Notes when it was shown to other shards that this one lives.

    Args:
        others: The numbers of the other shards. Nothing was shown to them so far.
        rows: Expects anything of shards that are doubted: they may have left this one out.
        clock: Must not stop while the process does.
        read_again: Called with a shard whose facts are to be read.
    """

    def __init__(
        self,
        others: Collection[int],
        rows: OthersRows,
        clock: Callable[[], float],
        read_again: Callable[[int], None],
    ) -> None:
        self.clock = clock
        self._rows, self._read_again = rows, read_again
        # When something was sent that each shard has got since.
        self._shown_at = dict.fromkeys(others, -inf)
        # Until when all those wait that have not left this one out.
        self._until = inf
        # Those that may have, and since when they wait again; None if they do not.
        self._doubted: dict[int, float | None] = {}
        self._said_at = -inf
        for shard in others:
            self._begin_to_doubt(shard)

    def check(self) -> None:
        """Doubt all shards that may have left this one out by now."""
        now = self.clock()
        if now > self._until:
            for shard, shown_at in self._shown_at.items():
                if shard not in self._doubted and now - shown_at > _WAITED_FOR_S:
                    self._begin_to_doubt(shard)
            self._find_limit()

    def _begin_to_doubt(self, shard: int) -> None:
        self._doubted[shard] = None
        self._rows.doubt(shard)

    def shown(self, sent_at: float, *shards: int) -> None:
        """Note that shards have got what was sent at this time; without any, that all have."""
        self.check()
        for shard in shards or self._shown_at:
            has_waited = self._waits(shard)
            self._shown_at[shard] = max(sent_at, self._shown_at[shard])
            if shard in self._doubted and self._waits(shard):
                self._wait_again(shard, has_waited=has_waited)
        self._find_limit()

    def _wait_again(self, shard: int, *, has_waited: bool) -> None:
        """Note that a doubted shard waits from now on. Its store has what it told before."""
        if self._doubted[shard] is None or not has_waited:
            self._doubted[shard] = self.clock()
            self._read_again(shard)

    def _waits(self, shard: int) -> bool:
        return self.clock() - self._shown_at[shard] <= _WAITED_FOR_S

    def _find_limit(self) -> None:
        waiting = [at for each, at in self._shown_at.items() if each not in self._doubted]
        self._until = min(waiting, default=inf) + _WAITED_FOR_S

    @property
    def is_shown(self) -> bool:
        """Whether all shards wait for this one, in what they tell from now on."""
        return all(map(self._waits, self._shown_at))

    def read(self, shard: int, began_at: float) -> None:
        """Note that all facts of a shard were read, by a read that began at this time."""
        self.check()
        since = self._doubted.get(shard)
        if since is None:
            return
        if began_at < since:
            self._read_again(shard)
        elif self._waits(shard):
            # It has waited for this shard since.
            del self._doubted[shard]
            self._rows.trust(shard)
            self._find_limit()
        else:
            self._doubted[shard] = None

    def to_tell(self) -> list[int]:
        """Return the shards to which to say now that this one lives."""
        now = self.clock()
        if now - self._said_at < _SAY_EVERY_S:
            return []
        found = [each for each, at in self._shown_at.items() if now - at > _QUIET_S]
        if found:
            self._said_at = now
        return found
