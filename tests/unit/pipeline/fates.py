"""A naive model of copies: random things happen to them in turn, and it keeps count."""

from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any

from holdfast.journal.schema import Event
from tests.unit.pipeline.events import SECOND, START_US, event
from tests.unit.pipeline.framed_events import FramedEvent

_CODES = ("user.update.error", "user.update.internalError")
_NAMES = ("ann/1", "bob/2", "anonymous/-1", "eve/x/-2")
_QUEUE = "work:/a/0"


@dataclass
class _Copy:
    """One life of a copy, in one queue; `letter` is what it died with."""

    msg: int
    receiver: str
    generation: int = 0
    replay_of: list[int] = field(default_factory=list)
    # Whether the store has it; the journal says it of each replay.
    is_stored: bool = True
    state: str = "open"
    handed: int | None = None
    ended: int | None = None
    attempts: int | None = None
    redelivered: int = 0
    refused: int = 0
    code: str | None = None
    letter: int | None = None
    # The journal has no event about a copy until something happens to it.
    is_reported: bool = False


_UNSEEN = ("msg", "is_stored", "is_reported")
_SEEN = [each.name for each in fields(_Copy) if each.name not in _UNSEEN]


class Fates:
    """Lets the dice decide what happens to the copies of one node, in one process after another.

    Args:
        step_us: Between two messages, and between two events.
    """

    def __init__(self, step_us: int = SECOND) -> None:
        self._step_us = step_us
        self.events: list[FramedEvent] = []
        # By channel, and the next start of the process.
        self.lost: dict[tuple[str, int], int] = {}
        self._kept: dict[int, bool] = {}
        self._copies: list[_Copy] = []
        self._epoch = 1
        # The number of events up to the last start.
        self._started = 0
        self._letters = 0

    def go_on(self, dice: int) -> None:
        dice, what = divmod(dice, 8)
        copies = [copy for copy in self._copies if copy.state in ("open", "dead")]
        if what == 0 or not copies:
            self._publish(dice)
        elif what == 1 and dice % 2:
            self._start(dice)
        else:
            copy = copies[dice % len(copies)]
            if copy.state == "dead":
                self._replay(copy)
            else:
                ways = (self._hand, self._hand, self._refuse, self._die, self._end, self._move)
                ways[what % 6](copy, dice)

    def _publish(self, dice: int) -> None:
        dice, count = divmod(dice, 4)
        kept = dice % 2 == 0
        msg = len(self._kept)
        self._kept[msg] = kept
        names = _NAMES[: count + 1]
        copies = [_Copy(msg, name, is_stored=kept and _is_named(name)) for name in names]
        self._copies += copies
        in_store = sum(copy.is_stored for copy in copies)
        self._report(event("published", 0, msg, copies=len(names), kept=in_store, size=9))

    def _report(self, event: Event) -> int:
        """Add the event, with the present time."""
        # No event is earlier than the publish of its message.
        now = START_US + len(self.events) * self._step_us
        seq = len(self.events) + 1
        channel = None if event.msg is None else f"/{_number(event.msg) % 2}"
        tells = event.kind in ("published", "replayed")
        id = None if event.msg is None else self._id(_number(event.msg))
        timed = event._replace(ts=now, msg=id, channel=channel if tells else None)
        self.events.append(FramedEvent(timed, f"seed-{self._epoch}", seq))
        return now

    def _id(self, number: int) -> int:
        return (START_US + number * self._step_us) * 1000

    def _report_of(self, copy: _Copy, kind: str, **more: Any) -> int:
        copy.is_reported = True
        return self._report(event(kind, 0, copy.msg, receiver=copy.receiver, **more))

    def _hand(self, copy: _Copy, dice: int) -> None:
        copy.attempts = (copy.attempts or 0) + 1
        kind = "handed" if copy.attempts == 1 else "redelivered"
        us = self._report_of(copy, kind, attempt=copy.attempts)
        copy.redelivered += copy.attempts > 1
        copy.handed = us if copy.handed is None else copy.handed

    def _refuse(self, copy: _Copy, dice: int) -> None:
        copy.code = _CODES[dice % 2]
        copy.refused += 1
        self._report_of(copy, "refused", code=copy.code, attempt=copy.attempts)

    def _die(self, copy: _Copy, dice: int) -> None:
        self._letters += 1
        copy.state, copy.letter = "dead", self._letters
        copy.ended = self._report_of(copy, "dead", letter=copy.letter, fingerprint="f")

    def _end(self, copy: _Copy, dice: int) -> None:
        copy.state = ("acked", "expired", "discarded", "written")[dice % 4]
        copy.ended = self._report_of(copy, copy.state)
        if copy.state == "written" and copy.handed is None:
            copy.handed = copy.ended

    def _move(self, copy: _Copy, dice: int) -> None:
        """Move a stored copy to a queue that has no other one of the message."""
        is_for_session = copy.receiver == _QUEUE or not copy.is_stored
        target = _NAMES[dice % 2] if is_for_session else _QUEUE
        others = [each for each in self._copies if each.msg == copy.msg and each is not copy]
        is_there = any(each.receiver == target and each.state != "moved" for each in others)
        if is_there or target == copy.receiver or "/-" in copy.receiver:
            return
        copy.state, copy.ended = "moved", self._report_of(copy, "moved")
        again = _Copy(
            copy.msg, target, copy.generation, is_stored=copy.is_stored, attempts=copy.attempts
        )
        self._copies.append(again)
        of_replay = _of_replay(copy) if copy.generation else {}
        self._report_of(again, "entered", attempt=copy.attempts, **of_replay)

    def _replay(self, copy: _Copy) -> None:
        """Replay a letter, once; queues of named sessions are stored."""
        assert copy.letter is not None
        if any(copy.letter in other.replay_of for other in self._copies):
            return
        if any(
            (each.msg, each.receiver, each.state) == (copy.msg, copy.receiver, "open")
            for each in self._copies
        ):
            return
        is_stored = _is_named(copy.receiver)
        again = _Copy(copy.msg, copy.receiver, copy.generation + 1, [copy.letter], is_stored)
        self._copies.append(again)
        self._report_of(again, "replayed", letter=copy.letter, **_of_replay(again))

    def _start(self, dice: int) -> None:
        """The process ends with all that was only in its memory, and another one starts.

        The store may have notes of its last events, which the next process writes before its start.
        """
        self._epoch += 1
        first = max(len(self.events) - dice // 2 % 4, self._started)
        for place in range(first, len(self.events)):
            self.events[place] = self.events[place]._replace(epoch=f"seed-{self._epoch}")
        self._started = len(self.events) + 1
        now = self._report(event("node", 0, what="start", number=0))
        for copy in self._copies:
            if copy.state == "open" and not copy.is_stored:
                where = f"/{copy.msg % 2}", now
                self.lost[where] = self.lost.get(where, 0) + 1
                copy.state, copy.ended = "lost_with_process", now

    def lives(self) -> list[tuple[Any, ...]]:
        """The lives with at least one event."""
        return [
            (copy.msg, f"/{copy.msg % 2}", *(getattr(copy, name) for name in _SEEN))
            for copy in self._copies
            if copy.is_reported
        ]

    def unsettled(self) -> list[int]:
        """The messages with open copies that are no replays."""
        is_open = (copy for copy in self._copies if copy.state == "open" and not copy.generation)
        numbers = {copy.msg for copy in is_open}
        return sorted(map(self._id, numbers))


def _is_named(receiver: str) -> bool:
    return "/-" not in receiver


def _of_replay(copy: _Copy) -> dict[str, int]:
    return {"generation": copy.generation, "kept": int(copy.is_stored)}


def seen(row: dict[str, Any]) -> tuple[Any, ...]:
    """A life from the tables, in the form of `Fates.lives`."""
    times = {name: us_of(row[f"{name}_ts"]) for name in ("handed", "ended")}
    known = {**row, **times, "replay_of": row["replay_of"] or []}
    return (_number(row["msg"]), row["channel"], *(known[name] for name in _SEEN))


def us_of(time: datetime | None) -> int | None:
    return None if time is None else round(time.timestamp()) * SECOND


def _number(msg: int) -> int:
    return (msg // 1000 - START_US) // SECOND
