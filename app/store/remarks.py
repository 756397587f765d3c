"""Operators' remarks on groups of dead letters."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import orjson
from pydantic import Field

from holdfast.delivery.basics.node import NS_PER_MS
from holdfast.store.format import scripts
from holdfast.store.format.operator_input import Ms
from holdfast.store.links.reader import Reader
from holdfast.store.store import Store

VERSION = 1
# How many remarks there may be. Beyond that, the one unchanged for longest is removed.
MOST = 1000


@dataclass(frozen=True, slots=True)
class Remark:
    """An operator's remark on a group of dead letters."""

    assignee: Annotated[str, Field(description="Who looks after them; empty: nobody.")]
    note: str
    who: Annotated[str, Field(description="Who wrote the remark.")]
    at: Ms


class Remarks:
    """Writes remarks, which outlive the letters, on the store link; reads them on the reader."""

    def __init__(self, store: Store, reader: Reader, now_ns: Callable[[], int]) -> None:
        self._store = store
        self._reader = reader
        self._keys = store.keys
        self._now_ns = now_ns

    async def put(self, fingerprint: str, assignee: str, note: str, who: str) -> Remark:
        """Store a remark. An empty one is removed."""
        remark = Remark(assignee, note, who, self._now_ns() // NS_PER_MS)
        record = orjson.dumps({"v": VERSION, **asdict(remark)}) if assignee or note else b""
        await self._store.run(
            scripts.remark(self._keys, fingerprint, record, at=remark.at, most=MOST)
        )
        return remark

    async def of(self, fingerprints: Sequence[str]) -> list[Remark | None]:
        """Return the remarks on these groups."""
        if not fingerprints:
            return []
        found = await self._reader.ask("HMGET", self._keys.remarks, *fingerprints)
        return [None if record is None else _remark(record) for record in found]


def _remark(record: bytes | str) -> Remark | None:
    found: dict[str, Any] = orjson.loads(record)
    return Remark(**found) if found.pop("v") == VERSION else None
