"""Columns of a frame in the making."""

from collections.abc import Sequence
from typing import Any, TypedDict, cast

from app.journal.frame import USUAL_PRIORITY, Body, Changed, Delivered, Published
from app.journal.places import NOBODY, Place, Places
from app.journal.schema import NS_PER_US


class Why(TypedDict, total=False):
    """What else is to be said of a failure, or of a replay."""

    code: str
    letter: int
    fingerprint: str
    generation: int


_NO_REASON: Why = {}

# Id of the message, copies, how many of these are kept, bytes, priority, sender, channel.
Publication = tuple[int, int, int, int, int, str, str]
# Kind, ids of messages, attempt, reason, names of receivers and a time for each, or one for all.
Row = tuple[str, Sequence[int], int | None, Why | None, list[str], list[int]]
# What was published and what else happened.
Told = tuple[list[Publication], list[Row]]


class Columns:
    """They grow while things happen: to come back to what was remembered of them, when it had left
    the processor's cache, cost more than all the rest.

    Times are microseconds since 1970; in the frame they are told from the first of them.
    """

    __slots__ = (
        "_attempts",
        "_begun",
        "_by",
        "_changed",
        "_copies",
        "_groups",
        "_kept",
        "_kinds",
        "_messages",
        "_priorities",
        "_published",
        "_sizes",
        "_times",
        "_why",
        "count",
        "first",
        "last",
        "places",
    )

    def __init__(self) -> None:
        self.places = Places()
        # How many events there are, the earliest and the latest.
        self.count = self.first = self.last = 0
        self._published: list[Place] = []
        self._copies: list[int] = []
        self._sizes: list[int] = []
        self._by: list[Place] = []
        # By rows, unless they are as most.
        self._kept: dict[int, int] = {}
        self._priorities: dict[int, int] = {}
        self._kinds: list[str] = []
        # The place of the only message, or a list.
        self._messages: list[Any] = []
        self._groups: list[Place] = []
        # A time for all receivers, or a list of one for each.
        self._times: list[Any] = []
        self._attempts: list[int | None] = []
        # By rows.
        self._why: dict[int, Why] = {}
        self._begun: dict[int, list[str]] = {}
        self._changed: dict[str, list[Any]] = {}

    @property
    def weight(self) -> int:
        """How many rows there are."""
        return len(self._published) + len(self._kinds) + len(self._changed.get("t", ()))

    def see(self, at: int, events: int) -> None:
        """So many events more, one of them then."""
        self.count += events
        if not self.first or at < self.first:
            self.first = at
        if at > self.last:
            self.last = at

    def tell_published(self, told: Publication) -> None:
        """This was published."""
        id, copies, kept, size, priority, sender, channel = told
        place = self.places.named(id, channel)
        self.publish(place, id, copies, kept, size, priority, sender)

    def publish(
        self, place: Place, id: int, copies: int, kept: int, size: int, priority: int, sender: str
    ) -> None:
        """The message with this id, which has this place, was published."""
        self.see(id // NS_PER_US, 1)
        if kept:
            self._kept[len(self._published)] = kept
        if priority != USUAL_PRIORITY:
            self._priorities[len(self._published)] = priority
        self._published.append(place)
        self._copies.append(copies)
        self._sizes.append(size)
        self._by.append(self.places.sender(sender))

    def deliver(
        self,
        kind: str,
        messages: "Place | list[Place]",
        group: Place,
        at: int,
        attempt: int | None,
        events: int,
    ) -> None:
        """This happened to these messages and this group, which are so many events."""
        self.see(at, events)
        self._kinds.append(kind)
        self._messages.append(messages)
        self._groups.append(group)
        self._times.append(at)
        self._attempts.append(attempt)

    def tell(self, row: Row) -> None:
        """This happened."""
        kind, ids, attempt, why, names, times = row
        places, events = self.places, len(ids) * len(names)
        self.deliver(kind, places.messages(ids), places.group(names), times[0], attempt, events)
        if len(times) > 1:
            self.see(times[-1], 0)
            self._times[-1] = times
        if why:
            self._why[len(self._kinds) - 1] = why

    def begin(self, row: Row) -> None:
        """This happens to one receiver, and is to happen to others: put them into the row."""
        kind, ids, attempt, why, names, times = row
        self.deliver(kind, self.places.messages(ids), NOBODY, times[0], attempt, len(ids))
        self._times[-1] = times
        self._begun[len(self._kinds) - 1] = names
        if why:
            self._why[len(self._kinds) - 1] = why

    def change(
        self,
        kind: str,
        at: int,
        what: str | None,
        name: str | None,
        channel: str | None,
        number: int | None,
    ) -> None:
        """This changed."""
        self.see(at, 1)
        row = {
            "kind": kind,
            "t": at,
            "what": what,
            "name": NOBODY if name is None else self.places.name(name),
            "channel": NOBODY if channel is None else self.places.channel(channel),
            "number": number,
        }
        for column, value in row.items():
            self._changed.setdefault(column, []).append(value)

    def body(self) -> Body:
        """All columns, as the frame has them."""
        first, places = self.first, self.places
        body = Body()
        if self._published:
            body["published"] = self._publications()
        if self._kinds:
            body["delivered"] = self._delivered()
        if self._changed:
            self._changed["t"] = [at - first for at in self._changed["t"]]
            body["changed"] = cast("Changed", self._changed)
        if places.ids:
            base = first * NS_PER_US
            body["messages"] = {
                "id": [id - base for id in places.ids],
                "channel": places.channels_of,
            }
        if places.channels:
            body["channels"] = [*places.channels]
        if places.groups:
            body["groups"] = places.groups
        if places.names:
            body["names"] = [*places.names]
        return body

    def _publications(self) -> Published:
        block = Published(
            message=self._published, copies=self._copies, size=self._sizes, by=self._by
        )
        rows = range(len(self._published))
        if self._kept:
            block["kept"] = [self._kept.get(row, 0) for row in rows]
        if self._priorities:
            block["priority"] = [self._priorities.get(row, USUAL_PRIORITY) for row in rows]
        return block

    def _delivered(self) -> Delivered:
        first = self.first
        for row, names in self._begun.items():
            self._groups[row] = self.places.group(names)
        block = Delivered(
            kind=self._kinds,
            messages=self._messages,
            receivers=self._groups,
            t=[_since(first, at) for at in self._times],
        )
        if any(self._attempts):
            block["attempt"] = self._attempts
        if self._why:
            reasons = [self._why.get(row, _NO_REASON) for row in range(len(self._kinds))]
            block["code"] = [why.get("code") for why in reasons]
            block["letter"] = [why.get("letter") for why in reasons]
            block["fingerprint"] = [why.get("fingerprint") for why in reasons]
            block["generation"] = [why.get("generation") for why in reasons]
        return block


def _since(first: int, at: int | list[int]) -> int | list[int]:
    """One time for all if they have the same."""
    if isinstance(at, int):
        return at - first
    if at[0] == at[-1] and len(set(at)) == 1:
        return at[0] - first
    return [each - first for each in at]
