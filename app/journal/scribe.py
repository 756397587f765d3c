"""Who writes down what the store is told, in notes that the store keeps with the change.

A note is JSON: the version, publications, and rows, as the builder of the frame that will tell of
them has them.
"""

import logging
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import orjson

from app.delivery.counters import Reason
from app.delivery.recorder import Recorder
from app.journal.builder import publication_of
from app.journal.columns import Publication, Row, Told, Why
from app.journal.schema import VERSION, Kind

if TYPE_CHECKING:
    from app.delivery.dead_letters import DeadLetter
    from app.delivery.keeper import Batch, Mark
    from app.delivery.messages import Message
    from app.journal.journal import Journal

log = logging.getLogger(__name__)

# It never was.
_NOTHING = Why(code="")
_NO_NOTE: Told = ([], [])


def _packed(told: Told) -> bytes:
    """As the store keeps it."""
    published, rows = told
    return orjson.dumps((VERSION, published, rows))


def _unpacked(packed: bytes) -> Told:
    """What a note tells; raises ValueError if it is none, or one of another version."""
    version, published, rows = orjson.loads(packed)
    if version != VERSION:
        raise ValueError(f"a note of version {version}")
    return (
        [
            (id, copies, kept, size, priority, sender, channel)
            for id, copies, kept, size, priority, sender, channel in published
        ],
        [(kind, ids, attempt, why, keys, at) for kind, ids, attempt, why, keys, at in rows],
    )


class Scribe(Recorder):
    """Notes that are in the store go on into the journal's next frame.

    Args:
        why: What is known of entries that are settled without having been acknowledged.
    """

    def __init__(self, journal: "Journal", why: dict[tuple[str, int], Why]) -> None:
        self._journal = journal
        self._why = why
        # Of calls that have not been answered.
        self._notes: deque[Told] = deque()

    def _note(self, published: list[Publication], rows: list[Row]) -> bytes:
        if not (published or rows):
            return b""
        told = (published, rows)
        self._notes.append(told)
        return _packed(told)

    def answered(self, number: int, *, is_there: bool) -> None:
        told = self._notes.popleft()
        # If it is not there now, it may have been before its call was repeated.
        self._journal.replace(number, told if is_there else _NO_NOTE)

    def told(self, number: int) -> None:
        self._journal.replace(number, _NO_NOTE)

    def find(self, left: Mapping[int, bytes]) -> Mapping[str, set[int]]:
        """Tell what a process before this one has written down and not told.

        Returns:
            What of that is discarded, by session: if one has left it, it may be in the store still.
        """
        discarded: defaultdict[str, set[int]] = defaultdict(set)
        for number in sorted(left):
            try:
                told = _unpacked(left[number])
            except (ValueError, TypeError, IndexError) as error:
                log.error("what the journal was to tell is lost: %s", error)
                self._journal.miss(1)
                told = _NO_NOTE
            self._journal.replace(number, told)
            for kind, ids, _, _, keys, _ in told[1]:
                for key in keys:
                    if kind == Kind.DISCARDED:
                        discarded[key].update(ids)
                    elif kind == Kind.REPLAYED:
                        # What is there now came later.
                        discarded[key].difference_update(ids)
        return discarded

    def kept(self, messages: "Sequence[tuple[Message, Sequence[str]]]") -> bytes:
        published = [
            publication_of(message, len(keys), len(keys)) for message, keys in messages if keys
        ]
        return self._note(published, [])

    def handed_over(self, batches: "Mapping[str, Batch]") -> bytes:
        at = [self._journal.now_us()]
        rows: list[Row] = []
        last: Sequence[int] = ()
        keys: list[str] = []
        for key, batch in batches.items():
            ids = batch.ids
            if ids == last:
                keys.append(key)
            else:
                last, keys = ids, [key]
                rows.append((Kind.HANDED, ids, 1, None, keys, at))
        return self._note([], rows)

    def marked(self, marks: "Mapping[str, Mapping[int, Mark]]") -> bytes:
        at = [self._journal.now_us()]
        rows: list[Row] = []
        for key, entries in marks.items():
            for mark in entries.values():
                if mark.seq > 0:
                    kind = Kind.HANDED if mark.attempts == 1 else Kind.REDELIVERED
                    rows.append((kind, [mark.id], mark.attempts, None, [key], at))
        return self._note([], rows)

    def refused(self, message: "Message", keys: Sequence[str]) -> None:
        for key in keys:
            self._why[key, message.id] = _NOTHING

    def settled(self, entries: "Mapping[int, Sequence[str]]") -> bytes:
        at = [self._journal.now_us()]
        rows: list[Row] = []
        others: list[Row] = []
        last: Sequence[str] = ()
        ids: list[int] = []
        for id, keys in entries.items():
            acked = self._take_others(id, keys, at, others) if self._why else [*keys]
            if acked == last:
                ids.append(id)
            elif acked:
                last, ids = acked, [id]
                rows.append((Kind.ACKED, ids, None, None, acked, at))
        return self._note([], rows + others)

    def _take_others(
        self, id: int, keys: Sequence[str], at: list[int], others: list[Row]
    ) -> list[str]:
        """Tell of those who have not acknowledged; who has."""
        acked = []
        for key in keys:
            why = self._why.pop((key, id), None)
            if why is None:
                acked.append(key)
            elif why is not _NOTHING:
                kind = Kind.DISCARDED if why else Kind.EXPIRED
                others.append((kind, [id], None, why or None, [key], at))
        return acked

    def buried(self, letters: "Sequence[tuple[DeadLetter, str | None]]") -> bytes:
        at = [self._journal.now_us()]
        rows: list[Row] = []
        for letter, _ in letters:
            why = Why(code=letter.code, letter=int(letter.id), fingerprint=letter.fingerprint)
            attempts = letter.attempt_count
            rows.append((Kind.DEAD, [letter.message], attempts, why, [letter.key], at))
        return self._note([], rows)

    def left(self, sessions: "Mapping[str, Sequence[int]]") -> bytes:
        at = [self._journal.now_us()]
        why = Why(code=Reason.SESSION_ENDED.value)
        rows: list[Row] = [
            (Kind.DISCARDED, list(ids), None, why, [key], at)
            for key, ids in sessions.items()
            if ids
        ]
        return _packed(([], rows)) if rows else b""

    def replayed(self, letters: "Sequence[tuple[DeadLetter, str]]") -> bytes:
        at = [self._journal.now_us()]
        lines = [b"[%d,[],[" % VERSION]
        for letter, key in letters:
            why = Why(letter=int(letter.id), generation=letter.generation + 1)
            lines.append(orjson.dumps((Kind.REPLAYED, [letter.message], None, why, [key], at)))
        return b"\n".join(lines)
