"""Collects the writes of the event loop's turns, in the order of events."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from holdfast.delivery.letters.unwritten import UnwrittenLetter
from holdfast.delivery.messages.crossing import needs_frame
from holdfast.delivery.messages.former_attempts import former_of
from holdfast.delivery.messages.marks import NO_HAND_OVERS, BatchMark, Marked
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.outcomes import Move, Outcome
from holdfast.delivery.messages.publish_key import publish_key_of
from holdfast.delivery.messages.storing import NO_FIELDS, PersistOutcome, RequestFields
from holdfast.store.writing.turn_writes import Framing, PendingPublish, Settled, TurnWrites

if TYPE_CHECKING:
    from holdfast.delivery.messages.session_record import Recorded

# A turn with more changed sessions takes long to send.
_MOST_SESSIONS = 100
# Longer batches are stored entry by entry, because a batch stays in the store until the next one.
_MOST_OF_BATCH = 50
# The kinds of messages that other shards may get, in the order in which a turn sends them.
_KEPT: Final = 1
_KEYED: Final = 2
_MOVED: Final = 3


class TurnBuffer:
    """Collects writes in the order in which they are made, and groups them into turns.

    A write that must follow another write which its turn would send later starts a new turn.
    """

    def __init__(self) -> None:
        # What messages have for other shards; None for a server alone.
        self.framing: Framing | None = None
        # The hand-overs that the store has, or will have, and that have not happened, by session.
        self.early: dict[str, BatchMark] = {}
        # The sessions that should have got theirs, because the store has the messages.
        self._due: set[str] = set()
        self.clear()

    def __len__(self) -> int:
        return sum(map(len, self._turns))

    def clear(self) -> None:
        """Forget all writes."""
        self._turns = [TurnWrites()]
        # Whether the changed sessions so far can be sent in one turn of the event loop.
        self.has_few_sessions = True
        # Entries that have individual marks in the store, or will have.
        self._marked: dict[str, set[int]] = {}
        self.early.clear()
        self._due.clear()

    def take(self) -> list[TurnWrites]:
        """Return all writes and start over."""
        turns, self._turns = self._turns, [TurnWrites()]
        self.has_few_sessions = True
        return turns

    def take_urgent(self) -> list[TurnWrites]:
        """Return all writes except acks that may wait for others, and start over."""
        turns = self.take()
        if len(turns) == 1 and turns[0].may_leave_acks:
            turn, rest = turns[0], self._turns[0]
            rest.acking, turn.acking = turn.acking, rest.acking
            rest.settled, turn.settled = turn.settled, rest.settled
            rest.unmarked, turn.unmarked = turn.unmarked, rest.unmarked
            rest.outdated, turn.outdated = turn.outdated, rest.outdated
        return turns

    def drop_messages(self) -> list[PendingPublish]:
        """Remove and return the messages, which are no longer to be stored."""
        taken: list[PendingPublish] = []
        for turn in self._turns:
            taken += turn.messages + turn.keyed
            turn.messages, turn.keyed = [], []
            self.withdraw(turn.brought)
            turn.brought = {}
        return taken

    def save(self, session: "Recorded") -> None:
        """Save a session. Its last record applies."""
        turn = self._turns[-1]
        if session.key in turn.forgotten:
            turn = self._next()
        turn.sessions[session.key] = session
        if len(turn.sessions) > _MOST_SESSIONS:
            self.has_few_sessions = False

    def save_requests(self, fields: RequestFields) -> None:
        """Change fields of requests, which may have been stored together with messages before."""
        turn = self._turns[-1]
        if not turn.with_messages.isdisjoint(fields):
            turn = self._next()
        turn.requests.update(fields)

    def keep(
        self,
        message: Message,
        receivers: Sequence[str],
        done: Callable[[PersistOutcome], None],
        fields: RequestFields = NO_FIELDS,
        *,
        hand_overs: Mapping[str, BatchMark] = NO_HAND_OVERS,
    ) -> None:
        """Add a message, which may have left these queues before.

        Its hand-overs are stored with it, if they may be.
        """
        turn = self._turns[-1]
        if _has_left(turn, message, receivers):
            turn = self._next()
        is_keyed = publish_key_of(message) is not None
        if self.framing is not None and needs_frame(message):
            turn = self._behind_framed(_KEYED if is_keyed else _KEPT)
        kind = turn.keyed if is_keyed else turn.messages
        kind.append(PendingPublish(message, receivers, done, fields))
        turn.with_messages.update(fields)
        if message.generation or message.is_initial:
            for receiver in receivers:
                self.marked(receiver, (message.id,))
        if hand_overs:
            self._bring(turn, hand_overs)

    def _bring(self, turn: TurnWrites, hand_overs: Mapping[str, BatchMark]) -> None:
        """Let the messages of a turn bring hand-overs, or more to hand over together."""
        brought = turn.brought
        more = hand_overs.keys() & brought.keys()
        for receiver in more:
            if self.early.get(receiver) is brought[receiver]:
                ids = [*brought[receiver].ids, *hand_overs[receiver].ids]
                self.early[receiver] = brought[receiver] = brought[receiver]._replace(ids=ids)
        if len(more) < len(hand_overs):
            brought.update(self.announce(hand_overs))

    def brought_by(self, turn: TurnWrites) -> Mapping[str, BatchMark]:
        """Return the hand-overs that the messages of a turn bring, and that are still expected."""
        brought, early = turn.brought, self.early
        return {key: batch for key, batch in brought.items() if early.get(key) is batch}

    def move(self, moves: Sequence[Move]) -> None:
        """Move messages, which may have left these queues before."""
        turn = self._turns[-1]
        if any(_has_left(turn, each.message, each.targets) for each in moves):
            turn = self._next()
        if self.framing is not None and any(needs_frame(each.message) for each in moves):
            turn = self._behind_framed(_MOVED)
        turn.moves += moves
        turn.gone.update([each.message.id for each in moves])
        for each in moves:
            message = each.message
            if not each.stays and each.source in self._marked:
                self._unmark(each.source, (message.id,))
            if former_of(message) is not None or message.generation:
                for receiver in each.targets[: each.remembering]:
                    self.marked(receiver, (message.id,))

    def mark_batch(self, receiver: str, batch: BatchMark) -> None:
        """Add a batch. A session's last one applies, except for entries that have marks."""
        early = self.early.pop(receiver, None) if self.early else None
        if batch.ids and (receiver in self._marked or len(batch.ids) > _MOST_OF_BATCH):
            if early is not None:
                self._turns[-1].batches[receiver] = early._replace(ids=())
            self.mark(receiver, batch.marks())
            return
        turn = self._turns[-1]
        has_ends = receiver in turn.acking or receiver in turn.with_dead
        if receiver in turn.batches or (receiver in turn.marks and has_ends):
            # The journal reports each hand-over, and what was in flight is settled first.
            turn = self._next()
        elif has_ends:
            turn.ends_come_first = True
        turn.batches[receiver] = batch

    # Hand-overs that the store has before they happen

    def announce(self, hand_overs: Mapping[str, BatchMark]) -> Mapping[str, BatchMark]:
        """Return which of these hand-overs a call may store that precedes all writes so far.

        A batch replaces the one before, whose acks must be in the store. Nor may a later write
        replace it that was made before.
        """
        turn = self._turns[0]
        if len(self._turns) > 1 or turn.changes_queues:
            return {}
        kept_out = self.early.keys() | self._marked.keys() | turn.batches.keys() | turn.acking
        found = {
            receiver: batch
            for receiver, batch in hand_overs.items()
            if receiver not in kept_out and len(batch.ids) <= _MOST_OF_BATCH
        }
        self.early.update(found)
        self._due.difference_update(found)
        return found

    def follow(self, hand_overs: Mapping[str, BatchMark]) -> None:
        """Expect these hand-overs at the end of this turn."""
        self._due.update(hand_overs)

    def withdraw(self, hand_overs: Mapping[str, BatchMark]) -> None:
        """Expect these hand-overs no more. The store does not have them."""
        for receiver, batch in hand_overs.items():
            if self.early.get(receiver) is batch:
                del self.early[receiver]

    def retract(self) -> Mapping[str, BatchMark]:
        """Tell the store which early hand-overs have not followed.

        They stay, without messages, until the store has answered: then `withdraw` the result.
        """
        found = {
            receiver: self.early[receiver]._replace(ids=())
            for receiver in self._due.intersection(self.early)
        }
        self._turns[-1].batches.update(found)
        self.early.update(found)
        self._due.clear()
        return found

    def mark(self, receiver: str, marked: Collection[Marked]) -> None:
        """Mark entries: one mark each, created when sent. The journal reports each hand-over."""
        turn = self._turns[-1]
        entries = turn.marks.setdefault(receiver, {})
        for entry in marked:
            entries[entry.id] = entry
            if entry.is_in_flight:
                turn.hand_overs.setdefault(receiver, {})[entry.seq] = (entry.id, entry.attempts)
        self.marked(receiver, [entry.id for entry in marked])

    def let_replies_leave(self) -> None:
        """Send the hand-overs so far before their replies, which do not wait for the store."""
        self._turns[-1].replies_leave = True

    def marked(self, receiver: str, ids: Collection[int]) -> None:
        """Record that these entries have marks in the store."""
        if ids:
            self._marked.setdefault(receiver, set()).update(ids)

    def settle(self, receiver: str, ids: Sequence[int], outcome: Outcome) -> None:
        """Remove entries."""
        turn = self._turns[-1]
        turn.acking.add(receiver)
        outcomes = turn.settled_behind if _is_handed(turn, receiver) else turn.settled
        settled = outcomes.get(outcome)
        if settled is None:
            settled = outcomes[outcome] = {}
        for id in ids:
            if id in settled:
                settled[id].append(receiver)
            else:
                settled[id] = [receiver]
        if receiver in self._marked:
            turn.unmarked.setdefault(receiver, []).extend(self._unmark(receiver, ids))

    def _unmark(self, receiver: str, ids: Iterable[int]) -> Collection[int]:
        """Record that these entries are gone. Returns the ones that had marks."""
        marked = self._marked[receiver]
        found = marked.intersection(ids)
        marked -= found
        if not marked:
            del self._marked[receiver]
        return found

    def dead_letter(self, dead: Sequence[UnwrittenLetter], receiver: str | None) -> None:
        """Dead-letter entries and remove their marks."""
        turn = self._turns[-1]
        ids = [each.message for each in dead]
        letters = [(each, receiver) for each in dead]
        if receiver is not None and _is_handed(turn, receiver):
            turn.dead_behind += letters
        else:
            turn.dead += letters
        turn.gone.update(ids)
        if receiver is not None:
            turn.with_dead.add(receiver)
            if receiver in self._marked:
                self._unmark(receiver, ids)

    def forget(self, receiver: str, ids: Sequence[int]) -> None:
        """Remove a session and its marks."""
        turn = self._turns[-1]
        turn.sessions.pop(receiver, None)
        turn.forgotten[receiver] = ids
        turn.gone.update(ids)
        self.remove_with_session(receiver, ids)
        self._marked.pop(receiver, None)
        self.early.pop(receiver, None)

    def remove_with_session(self, receiver: str, ids: Iterable[int]) -> None:
        """Remove entries together with their session, which reports them."""
        left = self._turns[-1].left
        for id in ids:
            left.setdefault(id, []).append(receiver)

    def leave_history(self, channel: str, id: int) -> None:
        """Remove a message from the history of its channel."""
        self._turns[-1].outdated[id] = [channel]

    def save_floor(self, channel: str, floor: int) -> None:
        """Store the floor of a channel's history, before messages leave that one."""
        self._turns[-1].floors[channel] = floor

    def _behind_framed(self, kind: int) -> TurnWrites:
        """Return the turn for a message of this kind that other shards get: in their order."""
        turn = self._turns[-1]
        if kind < turn.last_framed:
            turn = self._next()
        turn.last_framed = kind
        return turn

    def _next(self) -> TurnWrites:
        self._turns.append(TurnWrites())
        return self._turns[-1]


def _is_handed(turn: TurnWrites, receiver: str) -> bool:
    """Return whether the session has a hand-over in this turn."""
    return receiver in turn.batches or receiver in turn.marks


def _has_left(turn: TurnWrites, message: Message, receivers: Sequence[str]) -> bool:
    """Return whether the message, or one of these sessions, leaves in this turn."""
    return (
        message.id in turn.gone
        or (bool(turn.settled) and _is_among(message.id, turn.settled))
        or (bool(turn.settled_behind) and _is_among(message.id, turn.settled_behind))
        or (bool(turn.forgotten) and not turn.forgotten.keys().isdisjoint(receivers))
    )


def _is_among(id: int, settled: Settled) -> bool:
    return any(id in entries for entries in settled.values())
