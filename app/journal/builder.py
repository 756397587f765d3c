"""Events of one node on their way into a frame: what happens alike becomes one row."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Unpack

from app.journal.columns import Change, Columns, Publication, Row, Why
from app.journal.frame import Head, encode
from app.journal.schema import VERSION

if TYPE_CHECKING:
    from app.delivery.messages import Message


class FrameBuilder:
    """Collects events until `frame` is asked for, which begins the next one.

    Times are microseconds since 1970, receivers are told by their names in the store. Of messages
    no more than their ids and channels is remembered. Sequences must not change any more: what is
    in them is looked at when the frame is made.
    """

    __slots__ = ("_changed", "_latest", "_published", "_rows", "channels", "count", "node")

    def __init__(self, node: str) -> None:
        self.node = node
        # Of messages, by their ids; what was told by ids alone has its channel from here, too.
        self.channels: dict[int, str] = {}
        self._begin()

    def _begin(self) -> None:
        # How many events there are.
        self.count = 0
        self.channels.clear()
        self._published: list[Publication] = []
        self._rows: list[Row] = []
        # The row of each kind that the next event may join.
        self._latest: dict[str, Row] = {}
        self._changed: list[Change] = []

    @property
    def weight(self) -> int:
        """How much there is to be written, in rows."""
        return len(self._published) + len(self._rows) + len(self._changed)

    def published(self, message: "Message", at: int, copies: int, kept: int = 0) -> None:
        """So many receivers are to get it; so many of them have it in the store."""
        self.publish(publication_of(message, at, copies, kept))

    def publish(self, told: Publication) -> None:
        """The same, in words of the journal."""
        self.count += 1
        self.channels[told[0]] = told[7]
        self._published.append(told)

    def delivered(
        self,
        kind: str,
        messages: Sequence["Message"],
        receiver: str,
        at: int,
        attempt: int | None = None,
    ) -> None:
        """This happened to these messages and this receiver."""
        for message in messages:
            self.channels[message.id] = message.channel
        self.happened(kind, [message.id for message in messages], receiver, at, attempt)

    def happened(
        self, kind: str, ids: Sequence[int], receiver: str, at: int, attempt: int | None = None
    ) -> None:
        """The same, of messages of which nothing else is known here."""
        if not ids:
            return
        self.count += len(ids)
        row = self._latest.get(kind)
        if row is not None and row[1] == ids and row[2] == attempt:
            row[4].append(receiver)
            row[5].append(at)
        else:
            self._latest[kind] = row = (kind, ids, attempt, None, [receiver], [at])
            self._rows.append(row)

    def explained(
        self,
        kind: str,
        message: "Message",
        receiver: str,
        at: int,
        attempt: int | None = None,
        **why: Unpack[Why],
    ) -> None:
        """This happened to one message and one receiver, and there is more to be said."""
        self.count += 1
        self.channels[message.id] = message.channel
        self._rows.append((kind, [message.id], attempt, why, [receiver], [at]))

    def changed(
        self,
        kind: str,
        at: int,
        what: str | None = None,
        *,
        name: str | None = None,
        channel: str | None = None,
        number: int | None = None,
    ) -> None:
        """This happened to a session, a channel, the node or the journal."""
        self.count += 1
        self._changed.append((kind, at, what, name, channel, number))

    def add(self, count: int, rows: list[Row]) -> None:
        """These rows happened, which are so many events."""
        self.count += count
        self._rows += rows

    def frame(self) -> bytes:
        """All that was told since the last one; b"" if that is nothing."""
        if not self.count:
            return b""
        first, last = self.span()
        columns = Columns(first, self.channels)
        columns.publish(self._published)
        columns.deliver(self._rows)
        columns.change(self._changed)
        head = Head(VERSION, self.node, self.count, first, last)
        body = columns.body()
        self._begin()
        return encode(head, body)

    def span(self) -> tuple[int, int]:
        """The first and the last time; in each list times rise, unless the clock is put back."""
        ends = [row[1] for row in self._published[:1] + self._published[-1:]]
        ends += [row[1] for row in self._changed[:1] + self._changed[-1:]]
        ends += [row[5][0] for row in self._rows]
        ends += [row[5][-1] for row in self._rows]
        return min(ends), max(ends)


def publication_of(message: "Message", at: int, copies: int, kept: int) -> Publication:
    """What the journal says of a publish."""
    # Of what is kept the store has told: then this is about more receivers of the same.
    size = len(message.wire) if kept or not message.is_durable else 0
    return message.id, at, copies, kept, size, message.priority, message.sender, message.channel
