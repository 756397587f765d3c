"""Reads the journal of one node for operators, page by page from a moment on."""

from holdfast.store.keys import RedisKeys
from holdfast.store.reader import Reader, fields_of


class JournalFrames:
    """Reads frames on the reader, as far as they are not trimmed."""

    def __init__(self, reader: Reader, keys: RedisKeys) -> None:
        self._reader = reader
        self._keys = keys

    async def since(
        self, node: str, ms: int, cursor: str | None, most: int
    ) -> list[tuple[str, bytes]]:
        """Return frames since that time and after the cursor, each with a cursor of its own."""
        journal = self._keys.journal(node)
        first = f"{ms}-0" if cursor is None else f"({cursor}"
        found = await self._reader.ask("XRANGE", journal, first, "+", "COUNT", most)
        return [(id.decode(), fields_of(each)[b"frame"]) for id, each in found]

    async def lakes(self) -> list[str]:
        """Return the machines and folders of the tables that the journal is read into."""
        found = await self._reader.ask("HVALS", self._keys.lakes)
        return sorted(place.decode("utf-8", "replace") for place in found)
