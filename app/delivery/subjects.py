"""Point-to-point: the sessions of each subject, and the queues of subjects.

A subject's queue has what is addressed to the subject and to none of its sessions yet. In names,
records and the journal it is the queue of the session with number 0, which has no client.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from holdfast.delivery.attempts import FormerAttempts, joined
from holdfast.delivery.counters import Reason
from holdfast.delivery.delivery_journal import DeliveryJournal
from holdfast.delivery.entries import Entry
from holdfast.delivery.error_codes import CODES, ErrorCode
from holdfast.delivery.hub import Hub
from holdfast.delivery.messages import Message, release
from holdfast.delivery.moves import Move
from holdfast.delivery.receivers import NOBODY, Receiver
from holdfast.delivery.senders import AddressedQueue, Senders

R = TypeVar("R", bound=Receiver)

UNKNOWN: Final = CODES["user.ptp.unknownDestination"]
DENIED: Final = CODES["user.ptp.denied"]
_EXHAUSTED: Final = CODES["resource.exhaust"]
# The most messages that leave a subject's queue in one turn.
_MOST = 500


@dataclass(frozen=True, slots=True)
class SubjectLimits:
    """Limits of the queue of each subject, and the number of such queues."""

    entries: int = 10_000
    bytes: int = 16 * 1024 * 1024
    queues: int = 10_000


class Undeliverable(Exception):
    """The destination does not take the message."""

    def __init__(self, code: ErrorCode) -> None:
        super().__init__(code.text)
        self.code = code


class OverQuota(Undeliverable):
    """The sender makes too much wait already."""


class SubjectOwner(ABC, Generic[R]):
    """What the subjects ask of the owner of the sessions."""

    @abstractmethod
    def open_queue(self, key: str, queue: AddressedQueue) -> R:
        """Make the receiver that has this queue of a subject."""

    @abstractmethod
    def close_queue(self, receiver: R) -> None:
        """End the receiver of an empty queue."""

    @abstractmethod
    def make_durable(self, receiver: R) -> None:
        """Store the session and, from now on, its queue."""


class SubjectQueue(Generic[R]):
    """The queue of one subject, with what is returned and not in it yet."""

    __slots__ = ("oversized", "queue", "receiver", "returning")

    def __init__(self, receiver: R, queue: AddressedQueue) -> None:
        self.receiver = receiver
        self.queue = queue
        # What ended sessions left, with their keys.
        self.returning: deque[tuple[str, Message]] = deque()
        # Messages that are too large for all sessions that were there when these were last looked
        # for. Others do not wait for them.
        self.oversized = 0

    @property
    def is_idle(self) -> bool:
        return not (self.queue.coming or self.returning or self.queue.count)

    @property
    def is_first(self) -> bool:
        """Whether a new message to the subject would overtake none that waits for room."""
        queue = self.queue
        return not (queue.coming or self.returning) and queue.count <= self.oversized


class Subjects(Generic[R]):
    """Finds the receivers of addressed messages, and moves these between a subject's queues."""

    def __init__(
        self,
        hub: Hub[R],
        journal: DeliveryJournal,
        owner: SubjectOwner[R],
        limits: SubjectLimits,
        senders: Senders,
    ) -> None:
        self._hub = hub
        self._journal = journal
        self._owner = owner
        self._limits = limits
        # By subject, its sessions by key.
        self._sessions: dict[str, dict[str, R]] = {}
        self._queues: dict[str, SubjectQueue[R]] = {}
        self._senders = senders

    # Sessions

    def join(self, receiver: R) -> None:
        """Count the session to its subject; what waits for the subject moves on to it."""
        subject = receiver.subject
        if subject == NOBODY:
            return
        self._sessions.setdefault(subject, {})[receiver.key] = receiver
        self.look(subject)

    def leave(self, receiver: R) -> None:
        """Forget an ended session."""
        siblings = self._sessions.get(receiver.subject)
        if siblings is None or siblings.get(receiver.key) is not receiver:
            return
        del siblings[receiver.key]
        if not siblings:
            del self._sessions[receiver.subject]

    def look(self, subject: str) -> None:
        """Move on what waits for the subject when the turn ends."""
        if self._queues and subject in self._queues:
            self._hub.make_ready(self._queues[subject].receiver)

    def queues(self) -> Sequence[R]:
        """The receivers that have the queues of subjects."""
        return [each.receiver for each in self._queues.values()]

    def queue(self, subject: str) -> R | None:
        """The receiver that has the queue of this subject, if there is one."""
        found = self._queues.get(subject)
        return None if found is None else found.receiver

    def _takers(self, subject: str) -> list[R]:
        siblings = self._sessions.get(subject, {}).values()
        return [each for each in siblings if each.takes_addressed]

    # Addressing

    def session(self, subject: str, key: str, size: int) -> R:
        """Return the session that a message is addressed to. Raises `Undeliverable`."""
        found = self._sessions.get(subject, {}).get(key)
        if found is None or not found.takes_messages:
            raise Undeliverable(UNKNOWN)
        if not found.takes_addressed:
            raise Undeliverable(DENIED)
        lacking = found.queue.lacks_room(size)
        if lacking is not None:
            raise Undeliverable(CODES[lacking.value])
        return found

    def takers(self, subject: str, size: int) -> Sequence[R]:
        """Return the sessions that get a message to the subject at once.

        None do while an earlier one waits for room, or if none has room. Raises `Undeliverable` if
        there is no session that may.
        """
        siblings = self._sessions.get(subject, {}).values()
        takers = self._takers(subject)
        if not takers:
            has_sessions = any(each.takes_messages for each in siblings)
            raise Undeliverable(DENIED if has_sessions else UNKNOWN)
        waiting = self._queues.get(subject)
        if waiting is not None and not waiting.is_first:
            return ()
        return takers if any(each.queue.lacks_room(size) is None for each in takers) else ()

    def home(self, subject: str, message: Message, senders: Sequence[str]) -> SubjectQueue[R]:
        """Return the subject's queue, which will get the message on account of its senders.

        Raises `Undeliverable` if the queue is full, or if the senders make too much wait already.
        The caller reserves room, and calls `release` when the message is in the queue or will not
        come.
        """
        size = len(message.wire)
        if not self._senders.may_add(senders, size):
            raise OverQuota(_EXHAUSTED)
        known = self._queues.get(subject)
        if known is None:
            if len(self._queues) >= self._limits.queues:
                raise Undeliverable(_EXHAUSTED)
            known = self._open(subject)
        queue = known.queue
        lacking = None
        if queue.count + queue.coming >= self._limits.entries:
            lacking = Reason.OVERFLOW_ENTRIES
        elif queue.size + queue.coming_bytes + size > self._limits.bytes:
            lacking = Reason.OVERFLOW_BYTES
        if lacking is not None:
            self.close_if_idle(known.receiver)
            raise Undeliverable(CODES[lacking.value])
        queue.charge(message, senders)
        return known

    def release(self, receiver: R, size: int) -> None:
        """Give reserved room up, after the message has entered the queue or was refused."""
        receiver.queue.release(size)
        self.close_if_idle(receiver)

    def harden(self, receivers: Sequence[R]) -> None:
        """Make sessions durable that are to have a message that the store keeps for the subject."""
        for each in receivers:
            if not each.is_durable:
                self._owner.make_durable(each)

    def _open(self, subject: str) -> SubjectQueue[R]:
        known = self._queues.get(subject)
        if known is None:
            queue = AddressedQueue(self._hub.counters, self._senders)
            known = SubjectQueue(self._owner.open_queue(f"{subject}/0", queue), queue)
            self._queues[subject] = known
        return known

    def close_if_idle(self, receiver: R) -> None:
        """Close the queue of a subject that nothing waits for; other receivers stay."""
        known = self._queues.get(receiver.subject)
        if known is not None and known.receiver is receiver and known.is_idle:
            del self._queues[receiver.subject]
            self._owner.close_queue(receiver)

    def restore(self, subject: str, messages: Sequence[Message]) -> None:
        """Restore the queue of a subject from the store."""
        receiver = self._open(subject).receiver
        for message in messages:
            receiver.queue.take_in(message)
        self._hub.counters.restored += len(messages)
        self._expire_in_time(receiver)
        self._hub.make_ready(receiver)

    # Moving

    def pass_on(self, receiver: R) -> None:
        """Move what waits in a subject's queue on to the sessions, as far as these have room.

        A message that waits for room keeps later ones waiting, unless it is too large for all.
        """
        known = self._queues.get(receiver.subject)
        if known is not None and known.returning:
            self._take_in(known)
            return
        takers = self._takers(receiver.subject)
        if any(each.queue.lacks_room(1) is None for each in takers):
            moves = self._moves(receiver, takers)
            if moves:
                receiver.queue.take_away([each.message for each in moves])
                self._moved(moves)
                for each in takers:
                    self._expire_in_time(each)
                    self._hub.make_ready(each)
                if len(moves) == _MOST:
                    self._hub.make_ready(receiver)
        self.close_if_idle(receiver)

    def _moves(self, receiver: R, takers: Sequence[R]) -> list[Move]:
        """Enter what waits for the subject, in order, into the queues that have room."""
        had = [set(each.queue.ids()) for each in takers]
        moves: list[Move] = []
        oversized = 0
        for message in receiver.queue.waiting:
            if len(moves) == _MOST:
                break
            size = len(message.wire)
            old = [each for each, ids in zip(takers, had, strict=True) if message.id in ids]
            new = [
                each
                for each, ids in zip(takers, had, strict=True)
                if message.id not in ids and each.queue.lacks_room(size) is None
            ]
            if old or new:
                moves.append(self._enter(message, receiver.key, new, old))
            elif any(each.queue.fits(size) for each in takers):
                break
            else:
                oversized += 1
        self._queues[receiver.subject].oversized = oversized
        return moves

    def take_back(self, receiver: R) -> None:
        """Return to its subject what an ending session leaves of what was addressed to that."""
        subject, queue = receiver.subject, receiver.queue
        if subject == NOBODY or not queue.count or receiver.has_queue_of_subject:
            return
        left = [entry for entry in queue.entries() if entry.message.is_for(subject)]
        if left:
            queue.take_away([entry.message for entry in left])
            self._hub.counters.redelivered += sum([bool(entry.attempts) for entry in left])
            self._return(receiver, [entry.for_others() for entry in left])

    def take_back_late(self, receiver: R, message: Message) -> bool:
        """Return a message that came after the session's end, if it is addressed to the subject."""
        if receiver.subject == NOBODY or not message.is_for(receiver.subject):
            return False
        self._return(receiver, [message])
        return True

    def _return(self, receiver: R, messages: Sequence[Message]) -> None:
        known = self._open(receiver.subject)
        known.returning += [(receiver.key, message) for message in messages]
        for message in messages:
            if message.topic is not None:
                # Until it enters the queue.
                message.topic.refer()
        self._take_in(known)

    def _take_in(self, known: SubjectQueue[R]) -> None:
        """Take in what ended sessions left: as much as one turn has time for."""
        home = known.receiver
        has = {message.id: message for message in home.queue.waiting}
        moves, taken = [], []
        tried = []
        for _ in range(min(len(known.returning), _MOST)):
            key, message = known.returning.popleft()
            taken.append(message)
            if key == home.key:
                # Its queue was closed before the store had the message.
                home.queue.take_in(message)
            elif message.id in has:
                moves.append(self._enter(message, key, (), (home,)))
                if message.former is not None:
                    message = self._join(home, has[message.id], message.former)
                    tried.append(message)
            else:
                moves.append(self._enter(message, key, (home,), ()))
            has[message.id] = message
        release(taken)
        if moves:
            self._moved(moves)
        self._remember(tried, (home.key,))
        self._expire_in_time(home)
        self._hub.make_ready(home)

    def _enter(self, message: Message, source: str, new: Sequence[R], old: Sequence[R]) -> Move:
        """Add the message to new queues; return the move, with the queues that had it already."""
        if message.is_durable:
            self.harden(new)
        for each in new:
            each.queue.take_in(message)
        return Move(message, source, [each.key for each in (*new, *old)], len(new))

    def _join(self, home: R, message: Message, former: FormerAttempts) -> Message:
        """Let a waiting message remember the attempts of another copy; return it."""
        if message.former is not None:
            former = joined(message.former, former)
        copy = message.tried(former)
        home.queue.exchange(message, copy)
        return copy

    def _remember(self, messages: Sequence[Message], keys: Sequence[str]) -> None:
        """Store with these queues what other sessions have attempted."""
        tried = [Entry(message) for message in messages if message.former and message.is_durable]
        for key in keys if tried else ():
            self._hub.store.mark(key, tried)

    def _moved(self, moves: Sequence[Move]) -> None:
        """Count and report moves: to the store or, if it never had the messages, to the journal."""
        self._hub.counters.moved += len(moves)
        self._hub.counters.accepted += sum([each.copies for each in moves])
        kept = [each for each in moves if each.message.is_durable]
        passing = [each for each in moves if not each.message.is_durable]
        if kept:
            self._hub.store.move(kept)
            for each in kept:
                self._remember([each.message], each.targets[: each.copies])
        if passing:
            self._journal.moved(passing)

    def _expire_in_time(self, receiver: R) -> None:
        if self._hub.expiry is not None:
            self._hub.expiry.watch(receiver)
