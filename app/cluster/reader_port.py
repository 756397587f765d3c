"""What a reader of a log tells its shard, and what it hears."""

from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

from holdfast.cluster.frames import Behind, Facts, Frame, Seen
from holdfast.cluster.places import Place

# What the port makes of an entry.
A = TypeVar("A")


class Move(NamedTuple):
    """How a call moves the place in the store: from one text to another."""

    before: str
    behind: str
    # The openings passed before, or empty if they are the same as so far.
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


class Sorted(NamedTuple, Generic[A]):
    """What becomes of the entries of a frame, in its order."""

    # Those with durable receivers here, which are stored before they are shown.
    kept: Sequence[A]
    # Those with any receivers.
    shown: Sequence[A]
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

    def sort(self, frame: Frame) -> Sorted[A]:
        """Return which entries have durable receivers here, and which have any."""
        ...

    def take(self, move: Move, kept: Sequence[A], done: Callable[[NotTaken | None], None]) -> None:
        """Store the entries and move the place in one step, or neither.

        Calls are carried out and answered in order. `done` gets None if the store did it.
        """
        ...

    def may_show(self, behind: Behind) -> bool:
        """Return whether everything is shown that comes before a frame on another way."""
        ...

    def show(self, entries: Sequence[A]) -> None:
        """Deliver entries: durable ones are stored now."""
        ...

    def showed(self) -> None:
        """Show what comes behind the last frame on another way, before the next one."""
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
