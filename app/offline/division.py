"""Where everything belongs in a deployment that is divided in some way."""

import secrets
from dataclasses import dataclass
from typing import Final

from holdfast.bayeux.wire.client_ids import ClientIds
from holdfast.cluster.shards import Homes, ShardMap, Shards, first_map, homes_of, map_of
from holdfast.delivery.basics.steps import ARRIVALS
from holdfast.delivery.messages.session_record import SessionRecord
from holdfast.delivery.queues.receivers import NOBODY
from holdfast.delivery.shared_queues.work import PREFIX as WORK
from holdfast.store.format.deployment import UNDIVIDED, Division

_SHARED: Final = "/0"
_FIRST: Final = 0


@dataclass(frozen=True, slots=True)
class Divided:
    """How many shards there are, and which has what."""

    map: ShardMap
    homes: Homes

    @property
    def count(self) -> int:
        """The number of shards."""
        return self.map.count

    @property
    def record(self) -> Division:
        """What the first shard keeps of it: nothing if it is alone."""
        if self.count == 1:
            return UNDIVIDED
        return Division(self.map.to_json(), self.homes.to_json())


def divided(found: Division) -> Divided:
    """Return the division in the store of the first shard. Raises `MapUnreadable`."""
    if not found.shards:
        return Divided(first_map(1), Homes({}))
    return Divided(map_of(found.shards), homes_of(found.homes))


class Places:
    """Answers which shard gets what.

    Args:
        key: The secret of the deployment.
    """

    def __init__(self, target: Divided, key: bytes) -> None:
        self.count = target.count
        self._ids = ClientIds(key, secrets.token_bytes)
        self._shards = Shards(target.map, target.homes, self._ids.bucket_of)
        # By session, its shard: names alone do not say it.
        self._sessions: dict[str, int] = {}

    def of_session(self, record: SessionRecord) -> int:
        """Return the shard of a session; `of_receiver` knows it from then on."""
        shard = self._of_subject(record.key)
        if shard is None:
            shard = self._shards.of_bucket(self._ids.bucket_in(record.client_id))
        self._sessions[record.key] = shard
        return shard

    def of_receiver(self, receiver: str, source: int) -> int:
        """Return the shard of a queue or a history that was in the shard `source`."""
        known = self._sessions.get(receiver)
        if known is not None:
            return known
        if receiver.startswith("/"):
            return self.of_channel(receiver)
        if receiver in ARRIVALS:
            # What waits there for its time may be published by any shard.
            return self.of_source(source)
        if receiver.startswith(WORK):
            return self.of_channel(receiver.removeprefix(WORK).removesuffix(_SHARED))
        shard = self._of_subject(receiver)
        # A session without a subject has ended, and left something behind.
        return self.of_source(source) if shard is None else shard

    @staticmethod
    def is_session(receiver: str) -> bool:
        """Return whether a receiver is a session, or has been one."""
        return not receiver.startswith("/") and not receiver.endswith(_SHARED)

    def of_channel(self, channel: str) -> int:
        """Return the home of a channel. Without a rule, it is or has been a topic."""
        return self._shards.of_topic(channel)

    def of_source(self, source: int) -> int:
        """Return where something goes that stays if its shard does."""
        return source if source < self.count else _FIRST

    def _of_subject(self, key: str) -> int | None:
        subject = key.rpartition("/")[0]
        return None if subject == NOBODY else self._shards.of_subject(subject)
