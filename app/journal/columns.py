"""Columns of a frame in the making."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypedDict

from app.delivery.dead_letters import key_of
from app.journal.frame import Body, Delivered, Messages

if TYPE_CHECKING:
    from app.delivery.messages import Message

_NS_PER_US = 1000
_NOBODY = -1


class Why(TypedDict, total=False):
    """What else is to be said of a failure, or of a replay."""

    code: str
    letter: int
    fingerprint: str
    generation: int


_NO_REASON: Why = {}

# Message, time, copies, how many of these are kept.
Publication = tuple["Message", int, int, int]
# Kind, messages or their ids, receiver, time, attempt, reason.
Delivery = tuple[str, Sequence["Message | int"], str, int, int | None, Why | None]
# Kind, time, what, name, channel, number.
Change = tuple[str, int, str | None, str | None, str | None, int | None]
# The row that the same event of another receiver may join: its messages, its attempt, its receivers
# and their times.
_Row = tuple[Sequence["Message | int"], int | None, list[int], list[int]]


class Columns:
    """Says names, channels and messages once; everything else has their places.

    Args:
        first: The time from which others are told, in microseconds since 1970.
    """

    def __init__(self, first: int) -> None:
        self._first = first
        self._names: dict[str, int] = {}
        self._channels: dict[str, int] = {}
        # Places of messages, by themselves and by their ids.
        self._places: dict[Message | int, int] = {}
        self._messages: Messages = {"id": [], "channel": []}
        self._body = Body()

    def publish(self, told: Sequence[Publication]) -> None:
        """Put in what was published."""
        if not told:
            return
        first = self._first
        messages = [message for message, *_ in told]
        places = {sender: self._sender(sender) for sender in {m.sender for m in messages}}
        self._body["published"] = {
            "message": [self._place(message) for message in messages],
            "t": [at - first for _, at, _, _ in told],
            "copies": [copies for _, _, copies, _ in told],
            "kept": [kept for _, _, _, kept in told],
            "size": [len(message.wire) for message in messages],
            "priority": [message.priority for message in messages],
            "by": [places[message.sender] for message in messages],
        }

    def deliver(self, told: Iterable[Delivery]) -> None:
        """Put in what happened to messages and receivers; what happened alike becomes one row."""
        first, names, places = self._first, self._names, self._places
        kinds: list[str] = []
        rows: list[list[int]] = []
        receivers: list[list[int]] = []
        times: list[list[int]] = []
        attempts: list[int | None] = []
        reasons: dict[int, Why] = {}
        latest: dict[str, _Row] = {}
        for kind, messages, receiver, at, attempt, why in told:
            name = names.setdefault(receiver, len(names))
            row = latest.get(kind)
            if (
                row is not None
                and row[0][-1] is messages[-1]
                and row[0] == messages
                and row[1] == attempt
                and why is None
            ):
                row[2].append(name)
                row[3].append(at - first)
                continue
            to, when = [name], [at - first]
            if why is None:
                latest[kind] = (messages, attempt, to, when)
            else:
                reasons[len(kinds)] = why
            kinds.append(kind)
            if len(messages) == 1:
                place = places.get(messages[0])
                rows.append([self._place(messages[0]) if place is None else place])
            else:
                rows.append([self._place(message) for message in messages])
            receivers.append(to)
            times.append(when)
            attempts.append(attempt)
        if kinds:
            block: Delivered = {"kind": kinds, "messages": rows, "receivers": receivers, "t": times}
            self._body["delivered"] = block
            _explain(block, attempts, reasons)

    def change(self, told: Sequence[Change]) -> None:
        """Put in what changed."""
        if told:
            nobody = _NOBODY
            first = self._first
            self._body["changed"] = {
                "kind": [row[0] for row in told],
                "t": [row[1] - first for row in told],
                "what": [row[2] for row in told],
                "name": [nobody if row[3] is None else self._name(row[3]) for row in told],
                "channel": [nobody if row[4] is None else self._channel(row[4]) for row in told],
                "number": [row[5] for row in told],
            }

    def body(self) -> Body:
        """All columns."""
        body, messages = self._body, self._messages
        if messages["id"]:
            base = self._first * _NS_PER_US
            messages["id"] = [id - base for id in messages["id"]]
            body["messages"] = messages
        if self._channels:
            body["channels"] = list(self._channels)
        if self._names:
            body["names"] = list(self._names)
        return body

    # What is said once

    def _place(self, message: "Message | int") -> int:
        places = self._places
        place = places.get(message)
        if place is None:
            id, channel = (
                (message, _NOBODY)
                if isinstance(message, int)
                else (message.id, self._channel(message.channel))
            )
            place = places.get(id)
            if place is None:
                place = places[id] = len(self._messages["id"])
                self._messages["id"].append(id)
                self._messages["channel"].append(channel)
            elif channel != _NOBODY:
                self._messages["channel"][place] = channel
            places[message] = place
        return place

    def _name(self, name: str) -> int:
        return self._names.setdefault(name, len(self._names))

    def _sender(self, sender: str) -> int:
        return self._name(key_of(sender)) if sender else _NOBODY

    def _channel(self, channel: str) -> int:
        return self._channels.setdefault(channel, len(self._channels))


def _explain(block: Delivered, attempts: list[int | None], reasons: dict[int, Why]) -> None:
    """The columns that most frames do without."""
    if any(attempts):
        block["attempt"] = attempts
    if reasons:
        why = [reasons.get(row, _NO_REASON) for row in range(len(attempts))]
        block["code"] = [each.get("code") for each in why]
        block["letter"] = [each.get("letter") for each in why]
        block["fingerprint"] = [each.get("fingerprint") for each in why]
        block["generation"] = [each.get("generation") for each in why]
