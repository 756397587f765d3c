"""Reads the stores: what shards have told each other and taken of it, and what is left there."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import orjson

from holdfast.delivery.letters.dead import LetterState
from holdfast.store.format.keys import FIRST_GENERATION, RedisKeys
from holdfast.store.format.letter_records import unpack_letter
from holdfast.store.format.records import unpack_session, without_sum
from tests.simulation.store.keyspace import Hash, Keyspace

_NAMESPACE = "holdfast"
_KEY = re.compile(rb'"key":"([^"]*)"')


class Letter(NamedTuple):
    """What a dead letter says: for whom, about which message, and why."""

    receiver: str
    key: str
    channel: str
    code: str
    id: str = ""
    # How often its message had been replayed, and which replay has taken the letter itself.
    generation: int = 0
    job: str = ""
    # Whether it waits to be replayed: the shard that has taken it for that got it from another one.
    is_new: bool = False


class Written(NamedTuple):
    """What a store has whose form depends on its layout."""

    version: int
    # Publish keys with their times, and those without any.
    merged: Sequence[str]
    timeless: Sequence[str]


class Books:
    """The logs of the shards of a deployment, how far the others have taken them, and what is kept.

    Args:
        keyspace: Returns what the server of the store has that has this key.
    """

    def __init__(self, keyspace: Callable[[str], Keyspace], count: int) -> None:
        self._keyspace = keyspace
        # How many shards there are.
        self.count = count

    @property
    def _keys(self) -> list[RedisKeys]:
        """The keys of all shards in the current generation."""
        generation = int(self.first().get(b"generation", FIRST_GENERATION))
        return [RedisKeys(_NAMESPACE, shard, generation) for shard in range(self.count)]

    def first(self) -> Hash:
        """Return what the first shard knows of the deployment."""
        keys = RedisKeys(_NAMESPACE)
        return self._hash(keys, keys.meta)

    def unsettled(self) -> list[str]:
        """Return what is not taken or not done."""
        return [*self._untaken(), *self._undone()]

    def letters(self) -> list[Letter]:
        """Return all dead letters."""
        return [
            _letter_in(id.decode(), record)
            for keys in self._keys
            for id, record in self._hash(keys, keys.dead).items()
        ]

    def kept(self, channel: str) -> frozenset[str]:
        """Return the keys of the messages of a channel that are stored for somebody."""
        its = b'"channel":"%s"' % channel.encode()
        return frozenset(
            _key_in(record)
            for keys in self._keys
            for record in self._hash(keys, keys.bodies).values()
            if its in record.rpartition(b"\n")[2]
        )

    def written(self) -> list[Written]:
        """Return what each shard has whose form depends on the layout, unless a slot moves now."""
        return [self._written(keys) for keys in self._keys if self._hash(keys, keys.meta)]

    def _written(self, keys: RedisKeys) -> Written:
        meta, times = (self._hash(keys, key) for key in (keys.meta, keys.keyed_times))
        keyed = self._hash(keys, keys.keyed)
        # Behind a release without a clock, all its keys have the time of its end.
        apart = keyed if b"former" in meta else times
        return Written(
            int(meta[b"version"]),
            [key.decode() for key, value in keyed.items() if b":" in value],
            [key.decode() for key, value in keyed.items() if b":" not in value if key not in apart],
        )

    def unrecorded(self) -> list[list[str]]:
        """Return the outstanding requests of each shard that no record of a session contains."""
        return [self._unrecorded(keys) for keys in self._keys if self._hash(keys, keys.meta)]

    def _unrecorded(self, keys: RedisKeys) -> list[str]:
        records = [
            unpack_session(key.decode(), each).to_json()
            for key, each in self._hash(keys, keys.sessions).items()
        ]
        recorded = {each["address"] for record in records for each in record.get("requests", ())}
        sessions = {record["key"] for record in records}
        kept = {
            field.decode(): orjson.loads(bare).get("requester")
            for field, value in self._hash(keys, keys.requests).items()
            # Others say what responders have said.
            if (bare := without_sum(field.decode(), value)).startswith(b"{")
        }
        return [each for each, who in kept.items() if who in sessions and each not in recorded]

    def work(self) -> frozenset[str]:
        """Return the keys of the messages of work queues that are stored anywhere."""
        return frozenset(
            _key_in(record)
            for keys in self._keys
            for record in self._hash(keys, keys.bodies).values()
            if b'"q":true' in record.rpartition(b"\n")[0]
        )

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
        place = self._hash(self._keys[shard], self._keys[shard].meta).get(field, b"0")
        return int(place.rpartition(b" ")[2])

    def _undone(self) -> Iterator[str]:
        for shard, keys in enumerate(self._keys):
            if letters := self._hash(keys, keys.inbox):
                yield f"liveness: shard {shard} has not done {len(letters)} letters"

    def _hash(self, keys: RedisKeys, key: str) -> Hash:
        return self._keyspace(keys.meta).find(Hash, key.encode()) or Hash()


def _letter_in(id: str, record: bytes) -> Letter:
    letter = unpack_letter(record)
    return Letter(
        *(letter.subject, _key_in(record), letter.channel, letter.code),
        *(id, letter.generation, letter.job, letter.state is LetterState.NEW),
    )


def _key_in(record: bytes) -> str:
    """Return the key in the data of the event with which a record of a message ends."""
    found = _KEY.search(record.rpartition(b"\n")[2])
    return "" if found is None else found[1].decode()
