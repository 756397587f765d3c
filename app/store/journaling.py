"""What goes into the journal: notes that calls carry, and the frames that take their place.

A frame costs as much as a hundred events, whoever reads it pays for each one, too, and most calls
tell of few. So a call leaves only a note in the store, in the same step as what it changes. Soon
one frame tells of many, and their notes go in the step in which it comes: whenever a process is
killed, the next finds the notes that are in no frame.
"""

from collections.abc import Sequence
from typing import cast

from app.store import scripts
from app.store.keys import Keys
from app.store.line import Line
from app.store.scripts import Call


class Journaling:
    """Numbers notes, and calls that write frames, so that the store knows one that is repeated."""

    def __init__(self, keys: Keys, node: str) -> None:
        self._keys = keys
        self._node = node
        self._notes = keys.notes(node)
        self._number = 0

    def annotate(self, call: Call, note: bytes) -> tuple[Call, int]:
        """The call with the note, and the number of that."""
        self._number = number = self._number + 1
        script, keys, args = call
        if script.with_note is None:
            raise ValueError(f"{script.name} takes no note")
        # Nobody else has these lists, which may be long.
        keys.append(self._notes)
        args += (number, note)
        return Call(script.with_note, keys, args), number

    async def left_notes(self, line: Line) -> dict[int, bytes]:
        """The notes that a process before this one has left, by their numbers."""
        found = cast("dict[bytes, bytes]", await line.ask("HGETALL", self._notes))
        return {int(number): note for number, note in found.items() if number.isdigit()}

    def frame(self, epoch: str, frame: bytes, notes: Sequence[int]) -> Call:
        """The call that writes a frame, which takes the place of these notes."""
        self._number = number = self._number + 1
        return scripts.frame(self._keys, epoch, self._node, number, frame=frame, notes=notes)
