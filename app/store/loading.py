"""Reads what a process before this one has left in the store."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence, Set
from typing import Any, NamedTuple

import orjson

from app.delivery.guard import Held
from app.delivery.keeper import Mark
from app.delivery.messages import Message
from app.delivery.session_record import RecordUnreadable, SessionRecord
from app.store import records
from app.store.connection import StoreUnavailable
from app.store.keys import Keys
from app.store.line import Line
from app.store.wire import Word

log = logging.getLogger(__name__)

# So much is asked for at once.
_SESSIONS = 100
_MESSAGES = 500


class Loaded(NamedTuple):
    """A session as it was left.

    Returned and handed entries first, in the order of their hand-over; then by priority and age.
    """

    record: SessionRecord
    entries: list[tuple[Mark, Message]]
    # The ids of those that have marks of their own.
    marked: Set[int]


# Called with the key of a session that is gone, and what is kept for it all the same: the process
# was killed before it had heard of that, and settled it.
Orphaned = Callable[[str, Sequence[Message]], None]


class Loading:
    """One look at the whole store. A message that several sessions wait for is one object."""

    def __init__(self, line: Line, keys: Keys) -> None:
        self._line = line
        self._keys = keys
        self._loop = asyncio.get_running_loop()
        # Messages that nobody waits for, what is kept for sessions that are gone, and marks of
        # entries that are: a process was killed before it had removed them all. They are removed.
        self._dangling = 0
        self._messages: dict[int, Message] = {}
        self._unreadable: set[int] = set()
        # Which messages sessions wait for, by their keys.
        self._queues: dict[bytes, list[int]] = {}

    async def sessions(
        self, marked: Callable[[str, Collection[int]], None], orphaned: Orphaned
    ) -> AsyncIterator[Loaded]:
        """All sessions, in no order; `marked` is told whose entries have marks of their own."""
        async for page in self._pages(self._keys.bodies, _MESSAGES):
            await self._read_messages({int(id): body for id, body in page.items()})
        seen: set[bytes] = set()
        async for page in self._pages(self._keys.sessions, _SESSIONS):
            for key in seen & page.keys():
                del page[key]
            seen |= page.keys()
            for loaded in await self._read_sessions(_readable(page)):
                marked(loaded.record.key, loaded.marked)
                yield loaded
        for key in self._queues.keys() - seen:
            self._dangling += len(self._queues[key])
            orphaned(key.decode(), [self._messages[id] for id in self._queues[key]])
        if self._dangling:
            log.info("%d remains of a killed process were removed", self._dangling)

    async def gone(self, keys: Collection[str]) -> list[str]:
        """Those of these sessions that are not there."""
        asked = {key: self._ask("HEXISTS", self._keys.sessions, key) for key in keys}
        return [key for key, answer in asked.items() if not await answer]

    async def held_channels(self) -> dict[str, Held]:
        """The channels that were held back."""
        held = {}
        pairs: dict[bytes, bytes] = await self._ask("HGETALL", self._keys.held)
        for channel, record in pairs.items():
            try:
                held[channel.decode()] = records.unpack_held(record)
            except (RecordUnreadable, orjson.JSONDecodeError) as error:
                log.error("a channel that was held back flows: %s", error)
        return held

    async def _read_messages(self, bodies: Mapping[int, bytes]) -> None:
        asked = {id: self._ask("SMEMBERS", self._keys.receivers(id)) for id in bodies}
        for id, body in bodies.items():
            receivers = await asked[id]
            if id in self._messages:
                # A scan may give something twice.
                continue
            if not receivers:
                self._remove("HDEL", self._keys.bodies, id)
                continue
            try:
                self._messages[id] = records.unpack_message(id, body)
            except (RecordUnreadable, KeyError, orjson.JSONDecodeError) as error:
                log.error("message %d stays in the store: %s", id, error)
                self._unreadable.add(id)
                continue
            for key in receivers:
                self._queues.setdefault(key, []).append(id)

    async def _read_sessions(self, found: Sequence[SessionRecord]) -> list[Loaded]:
        asked = [
            (
                record,
                self._ask("HGETALL", self._keys.marks(record.key)),
                self._ask("HGET", self._keys.handed, record.key),
            )
            for record in found
        ]
        return [self._loaded(record, await marks, await batch) for record, marks, batch in asked]

    def _loaded(
        self, record: SessionRecord, marks: dict[bytes, bytes], batch: bytes | None
    ) -> Loaded:
        handed = {mark.id: mark for mark in _marks_of(batch, record.key)}
        marked = dict(_entries_of(marks, record.key))
        entries = []
        for id in self._queues.get(record.key.encode(), ()):
            # An entry's own mark wins: it is of later than the batch.
            of_batch = handed.get(id, Mark(id))
            mark, generation = marked.pop(id, (of_batch, 0))
            message = self._messages[id]
            entries.append((mark, records.replayed(message, generation) if generation else message))
        for id in marked.keys() - self._unreadable:
            self._remove("HDEL", self._keys.marks(record.key), id)
        entries.sort(key=_place)
        return Loaded(record, entries, {int(id) for id in marks} - marked.keys())

    async def _pages(self, key: str, count: int) -> AsyncIterator[dict[bytes, bytes]]:
        """What a hash has, in parts."""
        cursor: bytes | int = 0
        while True:
            cursor, pairs = await self._ask("HSCAN", key, cursor, "COUNT", count)
            yield dict(zip(pairs[::2], pairs[1::2], strict=True))
            if int(cursor) == 0:
                return

    def _remove(self, *parts: Word) -> None:
        self._dangling += 1
        self._line.call(parts, _ignore)

    def _ask(self, *parts: Word) -> asyncio.Future[Any]:
        """The answer to a command; many may be asked before one is awaited."""
        answer: asyncio.Future[Any] = self._loop.create_future()

        def done(reply: object) -> None:
            if isinstance(reply, Exception):
                answer.set_exception(StoreUnavailable(f"the store cannot be read: {reply}"))
            else:
                answer.set_result(reply)

        self._line.call(parts, done)
        return answer


def _ignore(_: object) -> None:
    """Who loads next removes it too."""


def _readable(found: dict[bytes, bytes]) -> list[SessionRecord]:
    readable = []
    for key, record in found.items():
        try:
            readable.append(records.unpack_session(record))
        except (RecordUnreadable, orjson.JSONDecodeError) as error:
            log.error("session %s stays in the store: %s", key.decode(errors="replace"), error)
    return readable


def _marks_of(batch: bytes | None, key: str) -> list[Mark]:
    """How far entries have come that were handed over last."""
    if batch is None:
        return []
    try:
        return records.unpack_batch(batch).marks()
    except RecordUnreadable as error:
        # They come again as if they were new, rather than not at all.
        log.error("what %s was handed is not known: %s", key, error)
        return []


def _entries_of(marks: Mapping[bytes, bytes], key: str) -> Iterator[tuple[int, tuple[Mark, int]]]:
    """How far single entries have come, and how often their messages were replayed."""
    for id, mark in marks.items():
        try:
            yield int(id), records.unpack_entry(int(id), mark)
        except RecordUnreadable as error:
            log.error("how far %s has come is not known: %s", key, error)


def _place(entry: tuple[Mark, Message]) -> tuple[bool, int, int, int]:
    mark, message = entry
    position = mark.position or mark.seq
    return (position == 0, position, -message.priority, mark.id)
