"""Batches: the messages that one hand-over gives to a receiver. Its queue numbers them."""

from collections.abc import Sequence

from holdfast.delivery.messages.entries import Entry
from holdfast.delivery.messages.marks import BatchMark
from holdfast.delivery.messages.message import Message


class Batch:
    """One hand-over. Its messages have consecutive numbers from `seq` on.

    A batch is *fresh* if none of its messages was handed over before and the receiver has nothing
    else in flight or returned. A fresh batch has no entries, because the receiver usually settles
    it as a whole. If they are needed after all, `InFlight.in_flight` creates them.
    """

    __slots__ = (
        "entries",
        "handed_at",
        "is_unexpected",
        "messages",
        "number",
        "redelivered",
        "seq",
        "set_aside",
        "size",
    )

    def __init__(
        self,
        number: int,
        seq: int,
        *,
        messages: Sequence[Message],
        handed_at: float,
        entries: Sequence[Entry] | None = None,
        set_aside: Sequence[Entry] = (),
    ) -> None:
        self.number = number
        self.seq = seq
        self.messages = messages
        self.handed_at = handed_at
        # None in a fresh batch.
        self.entries = entries
        # What the events of this hand-over say, even if they are sent later: how often each was
        # redelivered, unless the batch is fresh, and the length of the queue.
        self.redelivered = None if entries is None else [entry.redelivered for entry in entries]
        self.size = 0
        # Whether the store has another one in its place: the reply must wait until it knows.
        self.is_unexpected = False
        # Entries of the previous batch that did not fit into this one.
        self.set_aside = set_aside

    @property
    def numbers(self) -> range:
        """The numbers of its entries."""
        return range(self.seq, self.seq + len(self.messages))

    @property
    def has_repeats(self) -> bool:
        """Whether it contains redeliveries."""
        return self.entries is not None and any(entry.attempts > 1 for entry in self.entries)

    def split(self, due: float) -> dict[int, Entry]:
        """Create the entries of a fresh batch, by number. Responses are due at `due`."""
        made = {
            seq: Entry(
                message, seq, batch=self.number, attempts=1, handed_at=self.handed_at, due=due
            )
            for seq, message in enumerate(self.messages, self.seq)
        }
        if len(made) == 1:
            made[self.seq].was_alone = True
        return made

    def mark(self) -> BatchMark:
        """Return the mark of a fresh batch, for the store."""
        return BatchMark(self.number, self.seq, [message.id for message in self.messages])
