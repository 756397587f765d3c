"""The port to the store: what must survive this process."""

from collections.abc import Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from app.delivery.attempts import Trail
    from app.delivery.deaths import Buried
    from app.delivery.guard import Held
    from app.delivery.letter_room import LetterRoom
    from app.delivery.messages import Message
    from app.delivery.session_record import Recorded


class Kept(Enum):
    """What became of a message that was to be kept."""

    KEPT = "kept"
    # One with the same key was kept before, which this one is not: `Key.first` says which.
    REPEATED = "repeated"
    # Certainly not kept, now and later.
    REFUSED = "refused"
    # Nobody knows within 5 s. A second answer, one of the others, follows when somebody does.
    UNKNOWN = "unknown"


class Mark(NamedTuple):
    """How far one entry of a queue has come."""

    id: int
    # Of the last hand-over, negative if it was returned since; 0: it waits.
    seq: int = 0
    batch: int = 0
    attempts: int = 0
    redelivered: int = 0
    # Its place among returned entries: the number of its first hand-over; 0: it waits.
    position: int = 0
    # What became of its attempts, as far as they failed.
    trail: "Trail" = ()


class Batch(NamedTuple):
    """What a session was handed for the first time, while it had nothing else in hands."""

    number: int
    # Of the first message; the others follow.
    seq: int
    ids: Sequence[int]

    def marks(self) -> list[Mark]:
        """The same, of each entry."""
        return [Mark(id, seq, self.number, 1, 0, seq) for seq, id in enumerate(self.ids, self.seq)]


class Keeper(Protocol):
    """Keeps what it is told, at least once and in order; answers come as calls in later turns.

    What one turn of the event loop brings goes out together: save, keep, hand over, mark, settle,
    bury, forget; but acks may follow a little later, unless a batch would take the place of the one
    that tells of them. Repeating any of these changes nothing. While the store is away all but
    `keep` wait for its return.
    """

    @property
    def is_available(self) -> bool:
        """Whether durable work is possible now; if not, `keep` is refused."""
        ...

    @property
    def takes_messages(self) -> bool:
        """Whether new messages are kept now: the store is there, and has room for them."""
        ...

    @property
    def is_prompt(self) -> bool:
        """Whether the store answers at once; if not, it may never hear of a hand-over made now."""
        ...

    @property
    def is_full(self) -> bool:
        """Whether what waits for the store's return has filled its buffer: settle nothing."""
        ...

    @property
    def keys_dropped(self) -> int:
        """How many keys of messages were forgotten before their time, for want of room."""
        ...

    @property
    def letter_room(self) -> "LetterRoom":
        """The account of the dead letters: who buries one takes room for it before."""
        ...

    def keep(self, message: "Message", keys: Sequence[str], done: Callable[[Kept], None]) -> None:
        """Keep the message in the queues of these sessions, or in none.

        If it has a key, that is remembered in the same step, and of messages with the same key
        the first is kept alone. `done` is called once, but a second time after `Kept.UNKNOWN`.
        """
        ...

    def mark(self, key: str, marks: Sequence[Mark]) -> None:
        """Remember how far entries have come; of several marks for one entry the last one wins."""
        ...

    def hand_over(self, key: str, batch: Batch) -> None:
        """Remember the usual batch, which takes the place of the one before."""
        ...

    def settle(self, key: str, ids: Sequence[int]) -> None:
        """Entries are acked, expired or discarded: they are gone."""
        ...

    def bury(self, dead: Sequence["Buried"], key: str | None) -> None:
        """Entries are dead: gone from their queue and on record, in one step.

        Each letter is made with the call that carries it. `key` is None if the queue is not a
        durable one.
        """
        ...

    def save(self, session: "Recorded") -> None:
        """Create or replace what is known of a session; its record is made when the turn ends."""
        ...

    def forget(self, key: str, ids: Sequence[int]) -> None:
        """The session is gone, and what is left of its queue."""
        ...

    def hold(self, channel: str, held: "Held") -> None:
        """The channel is held back until it is released, whatever becomes of this process."""
        ...

    def release(self, channel: str) -> None:
        """The channel flows again."""
        ...

    def after(self, done: Callable[[], None]) -> None:
        """Call when everything before has been answered."""
        ...

    def flush(self) -> None:
        """Let what must not wait leave now instead of at the end of the turn."""
        ...
