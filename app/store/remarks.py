"""What operators say of dead letters that failed alike: who looks after them, and what is known."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import orjson
from redis.asyncio import Redis
from redis.exceptions import RedisError

from app.store import scripts
from app.store.connection import StoreUnavailable
from app.store.keeping import Store

VERSION = 1
# Of fingerprints; the remark that nobody has touched for the longest time goes.
MOST = 1000
_NS_PER_MS = 1_000_000


class Remark(NamedTuple):
    """Of one fingerprint; `at` in ms since 1970."""

    assignee: str
    note: str
    who: str
    at: int


class Remarks:
    """Changes them on the line, and reads them beside it. They outlive the letters."""

    def __init__(self, store: Store, redis: Redis, now_ns: Callable[[], int]) -> None:
        self._store = store
        self._redis = redis
        self._keys = store.keys
        self._now_ns = now_ns

    async def put(self, fingerprint: str, assignee: str, note: str, who: str) -> Remark:
        """Say this from now on; nothing, if there is nothing to say."""
        said = Remark(assignee, note, who, self._now_ns() // _NS_PER_MS)
        record = orjson.dumps({"v": VERSION, **said._asdict()}) if assignee or note else b""
        await self._store.run(
            lambda epoch: scripts.remark(
                self._keys, epoch, fingerprint, record, at=said.at, most=MOST
            )
        )
        return said

    async def of(self, fingerprints: Sequence[str]) -> list[Remark | None]:
        """What is said of each of these."""
        if not fingerprints:
            return []
        try:
            found = await self._redis.hmget(self._keys.remarks, list(fingerprints))
        except (RedisError, OSError) as error:
            raise StoreUnavailable(f"the store cannot be read: {error}") from error
        return [None if record is None else _remark(record) for record in found]


def _remark(record: bytes | str) -> Remark | None:
    found: dict[str, Any] = orjson.loads(record)
    return Remark(**found) if found.pop("v") == VERSION else None
