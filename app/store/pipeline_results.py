"""Results that the pipeline stores for operators."""

from collections.abc import Iterable
from typing import Any

import orjson

from holdfast.store.format.keys import RedisKeys
from holdfast.store.links.reader import Reader

VERSION = 2


class PipelineResults:
    """Reads results on the reader. The pipeline replaces them."""

    def __init__(self, reader: Reader, keys: RedisKeys) -> None:
        self._reader = reader
        self._keys = keys

    async def get(self, name: str) -> dict[str, Any] | None:
        """Return the latest result of this name, or None if this version cannot read it."""
        return next(iter(await self.known([name])), None)

    async def known(self, names: Iterable[str]) -> list[dict[str, Any]]:
        """Return the latest results of these names, as far as this version can read them."""
        keys = map(self._keys.pipeline_result, names)
        texts = await self._reader.ask_all(*(("GET", key) for key in keys))
        found = [orjson.loads(text) for text in texts if text is not None]
        return [each for each in found if each.pop("v") == VERSION]
