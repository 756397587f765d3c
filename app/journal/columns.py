"""Columns of a frame in the making."""

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from app.delivery.dead_letters import key_of
from app.journal.frame import Body, Delivered
from app.journal.schema import NS_PER_US

_NOBODY = -1


class Why(TypedDict, total=False):
    """What else is to be said of a failure, or of a replay."""

    code: str
    letter: int
    fingerprint: str
    generation: int


_NO_REASON: Why = {}

# Id of the message, time, copies, how many of these are kept, bytes, priority, sender, channel.
Publication = tuple[int, int, int, int, int, int, str, str]
# Kind, ids of messages, attempt, reason, names of receivers and a time for each, or one for all.
Row = tuple[str, Sequence[int], int | None, Why | None, list[str], list[int]]
# How many events they are; what was published and what else happened.
Told = tuple[int, list[Publication], list[Row]]
# Kind, time, what, name, channel, number.
Change = tuple[str, int, str | None, str | None, str | None, int | None]


class Columns:
    """Says names, groups of them, channels and messages once; everything else has their places.

    Args:
        first: The time from which others are told, in microseconds since 1970.
        channels: Of the messages, by their ids, as far as is known.
    """

    def __init__(self, first: int, channels: Mapping[int, str]) -> None:
        self._first = first
        self._channel_of = channels
        self._names: dict[str, Any] = {}
        self._groups: list[list[int]] = []
        # Groups of one, and by their first name others, as they were told.
        self._singles: dict[str, int] = {}
        self._crowds: dict[str, tuple[list[str], int]] = {}
        self._channels: dict[str, int] = {}
        # Places of messages.
        self._places: dict[int, int] = {}
        self._body = Body()

    def publish(self, told: Sequence[Publication]) -> None:
        """Put in what was published."""
        if not told:
            return
        first = self._first
        ids, times, copies, kept, sizes, priorities, senders, _ = zip(*told, strict=True)
        places = {sender: self._sender(sender) for sender in set(senders)}
        self._body["published"] = {
            "message": self._places_of(ids),
            "t": [at - first for at in times],
            "copies": list(copies),
            "kept": list(kept),
            "size": list(sizes),
            "priority": list(priorities),
            "by": [places[sender] for sender in senders],
        }

    def deliver(self, told: Sequence[Row]) -> None:
        """Put in what happened to messages and receivers."""
        if not told:
            return
        first, known, singles = self._first, self._places, self._singles
        messages: list[list[int]] = []
        groups: list[int] = []
        times: list[list[int]] = []
        for _, ids, _, _, names, at in told:
            # Many rows have one message, one receiver and one time: they are what costs most.
            if len(ids) == 1:
                messages.append([known.setdefault(ids[0], len(known))])
            else:
                messages.append(self._places_of(ids))
            if len(names) == 1:
                group = singles.get(names[0])
                groups.append(self._single(names) if group is None else group)
            else:
                groups.append(self._crowd(names))
            times.append([at[0] - first] if len(at) == 1 else [each - first for each in at])
        self._body["delivered"] = block = Delivered(
            kind=[row[0] for row in told], messages=messages, receivers=groups, t=times
        )
        attempts = [row[2] for row in told]
        if any(attempts):
            block["attempt"] = attempts
        reasons = [row[3] for row in told]
        if any(reasons):
            _explain(block, [why or _NO_REASON for why in reasons])

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
        body = self._body
        if self._places:
            base = self._first * NS_PER_US
            known = self._channel_of
            channels = [self._channel(known[id]) if id in known else _NOBODY for id in self._places]
            body["messages"] = {"id": [id - base for id in self._places], "channel": channels}
        if self._channels:
            body["channels"] = list(self._channels)
        if self._groups:
            body["groups"] = self._groups
        if self._names:
            body["names"] = list(self._names)
        return body

    # What is said once

    def _places_of(self, ids: Sequence[int]) -> list[int]:
        places = self._places
        return [places.setdefault(id, len(places)) for id in ids]

    def _single(self, names: list[str]) -> int:
        """The place of a group of one that was not told before."""
        place = self._singles[names[0]] = self._new_group(names)
        return place

    def _crowd(self, names: list[str]) -> int:
        """The place of a group; one that is told again comes in the same order."""
        known = self._crowds.get(names[0])
        if known is not None and (known[0] is names or known[0] == names):
            return known[1]
        place = self._new_group(names)
        self._crowds[names[0]] = (names, place)
        return place

    def _new_group(self, names: list[str]) -> int:
        places = self._names
        group: list[Any] = []
        for name in names:
            # As it is there: another number would have to be made of it for each event.
            place: Any = places.get(name)
            if place is None:
                place = places[name] = len(places)
            group.append(place)
        self._groups.append(group)
        return len(self._groups) - 1

    def _name(self, name: str) -> int:
        place: int = self._names.setdefault(name, len(self._names))
        return place

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
