"""The journal's way into the store: notes in calls, and frames.

`app/delivery/ports/journal_port.py` describes the path of an event. A frame costs as much as a
hundred events, for its readers too, and most calls report only a few events; hence notes.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple, cast

from holdfast.delivery.ports.journal_port import DeliveryJournal
from holdfast.store.format import scripts
from holdfast.store.format.keys import RedisKeys
from holdfast.store.format.scripts import ScriptCall, Take
from holdfast.store.links.link import StoreLink
from holdfast.store.links.reply_errors import StoreRefused
from holdfast.store.opening.write_right import StoreState, WriteRight, seed_of
from holdfast.store.writing.turn_writer import TurnWriter
from holdfast.store.writing.unanswered_calls import UnansweredCalls

# How many frames are remembered: at least four seconds of a busy server, at most 16 MiB. The
# pipeline recognises as many repeats.
_LATEST = 64


class Journaling:
    """Numbers notes, and creates the calls that leave them and that write frames."""

    def __init__(self, keys: RedisKeys, node: str) -> None:
        self.keys = keys
        self._node = node
        self._notes = keys.notes(node)
        self._number = 0

    def annotate(self, call: ScriptCall, note: bytes) -> tuple[ScriptCall, int]:
        """Return the call with the note, and the note's number."""
        self._number = number = self._number + 1
        script, keys, args = call
        if script.with_note is None:
            raise ValueError(f"{script.name} takes no note")
        # Appending in place is safe, because this call owns the lists. They may be long.
        keys.append(self._notes)
        args += (number, note)
        return ScriptCall(script.with_note, keys, args), number

    async def left_notes(self, link: StoreLink) -> dict[int, bytes]:
        """Return the notes that an earlier process left, by number."""
        found = cast("dict[bytes, bytes]", await link.ask("HGETALL", self._notes))
        return {int(number): note for number, note in found.items() if number.isdigit()}

    def frame(self, epoch: str, frame: bytes, notes: Sequence[int], *, seq: int = 0) -> ScriptCall:
        """Return the call that writes a frame and removes these notes."""
        return scripts.frame(self.keys, self._node, epoch=epoch, seq=seq, frame=frame, notes=notes)

    async def last_frame(self, link: StoreLink) -> int:
        """Return the number of the last frame in the store."""
        found = await link.ask("HGET", self.keys.meta, self.keys.journal(self._node))
        return int(cast("bytes", found or b"0"))


class JournalOutlet:
    """Writes the journal's frames, each after the calls whose events it reports."""

    def __init__(
        self,
        journaling: Journaling,
        link: StoreLink,
        right: WriteRight,
        calls: UnansweredCalls,
        writer: TurnWriter,
    ) -> None:
        self._journaling = journaling
        self._link = link
        self._right = right
        self._calls = calls
        self._writer = writer
        # Frames that were sent just before the store had lost changes.
        self._waiting: list[tuple[bytes, Sequence[int], Callable[[], None] | None]] = []
        # The latest frames, with their numbers.
        self._latest: deque[tuple[int, _Written]] = deque(maxlen=_LATEST)

    @property
    def is_available(self) -> bool:
        """Whether the store is available and has room."""
        return self._right.may_write and self._link.has_room

    def note_for(self, journal: DeliveryJournal) -> None:
        """Attach this journal's notes to calls from now on."""
        self._calls.journal = journal

    async def left_notes(self) -> dict[int, bytes]:
        """Return the notes that an earlier process left, by number."""
        return await self._journaling.left_notes(self._link)

    async def replay_take(self, job: str, takes: Sequence[Take]) -> tuple[ScriptCall, int | None]:
        """Return the call that turns letters into messages, and the number of its note, if any.

        The call must be made at once: notes are numbered in the order of their calls, so all
        earlier writes have been sent.
        """
        await self._writer.sent()
        self._writer.send_all()
        call = scripts.replay_take(self._journaling.keys, job, takes, self._right.layout.form)
        note = self._calls.journal.note_replayed([(take.letter, take.receiver) for take in takes])
        return self._journaling.annotate(call, note) if note else (call, None)

    def skip_notes(self, notes: Iterable[int]) -> None:
        """Skip these notes in the journal, because their events were reported live."""
        for number in notes:
            self._calls.journal.skip_note(number)

    def write_frame(
        self, frame: bytes, notes: Sequence[int] = (), refused: Callable[[], None] | None = None
    ) -> None:
        """Write a frame of the journal, which replaces these notes; call `refused` if it was."""
        # A frame must not report calls that have not been made yet.
        self._writer.send_behind(partial(self._write_frame, frame, notes, refused))

    def _write_frame(
        self, frame: bytes, notes: Sequence[int], refused: Callable[[], None] | None
    ) -> None:
        if self._right.may_write:
            epoch = self._right.epoch
            call = self._journaling.frame(epoch, frame, notes)
            done = partial(self._written, _Written(epoch, frame, notes), refused)
            self._calls.make(call, done, may_be_refused=True)
            self._link.flush()
        elif self._right.state is not StoreState.FENCED:
            self._waiting.append((frame, notes, refused))

    def write_waiting(self) -> None:
        """Write the frames that came while the store was told what it had lost."""
        waiting, self._waiting = self._waiting, []
        for frame, notes, refused in waiting:
            self.write_frame(frame, notes, refused)

    def _written(
        self, written: "_Written", refused: Callable[[], None] | None, reply: object
    ) -> None:
        if isinstance(reply, StoreRefused):
            if refused is not None:
                refused()
        elif isinstance(reply, list):
            self._latest.append((reply[0], written))

    async def tell(self, tell: Callable[[ScriptCall, bool], None]) -> None:
        """Write the latest frames that the store has lost again, as they were.

        So readers that had them recognise repeats, and others miss nothing. If the store has lost
        more, the numbers of those frames stay unused, and readers report a gap.
        """
        last = await self._journaling.last_frame(self._link)
        for seq, written in self._latest:
            if seq > last and seed_of(written.epoch) == seed_of(self._right.epoch):
                tell(self._journaling.frame(*written, seq=seq), False)


class _Written(NamedTuple):
    """A frame in the journal."""

    epoch: str
    frame: bytes
    notes: Sequence[int]
