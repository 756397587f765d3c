"""The port to the journal: the notes that calls to the store carry."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.delivery.dead_letters import DeadLetter
    from app.delivery.keeper import Batch, Mark
    from app.delivery.messages import Message


class Recorder(ABC):
    """Writes down what becomes of messages, in the same step in which it becomes of them.

    Asked for a note whenever a call is about to leave, with what that call changes, in the order
    of the calls; b"" if there is nothing to write down. The note is in the store if, and only if,
    the change is; who writes the journal takes it from there, this process or the next. A store
    that was emptied is told everything again, and then this is asked again.
    """

    @abstractmethod
    def kept(self, messages: Sequence[tuple["Message", Sequence[str]]]) -> bytes:
        """Messages enter these sessions' queues, or none.

        One that has a key is asked for alone; if it repeats another, there is no note.
        """

    @abstractmethod
    def handed_over(self, batches: Mapping[str, "Batch"]) -> bytes:
        """These sessions were handed these messages for the first time."""

    @abstractmethod
    def marked(self, marks: Mapping[str, Mapping[int, "Mark"]]) -> bytes:
        """Entries of these sessions, by their messages' ids, have come so far."""

    @abstractmethod
    def settled(self, entries: Mapping[int, Sequence[str]]) -> bytes:
        """For these sessions messages, by their ids, are acked, expired or discarded."""

    @abstractmethod
    def refused(self, message: "Message", keys: Sequence[str]) -> None:
        """Its keeping was refused after all: what is settled of it for these was never there."""

    @abstractmethod
    def buried(self, letters: Sequence[tuple["DeadLetter", str | None]]) -> bytes:
        """Entries are dead letters now; without a key there was none in the store."""

    @abstractmethod
    def left(self, sessions: Mapping[str, Sequence[int]]) -> bytes:
        """These sessions are gone, and wait for these messages no more.

        What becomes of those the `Witness` knows; the note is for the case that it dies before it
        has told.
        """

    @abstractmethod
    def replayed(self, letters: Sequence[tuple["DeadLetter", str]]) -> bytes:
        """Letters become messages for these sessions, unless they cannot any more.

        A line that begins the note, and one for each letter; the store keeps what comes true.
        """

    @abstractmethod
    def answered(self, number: int, *, is_there: bool) -> None:
        """Whether the store has the oldest note that was not told of; its number there.

        But for replayed letters, and what sessions left: of those `told` is called, when the
        `Witness` knows.
        """

    @abstractmethod
    def told(self, number: int) -> None:
        """The journal need not tell what this note says."""


class Silence(Recorder):
    """Writes nothing down."""

    def kept(self, messages: object) -> bytes:
        return b""

    def handed_over(self, batches: object) -> bytes:
        return b""

    def marked(self, marks: object) -> bytes:
        return b""

    def settled(self, entries: object) -> bytes:
        return b""

    def refused(self, message: object, keys: object) -> None:
        pass

    def buried(self, letters: object) -> bytes:
        return b""

    def left(self, sessions: object) -> bytes:
        return b""

    def replayed(self, letters: object) -> bytes:
        return b""

    def answered(self, number: int, *, is_there: bool) -> None:
        pass

    def told(self, number: int) -> None:
        pass
