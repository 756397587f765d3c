"""What a reader of a log tells its shard, and what it hears."""

from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

from holdfast.cluster.frames import Behind, Facts, Frame, Seen
from holdfast.cluster.places import Place
from holdfast.units import counted

# What the port makes of an entry.
A = TypeVar("A")


class Move(NamedTuple):
    """How far a script moves the place in the store: from one text to another."""

    before: str
    behind: str
    # The incarnations passed before, or empty if they are the same as so far.
    passed: str


class Gap(NamedTuple):
    """Frames that a reader will not take: they are not in the log any more."""

    begin: Place
    end: Place
    # Whether this shard needs nothing of them.
    is_needless: bool = False

    @property
    def entries(self) -> int:
        """How many entries they had; 0 if that is unknown, because the log went back."""
        return max(0, self.end.total - self.begin.total)

    def told(self, shard: int) -> tuple[str, int, str]:
        """Return what a line of the log says: how many, of which shard, and where."""
        count = self.entries
        many = counted(count, "entry", "entries") if count else "An unknown number of entries"
        return many, shard, f"from {self.begin} to {self.end}"


class Sorted(NamedTuple, Generic[A]):
    """What becomes of the entries of a frame, in its order."""

    # The messages. Receivers that need no store get them when they are read.
    at_once: Sequence[A]
    # What the store of this shard has to have: messages for durable receivers, and calls.
    kept: Sequence[A]
    # What is shown then: messages with durable receivers, calls and answers.
    later: Sequence[A]
    # How many bytes the kept ones have.
    size: int
    # The channels of messages without a receiver.
    useless: Sequence[str] = ()


class NotTaken(NamedTuple):
    """The store of this shard did not carry out a call."""

    # The place that it has, if it was another one than the call said.
    found: str | None


class ReaderPort(Protocol[A]):
    """What a reader tells its shard, in the order of the log."""

    def sort(self, frame: Frame, *, is_new: bool) -> Sorted[A]:
        """Return what becomes of the entries.

        A frame is read again if the store did not take it. Then it is not new: what needs no store
        was shown.
        """
        ...

    def take(self, move: Move, kept: Sequence[A], done: Callable[[NotTaken | None], None]) -> None:
        """Store the entries and move the place in one step, or neither.

        Calls are carried out and answered in order. `done` gets None if the store did it.
        """
        ...

    def may_show(self, behind: Behind) -> bool:
        """Return whether all is shown that links had to bring before a frame."""
        ...

    def show_at_once(self, place: Place, entries: Sequence[A]) -> None:
        """Deliver messages of the frame before this place to the receivers that need no store."""
        ...

    def showed_at_once(self) -> None:
        """Show what links have brought that follows the last frame, before the next one."""
        ...

    def show(self, place: Place, entries: Sequence[A]) -> None:
        """Deliver the entries of the frame before this place, which the store has now."""
        ...

    def learn(self, place: Place, facts: Facts, seen: Seen) -> None:
        """Take note of the facts in the frame before this place, and of the sender's places."""
        ...

    def note_gap(self, gap: Gap) -> None:
        """Journal and count that frames are missing."""
        ...

    def complain(self, why: str) -> None:
        """Report that the log cannot be read on from here."""
        ...
