"""The columns of a frame that is being built."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, TypedDict, cast

from holdfast.journal.frame import USUAL_PRIORITY, Body, Changed, Delivered, Published
from holdfast.journal.interning import NOBODY, Interned, Interning
from holdfast.journal.schema import NS_PER_US, Kind


class FailureDetails(TypedDict, total=False):
    """The details of a failure or of a replay."""

    code: str
    wording: str
    letter: int
    fingerprint: str
    generation: int
    kept: int


_NO_REASON: FailureDetails = {}
# A frame has at most this many different wordings; further ones are left out.
_MOST_WORDINGS = 100

# Message id, copies, stored copies, bytes, priority, sender, channel.
PublishRow = tuple[int, int, int, int, int, str, str]
# Kind, message ids, attempt, reason, receiver names, and a time for each or one for all.
Row = tuple[str, Sequence[int], int | None, FailureDetails | None, list[str], list[int]]
# Publishes and other events.
DecodedNote = tuple[list[PublishRow], list[Row]]


class Columns:
    """Columns of a frame, filled as events happen.

    Filling them later would cost more than everything else, because the data would have left the
    processor's cache. Times are microseconds since 1970; in the frame they are relative to the
    first one.
    """

    def __init__(self) -> None:
        self.interning = Interning()
        # The number of events, and the times of the earliest and the latest.
        self.count = self.first = self.last = 0
        # The number of events by kind; of publishes, the number of copies.
        self.tally: defaultdict[str, int] = defaultdict(int)
        self._published: list[Interned] = []
        self._copies: list[int] = []
        self._sizes: list[int] = []
        self._by: list[Interned] = []
        # By row, unless the usual value applies.
        self._kept: dict[int, int] = {}
        self._priorities: dict[int, int] = {}
        self._kinds: list[str] = []
        # The number of the only message, or a list.
        self._messages: list[Any] = []
        self._groups: list[Interned] = []
        # One time for all receivers, or a list with one for each.
        self._times: list[Any] = []
        self._attempts: list[int | None] = []
        # By row.
        self._why: dict[int, FailureDetails] = {}
        self._begun: dict[int, list[str]] = {}
        self._changed: dict[str, list[Any]] = {}

    @property
    def weight(self) -> int:
        """The number of rows."""
        return len(self._published) + len(self._kinds) + len(self._changed.get("t", ()))

    def see(self, at: int, events: int) -> None:
        """Count `events` more, one of them at this time."""
        self.count += events
        if not self.first or at < self.first:
            self.first = at
        if at > self.last:
            self.last = at

    def add_published(self, row: PublishRow) -> None:
        """Add a publish of a note."""
        id, copies, kept, size, priority, sender, channel = row
        number = self.interning.named(id, channel)
        self.publish(number, id, copies, kept, size, priority, sender)

    def publish(
        self,
        number: Interned,
        id: int,
        copies: int,
        kept: int,
        size: int,
        priority: int,
        sender: str,
    ) -> None:
        """Add a publish of the message with this id, by its number in the frame."""
        self.see(id // NS_PER_US, 1)
        self.tally[Kind.PUBLISHED] += copies
        if kept:
            self._kept[len(self._published)] = kept
        if priority != USUAL_PRIORITY:
            self._priorities[len(self._published)] = priority
        self._published.append(number)
        self._copies.append(copies)
        self._sizes.append(size)
        self._by.append(self.interning.sender(sender))

    def deliver(
        self,
        kind: str,
        messages: "Interned | list[Interned]",
        group: Interned,
        at: int,
        attempt: int | None,
        events: int,
    ) -> None:
        """Add a row for these messages and this group; it counts as `events` events."""
        self.see(at, events)
        self.tally[kind] += events
        self._kinds.append(kind)
        self._messages.append(messages)
        self._groups.append(group)
        self._times.append(at)
        self._attempts.append(attempt)

    def add_row(self, row: Row) -> None:
        """Add a row of a note."""
        kind, ids, attempt, why, names, times = row
        interning, events = self.interning, len(ids) * len(names)
        self.deliver(
            kind, interning.messages(ids), interning.group(names), times[0], attempt, events
        )
        if len(times) > 1:
            self.see(times[-1], 0)
            self._times[-1] = times
        if why:
            self._why[len(self._kinds) - 1] = why

    def begin(self, row: Row) -> None:
        """Begin a row with one receiver, which others will join."""
        kind, ids, attempt, why, names, times = row
        self.deliver(kind, self.interning.messages(ids), NOBODY, times[0], attempt, len(ids))
        self._times[-1] = times
        self._begun[len(self._kinds) - 1] = names
        if why:
            self._why[len(self._kinds) - 1] = why

    def join(self, row: Row, receiver: str, at: int) -> None:
        """Add a receiver to a row that was begun."""
        kind, ids, _, _, names, times = row
        names.append(receiver)
        times.append(at)
        self.see(at, len(ids))
        self.tally[kind] += len(ids)

    def change(
        self,
        kind: str,
        at: int,
        what: str | None,
        name: str | None,
        channel: str | None,
        number: int | None,
    ) -> None:
        self.see(at, 1)
        row = {
            "kind": kind,
            "t": at,
            "what": what,
            "name": NOBODY if name is None else self.interning.name(name),
            "channel": NOBODY if channel is None else self.interning.channel(channel),
            "number": number,
        }
        for column, value in row.items():
            self._changed.setdefault(column, []).append(value)

    def body(self) -> Body:
        """Return all columns in the form of the frame."""
        first, interning = self.first, self.interning
        body = Body()
        if self._published:
            body["published"] = self._published_block()
        if self._kinds:
            body["delivered"] = self._delivered()
        if self._changed:
            self._changed["t"] = [at - first for at in self._changed["t"]]
            body["changed"] = cast("Changed", self._changed)
        if interning.ids:
            base = first * NS_PER_US
            body["messages"] = {
                "id": [id - base for id in interning.ids],
                "channel": interning.channels_of,
            }
        if interning.channels:
            body["channels"] = [*interning.channels]
        if interning.groups:
            body["groups"] = interning.groups
        if interning.names:
            body["names"] = [*interning.names]
        return body

    def _published_block(self) -> Published:
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
            self._groups[row] = self.interning.group(names)
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
            wordings = _first_wordings(reasons)
            if any(wordings):
                block["wording"] = wordings
            kept = [why.get("kept") for why in reasons]
            if kept.count(None) < len(kept):
                block["kept"] = kept
        return block


def _first_wordings(reasons: Sequence[FailureDetails]) -> list[str | None]:
    """Return the wordings, unless there are too many different ones already."""
    found: list[str | None] = []
    known: set[str] = set()
    for why in reasons:
        wording = why.get("wording")
        if wording is not None:
            if len(known) < _MOST_WORDINGS:
                known.add(wording)
            elif wording not in known:
                wording = None
        found.append(wording)
    return found


def _since(first: int, at: int | list[int]) -> int | list[int]:
    """Return times relative to the first; one time if all are equal."""
    if isinstance(at, int):
        return at - first
    if at[0] == at[-1] and len(set(at)) == 1:
        return at[0] - first
    return [each - first for each in at]
