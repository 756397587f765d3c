"""The journal's way into the store: notes in calls, and frames.

`app/delivery/ports/journal_port.py` describes the path of an event. A frame costs as much as a
hundred events, for its readers too, and most calls report only a few events; hence notes.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import cast

from holdfast.delivery.ports.journal_port import DeliveryJournal
from holdfast.store import scripts
from holdfast.store.keys import RedisKeys
from holdfast.store.link import StoreLink
from holdfast.store.reply_errors import StoreRefused
from holdfast.store.scripts import ScriptCall, Take
from holdfast.store.turn_writer import TurnWriter
from holdfast.store.unanswered_calls import UnansweredCalls
from holdfast.store.write_right import WriteRight


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

    def frame(self, frame: bytes, notes: Sequence[int]) -> ScriptCall:
        """Return the call that writes a frame and removes these notes."""
        return scripts.frame(self.keys, self._node, frame=frame, notes=notes)


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

    @property
    def is_available(self) -> bool:
        """Whether the store is available and has room."""
        return self._right.is_open and self._link.has_room

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
        call = scripts.replay_take(self._journaling.keys, job, takes)
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
        if self._right.is_open:
            call = self._journaling.frame(frame, notes)
            self._calls.make(call, partial(_note_refusal, refused), may_be_refused=True)
            self._link.flush()


def _note_refusal(refused: Callable[[], None] | None, reply: object) -> None:
    if refused is not None and isinstance(reply, StoreRefused):
        refused()
