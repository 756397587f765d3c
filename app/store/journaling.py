"""Adds notes to calls, and creates the calls that write frames.

`app/delivery/ports/journal_port.py` describes the path of an event. A frame costs as much as a
hundred events, for its readers too, and most calls report only a few events; hence notes.
"""

from collections.abc import Sequence
from typing import cast

from holdfast.store import scripts
from holdfast.store.keys import RedisKeys
from holdfast.store.link import StoreLink
from holdfast.store.scripts import ScriptCall


class Journaling:
    """Numbers notes and frames, so that the store recognises repeated calls."""

    def __init__(self, keys: RedisKeys, node: str) -> None:
        self._keys = keys
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

    def frame(self, epoch: str, frame: bytes, notes: Sequence[int]) -> ScriptCall:
        """Return the call that writes a frame and removes these notes."""
        self._number = number = self._number + 1
        return scripts.frame(self._keys, epoch, self._node, number, frame=frame, notes=notes)
