"""Loads the data that an earlier process left in the store.

`bayeux.sessions.restoring` creates sessions from it.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence, Set
from typing import Any, NamedTuple

from holdfast.delivery.basics.ignoring import ignore
from holdfast.delivery.guard.holds import ChannelHold
from holdfast.delivery.messages.marks import Mark
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.session_record import RecordUnreadable, SessionRecord
from holdfast.delivery.queues.queue import rightful_place
from holdfast.delivery.topics.configured import TopicRecord
from holdfast.store.format import records
from holdfast.store.format.keys import RedisKeys
from holdfast.store.format.records import UNREADABLE
from holdfast.store.links.connection import StoreUnavailable
from holdfast.store.links.link import StoreLink
from holdfast.store.links.resp import Word
from holdfast.units import counted

log = logging.getLogger(__name__)

# How many entries are requested at once.
_SESSIONS = 100
_MESSAGES = 500
_TOPICS = 1000
_REQUESTS = 1000


class LoadedSession(NamedTuple):
    """A restored session.

    Its entries are in order: first returned and in-flight ones, then waiting ones by priority and
    age.
    """

    record: SessionRecord
    entries: list[tuple[Mark, Message]]
    # Ids of entries that have individual marks.
    marked: Set[int]


# Called with a receiver that is not a session and the messages stored for it: a shared queue, a
# history, or an ended session whose process was killed before it had settled them.
WithoutSession = Callable[[str, Sequence[Message]], None]


class Loading:
    """Reads the whole store once. A message in several queues is one object."""

    def __init__(self, link: StoreLink, keys: RedisKeys) -> None:
        self._link = link
        self._keys = keys
        self._loop = asyncio.get_running_loop()
        # The number of messages in no queue, entries of ended sessions, and marks without an entry.
        # A killed process could not remove them, so they are removed here.
        self._dangling = 0
        self._messages: dict[int, Message] = {}
        self._unreadable: set[int] = set()
        # Ids of queued messages by receiver.
        self._queues: dict[bytes, list[int]] = {}

    async def sessions(
        self, marked: Callable[[str, Collection[int]], None], without_session: WithoutSession
    ) -> AsyncIterator[LoadedSession]:
        """Yield all sessions, unordered. `marked` is called for entries with individual marks."""
        async for page in self._pages(self._keys.bodies, _MESSAGES):
            await self._read_messages(dict(_numbered(page)))
        seen: set[bytes] = set()
        async for page in self._pages(self._keys.sessions, _SESSIONS):
            for receiver in seen & page.keys():
                del page[receiver]
            seen |= page.keys()
            for loaded in await self._read_sessions(_readable(page)):
                marked(loaded.record.key, loaded.marked)
                yield loaded
        for receiver in self._queues.keys() - seen:
            messages = [self._messages[id] for id in self._queues[receiver]]
            if receiver.endswith(b"/0"):
                # Shared queues never have a session, ...
                messages = await self._of_shared_queue(receiver.decode(), marked)
            elif not receiver.startswith(b"/"):
                # ... and neither do channels' histories.
                self._dangling += len(messages)
            without_session(receiver.decode(), messages)
        if self._dangling:
            log.info("removed %s of a killed process", counted(self._dangling, "leftover"))

    async def entries(self) -> AsyncIterator[dict[int, tuple[bool, set[str]]]]:
        """Yield all messages page by page: whether each is readable, and whose queues have it."""
        async for page in self._pages(self._keys.bodies, _MESSAGES):
            found = dict(_numbered(page))
            yield {
                id: (_is_readable(id, body), {each.decode() for each in _named(id, receivers)})
                for id, body, receivers in await self._with_receivers(found)
            }

    async def marked(self, receivers: Sequence[str]) -> list[set[int]]:
        """Return, for each of these sessions or queues, which entries have separate marks."""
        found = await self._ask_all([("HKEYS", self._keys.marks(each)) for each in receivers])
        return [{int(id) for id in ids} for ids in found]

    async def session_keys(self) -> AsyncIterator[tuple[set[str], set[str]]]:
        """Yield the keys of all sessions page by page, and those whose records are readable."""
        async for page in self._pages(self._keys.sessions, _SESSIONS):
            readable = {record.key for record in _readable(page)}
            yield {key.decode() for key in page}, readable

    async def gone(self, receivers: Collection[str]) -> list[str]:
        """Return which of these sessions do not exist."""
        found = await self._ask_all(
            [("HEXISTS", self._keys.sessions, receiver) for receiver in receivers]
        )
        return [
            receiver for receiver, is_there in zip(receivers, found, strict=True) if not is_there
        ]

    async def held_channels(self) -> dict[str, ChannelHold]:
        """Return the stored channel holds."""
        held = {}
        pairs: dict[bytes, bytes] = await self._ask("HGETALL", self._keys.held)
        for channel, record in pairs.items():
            try:
                held[channel.decode()] = records.unpack_held(record)
            except UNREADABLE as error:
                name = _name(channel)
                log.error("the hold of channel %s is unreadable and ignored: %r", name, error)
        return held

    async def topics(self) -> dict[str, TopicRecord]:
        """Return the stored topics."""
        found = {}
        async for page in self._pages(self._keys.topics, _TOPICS):
            for name, record in page.items():
                try:
                    found[name.decode()] = records.unpack_topic(name.decode(), record)
                except UNREADABLE as error:
                    log.error("topic %s is unreadable and ignored: %r", _name(name), error)
        return found

    async def floors(self) -> dict[str, int]:
        """Return the stored floors of histories; none if any is unreadable."""
        found: dict[str, int] = {}
        async for page in self._pages(self._keys.floors, _TOPICS):
            for name, value in page.items():
                try:
                    found[name.decode()] = int(records.without_sum(name.decode(), value))
                except UNREADABLE as error:
                    log.error("the floors of histories are not used: %s: %r", _name(name), error)
                    return {}
        return found

    async def requests(self) -> dict[str, bytes]:
        """Return the stored fields of requests."""
        found: dict[str, bytes] = {}
        async for page in self._pages(self._keys.requests, _REQUESTS):
            for name, value in page.items():
                try:
                    found[name.decode()] = records.without_sum(name.decode(), value)
                except UNREADABLE as error:
                    log.error("request %s is unreadable and ignored: %r", _name(name), error)
        return found

    async def _read_messages(self, bodies: Mapping[int, bytes]) -> None:
        # A scan may return an element twice.
        new = {id: body for id, body in bodies.items() if id not in self._messages}
        for each in await self._with_receivers(new):
            self._read_message(*each)

    async def _with_receivers(
        self, bodies: Mapping[int, bytes]
    ) -> list[tuple[int, bytes, Sequence[bytes]]]:
        """Return messages with their records and receivers."""
        alone = {id: records.receiver_in(body) for id, body in bodies.items()}
        spread = [id for id, receiver in alone.items() if receiver is None]
        sets = await self._ask_all([("SMEMBERS", self._keys.receivers(id)) for id in spread])
        of_several = dict(zip(spread, sets, strict=True))
        return [
            (id, body, of_several[id] if receiver is None else (receiver,))
            for (id, body), receiver in zip(bodies.items(), alone.values(), strict=True)
        ]

    def _read_message(self, id: int, body: bytes, receivers: Sequence[bytes]) -> None:
        if not receivers:
            log.error("message %d has lost its receivers and is removed", id)
            self._remove("HDEL", self._keys.bodies, id)
            return
        try:
            self._messages[id] = records.unpack_message(id, body)
        except UNREADABLE as error:
            log.error("message %d is unreadable and stays in the store: %r", id, error)
            self._unreadable.add(id)
            return
        for receiver in _named(id, receivers):
            self._queues.setdefault(receiver, []).append(id)

    async def _read_sessions(self, found: Sequence[SessionRecord]) -> list[LoadedSession]:
        marks = await self._ask_all([("HGETALL", self._keys.marks(each.key)) for each in found])
        handed = await self._ask_all([("HGET", self._keys.handed, each.key) for each in found])
        return list(map(self._loaded, found, marks, handed))

    def _loaded(
        self, record: SessionRecord, marks: dict[bytes, bytes], batch: bytes | None
    ) -> LoadedSession:
        own = dict(_entries_of(marks, record.key))
        # An entry's individual mark is newer than the batch.
        known = {mark.id: (mark, 0) for mark in _marks_of(batch, record.key)} | own
        # Sorted by id, which is almost the order by place.
        ids = sorted(self._queues.get(record.key.encode(), ()))
        entries = []
        for id in ids:
            mark, generation = known.get(id) or (Mark(id), 0)
            entries.append((mark, self._message(id, generation)))
        line_up(entries)
        gone = own.keys() - set(ids)
        for id in gone - self._unreadable:
            self._remove("HDEL", self._keys.marks(record.key), id)
        return LoadedSession(record, entries, {int(id) for id in marks} - gone)

    async def _of_shared_queue(
        self, receiver: str, marked: Callable[[str, Collection[int]], None]
    ) -> list[Message]:
        """Return the messages of a shared queue, with their attempts in sessions' queues."""
        marks = dict(_entries_of(await self._ask("HGETALL", self._keys.marks(receiver)), receiver))
        ids = self._queues[receiver.encode()]
        if marks:
            marked(receiver, marks.keys() & set(ids))
        for id in marks.keys() - set(ids) - self._unreadable:
            self._remove("HDEL", self._keys.marks(receiver), id)
        found = [(id, *marks.get(id, (Mark(id), 0))) for id in ids]
        return [mark.with_former(self._message(id, generation)) for id, mark, generation in found]

    def _message(self, id: int, generation: int) -> Message:
        message = self._messages[id]
        if generation == records.FROM_HISTORY:
            return message.initial()
        return records.replayed(message, generation) if generation else message

    async def _pages(self, key: str, count: int) -> AsyncIterator[dict[bytes, bytes]]:
        """Return the elements of a hash, page by page."""
        cursor: bytes | int = 0
        while True:
            cursor, pairs = await self._ask("HSCAN", key, cursor, "COUNT", count)
            yield dict(zip(pairs[::2], pairs[1::2], strict=True))
            if int(cursor) == 0:
                return

    def _remove(self, *parts: Word) -> None:
        self._dangling += 1
        # If this fails, the next process removes it.
        self._link.call(parts, ignore)

    async def _ask(self, *parts: Word) -> Any:  # noqa: ANN401 - whatever the store answers
        """Send a command and wait for the answer."""
        [answer] = await self._ask_all([parts])
        return answer

    def _ask_all(self, commands: Sequence[Sequence[Word]]) -> asyncio.Future[list[Any]]:
        """Send commands and collect the answers together, which is faster than one by one."""
        answers: asyncio.Future[list[Any]] = self._loop.create_future()
        replies: list[object] = []

        def done(reply: object) -> None:
            replies.append(reply)
            if isinstance(reply, Exception) and not answers.done():
                answers.set_exception(StoreUnavailable(f"the store cannot be read: {reply}"))
            elif len(replies) == len(commands) and not answers.done():
                answers.set_result(replies)

        if not commands:
            answers.set_result(replies)
        for command in commands:
            self._link.call(command, done)
        return answers


def _numbered(page: Mapping[bytes, bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield messages with their ids."""
    for id, body in page.items():
        if id.isdigit():
            yield int(id), body
        else:
            log.error("message %s has no id and stays in the store", _name(id))


def _named(id: int, receivers: Sequence[bytes]) -> Iterator[bytes]:
    """Yield the receivers of a message whose names are text."""
    for receiver in receivers:
        try:
            receiver.decode()
        except UnicodeDecodeError:
            name = _name(receiver)
            log.error("message %d has a receiver whose name is unreadable: %s", id, name)
        else:
            yield receiver


def _is_readable(id: int, body: bytes) -> bool:
    try:
        records.unpack_message(id, body)
    except UNREADABLE:
        return False
    return True


def _readable(found: dict[bytes, bytes]) -> list[SessionRecord]:
    readable = []
    for receiver, record in found.items():
        try:
            readable.append(records.unpack_session(receiver.decode(), record))
        except UNREADABLE as error:
            name = _name(receiver)
            log.error("session %s is unreadable and stays in the store: %r", name, error)
    return readable


def _name(stored: bytes) -> str:
    """Return a stored name for the log."""
    return stored.decode(errors="replace")


def _marks_of(batch: bytes | None, receiver: str) -> list[Mark]:
    """Return the marks of the entries in the last batch."""
    if batch is None:
        return []
    try:
        return records.unpack_batch(batch).marks()
    except RecordUnreadable as error:
        # Its messages are handed over as if they were new, rather than never.
        log.error("the last batch of %s is unreadable: %s", receiver, error)
        return []


def _entries_of(
    marks: Mapping[bytes, bytes], receiver: str
) -> Iterator[tuple[int, tuple[Mark, int]]]:
    """Yield the marks of single entries, with the generations of their messages."""
    for id, mark in marks.items():
        try:
            yield int(id), records.unpack_entry(int(id), mark)
        except RecordUnreadable as error:
            log.error("an entry's mark in %s is unreadable: %s", receiver, error)


def line_up(entries: list[tuple[Mark, Message]]) -> None:
    """Sort entries: first returned and in-flight ones, then waiting ones by priority and age."""
    entries.sort(key=_place)


def _place(entry: tuple[Mark, Message]) -> tuple[bool, int, int, int]:
    mark, message = entry
    position = mark.position or mark.seq
    return (position == 0, position, *rightful_place(message))
