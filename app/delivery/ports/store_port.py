"""The port to the store, for everything that must survive this process."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from holdfast.delivery.guard.holds import ChannelHold
    from holdfast.delivery.letters.unwritten import UnwrittenLetter
    from holdfast.delivery.messages.letter_quota import LetterQuota
    from holdfast.delivery.messages.marks import BatchMark, Marked
    from holdfast.delivery.messages.message import Message
    from holdfast.delivery.messages.outcomes import Move, Outcome
    from holdfast.delivery.messages.session_record import Recorded
    from holdfast.delivery.messages.storing import PersistOutcome, RequestFields
    from holdfast.delivery.topics.configured import TopicRecord


class StorePort(Protocol):
    """Stores changes at least once and in order. Callbacks report results in later turns.

    All changes of one turn of the event loop are sent together: save (requests, then sessions),
    keep, move, hand over, mark, settle, dead-letter, forget. Acks may follow slightly later, unless
    a new batch would replace the one that they belong to. Changes are idempotent. While the store
    is unavailable, all changes except `keep` wait until it is back.
    """

    @property
    def is_available(self) -> bool:
        """Whether the store can take durable work now; if not, `keep` is refused."""
        ...

    @property
    def takes_messages(self) -> bool:
        """Whether new messages are stored now: the store is available and not full."""
        ...

    @property
    def is_prompt(self) -> bool:
        """Whether the store answers at once; if not, a hand-over made now may be lost."""
        ...

    @property
    def is_full(self) -> bool:
        """Whether the buffer of unsent changes is full. If so, settle nothing."""
        ...

    @property
    def keys_dropped(self) -> int:
        """The number of publish keys forgotten early for lack of memory."""
        ...

    @property
    def losses(self) -> int:
        """How often the store has lost changes in use."""
        ...

    @property
    def letter_quota(self) -> "LetterQuota":
        """The quota of dead letters. Take from it before you call `dead_letter`."""
        ...

    def keep(
        self,
        message: "Message",
        receivers: Sequence[str],
        done: "Callable[[PersistOutcome], None]",
        fields: "RequestFields" = ...,
        *,
        hand_overs: "Mapping[str, BatchMark]" = ...,
    ) -> None:
        """Store the message in the queues of these sessions, or in no queue.

        A receiver is a session's `key`, or the name of the channel for its history. The fields of
        requests change in the same step, or not at all. A message with a publish key has no such
        fields.

        With `hand_overs`, sessions get the message as soon as it is stored, if nothing changes: the
        store may have these in the same step, see `early`. A message with a publish key, which may
        be a repeat, has none.

        A publish key is stored in the same step; only the first message with a given key is stored.
        `done` is called once, and a second time after `PersistOutcome.UNKNOWN`.
        """
        ...

    def move(self, moves: "Sequence[Move]") -> None:
        """Move messages with their attempts. Each leaves one queue and enters others in one step.

        The note of the call reports the move to the journal.
        """
        ...

    def mark(self, receiver: str, marked: "Collection[Marked]") -> None:
        """Store the progress of these entries, as it stands when the turn ends.

        The journal records the hand-overs of those entries that are in flight when this is called.
        """
        ...

    def mark_batch(self, receiver: str, batch: "BatchMark") -> None:
        """Store a fresh batch, the common case. It replaces the session's previous batch."""
        ...

    @property
    def early(self) -> "dict[str, BatchMark]":
        """By session, hand-overs that the store has, or will have, and that have not happened.

        Delete one that happens. Before the session learns the number of another batch, `mark_batch`
        must replace it, perhaps by a batch without messages.
        """
        ...

    def settle(self, receiver: str, ids: Sequence[int], outcome: "Outcome") -> None:
        """Remove entries. The note of the call reports the outcome to the journal."""
        ...

    def dead_letter(
        self,
        dead: Sequence["UnwrittenLetter"],
        receiver: str | None,
        done: Callable[[], None] | None = None,
    ) -> None:
        """Remove dead entries from their queue and store their letters, in one step; call `done`.

        Each letter is created when its call is sent. `receiver` is None if the queue is not
        durable.
        """
        ...

    def save(self, session: "Recorded") -> None:
        """Create or replace a session's record, as it stands when the turn ends."""
        ...

    def save_requests(self, fields: "RequestFields") -> None:
        """Store these fields of requests. Empty values remove fields."""
        ...

    def leave_history(self, channel: str, id: int) -> None:
        """Remove a message from the history of its channel."""
        ...

    def save_floor(self, channel: str, floor: int) -> None:
        """Store the floor of a history, before messages leave that one. Zero removes it."""
        ...

    def forget(self, receiver: str, ids: Sequence[int]) -> None:
        """Remove the session and its queue."""
        ...

    def save_channel_hold(self, channel: str, held: "ChannelHold") -> None:
        """Store a hold of a channel, so that it survives this process, until `release`."""
        ...

    def release(self, channel: str) -> None:
        """Remove the channel hold."""
        ...

    def save_topics(self, topics: "Mapping[str, TopicRecord | None]") -> None:
        """Store the records of these topics; remove those that are None."""
        ...

    def after(self, done: Callable[[], None]) -> None:
        """Call `done` in a later turn, once the store has answered all earlier calls."""
        ...

    def flush(self) -> None:
        """Send urgent changes now instead of when the turn ends."""
        ...
