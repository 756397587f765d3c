"""The ledger: the core reports here, once, what happened to entries; it informs store and journal.

The store has the entries of durable receivers, and each of its calls leaves a note for the journal.
For all other entries, the ledger reports to the journal live. So most events have two ways, and
never take both:

| What happened    | Entries in the store               | Other entries                        |
| ---------------- | ---------------------------------- | ------------------------------------ |
| `published`      | the hub has called `keep`          | `published`                          |
| `copied`         | `keep`                             | `published`                          |
| `arrived`        | `keep`                             | `arrived`                            |
| `moved`          | `move`                             | `moved`                              |
| `handed_over`    | `mark_batch`; `handed`, if the     | `handed`, if the receiver can refuse |
|                  | store has it already               |                                      |
| the same, again  | `mark`                             | `handed_again`                       |
| `acked`          | `settle`                           | `acked`, or `written` if it cannot   |
| `settled`        | `settle`                           | `settled`                            |
| `turned_away`    | `settle`                           | `turned_away`, once for all          |
| `lost`           | nothing: they are still there      | `settled`                            |
| `refused`        | `refused_with_note`: with the call | `refused`                            |
|                  | that carries the refusal out       |                                      |

Some events have only one way:

* `dead`: every letter is stored. `dead_letter` has the note, and removes the entry if there is one.
* `marked`: an entry's progress, by `mark`. Without a hand-over this is not an event.
* `returned`: live; `mark` stores the entries that changed.
* `left` in an ended session, `replayed` from a letter: live. The store records them by `forget` and
  by the replay's script, whose notes matter only after a kill.

The queue itself counts acked and redelivered entries, and the hub counts accepted ones. All other
outcomes are counted here.
"""

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Final

from holdfast.delivery.basics.counters import Counters
from holdfast.delivery.basics.ignoring import ignore
from holdfast.delivery.basics.node import no_time
from holdfast.delivery.basics.ranking import Rankings
from holdfast.delivery.basics.steps import Reason, Step, StepKind
from holdfast.delivery.messages.entries import Entry, SettledBy
from holdfast.delivery.messages.outcomes import (
    ACKED,
    DISCARDED,
    OUTCOMES,
    Lending,
    Move,
    Outcome,
)
from holdfast.delivery.ports.journal_port import NO_JOURNAL, DeliveryJournal
from holdfast.delivery.ports.message_times import MessageTimes
from holdfast.delivery.queues.receivers import Receiver

if TYPE_CHECKING:
    from holdfast.delivery.basics.error_codes import ErrorCode
    from holdfast.delivery.letters.unwritten import UnwrittenLetter
    from holdfast.delivery.messages.batch import Batch
    from holdfast.delivery.messages.message import Message
    from holdfast.delivery.ports.ledger_observer import LedgerObserver
    from holdfast.delivery.ports.store_port import StorePort

_WRITTEN: Final = SettledBy.WRITTEN
_MOVED: Final = OUTCOMES[StepKind.MOVED].counter


class Ledger:
    """Reports to the store or the journal what happened to entries, and counts outcomes."""

    def __init__(
        self,
        store: "StorePort",
        journal: DeliveryJournal = NO_JOURNAL,
        read_ns: Callable[[], int] = no_time,
    ) -> None:
        self._store = store
        self._journal = journal
        self.counters = Counters()
        # Follows single messages; None if no part does.
        self.observer: LedgerObserver | None = None
        self.times = MessageTimes(read_ns)
        self.rankings = Rankings()

    # Into queues

    def published(self, message: "Message", copies: int) -> None:
        """Record a message for `copies` receivers whose queues are not in the store."""
        self._journal.published(message, copies)

    def copied(self, message: "Message", receiver: Receiver) -> None:
        """Record that the receiver's queue got a message from a history."""
        if message.is_durable and receiver.is_durable:
            self._store.keep(message, (receiver.key,), ignore)
        else:
            self._journal.published(message, 1)

    def arrived(self, step: Step, receiver: Receiver, message: "Message") -> None:
        """Record that a message came by this step. If it is durable, `keep` reported it."""
        self.counters.accepted += 1
        if not message.is_durable:
            self._journal.arrived(step, receiver, message)

    def replayed(self, key: str, message: "Message", letter: int) -> None:
        """Record that a dead letter became a message again, for the session with this key."""
        if self.observer is not None:
            self.observer.replayed(key, message, letter)
        self._journal.replayed(key, message, letter)

    def borrowed(self, number: int) -> None:
        """Record that so much work came from another shard, or went there if negative.

        The shard of the work records where each piece is.
        """
        self.counters.borrowed += number
        self._journal.borrowed(number)

    def done_elsewhere(self, receiver: Receiver, message: "Message") -> None:
        """Record that work left its queue, and that another shard has counted what it became."""
        self.borrowed(-1)
        if message.is_durable:
            self._store.move((Move(message, receiver.key, (), 0, 0, Lending.DONE),))

    def moved(self, moves: "Sequence[Move]") -> None:
        """Record messages that moved to other queues, where each counts as accepted again."""
        self.counters.left[_MOVED] += len(moves)
        self.counters.accepted += sum([each.copies for each in moves])
        kept = [each for each in moves if each.message.is_durable]
        passing = [each for each in moves if not each.message.is_durable]
        if kept:
            self._store.move(kept)
        if passing:
            self._journal.moved(passing)

    # Hand-overs and failures

    def handed_over(self, receiver: Receiver, batch: "Batch", now: float) -> None:
        """Record a hand-over, which may be empty."""
        if self.observer is not None:
            self.observer.handed(receiver, batch.messages)
        if batch.messages and receiver.queue.settling is not _WRITTEN:
            self.times.handed_over(receiver, batch, now)
        if self._store.early and self._came_early(receiver, batch, now):
            return
        if batch.entries is not None:
            if receiver.is_durable:
                self.marked(receiver, batch.entries)
                self.marked(receiver, batch.set_aside)
            else:
                self._journal.handed_again(receiver, batch.entries)
        elif batch.messages:
            if receiver.is_durable:
                self._store.mark_batch(receiver.key, batch.mark())
            elif receiver.queue.settling is not _WRITTEN:
                self._journal.handed(receiver, batch.messages, now)

    def _came_early(self, receiver: Receiver, batch: "Batch", now: float) -> bool:
        """Return whether the store has this hand-over already. Another one is corrected."""
        early = self._store.early.get(receiver.key) if receiver.is_durable else None
        if early is None:
            return False
        if batch.entries is None and early == batch.mark():
            del self._store.early[receiver.key]
            self._journal.handed(receiver, batch.messages, now)
            return True
        batch.is_unexpected = True
        if batch.entries is not None or not batch.messages:
            self._store.mark_batch(receiver.key, early._replace(ids=()))
        return False

    def marked(self, receiver: Receiver, entries: Collection[Entry]) -> None:
        """Record the progress of these entries."""
        if receiver.is_durable and entries:
            self._store.mark(receiver.key, entries)

    def refused(
        self, receiver: Receiver, entries: Collection[Entry], code: "ErrorCode", text: str
    ) -> None:
        """Record failed deliveries. The caller also records the outcome of the entries."""
        if self.observer is not None:
            self.observer.refused(receiver, entries, code, text)
        if receiver.is_durable:
            self._journal.refused_with_note(receiver, entries, code, text)
        else:
            self._journal.refused(receiver, entries, code, text)

    def returned(
        self, receiver: Receiver, back: Collection[Entry], changed: Collection[Entry]
    ) -> None:
        """Record entries that returned to the queue, and all entries that changed with them."""
        if back:
            self._journal.returned(receiver, back)
            if self.observer is not None:
                self.observer.returned(receiver, back)
        self.marked(receiver, changed)

    # Out of queues

    def acked(self, receiver: Receiver, messages: "Sequence[Message]", now: float) -> None:
        """Record messages that left the queue because they were acked, confirmed or written.

        The sequence must not change afterwards.
        """
        if self.observer is not None:
            self.observer.left(receiver, messages, ACKED)
        if receiver.queue.settling is _WRITTEN:
            self.times.written(messages, now)
        else:
            self.times.acked(receiver, messages, now)
        if receiver.is_durable:
            self._store.settle(receiver.key, [message.id for message in messages], ACKED)
        elif receiver.queue.settling is not _WRITTEN:
            self._journal.acked(receiver, messages, now)
        else:
            self._journal.written(receiver, messages, now)

    def settled(self, receiver: Receiver, messages: "Sequence[Message]", outcome: Outcome) -> None:
        """Record messages that left the queue by any way but an ack or a death."""
        if self.observer is not None:
            self.observer.left(receiver, messages, outcome)
        self._count(len(messages), outcome)
        kept, others = self._of_store(receiver, messages)
        if others:
            self._journal.settled(receiver, others, outcome)
        if kept:
            self._store.settle(receiver.key, [message.id for message in kept], outcome)

    def turned_away(
        self, receiver: Receiver, message: "Message", outcome: Outcome, crowd: list[Receiver]
    ) -> None:
        """Record that the message is discarded because the queue refused it.

        Receivers for which the store never had it are added to `crowd`. The caller must then call
        `crowd_turned_away` once for all of them.
        """
        if _may_have(receiver, (message,)):
            self.settled(receiver, (message,), outcome)
        else:
            crowd.append(receiver)

    def crowd_turned_away(
        self, crowd: Sequence[Receiver], message: "Message", outcome: Outcome
    ) -> None:
        """Record the receivers that `turned_away` collected."""
        if crowd:
            observer = self.observer
            if observer is not None:
                for receiver in crowd:
                    observer.left(receiver, (message,), outcome)
            self._count(len(crowd), outcome)
            self._journal.turned_away(crowd, message, outcome)

    def dead(
        self,
        receiver: Receiver,
        entries: Sequence[Entry],
        letters: "Sequence[UnwrittenLetter]",
        done: Callable[[], None],
    ) -> None:
        """Store the letters that some of these entries become, and call `done`.

        The entries left the queue together. The caller records the outcome of those without
        letters.
        """
        self.counters.dead += len(letters)
        if self.observer is not None:
            self.observer.dead(receiver, entries, letters)
        is_kept = _may_have(receiver, [entry.message for entry in entries])
        self._store.dead_letter(letters, receiver.key if is_kept else None, done)

    def dead_again(
        self, key: str, message: "Message", letter: int, another: "UnwrittenLetter"
    ) -> None:
        """Record that a replayed letter became another letter, because its session is gone."""
        self._journal.replayed(key, message, letter)
        self.counters.accepted += 1
        self.counters.dead += 1
        self._store.dead_letter([another], key if message.is_durable else None)

    def lost(self, receiver: Receiver, entries: Sequence[Entry]) -> None:
        """Record entries without a dead letter, because the store's buffer is full."""
        self._count(len(entries), DISCARDED[Reason.STORE_UNAVAILABLE])
        if self.observer is not None:
            lost = [entry.message for entry in entries]
            self.observer.left(receiver, lost, DISCARDED[Reason.STORE_UNAVAILABLE])
        if not receiver.is_durable:
            messages = [entry.message for entry in entries]
            self._journal.settled(receiver, messages, DISCARDED[Reason.STORE_UNAVAILABLE])

    def left(self, receiver: Receiver, messages: "Sequence[Message]", outcome: Outcome) -> None:
        """Record messages discarded with an ended session, which the store has removed."""
        self._count(len(messages), outcome)
        self._journal.settled(receiver, messages, outcome)
        if self.observer is not None:
            self.observer.left(receiver, messages, outcome)

    def _count(self, count: int, outcome: Outcome) -> None:
        reason = outcome.reason
        if reason is not None:
            self.counters.discarded[reason] += count
        else:
            self.counters.left[outcome.counter] += count

    def _of_store(
        self, receiver: Receiver, messages: "Sequence[Message]"
    ) -> "tuple[Sequence[Message], Sequence[Message]]":
        """Divide the messages into those that the store may have and the others."""
        if not _may_have(receiver, messages):
            return (), messages
        if not self._store.is_full:
            return messages, ()
        durable = [message for message in messages if message.is_durable]
        return durable, [message for message in messages if not message.is_durable]


def _may_have(receiver: Receiver, messages: "Sequence[Message]") -> bool:
    """Return whether the store has these entries or is about to have them."""
    if receiver.is_durable:
        return True
    return not receiver.takes_messages and any(message.is_durable for message in messages)
