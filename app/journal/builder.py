"""Events of one node on their way into a frame: what happens alike becomes one row."""

from typing import TYPE_CHECKING, TypedDict, Unpack

from app.delivery.dead_letters import key_of
from app.journal.frame import Body, Changed, Delivered, Head, Published, encode
from app.journal.schema import VERSION, Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.delivery.messages import Message

_NS_PER_US = 1000
_NOBODY = -1
_NO_REASON: "Why" = {}


class Why(TypedDict, total=False):
    """What else is to be said of a failure, or of a replay; columns of the frame."""

    code: str
    letter: int
    fingerprint: str
    generation: int


class _Row:
    """Messages and receivers to whom the same happened, and when to each receiver."""

    __slots__ = ("at", "attempt", "kind", "places", "receivers", "why")

    def __init__(self, kind: Kind, places: list[int], attempt: int | None) -> None:
        self.kind = kind
        self.places = places
        self.attempt = attempt
        self.receivers: list[int] = []
        self.at: list[int] = []
        self.why: Why | None = None


class FrameBuilder:
    """Collects events until `frame` is asked for, which begins the next one.

    Times are microseconds since 1970. Receivers and publishers are told by their names in the
    store. Messages are told by themselves, or by their ids where no more is known of them.
    """

    def __init__(self, node: str) -> None:
        self.node = node
        self._begin()

    def _begin(self) -> None:
        # How many events there are.
        self.count = 0
        self._names: dict[str, int] = {}
        self._channels: dict[str, int] = {}
        self._places: dict[Message | int, int] = {}
        self._ids: list[int] = []
        self._channel_of: list[int] = []
        self._published: list[tuple[int, int, int, int, int, int, int]] = []
        self._rows: list[_Row] = []
        # The latest row of each kind, and whose messages it has.
        self._latest: dict[Kind, tuple[Sequence[Message | int], _Row]] = {}
        self._changed: list[tuple[Kind, int, int, int, str | None, int | None]] = []

    # What happens

    def published(self, message: "Message", at: int, *, copies: int, kept: int = 0) -> None:
        """So many receivers are to get it; so many of them have it in the store."""
        self.count += 1
        sender = message.sender
        self._published.append(
            (
                self._place(message),
                at,
                copies,
                kept,
                len(message.wire),
                message.priority,
                self._name(key_of(sender)) if sender else _NOBODY,
            )
        )

    def delivered(
        self,
        kind: Kind,
        messages: "Sequence[Message | int]",
        receiver: str,
        at: int,
        attempt: int | None = None,
    ) -> None:
        """This happened to these messages and this receiver; the sequence must not change."""
        latest = self._latest.get(kind)
        if latest is not None and latest[0] == messages and latest[1].attempt == attempt:
            row = latest[1]
        else:
            row = self._row(kind, messages, attempt)
            self._latest[kind] = messages, row
        # As in `_name`, which most receivers need not be asked for.
        name = self._names.get(receiver)
        row.receivers.append(self._name(receiver) if name is None else name)
        row.at.append(at)
        self.count += len(row.places)

    def explained(
        self,
        kind: Kind,
        message: "Message | int",
        receiver: str,
        at: int,
        attempt: int | None = None,
        **why: Unpack[Why],
    ) -> None:
        """This happened to one message and one receiver, and there is more to be said."""
        row = self._row(kind, (message,), attempt)
        row.receivers.append(self._name(receiver))
        row.at.append(at)
        row.why = why
        self.count += 1

    def changed(
        self,
        kind: Kind,
        at: int,
        what: str | None = None,
        *,
        name: str | None = None,
        channel: str | None = None,
        number: int | None = None,
    ) -> None:
        """This happened to a session, a channel, the node or the journal."""
        self.count += 1
        place = _NOBODY if name is None else self._name(name)
        where = _NOBODY if channel is None else self._channel(channel)
        self._changed.append((kind, at, place, where, what, number))

    def _row(self, kind: Kind, messages: "Sequence[Message | int]", attempt: int | None) -> _Row:
        places = self._places
        try:
            own = [places[message] for message in messages]
        except KeyError:
            own = [self._place(message) for message in messages]
        row = _Row(kind, own, attempt)
        self._rows.append(row)
        return row

    # What is said once

    def _place(self, message: "Message | int") -> int:
        place = self._places.get(message)
        if place is None:
            place = self._places[message] = len(self._ids)
            if isinstance(message, int):
                self._ids.append(message)
                self._channel_of.append(_NOBODY)
            else:
                self._ids.append(message.id)
                self._channel_of.append(self._channel(message.channel))
        return place

    def _name(self, name: str) -> int:
        return self._names.setdefault(name, len(self._names))

    def _channel(self, channel: str) -> int:
        return self._channels.setdefault(channel, len(self._channels))

    # The frame

    def frame(self) -> bytes:
        """All that was told since the last one; b"" if that is nothing."""
        if not self.count:
            return b""
        earliest, latest = self._span()
        head = Head(VERSION, self.node, self.count, earliest, latest)
        body = Body(names=list(self._names), channels=list(self._channels))
        if self._ids:
            base = earliest * _NS_PER_US
            body["messages"] = {
                "id": [id - base for id in self._ids],
                "channel": self._channel_of,
            }
        if self._published:
            body["published"] = self._publish_columns(earliest)
        if self._rows:
            body["delivered"] = self._row_columns(earliest)
        if self._changed:
            body["changed"] = self._change_columns(earliest)
        self._begin()
        return encode(head, body)

    def _span(self) -> tuple[int, int]:
        times = [row[1] for row in self._published]
        times += [row[1] for row in self._changed]
        for row in self._rows:
            times += row.at
        return min(times), max(times)

    def _publish_columns(self, base: int) -> Published:
        message, at, copies, kept, size, priority, by = map(
            list, zip(*self._published, strict=True)
        )
        return {
            "message": message,
            "t": [each - base for each in at],
            "copies": copies,
            "kept": kept,
            "size": size,
            "priority": priority,
            "by": by,
        }

    def _row_columns(self, base: int) -> Delivered:
        rows = self._rows
        columns: Delivered = {
            "kind": [row.kind.value for row in rows],
            "messages": [row.places for row in rows],
            "receivers": [row.receivers for row in rows],
            "t": [[at - base for at in row.at] for row in rows],
        }
        attempts = [row.attempt for row in rows]
        if any(attempts):
            columns["attempt"] = attempts
        if any(row.why is not None for row in rows):
            reasons = [row.why or _NO_REASON for row in rows]
            columns["code"] = [why.get("code") for why in reasons]
            columns["letter"] = [why.get("letter") for why in reasons]
            columns["fingerprint"] = [why.get("fingerprint") for why in reasons]
            columns["generation"] = [why.get("generation") for why in reasons]
        return columns

    def _change_columns(self, base: int) -> Changed:
        kind, at, name, channel, what, number = map(list, zip(*self._changed, strict=True))
        return {
            "kind": [each.value for each in kind],
            "t": [each - base for each in at],
            "name": name,
            "channel": channel,
            "what": what,
            "number": number,
        }
