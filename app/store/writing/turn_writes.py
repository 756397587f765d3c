"""The writes of one turn of the event loop, combined into few calls."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from typing import TYPE_CHECKING, NamedTuple, Protocol

from holdfast.delivery.letters.unwritten import UnwrittenLetter
from holdfast.delivery.messages.crossing import needs_frame
from holdfast.delivery.messages.marks import NO_HAND_OVERS, BatchMark, Mark, Marked
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.outcomes import Move, Outcome
from holdfast.delivery.messages.storing import NO_FIELDS, PersistOutcome, RequestFields
from holdfast.delivery.ports.journal_port import DeliveryJournal
from holdfast.store.format import scripts
from holdfast.store.format.floor_calls import save_floors
from holdfast.store.format.keys import RedisKeys, is_history
from holdfast.store.format.layouts import WrittenForm
from holdfast.store.format.publish_keys import KeyLimits
from holdfast.store.format.scripts import ScriptCall
from holdfast.store.writing.call_sizes import (
    BYTES,
    FRAME,
    KEY,
    LETTER,
    MARK,
    MESSAGE,
    MOST,
    RECORD,
    SESSION,
    parts,
    shares,
)

if TYPE_CHECKING:
    from holdfast.delivery.messages.session_record import Recorded

# By outcome, the messages that leave, with their sessions.
Settled = dict[Outcome, dict[int, list[str]]]
# The id of a message, and the number of this attempt to deliver it.
HandOver = tuple[int, int]


class PendingPublish(NamedTuple):
    """A message to be stored, and the callback for the outcome."""

    message: Message
    receivers: Sequence[str]
    done: Callable[[PersistOutcome], None]
    # The fields of requests that change in the same step.
    fields: RequestFields = NO_FIELDS


class PendingCall(NamedTuple):
    """A call, and what to do with its answer."""

    call: ScriptCall
    kept: Sequence[PendingPublish] = ()
    # The call's note for the journal.
    note: bytes = b""
    # Whether the call may be sent later: no hand-over that leaves at once depends on it.
    may_wait: bool = False
    # Whether the core reports the note's events live. If so, the note only matters after a kill.
    is_reported: bool = False
    # Called with the answer first, if the call also appends a frame to the log of this shard.
    appended: Callable[[object], None] | None = None
    # The hand-overs that it stores with their messages.
    brought: Mapping[str, BatchMark] = NO_HAND_OVERS


class Framing(Protocol):
    """What messages have for other shards. The calls that store them append it to the log."""

    def size_of(self, message: Message, /) -> int:
        """Return how many bytes of a frame the message needs; 0 if others do not get it."""
        ...

    def framed(
        self, call: ScriptCall, messages: Sequence[Message], /
    ) -> tuple[ScriptCall, Callable[[object], None] | None]:
        """Return the call with the frame of these messages, and what hears its answer.

        If others get none of them, it is the same call.
        """
        ...


class TurnWrites:
    """Writes that are sent together: from save to settle, dead-letter and forget."""

    def __init__(self) -> None:
        # Fields of requests, and the names of fields that change together with messages.
        self.requests: dict[str, bytes] = {}
        self.with_messages: set[str] = set()
        self.sessions: dict[str, Recorded] = {}
        self.messages: list[PendingPublish] = []
        self.keyed: list[PendingPublish] = []
        self.moves: list[Move] = []
        # Hand-overs that are to follow as soon as the store has the messages.
        self.brought: dict[str, BatchMark] = {}
        self.batches: dict[str, BatchMark] = {}
        # Changed entries, with marks; for entries in flight also each hand-over by its number, with
        # the message and the attempt.
        self.marks: dict[str, dict[int, Marked]] = {}
        self.hand_overs: dict[str, dict[int, HandOver]] = {}
        # By outcome, the settled messages with their sessions; all sessions that settle; and by
        # session, the settled messages that had marks.
        self.settled: Settled = {}
        self.acking: set[str] = set()
        self.unmarked: dict[str, list[int]] = {}
        # Settled messages of sessions that had a hand-over in this turn before.
        self.settled_behind: Settled = {}
        # Their letters are created together with the calls.
        self.dead: list[tuple[UnwrittenLetter, str | None]] = []
        # The sessions with dead letters among them, and letters of sessions that had a hand-over in
        # this turn before.
        self.with_dead: set[str] = set()
        self.dead_behind: list[tuple[UnwrittenLetter, str | None]] = []
        # Ended sessions with the rest of their queues, and the same by message.
        self.forgotten: dict[str, Sequence[int]] = {}
        self.left: dict[int, list[str]] = {}
        # The floors of histories; and messages that leave these, with the channels.
        self.floors: dict[str, int] = {}
        self.outdated: dict[int, list[str]] = {}
        # Messages that leave a queue in this turn without being settled.
        self.gone: set[int] = set()
        # Whether some of these batches replace others of which messages are settled or dead here.
        self.ends_come_first = False
        # Whether replies with some of its hand-overs leave before the store has answered.
        self.replies_leave = False
        # The kind of its messages for other shards that it sends last, see `TurnBuffer`.
        self.last_framed = 0

    def __len__(self) -> int:
        """An estimate of the number of writes."""
        return (
            len(self.requests)
            + len(self.sessions)
            + len(self.messages)
            + len(self.keyed)
            + len(self.moves)
            + len(self.batches)
            + len(self.marks)
            + sum(map(len, self.settled.values()))
            + sum(map(len, self.settled_behind.values()))
            + len(self.floors)
            + len(self.outdated)
            + len(self.gone)
            + len(self.dead)
            + len(self.dead_behind)
            + len(self.forgotten)
        )

    @property
    def may_leave_acks(self) -> bool:
        """Return whether acks may follow later.

        A new batch replaces the previous one. So the store must first get the acks of the receiver
        of a new batch; otherwise the acked messages would be delivered again as new.
        """
        return not self.changes_queues and self.acking.isdisjoint(self.batches)

    @property
    def changes_queues(self) -> bool:
        """Return whether entries change otherwise than by new batches and their acks."""
        has_dead = self.dead or self.dead_behind
        return bool(self.moves or self.marks or has_dead or self.forgotten or self.left)

    @property
    def hands_over(self) -> bool:
        """Return whether there are hand-overs that must be sent before their replies leave."""
        return self.replies_leave and bool(self.batches or self.marks)

    def calls(
        self,
        keys: RedisKeys,
        limits: KeyLimits,
        journal: DeliveryJournal,
        framing: Framing | None = None,
        *,
        brought: Mapping[str, BatchMark] = NO_HAND_OVERS,
        incarnation: str = "",
    ) -> Iterator[PendingCall]:
        """Yield one call of each kind with its note, or several if one would take too long.

        Args:
            brought: The hand-overs that messages bring.
            incarnation: The random text of the incarnation that makes the calls.
        """
        # Most turns have only one or two kinds.
        if self.requests or self.sessions:
            yield from self._first(keys, limits.form)
        if self.messages or self.keyed:
            yield from self._coming(keys, limits, journal, framing, brought, incarnation)
        if self.moves:
            yield from self._moving(keys, journal, framing)
        if self.batches or self.marks or self.settled or self.settled_behind:
            yield from self._handed_and_settled(keys, journal, limits.form)
        if self.unmarked:
            yield from self._unmarked(keys)
        if self.dead and not self.ends_come_first:
            yield from _dead(self.dead, keys, journal, limits.form)
        if self.dead_behind:
            yield from _dead(self.dead_behind, keys, journal, limits.form)
        if self.forgotten or self.left:
            yield from self._forgotten(keys, journal)
        if self.floors or self.outdated:
            yield from self._outdated(keys)

    def _first(self, keys: RedisKeys, form: WrittenForm) -> Iterator[PendingCall]:
        may_wait = not self.hands_over
        for fields in parts(self.requests.items(), repeat(KEY)):
            yield PendingCall(scripts.save_requests(keys, fields, form), may_wait=may_wait)
        for sessions in parts(self.sessions.values(), repeat(RECORD)):
            records = [session.record() for session in sessions]
            yield PendingCall(scripts.save(keys, records, form), may_wait=may_wait)

    def _coming(
        self,
        keys: RedisKeys,
        limits: KeyLimits,
        journal: DeliveryJournal,
        framing: Framing | None,
        brought: Mapping[str, BatchMark],
        incarnation: str,
    ) -> Iterator[PendingCall]:
        may_wait = not self.hands_over
        costs = list(map(_cost_of_message, self.messages))
        for messages in _portions(self.messages, costs, framing):
            pairs = [(pending.message, pending.receivers) for pending in messages]
            call = scripts.keep(
                keys, pairs, _fields_of(messages), limits.form, brought, incarnation
            )
            call, appended = _framed(call, pairs, framing)
            note = journal.note_kept(_for_queues(pairs), brought)
            yield PendingCall(call, messages, note, may_wait, appended=appended, brought=brought)
            brought = NO_HAND_OVERS
        # A repeat leaves no note and appends no frame, so with either each message gets a separate
        # call.
        costs = [
            _cost_of_message(each) + _cost_of_key(each, journal, framing) for each in self.keyed
        ]
        for messages in parts(self.keyed, costs):
            pairs = [(pending.message, pending.receivers) for pending in messages]
            fields = [pending.fields for pending in messages]
            call = scripts.keep_keyed(keys, pairs, limits, fields)
            call, appended = _framed(call, pairs, framing)
            note = journal.note_kept(_for_queues(pairs))
            yield PendingCall(call, messages, note, may_wait, appended=appended)

    def _moving(
        self, keys: RedisKeys, journal: DeliveryJournal, framing: Framing | None
    ) -> Iterator[PendingCall]:
        may_wait = not self.hands_over
        for moves in parts(self.moves, [MESSAGE + len(each.targets) for each in self.moves]):
            note = journal.note_moved(moves)
            if not note and all(each.stays for each in moves):
                # Only the journal tells of them.
                continue
            call, appended = scripts.move(keys, moves), None
            if framing is not None:
                call, appended = framing.framed(call, [each.message for each in moves])
            yield PendingCall(call, note=note, may_wait=may_wait, appended=appended)

    def _handed_and_settled(
        self, keys: RedisKeys, journal: DeliveryJournal, form: WrittenForm
    ) -> Iterator[PendingCall]:
        if self.ends_come_first:
            may_wait = not self.hands_over
            yield from _settled(self.settled, keys, journal, may_wait=may_wait)
            yield from _dead(self.dead, keys, journal, form, may_wait=may_wait)
        yield from self._handed(keys, journal)
        if not self.ends_come_first:
            yield from _settled(self.settled, keys, journal)
        yield from _settled(self.settled_behind, keys, journal)

    def _handed(self, keys: RedisKeys, journal: DeliveryJournal) -> Iterator[PendingCall]:
        # Replies that wait for the store have time: many may do so once it has fallen behind.
        may_wait = not self.replies_leave
        for batches in shares(self.batches, [SESSION] * len(self.batches)):
            call = scripts.mark_batches(keys, batches)
            yield PendingCall(call, note=journal.note_handed_over(batches), may_wait=may_wait)
        may_wait = may_wait or not any(map(_has_first, self.hand_overs.values()))
        for marks in _shares_of_marks(self.marks):
            call = scripts.mark(keys, marks)
            note = journal.note_marked(marks, _part_of(self.hand_overs, marks))
            yield PendingCall(call, note=note, may_wait=may_wait)

    def _unmarked(self, keys: RedisKeys) -> Iterator[PendingCall]:
        for unmarked in shares(self.unmarked, map(len, self.unmarked.values())):
            yield PendingCall(scripts.unmark(keys, unmarked), may_wait=True)

    def _forgotten(self, keys: RedisKeys, journal: DeliveryJournal) -> Iterator[PendingCall]:
        # The note lists the messages left in the sessions' queues.
        costs = [SESSION + len(ids) for ids in self.forgotten.values()]
        for forgotten in shares(self.forgotten, costs):
            call = scripts.forget(keys, forgotten)
            note = journal.note_left(forgotten)
            yield PendingCall(call, note=note, may_wait=True, is_reported=True)
        # These entries are reported with their session. After a kill, the next process that loads
        # the store removes the rest.
        for left in shares(self.left, _costs_of_leaving(self.left)):
            yield PendingCall(scripts.settle(keys, left), may_wait=True)

    def _outdated(self, keys: RedisKeys) -> Iterator[PendingCall]:
        # A history is not a queue, so there is nothing to report. Its floor goes first.
        for floors in parts(self.floors.items(), repeat(KEY)):
            yield PendingCall(save_floors(keys, floors), may_wait=True)
        for outdated in shares(self.outdated, _costs_of_leaving(self.outdated)):
            yield PendingCall(scripts.settle(keys, outdated), may_wait=True)


def _settled(
    settled: Settled, keys: RedisKeys, journal: DeliveryJournal, *, may_wait: bool = True
) -> Iterator[PendingCall]:
    for outcome, entries in settled.items():
        for share in shares(entries, _costs_of_leaving(entries)):
            note = journal.note_settled(share, outcome)
            yield PendingCall(scripts.settle(keys, share), note=note, may_wait=may_wait)


def _dead(
    dead: Sequence[tuple[UnwrittenLetter, str | None]],
    keys: RedisKeys,
    journal: DeliveryJournal,
    form: WrittenForm,
    *,
    may_wait: bool = True,
) -> Iterator[PendingCall]:
    for part in parts(dead, map(_cost_of_letter, dead)):
        letters = [(each.letter(), receiver) for each, receiver in part]
        call = scripts.dead_letter(keys, letters, form)
        yield PendingCall(call, note=journal.note_dead(letters), may_wait=may_wait)


def both(
    first: Callable[[object], None], then: Callable[[object], None]
) -> Callable[[object], None]:
    """Return what passes an answer on to both, in this order."""

    def answered(reply: object) -> None:
        first(reply)
        then(reply)

    return answered


def _fields_of(messages: Iterable[PendingPublish]) -> RequestFields:
    """Return all fields of requests that change with these messages. The last value applies."""
    fields: dict[str, bytes] = {}
    for pending in messages:
        fields.update(pending.fields)
    return fields


def _for_queues(
    pairs: Sequence[tuple[Message, Sequence[str]]],
) -> Sequence[tuple[Message, Sequence[str]]]:
    """Return the messages with the sessions that get them, without histories."""
    if all(message.keeping is None for message, _ in pairs):
        return pairs
    return [
        (message, [each for each in receivers if not is_history(each)])
        for message, receivers in pairs
    ]


def _has_first(hand_overs: Mapping[int, HandOver]) -> bool:
    """Return whether any is a first hand-over. Repeats wait until they are stored."""
    return any(attempt <= 1 for _, attempt in hand_overs.values())


def _part_of(
    hand_overs: Mapping[str, Mapping[int, HandOver]], marks: Mapping[str, Mapping[int, Mark]]
) -> Mapping[str, list[HandOver]]:
    """Return the hand-overs of the entries that are marked in one call."""
    return {
        receiver: [each for each in hand_overs[receiver].values() if each[0] in own]
        for receiver, own in marks.items()
        if receiver in hand_overs
    }


def _cost_of_message(pending: PendingPublish) -> int:
    most = len(pending.receivers) + KEY * len(pending.fields)
    return MESSAGE + most + len(pending.message.wire) // BYTES


def _cost_of_key(pending: PendingPublish, journal: DeliveryJournal, framing: Framing | None) -> int:
    is_alone = journal.is_writing or (framing is not None and needs_frame(pending.message))
    return MOST if is_alone else KEY


def _portions(
    messages: Sequence[PendingPublish], costs: Iterable[int], framing: Framing | None
) -> Iterator[list[PendingPublish]]:
    """Split messages into calls, each with a single frame for other shards at most."""
    portions = parts(messages, costs)
    if framing is None:
        return portions
    size_of = framing.size_of
    return chain.from_iterable(
        [portion]
        if len(portion) == 1
        else parts(portion, [size_of(each.message) for each in portion], most=FRAME)
        for portion in portions
    )


def _framed(
    call: ScriptCall, pairs: Sequence[tuple[Message, Sequence[str]]], framing: Framing | None
) -> tuple[ScriptCall, Callable[[object], None] | None]:
    if framing is None:
        return call, None
    return framing.framed(call, [message for message, _ in pairs])


def _cost_of_letter(pair: tuple[UnwrittenLetter, str | None]) -> int:
    return LETTER + pair[0].size // BYTES


def _costs_of_leaving(entries: Mapping[int, Sequence[str]]) -> list[int]:
    return [MESSAGE + len(receivers) for receivers in entries.values()]


def _shares_of_marks(
    marked: Mapping[str, Mapping[int, Marked]],
) -> Iterator[Mapping[str, Mapping[int, Mark]]]:
    """Split the marks into calls. One session may have more than one call has room for.

    Marks are created call by call: ten thousand at once would delay other work.
    """
    share: dict[str, dict[int, Mark]] = {}
    room = MOST // MARK
    for receiver, entries in marked.items():
        for entry in entries.values():
            share.setdefault(receiver, {})[entry.id] = entry.mark()
            room -= 1
            if not room:
                yield share
                share, room = {}, MOST // MARK
    if share:
        yield share
