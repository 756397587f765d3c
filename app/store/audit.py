"""What operators changed, or tried to change."""

import logging
from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson
from redis.asyncio import Redis
from redis.exceptions import RedisError

from app.store.connection import StoreUnavailable
from app.store.keys import Keys
from app.store.line import Line

log = logging.getLogger(__name__)

_MOST = 10_000


class AuditEntry(NamedTuple):
    """One change; `time` in ms since 1970, `outcome` is ok or the code of the failure."""

    id: str
    time: int
    who: str
    action: str
    target: str
    outcome: str
    detail: dict[str, Any]


class Audit:
    """Writes on the line, in order with the changes; reads beside it. The oldest entries go."""

    def __init__(self, line: Line, redis: Redis, keys: Keys) -> None:
        self._line = line
        self._redis = redis
        self._key = keys.audit

    def note(
        self,
        who: str,
        action: str,
        target: str,
        *,
        outcome: str = "ok",
        detail: Mapping[str, Any] | None = None,
    ) -> None:
        """Add an entry; twice if the store's answer is lost."""
        fields = ("who", who, "action", action, "target", target, "outcome", outcome)
        told = orjson.dumps({} if detail is None else dict(detail))
        self._line.call(
            ("XADD", self._key, "MAXLEN", "~", _MOST, "*", *fields, "detail", told), _noted
        )

    async def read(self, cursor: str | None, limit: int) -> tuple[list[AuditEntry], str | None]:
        """Entries, the latest first, and what asks for the next ones."""
        latest = "+" if cursor is None else f"({cursor}"
        try:
            found: Any = await self._redis.xrevrange(self._key, latest, "-", count=limit)
        except (RedisError, OSError) as error:
            raise StoreUnavailable(f"the store cannot be read: {error}") from error
        entries = [_entry(id.decode(), fields) for id, fields in found]
        return entries, entries[-1].id if len(entries) == limit else None


def _entry(id: str, fields: Mapping[bytes, bytes]) -> AuditEntry:
    text = {name.decode(): value.decode() for name, value in fields.items()}
    time = int(id.partition("-")[0])
    detail = orjson.loads(text.pop("detail"))
    return AuditEntry(id=id, time=time, detail=detail, **text)


def _noted(reply: object) -> None:
    if isinstance(reply, Exception):
        log.error("an entry of the audit was not kept: %s", reply)
