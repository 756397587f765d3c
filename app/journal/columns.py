"""Columns of a frame in the making."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypedDict

from app.delivery.dead_letters import key_of
from app.journal.frame import Body, Delivered, Messages

if TYPE_CHECKING:
    from app.delivery.messages import Message
    from app.delivery.receivers import Receiver

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
# Kind, messages or their ids, attempt, reason, receivers and a time for each, or one for all.
Row = tuple[
    str, Sequence["Message | int"], int | None, Why | None, list["Receiver | str"], list[int]
]
# Kind, time, what, name, channel, number.
Change = tuple[str, int, str | None, str | None, str | None, int | None]


class Columns:
    """Says names, channels and messages once; everything else has their places.

    Args:
        first: The time from which others are told, in microseconds since 1970.
    """

    def __init__(self, first: int) -> None:
        self._first = first
        self._names: dict[str, int] = {}
        # Places of receivers' names, by themselves.
        self._receivers: dict[Receiver | str, int] = {}
        self._channels: dict[str, int] = {}
        # Places of messages, by themselves or by their ids.
        self._places: dict[Message | int, int] = {}
        self._messages: Messages = {"id": [], "channel": []}
        self._body = Body()

    def publish(self, told: Sequence[Publication]) -> None:
        """Put in what was published."""
        if not told:
            return
        first = self._first
        messages, times, copies, kept = zip(*told, strict=True)
        places = {sender: self._sender(sender) for sender in {m.sender for m in messages}}
        self._body["published"] = {
            "message": [self._place(message) for message in messages],
            "t": [at - first for at in times],
            "copies": list(copies),
            "kept": list(kept),
            "size": [len(message.wire) for message in messages],
            "priority": [message.priority for message in messages],
            "by": [places[message.sender] for message in messages],
        }

    def deliver(self, told: Sequence[Row]) -> None:
        """Put in what happened to messages and receivers."""
        if not told:
            return
        first, message_at, receiver_at = self._first, self._places.get, self._receivers.get
        messages: list[list[int]] = []
        receivers: list[list[int]] = []
        times: list[list[int]] = []
        for _, batch, _, _, to, at in told:
            # Many rows have one message and one receiver; they are what costs most.
            if len(batch) == 1:
                place = message_at(batch[0])
                messages.append([self._place(batch[0]) if place is None else place])
            else:
                messages.append([self._place(message) for message in batch])
            if len(to) == 1:
                place = receiver_at(to[0])
                receivers.append([self._name_of(to[0]) if place is None else place])
                times.append([at[0] - first])
            else:
                receivers.append(self._places_of(to))
                times.append(_times(at, len(to), first))
        self._body["delivered"] = block = Delivered(
            kind=[row[0] for row in told], messages=messages, receivers=receivers, t=times
        )
        attempts = [row[2] for row in told]
        if any(attempts):
            block["attempt"] = attempts
        reasons = [row[3] for row in told]
        if any(reasons):
            _explain(block, [why or _NO_REASON for why in reasons])

    def _places_of(self, receivers: "Sequence[Receiver | str]") -> list[int]:
        places = self._receivers
        try:
            return [places[receiver] for receiver in receivers]
        except KeyError:
            return [self._name_of(receiver) for receiver in receivers]

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
        place = self._places.get(message)
        if place is None:
            place = self._places[message] = len(self._places)
            ids, channels = self._messages["id"], self._messages["channel"]
            if isinstance(message, int):
                ids.append(message)
                channels.append(_NOBODY)
            else:
                ids.append(message.id)
                name = message.channel
                channels.append(self._channels.setdefault(name, len(self._channels)))
        return place

    def _name_of(self, receiver: "Receiver | str") -> int:
        place = self._receivers.get(receiver)
        if place is None:
            name = receiver if isinstance(receiver, str) else receiver.key
            place = self._receivers[receiver] = self._name(name)
        return place

    def _name(self, name: str) -> int:
        return self._names.setdefault(name, len(self._names))

    def _sender(self, sender: str) -> int:
        return self._name(key_of(sender)) if sender else _NOBODY

    def _channel(self, channel: str) -> int:
        return self._channels.setdefault(channel, len(self._channels))


def _explain(block: Delivered, reasons: Sequence[Why]) -> None:
    """The columns that most frames do without."""
    block["code"] = [why.get("code") for why in reasons]
    block["letter"] = [why.get("letter") for why in reasons]
    block["fingerprint"] = [why.get("fingerprint") for why in reasons]
    block["generation"] = [why.get("generation") for why in reasons]


def _times(times: Sequence[int], count: int, first: int) -> list[int]:
    if len(times) == count:
        return [at - first for at in times]
    return [times[0] - first] * count
