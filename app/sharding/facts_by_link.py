"""What this shard and the others ask each other over links about facts.

A shard whose store is away cannot write there how far it has read the logs of others. Over a link
it says from memory which facts it knows. What it has in memory, it need not know after a restart:
then it reads all facts before it serves.
"""

from collections.abc import Callable, Mapping
from typing import Final, Protocol

from holdfast.cluster.inclusion import Inclusion
from holdfast.cluster.places import NOWHERE, Place, PlaceUnreadable, place_of
from holdfast.sharding.other_shards import OtherShards

# In milliseconds, which number what is said.
_PER_S: Final = 1000


class Outlet(Protocol):
    """The link to another shard."""

    def ask(self, place: str, /) -> None:
        """Ask to be told when all facts up to this place are known."""
        ...

    def say_alive(self, number: int, /) -> None:
        """Say that this process lives."""
        ...


class FactsByLink:
    """Asks others over links what they know, and answers them.

    Args:
        inclusion: None if the lease of this shard proves that it is not left out.
        clock: Returns the time of the event loop.
    """

    def __init__(
        self, others: OtherShards, inclusion: Inclusion | None, clock: Callable[[], float]
    ) -> None:
        self._others = others
        self._inclusion = inclusion
        self._clock = clock
        self.outlets: Mapping[int, Outlet] = {}
        # By shard, the end of its log when its facts were read.
        self._read_to: dict[int, Place] = {}
        # By shard, the place about which it has asked, and what answers it.
        self._asked: dict[int, tuple[Place, Callable[[str], None]]] = {}

    # What others ask and say

    def asked(self, shard: int, place: str, answer: Callable[[str], None]) -> None:
        self._asked[shard] = _place(place), answer
        self._answer(shard)
        if shard in self._asked:
            # Its log may be long, and the store here may take nothing of it for now.
            self._others.known.wanted.add(shard)

    def _answer(self, shard: int) -> None:
        place, answer = self._asked[shard]
        if self._knows(shard, place):
            del self._asked[shard]
            answer(str(place))

    def _knows(self, shard: int, place: Place) -> bool:
        reader = self._others.readers.get(shard)
        known = [self._read_to.get(shard, NOWHERE), NOWHERE if reader is None else reader.shown]
        return any(each.nonce == place.nonce and each.n >= place.n for each in known)

    def lives(self, shard: int) -> None:
        self._others.agreements.lives(shard, self._clock())

    # What they answer

    def known(self, shard: int, place: str) -> None:
        self._others.agreements.saw(shard, _place(place))

    def heard(self, shard: int, number: int) -> None:
        if self._inclusion is not None:
            self._inclusion.shown(number / _PER_S, shard)

    # What happens here

    @property
    def are_waited_for(self) -> bool:
        """Whether no other shard leaves this one out of what it tells from now on."""
        return self._inclusion is None or self._inclusion.is_shown

    def has_read(self, shard: int, end: Place, began_at: float) -> None:
        """Take note that all facts of a shard were read, by a read that began at this time."""
        self._read_to[shard] = end
        if self._inclusion is not None:
            self._inclusion.read(shard, began_at)

    def tick(self) -> None:
        """Ask and answer what is due."""
        for shard in [*self._asked]:
            self._answer(shard)
        for shard, place in self._others.agreements.to_ask(self._clock()).items():
            if shard in self.outlets:
                self.outlets[shard].ask(str(place))
        if self._inclusion is not None:
            self._inclusion.check()
            number = int(self._inclusion.clock() * _PER_S)
            for shard in self._inclusion.to_tell():
                if shard in self.outlets:
                    self.outlets[shard].say_alive(number)


def _place(text: str) -> Place:
    try:
        return place_of(text)
    except PlaceUnreadable:
        return NOWHERE
