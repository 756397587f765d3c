"""Compares, in the stores, what shards have told each other with what the others have taken."""

from collections.abc import Callable, Iterator

from holdfast.store.keys import RedisKeys
from tests.simulation.store.keyspace import Hash, Keyspace


class Books:
    """The logs of the shards of a deployment, and how far the others have taken them.

    Args:
        keyspace: Returns what the server of the store has that has this key.
    """

    def __init__(self, keyspace: Callable[[str], Keyspace], count: int) -> None:
        self._keyspace = keyspace
        self._keys = [RedisKeys("holdfast", shard) for shard in range(count)]

    def unsettled(self) -> list[str]:
        """Return what is not taken or not done."""
        return [*self._untaken(), *self._undone()]

    def _untaken(self) -> Iterator[str]:
        for sender, _ in enumerate(self._keys):
            appended = self._total(sender, b"log")
            for reader, _ in enumerate(self._keys):
                if reader != sender:
                    taken = self._total(reader, b"place %d" % sender)
                    if taken != appended:
                        yield f"S9: shard {reader} took {taken} of {appended} entries of {sender}"

    def _total(self, shard: int, field: bytes) -> int:
        """Return how many entries there are before a place."""
        place = self._hash(shard, self._keys[shard].meta).get(field, b"0")
        return int(place.rpartition(b" ")[2])

    def _undone(self) -> Iterator[str]:
        for shard, keys in enumerate(self._keys):
            if letters := self._hash(shard, keys.inbox):
                yield f"liveness: shard {shard} has not done {len(letters)} letters"

    def _hash(self, shard: int, key: str) -> Hash:
        return self._keyspace(self._keys[shard].meta).find(Hash, key.encode()) or Hash()
