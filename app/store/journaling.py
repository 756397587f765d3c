"""Frames on their way into the journal: each in one call, each with the number of that call."""

from collections.abc import Callable

from app.store import scripts
from app.store.keys import Keys
from app.store.scripts import Call


class Journaling:
    """Numbers calls that carry frames, so that the store knows one that is repeated.

    Args:
        most: How many frames there may be before somebody has read and cut off the oldest; then
            those go unread, about a hundred at a time.
    """

    def __init__(self, keys: Keys, node: str, most: int) -> None:
        self._stream = keys.journal(node)
        self._recent = keys.journal_calls(node)
        self._most = most
        self._number = 0
        # Answers come in the order of the calls.
        self._answered = 0

    def carry(
        self, call: Call, frame: bytes, done: Callable[[object], None]
    ) -> tuple[Call, Callable[[object], None]]:
        """The call with the frame, and what is to be called with its answer."""
        self._number = number = self._number + 1
        carrying = Call(
            scripts.WITH_FRAME[call.script],
            [*call.keys, self._stream, self._recent],
            [*call.args, number, self._answered, self._most, frame],
        )

        def answered(reply: object) -> None:
            self._answered = number
            done(reply)

        return carrying, answered
