"""What this shard knows of the facts of others, and from which place in their logs on."""

from collections.abc import Iterable

from holdfast.cluster.frames import Facts
from holdfast.cluster.places import Place, is_behind
from holdfast.cluster.rows import OthersRows


class KnownFacts:
    """The facts of other shards: read as a whole, then kept by the frames of their logs.

    They are read again at each new incarnation of a shard, because its store may have gone back.

    Args:
        others: The numbers of the other shards. Nothing is known about them at first.
    """

    def __init__(self, others: Iterable[int]) -> None:
        others = [*others]
        self.rows = OthersRows(others)
        # The shards whose facts are to be read.
        self.wanted = {*others}
        # By shard, its incarnation at the time of reading, and the last frame with a changed fact.
        self._incarnation: dict[int, str] = {}
        self._as_of: dict[int, Place] = {}
        # By shard, the incarnation whose frames are read.
        self._reading: dict[int, str] = {}

    def begin(self, shard: int, incarnation: str, names: Iterable[str], as_of: Place) -> None:
        """Take over all facts of a shard.

        Args:
            incarnation: The incarnation that the shard had before they were read.
            as_of: The place of the last frame that had changed one of them.
        """
        self.rows.begin(shard, names)
        self._incarnation[shard], self._as_of[shard] = incarnation, as_of
        self.wanted.discard(shard)

    def lose(self, shard: int) -> None:
        """Expect anything of a shard until its facts are read again: some frames are missing."""
        self.rows.lose(shard)
        self.wanted.add(shard)

    def want_all(self) -> None:
        """Read the facts of all shards again: they may have gone on without this one."""
        self.wanted |= self._as_of.keys()

    def saw_incarnation(self, shard: int, nonce: str) -> bool:
        """Take note of the incarnation whose frames are read now.

        Returns whether it follows on another one.
        """
        former = self._reading.get(shard)
        if former == nonce:
            return False
        self._reading[shard] = nonce
        if self._incarnation.get(shard) != nonce:
            self.wanted.add(shard)
        return former is not None

    def learn(self, shard: int, place: Place, facts: Facts) -> None:
        """Take note of the facts in the frame before this place, unless they are older."""
        as_of = self._as_of.get(shard)
        if as_of is not None and facts and is_behind(place, as_of):
            self.rows.learn(shard, facts)
