"""A store in memory that keeps a journal, and what can be said of messages by the journal alone."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from app.bayeux.codec import Json
from app.bayeux.extension import ServerExtension
from app.bayeux.server import Bayeux
from app.delivery.deaths import Buried
from app.delivery.keeper import Batch, Kept, Mark
from app.delivery.messages import Message
from app.delivery.node import Node
from app.journal.clerk import Clerk
from app.journal.frame import decode
from app.journal.schema import SETTLED, Event, Kind
from app.journal.scribe import Scribe
from app.journal.unfold import unfold
from tests.unit.bayeux.delivery_store import SlowStore
from tests.unit.delivery.fake_keeper import FakeKeeper

if TYPE_CHECKING:
    from app.delivery.witness import Witness

WALL_US = 1_763_600_000_000_000
# A receiver and a message.
Copy = tuple[str, int]


class Shelf:
    """All frames in their order; an `Outlet`."""

    has_room = True

    def __init__(self) -> None:
        self.frames: list[bytes] = []

    def write(self, frame: bytes, notes: Sequence[int]) -> None:
        self.frames.append(frame)


class Register(ServerExtension):
    """Says what messages are about, by their ids."""

    def __init__(self, server: Bayeux, about: dict[int, Json]) -> None:
        self._stamp = server.node.stamp
        server.node = Node(server.node.name, self.stamp)
        self._about = about
        # What the next stamp is for, if it is a message; one that gets none is on no channel that
        # anybody asks for.
        self._event: Json | None = None

    def event(self, event: Json) -> None:
        self._event = event

    def stamp(self) -> int:
        stamp = self._stamp()
        if self._event is not None:
            self._about[stamp] = self._event
            self._event = None
        return stamp


class Writing(FakeKeeper):
    """Writes down what it does."""

    def __init__(self) -> None:
        super().__init__()
        self.shelf = Shelf()
        self.clerk = Clerk("test", self.shelf, now=0.0, now_ns=lambda: WALL_US * 1000)
        self.scribe = Scribe(self.clerk, self.clerk.why)
        self.notes = 0

    def note(self, packed: bytes) -> None:
        """The store has it at once."""
        if packed:
            self.notes += 1
            self.scribe.answered(self.notes, is_there=True)

    def keep(self, message: Message, keys: Sequence[str], done: Callable[[Kept], None]) -> None:
        if self.outcome is Kept.KEPT:
            self.note(self.scribe.kept([(message, keys)]))
        super().keep(message, keys, done)

    def hand_over(self, key: str, batch: Batch) -> None:
        self.note(self.scribe.handed_over({key: batch}))
        super().mark(key, batch.marks())

    def mark(self, key: str, marks: Sequence[Mark]) -> None:
        self.note(self.scribe.marked({key: {mark.id: mark for mark in marks}}))
        super().mark(key, marks)

    def settle(self, key: str, ids: Sequence[int]) -> None:
        self.note(self.scribe.settled({id: [key] for id in ids}))
        super().settle(key, ids)

    def bury(self, dead: Sequence[Buried], key: str | None) -> None:
        letters = [each.letter() for each in dead]
        self.note(self.scribe.buried([(letter, key) for letter in letters]))
        self.letters += letters
        if key is not None:
            super().settle(key, [letter.message for letter in letters])


class JournaledStore(SlowStore, Writing):
    """The store of the delivery machine, with a journal."""

    def __init__(self) -> None:
        super().__init__()
        self.witness: Witness = self.clerk
        self.about: dict[int, Json] = {}
        self.server: Bayeux | None = None

    def serve(self, server: Bayeux) -> None:
        self.server = server
        server.extend(Register(server, self.about))

    def events(self) -> list[Event]:
        """All that is in the journal."""
        self.clerk.flush(0.0)
        return [event for frame in self.shelf.frames for event in unfold(decode(frame))]


def ends(events: Sequence[Event]) -> dict[Copy, list[str]]:
    """How each copy ended, by the journal."""
    found: dict[Copy, list[str]] = {}
    for event in events:
        if event.kind in SETTLED and event.receiver and event.msg:
            kind = "acked" if event.kind == Kind.WRITTEN else event.kind
            found.setdefault((event.receiver, event.msg), []).append(kind)
    return found


def copies(events: Sequence[Event]) -> Counter[int]:
    """How many copies of each message there were."""
    found: Counter[int] = Counter()
    for event in events:
        if event.msg and event.kind in (Kind.PUBLISHED, Kind.REPLAYED):
            found[event.msg] += 1 if event.copies is None else event.copies
    return found
