"""Who writes down what the store is told, in frames that the store keeps with the change."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from app.journal.builder import FrameBuilder
from app.journal.columns import Why
from app.journal.schema import Kind

if TYPE_CHECKING:
    from app.delivery.dead_letters import DeadLetter
    from app.delivery.keeper import Batch, Mark
    from app.delivery.messages import Message

# It never was.
_NOTHING = Why(code="")


class Scribe:
    """A `Recorder`.

    Args:
        now_us: Microseconds since 1970.
        why: What is known of entries that are settled without having been acknowledged.
    """

    def __init__(
        self, node: str, now_us: Callable[[], int], why: dict[tuple[str, int], Why]
    ) -> None:
        self._builder = FrameBuilder(node)
        self._now_us = now_us
        self._why = why

    def kept(self, messages: "Sequence[tuple[Message, Sequence[str]]]") -> bytes:
        at = self._now_us()
        for message, keys in messages:
            if keys:
                self._builder.published(message, at, len(keys), len(keys))
        return self._builder.frame()

    def handed_over(self, batches: "Mapping[str, Batch]") -> bytes:
        at = self._now_us()
        for key, batch in batches.items():
            self._builder.delivered(Kind.HANDED, batch.ids, key, at, 1)
        return self._builder.frame()

    def marked(self, marks: "Mapping[str, Mapping[int, Mark]]") -> bytes:
        at = self._now_us()
        for key, entries in marks.items():
            for mark in entries.values():
                if mark.seq:
                    kind = Kind.HANDED if mark.attempts == 1 else Kind.REDELIVERED
                    self._builder.delivered(kind, (mark.id,), key, at, mark.attempts)
        return self._builder.frame()

    def refused(self, message: "Message", keys: Sequence[str]) -> None:
        for key in keys:
            self._why[key, message.id] = _NOTHING

    def settled(self, entries: "Mapping[int, Sequence[str]]") -> bytes:
        at = self._now_us()
        for id, keys in entries.items():
            for key in keys:
                why = self._why.pop((key, id), None) if self._why else None
                if why is None:
                    self._builder.delivered(Kind.ACKED, (id,), key, at)
                elif why is not _NOTHING:
                    self._tell_why(id, key, at, why)
        return self._builder.frame()

    def _tell_why(self, id: int, key: str, at: int, why: Why) -> None:
        if why:
            self._builder.explained(Kind.DISCARDED, id, key, at, **why)
        else:
            self._builder.delivered(Kind.EXPIRED, (id,), key, at)

    def buried(self, letters: "Sequence[tuple[DeadLetter, str | None]]") -> bytes:
        at = self._now_us()
        for letter, _ in letters:
            self._builder.explained(
                Kind.DEAD,
                letter.message,
                letter.key,
                at,
                letter.attempt_count,
                code=letter.code,
                letter=int(letter.id),
                fingerprint=letter.fingerprint,
            )
        return self._builder.frame()

    def forgotten(self, left: object) -> bytes:
        """Nothing: what becomes of their entries has been told."""
        return b""
