"""A store that gets any beginning of the calls knows which of its entries were handed over."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.delivery.basics.error_codes import UPDATE_ERROR
from holdfast.delivery.basics.steps import Reason
from holdfast.delivery.letters.dead import DeadLetter
from holdfast.delivery.letters.unwritten import DeadEntry, Death
from holdfast.delivery.messages.entries import Entry
from holdfast.delivery.messages.marks import NO_HAND_OVERS, BatchMark
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.outcomes import ACKED, DISCARDED, Move, Outcome
from holdfast.delivery.ports.journal_port import DeliveryJournal
from holdfast.store.format.keys import RedisKeys
from holdfast.store.format.publish_keys import KeyLimits
from holdfast.store.writing.turn_buffer import TurnBuffer
from holdfast.store.writing.turn_writes import TurnWrites

KEYS, LIMITS = RedisKeys("test"), KeyLimits(clock=0, most=9)
SESSIONS = ("ann/1", "bob/1")
# Compiled code does not let another class take the place of a journal.
pytestmark = [pytest.mark.interpreted, pytest.mark.untraced]
# A batch of more entries is stored entry by entry.
MANY = 60


class Stored(DeliveryJournal):
    """What the store has behind each call, as the note of the call says."""

    def __init__(self) -> None:
        self.queues: dict[str, set[int]] = {key: set() for key in SESSIONS}
        self.batches: dict[str, Sequence[int]] = {}
        self.marks: dict[str, set[int]] = {key: set() for key in SESSIONS}
        # The entries of which the store has had a hand-over.
        self.were_handed: dict[str, set[int]] = {key: set() for key in SESSIONS}

    def note_kept(
        self,
        messages: Sequence[tuple[Message, Sequence[str]]],
        early: Mapping[str, BatchMark] = NO_HAND_OVERS,
    ) -> bytes:
        for message, receivers in messages:
            for key in receivers:
                self.queues[key].add(message.id)
                # It comes from elsewhere, and was not handed over here.
                self.were_handed[key].discard(message.id)
        self.batches |= {key: batch.ids for key, batch in early.items()}
        return b""

    def note_handed_over(self, batches: Mapping[str, BatchMark]) -> bytes:
        for key, batch in batches.items():
            self.batches[key] = batch.ids
            self.were_handed[key].update(batch.ids)
        return b""

    def note_marked(
        self,
        marked: Mapping[str, Collection[int]],
        hand_overs: Mapping[str, Sequence[tuple[int, int]]],
    ) -> bytes:
        for key, ids in marked.items():
            self.marks[key].update(ids)
            self.were_handed[key].update(ids)
        return b""

    def note_moved(self, moves: Sequence[Move]) -> bytes:
        for each in moves:
            self._leave(each.source, each.message.id)
        return b""

    def note_settled(self, entries: Mapping[int, Sequence[str]], outcome: Outcome) -> bytes:
        for id, receivers in entries.items():
            for key in receivers:
                self.queues[key].discard(id)
        return b""

    def note_dead(self, letters: Sequence[tuple[DeadLetter, str | None]]) -> bytes:
        for letter, key in letters:
            if key is not None:
                self._leave(key, letter.message)
        return b""

    def _leave(self, key: str, id: int) -> None:
        self.queues[key].discard(id)
        self.marks[key].discard(id)

    def forgotten(self) -> dict[str, set[int]]:
        """The entries that a process which loads the store would take for new, wrongly."""
        found = {}
        for key, queue in self.queues.items():
            known = self.marks[key].union(self.batches.get(key, ()))
            found[key] = (queue & self.were_handed[key]) - known
        return {key: ids for key, ids in found.items() if ids}


class Session:
    """A receiver that needs acks, with the writes that its hand-overs and verdicts make."""

    def __init__(self, key: str, buffer: TurnBuffer, stored: Stored, ids: Iterator[int]) -> None:
        self.key, self._buffer, self._stored, self._ids = key, buffer, stored, ids
        # Messages that the store is asked to have, which wait for its answer; and the others.
        self._coming: list[Message] = []
        self.new: list[Message] = []
        self.in_flight: list[Message] = []
        self._batch = self._seq = 0

    def get(self, many: bool) -> None:
        """Ask the store to have messages; without others, they come with their hand-over."""
        is_idle = not (self.new or self.in_flight)
        for _ in range(MANY if many else 2):
            message = Message(b"{}", id=next(self._ids), channel="/a", sender="ann")
            coming = {self.key: BatchMark(self._batch + 1, self._seq + 1, [message.id])}
            hand_overs = coming if is_idle else {}
            self._buffer.keep(message, [self.key], _ignore, hand_overs=hand_overs)
            self._coming.append(message)

    def answered(self) -> None:
        """The store has what it was asked to have."""
        self.new += self._coming
        self._coming = []

    def take(self, is_handed_over: bool) -> None:
        """Get a message of another shard, which the store has before all writes of the turn."""
        message = Message(b"{}", id=next(self._ids), channel="/b", sender="ann")
        is_idle = not (self.new or self.in_flight)
        coming = {self.key: BatchMark(self._batch + 1, self._seq + 1, [message.id])}
        early = self._buffer.announce(coming) if is_idle else {}
        self._stored.note_kept([(message, [self.key])], early)
        self._buffer.follow(early)
        self.new.append(message)
        if is_handed_over:
            self.hand_over()

    def hand_over(self) -> None:
        self._batch += 1
        taken, self.new = self.new, []
        if self.in_flight:
            entries = [Entry(each, self._seq + n, batch=self._batch) for n, each in _from_1(taken)]
            self._buffer.mark(self.key, entries)
        elif taken:
            batch = BatchMark(self._batch, self._seq + 1, [each.id for each in taken])
            if self._buffer.early.get(self.key) == batch:
                del self._buffer.early[self.key]
                self._stored.were_handed[self.key].update(batch.ids)
            else:
                self._buffer.mark_batch(self.key, batch)
        self._seq += len(taken)
        self.in_flight += taken

    def end(self, how: str, most: int) -> None:
        ends, self.in_flight = self.in_flight[:most], self.in_flight[most:]
        ids = [each.id for each in ends]
        if how == "acked":
            self._buffer.settle(self.key, ids, ACKED)
        elif how == "discarded":
            self._buffer.settle(self.key, ids, DISCARDED[Reason.OUTDATED])
        elif how == "dead":
            death = Death(self.key, UPDATE_ERROR, "", None)
            letters = [DeadEntry(Entry(each, 1), death, each.id) for each in ends]
            self._buffer.dead_letter(letters, self.key)
        else:
            moves = [Move(each, self.key, (), copies=0, remembering=0) for each in ends]
            self._buffer.move(moves)


def _from_1(messages: Sequence[Message]) -> Iterator[tuple[int, Message]]:
    return enumerate(messages, 1)


def _ignore(_: object) -> None: ...


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("get"), st.sampled_from([False, False, True])),
        st.tuples(st.just("hand_over")),
        st.tuples(st.just("take"), st.booleans()),
        st.tuples(
            st.just("end"),
            st.sampled_from(["acked", "discarded", "dead", "moved"]),
            st.sampled_from([1, 1, MANY * 9]),
        ),
        st.tuples(st.just("turn"), st.booleans()),
    ),
    max_size=24,
)


@given(st.lists(st.tuples(st.sampled_from(SESSIONS), STEPS), max_size=6))
@settings(max_examples=300)
def test_no_entry_is_new_again_wherever_the_calls_are_cut(
    rounds: list[tuple[str, list[tuple[Any, ...]]]],
) -> None:
    buffer, stored, ids = TurnBuffer(), Stored(), count(1)
    sessions = {key: Session(key, buffer, stored, ids) for key in SESSIONS}

    def send(turns: list[TurnWrites]) -> None:
        for turn in turns:
            brought = buffer.brought_by(turn)
            for call in turn.calls(KEYS, LIMITS, stored, brought=brought, incarnation="a"):
                assert stored.forgotten() == {}, call
                buffer.follow(call.brought)
        for session in sessions.values():
            session.answered()

    for key, steps in rounds:
        for what, *how in steps:
            if what == "turn":
                [is_all] = how
                if is_all:
                    buffer.withdraw(buffer.retract())
                send(buffer.take() if is_all else buffer.take_urgent())
            else:
                getattr(sessions[key], what)(*how)
                assert stored.forgotten() == {}
    send(buffer.take())
    left = {key: {*each.new, *each.in_flight} for key, each in sessions.items()}
    assert stored.queues == {key: {each.id for each in its} for key, its in left.items()}
