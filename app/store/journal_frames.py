"""Reads the journal of one node for operators, page by page from a given time."""

import re
from typing import NamedTuple

from holdfast.store.keys import RedisKeys
from holdfast.store.reader import Reader, fields_of

_ID = re.compile(rb"([0-9]+)-([0-9]+)")


class UnreadFrames(NamedTuple):
    """The tables that are furthest behind, and when the first frame that they lack was written."""

    lake: str
    since: int


class JournalFrames:
    """Reads frames on the reader, unless they are trimmed."""

    def __init__(self, reader: Reader, keys: RedisKeys) -> None:
        self._reader = reader
        self._keys = keys

    async def since(
        self, node: str, ms: int, cursor: str | None, most: int
    ) -> list[tuple[str, bytes]]:
        """Return frames written since that time and after the cursor, each with its cursor."""
        journal = self._keys.journal(node)
        first = f"{ms}-0" if cursor is None else f"({cursor}"
        found = await self._reader.ask("XRANGE", journal, first, "+", "COUNT", most)
        return [(id.decode(), fields_of(each)[b"frame"]) for id, each in found]

    async def unread(self, node: str) -> UnreadFrames | None:
        """Return what is unread, or None if all tables have everything or there are none."""
        found = await self._reader.ask("HGETALL", self._keys.journal_read(node))
        # A lake that was dropped in the meantime has no place.
        places = {
            (int(place[1]), int(place[2])): lake.decode("utf-8", "replace")
            for lake, id in found.items()
            if (place := _ID.fullmatch(id))
        }
        if not places:
            return None
        last = min(places)
        after = f"({last[0]}-{last[1]}"
        unread = await self._reader.ask("XRANGE", self._keys.journal(node), after, "+", "COUNT", 1)
        return UnreadFrames(places[last], int(unread[0][0].partition(b"-")[0])) if unread else None

    async def lakes(self) -> list[str]:
        """Return the machines and folders of the tables that the journal is read into."""
        found = await self._reader.ask("HVALS", self._keys.lakes)
        return sorted(place.decode("utf-8", "replace") for place in found)
