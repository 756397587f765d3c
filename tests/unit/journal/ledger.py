"""A store in memory that keeps a journal, and what the journal alone tells about messages."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence

from holdfast.delivery.letters.unwritten import UnwrittenLetter
from holdfast.delivery.messages.marks import NO_HAND_OVERS, BatchMark, Marked
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.outcomes import Outcome
from holdfast.delivery.messages.storing import NO_FIELDS, PersistOutcome, RequestFields
from holdfast.journal.frame import decode
from holdfast.journal.schema import SETTLED, Event, Kind
from holdfast.journal.unfold import unfold
from holdfast.journal.writer import JournalWriter
from tests.unit.delivery.fake_keeper import FakeKeeper

WALL_US = 1_763_600_000_000_000


class Shelf:
    """All frames in their order; an `Outlet`."""

    is_available = True

    def __init__(self) -> None:
        self.frames: list[bytes] = []

    def write_frame(
        self, frame: bytes, notes: Sequence[int], refused: Callable[[], None] | None = None
    ) -> None:
        self.frames.append(frame)


class Writing(FakeKeeper):
    """A keeper that journals what it does."""

    def __init__(self) -> None:
        super().__init__()
        self.shelf = Shelf()
        self.writer = JournalWriter("test", self.shelf, now=0.0, now_ns=lambda: WALL_US * 1000)
        self.notes = 0

    def note(self, packed: bytes) -> None:
        """The store has it at once."""
        if packed:
            self.notes += 1
            self.writer.answered(self.notes, is_there=True)

    def keep(
        self,
        message: Message,
        keys: Sequence[str],
        done: Callable[[PersistOutcome], None],
        fields: RequestFields = NO_FIELDS,
        *,
        hand_overs: Mapping[str, BatchMark] = NO_HAND_OVERS,
    ) -> None:
        if self.outcome is PersistOutcome.KEPT:
            # A history is no receiver.
            receivers = [key for key in keys if not key.startswith("/")]
            self.note(self.writer.note_kept([(message, receivers)], hand_overs))
        super().keep(message, keys, done, fields, hand_overs=hand_overs)

    def mark_batch(self, key: str, batch: BatchMark) -> None:
        self.note(self.writer.note_handed_over({key: batch}))
        super().mark(key, batch.marks())

    def mark(self, key: str, marked: Collection[Marked]) -> None:
        again = [(entry.id, entry.attempts) for entry in marked if entry.is_in_flight]
        ids = [entry.id for entry in marked]
        self.note(self.writer.note_marked({key: ids}, {key: again}))
        super().mark(key, marked)

    def settle(self, key: str, ids: Sequence[int], outcome: Outcome) -> None:
        self.note(self.writer.note_settled({id: [key] for id in ids}, outcome))
        super().settle(key, ids, outcome)

    def dead_letter(
        self,
        dead: Sequence[UnwrittenLetter],
        key: str | None,
        done: Callable[[], None] | None = None,
    ) -> None:
        if done is not None:
            self.after(done)
        letters = [each.letter() for each in dead]
        self.note(self.writer.note_dead([(letter, key) for letter in letters]))
        self.letters += letters
        if key is not None:
            self.drop(key, [letter.message for letter in letters])

    def events(self) -> list[Event]:
        """Everything in the journal."""
        self.writer.flush(0.0)
        return [event for frame in self.shelf.frames for event in unfold(decode(frame))]

    def ends(self) -> Counter[str]:
        """How many copies ended in each way, by the journal; those that moved go on elsewhere."""
        found = (each for each in self.events() if each.kind in SETTLED - {Kind.MOVED})
        return Counter(_END.get(each.kind, each.code or each.kind) for each in found)


_END = {Kind.WRITTEN: "acked", **{kind: kind for kind in (Kind.ACKED, Kind.DEAD, Kind.EXPIRED)}}
