"""Events of one node on their way into a frame: what happens alike becomes one row."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Unpack

from app.journal.columns import Columns, Publication, Row, Told, Why
from app.journal.frame import Head, encode
from app.journal.schema import VERSION

if TYPE_CHECKING:
    from app.delivery.messages import Message


class FrameBuilder:
    """Collects events until `frame` is asked for, which begins the next one.

    Times are microseconds since 1970, receivers are told by their names in the store. Of messages
    no more than their ids and channels is remembered.
    """

    __slots__ = ("_latest", "_told", "columns", "node")

    def __init__(self, node: str) -> None:
        self.node = node
        # What notes tell, and no column has yet.
        self._told: list[Told] = []
        self._begin()

    def _begin(self) -> None:
        self.columns = Columns()
        # The row of each kind that the next event may join.
        self._latest: dict[str, Row] = {}

    @property
    def count(self) -> int:
        """How many events there are."""
        return self.columns.count

    @property
    def weight(self) -> int:
        """How much there is to be written, in rows."""
        return self.columns.weight

    def tell(self, told: Told) -> None:
        """What a note tells: with the next ones, or before what is told of one receiver alone."""
        self._told.append(told)

    def take_in(self) -> None:
        """One behind the other notes cost half of what they do one by one between other things."""
        if not self._told:
            return
        columns = self.columns
        waiting, self._told = self._told, []
        for published, rows in waiting:
            for publication in published:
                columns.tell_published(publication)
            for row in rows:
                columns.tell(row)

    def published(self, message: "Message", copies: int, kept: int = 0) -> None:
        """So many receivers are to get it; so many of them have it in the store."""
        columns = self.columns
        place = columns.places.message(message)
        size = _size_of(message, kept)
        columns.publish(place, message.id, copies, kept, size, message.priority, message.sender)

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
            self.columns.places.message(message)
        self.happened(kind, [message.id for message in messages], receiver, at, attempt)

    def happened(
        self, kind: str, ids: Sequence[int], receiver: str, at: int, attempt: int | None = None
    ) -> None:
        """The same, of messages of which nothing else is known here."""
        if ids:
            self._join(kind, ids, receiver, at, attempt, None)

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
        self.columns.places.message(message)
        self._join(kind, [message.id], receiver, at, attempt, why)

    def _join(
        self,
        kind: str,
        ids: Sequence[int],
        receiver: str,
        at: int,
        attempt: int | None,
        why: Why | None,
    ) -> None:
        """One row for all receivers of whom there is nothing else to be said."""
        self.take_in()
        row = self._latest.get(kind)
        if row is not None and row[1] == ids and row[2] == attempt and row[3] == why:
            row[4].append(receiver)
            row[5].append(at)
            self.columns.see(at, len(ids))
        else:
            self._latest[kind] = row = (kind, ids, attempt, why, [receiver], [at])
            self.columns.begin(row)

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
        self.columns.change(kind, at, what, name, channel, number)

    def frame(self) -> bytes:
        """All that was told since the last one; b"" if that is nothing."""
        self.take_in()
        columns = self.columns
        if not columns.count:
            return b""
        self._begin()
        head = Head(VERSION, self.node, columns.count, columns.first, columns.last)
        return encode(head, columns.body())


def publication_of(message: "Message", copies: int, kept: int) -> Publication:
    """What the journal says of a publish."""
    size, priority = _size_of(message, kept), message.priority
    return message.id, copies, kept, size, priority, message.sender, message.channel


def _size_of(message: "Message", kept: int) -> int:
    # Of what is kept the store has told: then this is about more receivers of the same.
    return len(message.wire) if kept or not message.is_durable else 0
