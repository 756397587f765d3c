"""Writes the journal from live events of the core and from the notes of store calls.

The head of `app/delivery/ports/journal_port.py` describes the path of an event.
"""

import logging
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from holdfast.delivery.basics.error_codes import ErrorCode
from holdfast.delivery.basics.steps import ARRIVALS, Step
from holdfast.delivery.messages.entries import Entry
from holdfast.delivery.messages.marks import NO_HAND_OVERS
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.outcomes import Outcome
from holdfast.delivery.ports.journal_port import DeliveryJournal
from holdfast.delivery.queues.dispatcher import DispatcherState
from holdfast.delivery.queues.receivers import Receiver
from holdfast.journal import notes
from holdfast.journal.columns import DecodedNote, PublishRow, Row
from holdfast.journal.crowds import Crowds
from holdfast.journal.journal import Journal, Outlet
from holdfast.journal.notes import Refusal
from holdfast.journal.schema import MOST_EVENTS, NS_PER_US, Kind

if TYPE_CHECKING:
    from holdfast.delivery.letters.dead import DeadLetter
    from holdfast.delivery.messages.marks import BatchMark
    from holdfast.delivery.messages.outcomes import Move

log = logging.getLogger(__name__)

NO_COUNTERS: Mapping[str, int] = {}
_NOTHING: DecodedNote = ([], [])
# The most refusals that wait for their notes: a call must not take long.
_MOST_REFUSALS = 1000
# A session and a message.
Copy = tuple[str, int]


class JournalWriter(DeliveryJournal):
    """Puts live events, and notes that the store has, into the frames of `journal`."""

    is_writing = True

    def __init__(
        self,
        node: str,
        outlet: Outlet,
        *,
        now: float,
        now_ns: Callable[[], int],
        origin: str = "",
        shard: int | None = None,
    ) -> None:
        self.journal = journal = Journal(
            node, outlet, now=now, now_ns=now_ns, origin=origin, shard=shard
        )
        self._clock = clock = journal.clock
        self.unread = 0
        self._handed = Crowds(journal, clock, Kind.HANDED, 1)
        self._written = Crowds(journal, clock, Kind.WRITTEN, 1)
        self._acked = Crowds(journal, clock, Kind.ACKED)
        # The notes of unanswered calls.
        self._notes: deque[DecodedNote] = deque()
        # Refusals that leave with the note of the call that carries them out, and the copies that
        # had some at the last beat.
        self._refusals: dict[Copy, list[Refusal]] = {}
        self._refused_before: set[Copy] = set()

    @property
    def dropped(self) -> int:
        return self.journal.dropped

    def begin_run(
        self, now: float, before: Mapping[str, int] = NO_COUNTERS, *, goes_on: bool = False
    ) -> None:
        """Note the start, behind what a former process left: the books begin here.

        Args:
            before: The counters that the run begins with, if this process had another run before.
            goes_on: Whether this process goes on with everything that the former one had.
        """
        self.flush(now)
        self.journal.totals.clear()
        self.changed(Kind.NODE, "start", number=1 if goes_on else None)
        for what, number in before.items():
            self.changed(Kind.BOOKS, what, number=number)
        self.flush(now)

    def beat(self, now: float) -> None:
        self._collect()
        # No call has carried these out, perhaps because the store is away.
        self._report_refusals(self._refused_before & self._refusals.keys())
        self._refused_before = {*self._refusals}
        self.journal.beat(now)

    def flush(self, now: float) -> None:
        """Send all events if the store is available."""
        self._collect()
        self._report_refusals([*self._refusals])
        self.journal.flush(now)

    def _relieve(self) -> None:
        """Send a frame early if one turn of the loop brings more than a frame holds."""
        if self.journal.count >= MOST_EVENTS // 2:
            self._collect()
            self.journal.send_or_keep()

    def _collect(self) -> None:
        # Messages must not be kept in memory for long.
        self.end_round()
        self._acked.end()

    # Live

    def published(self, message: Message, copies: int) -> None:
        if copies or not message.is_durable:
            self.journal.published(message, copies)

    def handed(self, receiver: Receiver, messages: Sequence[Message], now: float) -> None:
        self._handed.add(receiver, messages, now)

    def written(self, receiver: Receiver, messages: Sequence[Message], now: float) -> None:
        self._written.add(receiver, messages, now)

    def acked(self, receiver: Receiver, messages: Sequence[Message], now: float) -> None:
        self._acked.add(receiver, messages, now)

    def end_round(self) -> None:
        self._handed.end()
        self._written.end()

    def arrived(self, step: Step, receiver: Receiver, message: Message) -> None:
        self.journal.add_note(notes.arrived(step, [message], self._clock.read()))

    def replayed(self, key: str, message: Message, letter: int) -> None:
        why = notes.of_replay(message)
        why["letter"] = letter
        self.journal.explained(Kind.REPLAYED, message, key, self._clock.read(), **why)

    def handed_again(self, receiver: Receiver, entries: Iterable[Entry]) -> None:
        at = self._clock.read()
        for entry in entries:
            kind = Kind.HANDED if entry.attempts == 1 else Kind.REDELIVERED
            self.journal.delivered(kind, (entry.message,), receiver.key, at, entry.attempts)

    def refused(
        self, receiver: Receiver, entries: Iterable[Entry], code: ErrorCode, text: str
    ) -> None:
        at, key, why = self._clock.read(), receiver.key, notes.failure(code.text, text)
        for entry in entries:
            attempt = entry.attempts
            self.journal.delivered(Kind.REFUSED, (entry.message,), key, at, attempt, why)
        self._relieve()

    def refused_with_note(
        self, receiver: Receiver, entries: Iterable[Entry], code: ErrorCode, text: str
    ) -> None:
        if len(self._refusals) >= _MOST_REFUSALS:
            self.refused(receiver, entries, code, text)
            return
        refusal = Refusal(self._clock.read(), notes.failure(code.text, text))
        for entry in entries:
            copy = receiver.key, entry.message.id
            self._refusals.setdefault(copy, []).append(refusal._replace(attempt=entry.attempts))

    def _take_refusals(self, copies: Iterable[Copy]) -> list[Row]:
        """Return the rows of what waits for a call about these copies."""
        if not self._refusals:
            return []
        return notes.refused((copy, self._refusals.pop(copy, ())) for copy in copies)

    def _report_refusals(self, copies: Collection[Copy]) -> None:
        if copies:
            self.journal.add_note(([], self._take_refusals(copies)))

    def returned(self, receiver: Receiver, entries: Iterable[Entry]) -> None:
        messages = [entry.message for entry in entries]
        self.journal.delivered(Kind.RETURNED, messages, receiver.key, self._clock.read())

    def settled(self, receiver: Receiver, messages: Sequence[Message], outcome: Outcome) -> None:
        why = notes.why_of(outcome)
        self.journal.delivered(outcome.kind, messages, receiver.key, self._clock.read(), why=why)
        self._relieve()

    def turned_away(
        self, receivers: Sequence[Receiver], message: Message, outcome: Outcome
    ) -> None:
        kind, at = outcome.kind, self._clock.read()
        keys = [receiver.key for receiver in receivers]
        self.journal.shared(kind, message, keys, at, notes.why_of(outcome))
        self._relieve()

    def moved(self, moves: "Sequence[Move]") -> None:
        self.journal.add_note(self._moved(moves))

    def _moved(self, moves: "Sequence[Move]") -> DecodedNote:
        refusals = self._take_refusals((move.source, move.message.id) for move in moves)
        published, rows = notes.moved(moves, self._clock.read())
        return published, refusals + rows

    def borrowed(self, number: int) -> None:
        # As with entries that a start finds, no event of this node tells how they came.
        self.changed(Kind.BOOKS, "restored", number=number)

    def session(self, receiver: Receiver, what: str) -> None:
        self.changed(Kind.SESSION, what, name=receiver.key, number=receiver.queue.count)

    def dispatcher(self, receiver: Receiver, state: DispatcherState) -> None:
        # Lakes have the states in small letters, and reports look for them there.
        self.changed(Kind.DISPATCHER, state.value.lower(), name=receiver.key)

    def held(self, who: str, *, receiver: str | None = None, channel: str | None = None) -> None:
        self.changed(Kind.HELD, who, name=receiver, channel=channel)

    def released(
        self, who: str, *, receiver: str | None = None, channel: str | None = None
    ) -> None:
        self.changed(Kind.RELEASED, who, name=receiver, channel=channel)

    def publishes_refused(self, reason: str, channel: str, count: int) -> None:
        self.changed(Kind.PUBLISHES_REFUSED, reason, channel=channel or None, number=count)

    def missed(self, shard: int, count: int) -> None:
        self.changed(Kind.GAP, str(shard), number=count or None)

    def came_early(self, cause: str, count: int) -> None:
        self.changed(Kind.EARLY, cause, number=count)

    def asked(self, requester: Receiver, channel: str, timeout_ms: int) -> None:
        self.changed(Kind.REQUEST, "asked", name=requester.key, channel=channel, number=timeout_ms)

    def request_ended(self, how: str, requester: Receiver, channel: str, id: int) -> None:
        took_us = self._since(id)
        self.changed(Kind.REQUEST, how, name=requester.key, channel=channel, number=took_us)

    def replied(self, what: str, key: str, channel: str, id: int) -> None:
        took_us = self._since(id)
        self.changed(Kind.REPLY, what, name=key, channel=channel or None, number=took_us)

    def _since(self, id: int) -> int | None:
        """Return the microseconds since the message with this id was received."""
        return max(self._clock.read() - id // NS_PER_US, 0) if id else None

    def changed(
        self,
        kind: str,
        what: str,
        *,
        name: str | None = None,
        channel: str | None = None,
        number: int | None = None,
    ) -> None:
        """Note a change of a session, a channel, the node or the journal."""
        at = self._clock.read()
        self.journal.changed(kind, at, what, name=name, channel=channel, number=number)

    # Notes

    def note_kept(
        self,
        messages: "Sequence[tuple[Message, Sequence[str]]]",
        early: "Mapping[str, BatchMark]" = NO_HAND_OVERS,
    ) -> bytes:
        published: list[PublishRow] = []
        arrived: defaultdict[Step, list[Message]] = defaultdict(list)
        for message, keys in messages:
            if len(keys) == 1 and keys[0] in ARRIVALS:
                arrived[ARRIVALS[keys[0]]].append(message)
            elif keys or message.keeping is not None or message.is_durable:
                # A history makes a message durable, too, and so do receivers in other shards.
                published.append(self.journal.publish_row(message, len(keys), len(keys)))
        rows: list[Row] = []
        for step, waiting in arrived.items():
            copies, row = notes.arrived(step, waiting, self._clock.read())
            published += copies
            rows += row
        note = self._note(published, rows)
        if note and early:
            note = notes.packed((published, rows + notes.handed_over(early, self._clock.read())))
        return note

    def note_handed_over(self, batches: "Mapping[str, BatchMark]") -> bytes:
        return self._note([], notes.handed_over(batches, self._clock.read()))

    def note_marked(
        self,
        marked: Mapping[str, Collection[int]],
        hand_overs: Mapping[str, Sequence[tuple[int, int]]],
    ) -> bytes:
        refusals = self._take_refusals((key, id) for key, ids in marked.items() for id in ids)
        return self._note([], refusals + notes.handed_again(hand_overs, self._clock.read()))

    def note_moved(self, moves: "Sequence[Move]") -> bytes:
        return self._note(*self._moved(moves))

    def note_settled(self, entries: Mapping[int, Sequence[str]], outcome: Outcome) -> bytes:
        refusals = self._take_refusals((key, id) for id, keys in entries.items() for key in keys)
        return self._note([], refusals + notes.settled(entries, outcome, self._clock.read()))

    def note_dead(self, letters: "Sequence[tuple[DeadLetter, str | None]]") -> bytes:
        refusals = self._take_refusals((letter.key, letter.message) for letter, _ in letters)
        return self._note([], refusals + notes.dead(letters, self._clock.read()))

    def note_left(self, sessions: Mapping[str, Sequence[int]]) -> bytes:
        rows = notes.left(sessions, self._clock.read())
        return notes.packed(([], rows)) if rows else b""

    def note_replayed(self, letters: "Sequence[tuple[DeadLetter, str]]") -> bytes:
        return notes.replayed(letters, self._clock.read())

    def _note(self, published: list[PublishRow], rows: list[Row]) -> bytes:
        if not (published or rows):
            return b""
        note = (published, rows)
        self._notes.append(note)
        return notes.packed(note)

    def postpone(self) -> object:
        return self._notes.popleft()

    def answered(self, number: int, *, is_there: bool, postponed: object = None) -> None:
        note = self._notes.popleft() if postponed is None else cast("DecodedNote", postponed)
        self.journal.replace(number, note if is_there else _NOTHING)

    def skip_note(self, number: int) -> None:
        self.journal.replace(number, _NOTHING)

    def report_left_notes(self, left: Mapping[int, bytes]) -> Mapping[str, set[int]]:
        """Report the notes that a former process left.

        Returns:
            The discarded messages by session. The store may still have messages of ended sessions.
        """
        discarded: defaultdict[str, set[int]] = defaultdict(set)
        handed: set[tuple[str, int]] = set()
        for number in sorted(left):
            try:
                note = notes.handed_once(notes.unpacked(left[number]), handed)
            except (ValueError, TypeError, IndexError) as error:
                log.error("a journal note is unreadable, its events are lost: %s", error)
                self.journal.miss(1)
                note = _NOTHING
            self.journal.replace(number, note)
            for kind, ids, _, _, keys, _ in note[1]:
                for key in keys:
                    if kind == Kind.DISCARDED:
                        discarded[key].update(ids)
                    elif kind == Kind.REPLAYED:
                        # A replay put these there afterwards.
                        discarded[key].difference_update(ids)
        return discarded
