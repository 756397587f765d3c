"""Reads the journals in the store for operators, page by page from a given time."""

import re
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from holdfast.store.format.keys import RedisKeys
from holdfast.store.links.reader import Reader, fields_of

_ID = re.compile(rb"([0-9]+)-([0-9]+)")


class UnreadFrames(NamedTuple):
    """The tables that are furthest behind, and when the first frame that they lack was written."""

    lake: str
    since: int


class JournalFrames:
    """Reads frames on the reader, unless they are trimmed.

    Args:
        node: The name under which this server writes its journal.
    """

    def __init__(self, reader: Reader, keys: RedisKeys, node: str) -> None:
        self._reader = reader
        self._keys = keys
        self._node = node

    async def nodes(self) -> list[str]:
        """Return the names of the nodes that have written a journal."""
        prefix = self._keys.journal("").encode()
        names = await self._reader.ask("HKEYS", self._keys.meta)
        return [name.removeprefix(prefix).decode() for name in names if name.startswith(prefix)]

    async def since(
        self, nodes: Collection[str], ms: int, cursor: str | None, most: int
    ) -> list[tuple[str, bytes]]:
        """Return frames written since that time and after the cursor, each with its cursor.

        They are in the order in which the nodes wrote them.
        """
        if not nodes:
            return []
        first = f"{ms}-0" if cursor is None else f"({cursor}"
        journals = [self._keys.journal(node) for node in nodes]
        parts = await self._reader.ask_all(
            *(("XRANGE", journal, first, "+", "COUNT", most) for journal in journals)
        )
        found = sorted((entry for part in parts for entry in part), key=_written)
        # Frames with the same id share a cursor, so they stay together.
        last = _written(found[most - 1]) if len(found) > most else None
        return [
            (entry[0].decode(), fields_of(entry[1])[b"frame"])
            for entry in found
            if last is None or _written(entry) <= last
        ]

    async def unread(self) -> UnreadFrames | None:
        """Return what is unread, or None if all tables have everything or there are none."""
        found = await self._reader.ask("HGETALL", self._keys.journal_read(self._node))
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
        journal = self._keys.journal(self._node)
        unread = await self._reader.ask("XRANGE", journal, after, "+", "COUNT", 1)
        return UnreadFrames(places[last], int(unread[0][0].partition(b"-")[0])) if unread else None

    async def lakes(self) -> list[str]:
        """Return the machines and folders of the tables that the journal is read into."""
        found = await self._reader.ask("HVALS", self._keys.lakes)
        return sorted(place.decode("utf-8", "replace") for place in found)


def _written(entry: Sequence[Any]) -> tuple[int, int]:
    """Return when an entry of a stream was written: its id as numbers."""
    ms, _, number = entry[0].partition(b"-")
    return int(ms), int(number)
