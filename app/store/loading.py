"""Reads what a process before this one has left in the store."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator, Sequence
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

# So much is held in memory at once, besides what was given away.
_SESSIONS = 100
_ENTRIES = 2000
_BODIES = 500

Entries = list[tuple[Mark, int]]


class Loaded(NamedTuple):
    """A session as it was left.

    Returned and handed entries first, in the order of their hand-over; then by priority and age.
    """

    record: SessionRecord
    entries: list[tuple[Mark, Message]]


class Loading:
    """One look at the whole store. A message that several sessions wait for is one object."""

    def __init__(self, line: Line, keys: Keys) -> None:
        self._line = line
        self._keys = keys
        self._loop = asyncio.get_running_loop()
        # Entries without a message, which were removed.
        self.dangling = 0
        # Messages that more sessions wait for, and how many.
        self._shared: dict[int, tuple[Message, int]] = {}

    async def sessions(self) -> AsyncIterator[Loaded]:
        """All sessions, in no order."""
        seen: set[bytes] = set()
        cursor: bytes | int = 0
        while True:
            page = await self._ask("HSCAN", self._keys.sessions, cursor, "COUNT", _SESSIONS)
            cursor, pairs = page
            found = dict(zip(pairs[::2], pairs[1::2], strict=True))
            for key in seen & found.keys():
                del found[key]
            seen |= found.keys()
            for known in _grouped(await self._entries(_readable(found))):
                bodies = await self._bodies(known)
                for record, entries in known:
                    yield Loaded(record, self._in_order(record.key, entries, bodies))
            if int(cursor) == 0:
                return

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

    async def _entries(self, found: list[SessionRecord]) -> list[tuple[SessionRecord, Entries]]:
        queues = [self._ask("HGETALL", self._keys.queue(record.key)) for record in found]
        known = []
        for record, queue in zip(found, queues, strict=True):
            entries = [records.unpack_entry(int(id), entry) for id, entry in (await queue).items()]
            known.append((record, entries))
        return known

    async def _bodies(
        self, known: Sequence[tuple[SessionRecord, Entries]]
    ) -> dict[int, tuple[bytes, int]]:
        """The records of the messages, and in how many queues each of them stands."""
        wanted = {mark.id for _, entries in known for mark, _ in entries} - self._shared.keys()
        ids = sorted(wanted)
        asked = []
        for at in range(0, len(ids), _BODIES):
            part = ids[at : at + _BODIES]
            bodies = self._ask("HMGET", self._keys.bodies, *part)
            asked.append((part, bodies, self._ask("HMGET", self._keys.refs, *part)))
        found = {}
        for part, bodies, refs in asked:
            for id, body, count in zip(part, await bodies, await refs, strict=True):
                if body is not None:
                    found[id] = (body, int(count or 1))
        return found

    def _in_order(
        self, key: str, entries: Entries, bodies: dict[int, tuple[bytes, int]]
    ) -> list[tuple[Mark, Message]]:
        loaded = []
        for mark, generation in entries:
            try:
                message = self._message(mark.id, generation, bodies)
            except (RecordUnreadable, KeyError, orjson.JSONDecodeError) as error:
                log.error("message %d of %s stays in the store: %s", mark.id, key, error)
                continue
            if message is None:
                self.dangling += 1
                self._line.call(("HDEL", self._keys.queue(key), mark.id), _ignore)
            else:
                loaded.append((mark, message))
        loaded.sort(key=_place)
        return loaded

    def _message(
        self, id: int, generation: int, bodies: dict[int, tuple[bytes, int]]
    ) -> Message | None:
        if id in self._shared:
            message, count = self._shared.pop(id)
        elif id in bodies:
            body, count = bodies[id]
            message = records.unpack_message(id, body)
        else:
            return None
        if count > 1:
            self._shared[id] = (message, count - 1)
        return records.replayed(message, generation) if generation else message

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


def _grouped(
    known: list[tuple[SessionRecord, Entries]],
) -> Iterator[list[tuple[SessionRecord, Entries]]]:
    """Sessions that have few enough entries together, or one that has too many."""
    group: list[tuple[SessionRecord, Entries]] = []
    total = 0
    for record, entries in known:
        if group and total + len(entries) > _ENTRIES:
            yield group
            group, total = [], 0
        group.append((record, entries))
        total += len(entries)
    if group:
        yield group


def _place(entry: tuple[Mark, Message]) -> tuple[bool, int, int, int]:
    mark, message = entry
    position = mark.position or mark.seq
    return (position == 0, position, -message.priority, mark.id)
