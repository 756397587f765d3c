"""The audit: what operators changed or tried to change."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import orjson
from pydantic import Field

from holdfast.store.format import scripts
from holdfast.store.format.operator_input import Ms
from holdfast.store.links.reader import Reader, fields_of
from holdfast.store.store import Store

_MOST = 10_000
# How many are read at once.
_STRETCH = 500


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One change, or attempted change, by an operator."""

    id: str
    time: Ms
    who: str
    action: Annotated[str, Field(description="Like `session.end` or `dead.purge`.")]
    target: str
    outcome: Annotated[str, Field(description="`ok`, or the code of the failure.")]
    detail: dict[str, Any]


class Audit:
    """Writes on the store link, in order with the changes; reads on the reader. Drops old ones."""

    def __init__(self, store: Store, reader: Reader) -> None:
        self._store = store
        self._keys = store.keys
        self._reader = reader

    def note(
        self,
        who: str,
        action: str,
        target: str,
        *,
        outcome: str = "ok",
        detail: Mapping[str, Any] | None = None,
    ) -> None:
        """Add an entry, also to a store that is full."""
        fields = ("who", who, "action", action, "target", target, "outcome", outcome)
        encoded = orjson.dumps({} if detail is None else dict(detail))
        self._store.post(scripts.audit(self._keys, (*fields, "detail", encoded), most=_MOST))

    async def read(self, cursor: str | None, limit: int) -> tuple[list[AuditEntry], str | None]:
        """Return entries, newest first, and the cursor of the next page."""
        latest = "+" if cursor is None else f"({cursor}"
        found = await self._reader.ask("XREVRANGE", self._keys.audit, latest, "-", "COUNT", limit)
        entries = [_entry(id.decode(), fields_of(each)) for id, each in found]
        return entries, entries[-1].id if len(entries) == limit else None

    async def all(self) -> AsyncIterator[Sequence[AuditEntry]]:
        """Yield all entries in parts, newest first."""
        entries, cursor = await self.read(None, _STRETCH)
        yield entries
        while cursor is not None:
            entries, cursor = await self.read(cursor, _STRETCH)
            yield entries


def _entry(id: str, fields: Mapping[bytes, bytes]) -> AuditEntry:
    text = {name.decode(): value.decode() for name, value in fields.items()}
    time = int(id.partition("-")[0])
    detail = orjson.loads(text.pop("detail"))
    return AuditEntry(id=id, time=time, detail=detail, **text)
