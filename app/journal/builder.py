"""Events of one node on their way into a frame: what happens alike becomes one row."""

from typing import TYPE_CHECKING, Unpack

from app.journal.columns import Change, Columns, Delivery, Publication, Why
from app.journal.frame import Head, encode
from app.journal.schema import VERSION

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.delivery.messages import Message


class FrameBuilder:
    """Collects events until `frame` is asked for, which begins the next one.

    Times are microseconds since 1970. Receivers are told by their names in the store. Messages are
    told by themselves, or by their ids where no more is known of them. Sequences must not change
    any more: here they are only noted, which is cheaper by half than looking at each alone.
    """

    __slots__ = ("_changed", "_delivered", "_published", "count", "node")

    def __init__(self, node: str) -> None:
        self.node = node
        self._begin()

    def _begin(self) -> None:
        # How many events there are.
        self.count = 0
        self._published: list[Publication] = []
        self._delivered: list[Delivery] = []
        self._changed: list[Change] = []

    def published(self, message: "Message", at: int, copies: int, kept: int = 0) -> None:
        """So many receivers are to get it; so many of them have it in the store."""
        self.count += 1
        self._published.append((message, at, copies, kept))

    def delivered(
        self,
        kind: str,
        messages: "Sequence[Message | int]",
        receiver: str,
        at: int,
        attempt: int | None = None,
    ) -> None:
        """This happened to these messages and this receiver."""
        if messages:
            self.count += len(messages)
            self._delivered.append((kind, messages, receiver, at, attempt, None))

    def explained(
        self,
        kind: str,
        message: "Message | int",
        receiver: str,
        at: int,
        attempt: int | None = None,
        **why: Unpack[Why],
    ) -> None:
        """This happened to one message and one receiver, and there is more to be said."""
        self.count += 1
        self._delivered.append((kind, (message,), receiver, at, attempt, why))

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

    def frame(self) -> bytes:
        """All that was told since the last one; b"" if that is nothing."""
        if not self.count:
            return b""
        first, last = self.span()
        columns = Columns(first)
        columns.publish(self._published)
        columns.deliver(self._delivered)
        columns.change(self._changed)
        head = Head(VERSION, self.node, self.count, first, last)
        self._begin()
        return encode(head, columns.body())

    def span(self) -> tuple[int, int]:
        """The first and the last time; in each list times rise, unless the clock is put back."""
        ends = [row[1] for told in (self._published, self._changed) for row in told[:1] + told[-1:]]
        ends += [row[3] for row in self._delivered[:1] + self._delivered[-1:]]
        return min(ends), max(ends)
