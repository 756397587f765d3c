"""Makes a store that has lost changes agree with what this process knows.

The store may be empty, or hold what it held a moment ago. Nothing else is written meanwhile, and
all work is done in short slices, so that no client waits long.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from time import perf_counter
from typing import NamedTuple, TypeVar

from holdfast.delivery.basics.ignoring import ignore
from holdfast.delivery.guard.holds import ChannelHold
from holdfast.delivery.messages.entries import Entry
from holdfast.delivery.messages.former_attempts import former_of
from holdfast.delivery.messages.marks import Marked
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.publish_key import publish_key_of
from holdfast.delivery.messages.session_record import Recorded
from holdfast.delivery.messages.storing import RequestFields
from holdfast.delivery.ports.journal_port import NO_JOURNAL
from holdfast.delivery.topics.configured import TopicRecord
from holdfast.store.format import scripts
from holdfast.store.format.keys import RedisKeys
from holdfast.store.format.publish_keys import KeyLimits
from holdfast.store.format.scripts import ScriptCall
from holdfast.store.links.link import StoreLink
from holdfast.store.writing.loading import Loading
from holdfast.store.writing.turn_buffer import TurnBuffer
from holdfast.store.writing.turn_writes import PendingPublish, TurnWrites
from holdfast.units import counted

log = logging.getLogger(__name__)

T = TypeVar("T")

# How long this may work before others get their turn.
_SLICE_S = 0.005
# How many messages or sessions are compared or written before the time is looked at.
_STEP = 500
# How many calls may be unanswered.
_CALLS = 64


class KnownQueue(NamedTuple):
    """The durable messages of a session, a shared queue, or a channel's history."""

    receiver: str
    messages: Sequence[Message]
    # Returns the entries that were handed over.
    tried: Callable[[], Collection[Marked]]


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What this process knows of all that a store must have, at one moment."""

    sessions: Sequence[Recorded] = ()
    queues: Sequence[KnownQueue] = ()
    holds: Mapping[str, ChannelHold] = field(default_factory=dict)
    topics: Mapping[str, TopicRecord] = field(default_factory=dict)
    requests: RequestFields = field(default_factory=dict)
    floors: Mapping[str, int] = field(default_factory=dict)


class _Lacking(NamedTuple):
    """A message, and the queues in which the store does not have it."""

    message: Message
    receivers: set[str]


class Reconciliation:
    """Writes what the store lacks, and removes what left queues since.

    Args:
        make: Makes a call that is not repeated if the store loses changes again; the second
            argument says whether the store may refuse it.
        buffer: Learns which entries have marks.
    """

    def __init__(
        self,
        link: StoreLink,
        keys: RedisKeys,
        make: Callable[[ScriptCall, bool], None],
        buffer: TurnBuffer,
        limits: KeyLimits,
    ) -> None:
        self._link = link
        self._keys = keys
        self._make = make
        self._buffer = buffer
        self._limits = limits
        self._loading = Loading(link, keys)
        self._ends_at = perf_counter() + _SLICE_S
        # Messages by id, with the queues in which the store lacks them, and entries that it has
        # although they have left their queues.
        self._lacking: dict[int, _Lacking] = {}
        self._surplus: dict[int, list[str]] = {}
        # Marks that the store has, by queue, although the entries have none.
        self._marks: dict[str, list[int]] = {}

    async def run(self, known: Knowledge, unconfirmed: Sequence[PendingPublish] = ()) -> None:
        """Compare and write. The messages and sessions of `known` must not change.

        Args:
            unconfirmed: Publishes that were stored and are in no queue of `known` yet.
        """
        for queue in known.queues:
            await self._expect(queue)
        for pending in unconfirmed:
            for receiver in pending.receivers:
                self._expect_message(pending.message, receiver)
        ended = await self._ended({session.key for session in known.sessions})
        await self._compare(ended.unreadable)
        await self._compare_marks(known.queues)
        removed, written = len(self._surplus), len(self._lacking)
        await self._write(self._removals(ended.sessions))
        await self._write_names(known, unconfirmed)
        await self._write(self._additions(known))
        await self._forget_batches(known.sessions)
        log.warning(
            "the store has what the server knows again: wrote %s, removed %d",
            counted(written, "message"), removed,
        )  # fmt: skip

    # Comparing

    async def _expect(self, queue: KnownQueue) -> None:
        for messages in _steps(queue.messages):
            for message in messages:
                self._expect_message(message, queue.receiver)
            await self._give_way()

    def _expect_message(self, message: Message, receiver: str) -> None:
        lacking = self._lacking.get(message.id)
        if lacking is None:
            lacking = self._lacking[message.id] = _Lacking(message, set())
        lacking.receivers.add(receiver)

    async def _ended(self, known: set[str]) -> "_Ended":
        """Return the stored sessions that have ended since, and the unreadable ones."""
        sessions: list[str] = []
        unreadable: set[str] = set()
        async for stored, are_readable in self._loading.session_keys():
            ended = stored - known
            sessions += ended & are_readable
            unreadable |= ended - are_readable
            await self._give_way()
        return _Ended(sessions, unreadable)

    async def _compare(self, unreadable: set[str]) -> None:
        """Find the differences. Unreadable entries stay as they are."""
        seen: set[int] = set()
        async for page in self._loading.entries():
            for id, (is_readable, receivers) in page.items():
                # A scan may return an element twice.
                if id not in seen:
                    seen.add(id)
                    self._compare_message(id, receivers - unreadable, is_readable=is_readable)
            await self._give_way()

    def _compare_message(self, id: int, receivers: set[str], *, is_readable: bool) -> None:
        lacking = self._lacking.get(id)
        if lacking is None:
            surplus = receivers if is_readable else set()
        else:
            surplus = receivers - lacking.receivers
            lacking.receivers.difference_update(receivers)
            if not lacking.receivers:
                del self._lacking[id]
        if surplus:
            self._surplus[id] = [*surplus]

    async def _compare_marks(self, queues: Sequence[KnownQueue]) -> None:
        """Find marks of entries that were handed over and that have come back as new ones since."""
        for step in _steps(queues):
            found = await self._loading.marked([queue.receiver for queue in step])
            for queue, marked in zip(step, found, strict=True):
                if marked:
                    surplus = marked - _ids_with_marks(queue)
                    self._marks[queue.receiver] = [*surplus]
            await self._give_way()

    # Writing

    def _removals(self, ended: Sequence[str]) -> Iterator[TurnWrites]:
        for ids in _steps(self._surplus):
            turn = TurnWrites()
            for id in ids:
                receivers = turn.left[id] = self._surplus[id]
                for receiver in receivers:
                    turn.unmarked.setdefault(receiver, []).append(id)
            yield turn
        for receivers in _steps(self._marks):
            turn = TurnWrites()
            turn.unmarked = {receiver: self._marks[receiver] for receiver in receivers}
            yield turn
        for sessions in _steps(ended):
            turn = TurnWrites()
            turn.forgotten = dict.fromkeys(sessions, ())
            yield turn

    async def _write_names(self, known: Knowledge, unconfirmed: Sequence[PendingPublish]) -> None:
        """Write what belongs to channels: holds, topics and requests."""
        loading, keys = self._loading, self._keys
        held = dict.fromkeys(await loading.held_channels()) | {**known.holds}
        if held:
            self._make(scripts.save_channel_holds(keys, held), False)
        for names in _steps(dict.fromkeys(await loading.topics()) | {**known.topics}):
            topics = {name: known.topics.get(name) for name in names}
            self._make(scripts.save_topics(keys, topics, self._limits.form), False)
            await self._give_way()
        await self._write(_floors(known.floors if self._limits.form.has_floors else {}))
        requests = dict.fromkeys(await loading.requests(), b"")
        for pending in unconfirmed:
            requests |= pending.fields
        requests |= known.requests
        await self._write(_requests(requests))

    async def _forget_batches(self, sessions: Sequence[Recorded]) -> None:
        """Remove the last batches: they may be hand-overs that have not happened.

        By now, the entries in flight have marks, so a kill in between loses no attempt.
        """
        for step in _steps(sessions):
            receivers = [session.key for session in step]
            self._make(scripts.forget_batches(self._keys, receivers), False)
            await self._give_way()

    def _additions(self, known: Knowledge) -> Iterator[TurnWrites]:
        for sessions in _steps(known.sessions):
            turn = TurnWrites()
            turn.sessions = {session.key: session for session in sessions}
            yield turn
        for ids in _steps(self._lacking):
            turn = TurnWrites()
            for id in ids:
                self._add(turn, *self._lacking[id])
            yield turn
        for queue in known.queues:
            entries = [*queue.tried(), *_that_moved(queue.messages)]
            if entries:
                turn = TurnWrites()
                self._mark(turn, queue.receiver, entries)
                yield turn

    def _add(self, turn: TurnWrites, message: Message, receivers: set[str]) -> None:
        kind = turn.messages if publish_key_of(message) is None else turn.keyed
        kind.append(PendingPublish(message, [*receivers], ignore))
        if message.generation or message.is_initial:
            for receiver in receivers:
                self._buffer.marked(receiver, (message.id,))

    def _mark(self, turn: TurnWrites, receiver: str, entries: Collection[Marked]) -> None:
        turn.marks.setdefault(receiver, {}).update({entry.id: entry for entry in entries})
        self._buffer.marked(receiver, [entry.id for entry in entries])

    async def _write(self, turns: Iterable[TurnWrites]) -> None:
        calls = 0
        for turn in turns:
            # The journal has reported all this.
            for outgoing in turn.calls(self._keys, self._limits, NO_JOURNAL):
                self._make(outgoing.call, bool(outgoing.kept))
                calls += 1
                if calls % _CALLS == 0:
                    await self._link.ask("PING")
                await self._give_way()

    async def _give_way(self) -> None:
        if perf_counter() > self._ends_at:
            self._link.flush()
            # Two turns, so that requests read in the meantime are answered.
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            self._ends_at = perf_counter() + _SLICE_S


class _Ended(NamedTuple):
    sessions: Sequence[str]
    unreadable: set[str]


def _that_moved(messages: Iterable[Message]) -> Iterator[Entry]:
    """Yield entries with the attempts that their messages bring from other queues."""
    return (Entry(message) for message in messages if former_of(message) is not None)


def _ids_with_marks(queue: KnownQueue) -> set[int]:
    tried = {entry.id for entry in queue.tried()}
    return tried | {each.id for each in queue.messages if each.generation or each.is_initial}


def _floors(floors: Mapping[str, int]) -> Iterator[TurnWrites]:
    for names in _steps(floors):
        turn = TurnWrites()
        turn.floors = {name: floors[name] for name in names}
        yield turn


def _requests(fields: RequestFields) -> Iterator[TurnWrites]:
    for names in _steps(fields):
        turn = TurnWrites()
        turn.requests = {name: fields[name] for name in names}
        yield turn


def _steps(items: Iterable[T]) -> Iterator[list[T]]:
    iterator = iter(items)
    while step := list(islice(iterator, _STEP)):
        yield step
