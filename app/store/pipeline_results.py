"""Results that the pipeline stores for operators."""

from typing import Any

import orjson

from holdfast.store.keys import RedisKeys
from holdfast.store.reader import Reader

VERSION = 2


class PipelineResults:
    """Reads results on the reader. The pipeline replaces them."""

    def __init__(self, reader: Reader, keys: RedisKeys) -> None:
        self._reader = reader
        self._keys = keys

    async def get(self, name: str) -> dict[str, Any] | None:
        """Return the latest result of this name, or None if this version cannot read it."""
        text = await self._reader.ask("GET", self._keys.pipeline_result(name))
        if text is None:
            return None
        found: dict[str, Any] = orjson.loads(text)
        return found if found.pop("v") == VERSION else None
