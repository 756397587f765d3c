"""Collects events of one node for a frame; equal events become one row."""

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Unpack

from holdfast.delivery.basics.node import shard_of
from holdfast.journal.columns import Columns, DecodedNote, FailureDetails, PublishRow, Row
from holdfast.journal.frame import Head, encode
from holdfast.journal.schema import BOOKS, VERSION

if TYPE_CHECKING:
    from holdfast.delivery.messages.message import Message


class FrameBuilder:
    """Collects events until `frame` returns them and begins the next frame.

    Times are microseconds since 1970; receivers are known by their session names. Of messages only
    ids and channels are kept.

    Args:
        origin: The name with which ids of messages begin; the node's if empty.
        shard: The number of this shard; None if there is no other one.
    """

    def __init__(self, node: str, origin: str = "", shard: int | None = None) -> None:
        self.node = node
        self._origin = origin
        self._shard = shard
        # Notes whose events are in no column yet.
        self._waiting_notes: list[DecodedNote] = []
        self.waiting_rows = 0
        # The number of events in all frames so far by kind; of publishes, the number of copies.
        self.totals: defaultdict[str, int] = defaultdict(int)
        self._begin()

    def _begin(self) -> None:
        self.columns = Columns()
        # The latest row of each kind, which the next event may join.
        self._latest: dict[str, Row] = {}

    @property
    def count(self) -> int:
        """The number of events."""
        return self.columns.count

    def add_note(self, note: DecodedNote) -> None:
        """Add the events of a note; `take_in` adds them to the columns."""
        self._waiting_notes.append(note)
        self.waiting_rows += len(note[0]) + len(note[1])

    def take_in(self) -> None:
        """Put collected notes into columns: one after another, they take half the time."""
        if not self._waiting_notes:
            return
        columns = self.columns
        waiting, self._waiting_notes, self.waiting_rows = self._waiting_notes, [], 0
        for published, rows in waiting:
            for publish in published:
                columns.add_published(publish)
            for row in rows:
                columns.add_row(row)

    def published(self, message: "Message", copies: int, kept: int = 0) -> None:
        """Note a publish: the number of receivers, and of those with a copy in the store."""
        columns = self.columns
        number = columns.interning.message(message)
        # The publish of a stored message is reported by its note: this is about further receivers.
        is_further = message.is_durable and not kept
        size = 0 if is_further else self._size_of(message)
        columns.publish(number, message.id, copies, kept, size, message.priority, message.sender)

    def publish_row(self, message: "Message", copies: int, kept: int) -> PublishRow:
        """Return the record of a publish that the store has."""
        size = self._size_of(message)
        return message.id, copies, kept, size, message.priority, message.sender, message.channel

    def _size_of(self, message: "Message") -> int:
        # A copy from a history is about a further receiver. So is a message of another shard, whose
        # journal has its size.
        if message.is_initial or (self._shard is not None and shard_of(message.id) != self._shard):
            return 0
        return len(message.wire)

    def delivered(
        self,
        kind: str,
        messages: Sequence["Message"],
        receiver: str,
        at: int,
        attempt: int | None = None,
        why: FailureDetails | None = None,
    ) -> None:
        """Note an event of these messages and this receiver, with its reason if any."""
        for message in messages:
            self.columns.interning.message(message)
        self.happened(kind, [message.id for message in messages], receiver, at, attempt, why)

    def happened(
        self,
        kind: str,
        ids: Sequence[int],
        receiver: str,
        at: int,
        attempt: int | None = None,
        why: FailureDetails | None = None,
    ) -> None:
        """Note an event of messages that are known only by id."""
        if not ids:
            return
        self.take_in()
        # All receivers without individual details share one row.
        row = self._latest.get(kind)
        if row is not None and row[1] == ids and row[2] == attempt and row[3] == why:
            self.columns.join(row, receiver, at)
        else:
            self._latest[kind] = row = (kind, ids, attempt, why, [receiver], [at])
            self.columns.begin(row)

    def explained(
        self,
        kind: str,
        message: "Message",
        receiver: str,
        at: int,
        attempt: int | None = None,
        **why: Unpack[FailureDetails],
    ) -> None:
        """Note an event of one message and one receiver, with details."""
        self.delivered(kind, (message,), receiver, at, attempt, why)

    def shared(
        self,
        kind: str,
        message: "Message",
        receivers: list[str],
        at: int,
        why: FailureDetails | None,
    ) -> None:
        """Note an event of one message and all of these receivers."""
        self.columns.interning.message(message)
        self.take_in()
        self.columns.add_row((kind, [message.id], None, why, receivers, [at]))

    def changed(
        self,
        kind: str,
        at: int,
        what: str | None,
        *,
        name: str | None = None,
        channel: str | None = None,
        number: int | None = None,
    ) -> None:
        """Note a change of a session, a channel, the node or the journal."""
        self.columns.change(kind, at, what, name, channel, number)

    def books(self) -> dict[str, int]:
        """Return the books of all frames so far."""
        totals = self.totals
        return {name: sum([totals[kind] for kind in kinds]) for name, kinds in BOOKS.items()}

    def frame(self, now: int | None = None) -> bytes:
        """Return all events since the last frame; b"" if there are none.

        With the present time, publishes are not later than that: see `Published`.
        """
        self.take_in()
        columns = self.columns
        if not columns.count:
            return b""
        self._begin()
        for kind, events in columns.tally.items():
            self.totals[kind] += events
        last = columns.last if now is None else min(columns.last, now)
        head = Head(VERSION, self.node, columns.count, columns.first, last, self._origin)
        return encode(head, columns.body())
