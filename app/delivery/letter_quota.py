"""The room that dead letters take in the store: in total, per channel and per subject."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

# The approximate size of a letter without its event.
OVERHEAD = 1024
# While letters are removed, this part of the limit is allowed on top.
_SLACK = 8


@dataclass(frozen=True, slots=True)
class LetterLimits:
    """How many dead letters are kept, how many bytes, and how many per channel or subject."""

    count: int = 100_000
    bytes: int = 256 * 1024**2
    share: int = 64 * 1024**2


class Removal(Enum):
    """Why a letter was removed; the only labels of the metric."""

    __hash__ = object.__hash__

    AGE = "age"
    COUNT = "count"
    BYTES = "bytes"
    SHARE = "share"


class Excess(NamedTuple):
    """Too many letters: remove the oldest of this group until enough is free."""

    why: Removal
    letters: int
    bytes: int
    # The average size of these letters.
    average: int
    channel: str | None = None
    subject: str | None = None


class LetterUsage:
    """The number and size of a group of letters."""

    __slots__ = ("bytes", "count")

    def __init__(self) -> None:
        self.count = 0
        self.bytes = 0


class LetterQuota:
    """The account of the dead letters that are in the store or about to be.

    A letter beyond a limit is kept, and the oldest of its group is removed for it. Removal takes a
    moment: letters that arrive faster are not kept once the slack is used up.
    """

    def __init__(
        self,
        limits: LetterLimits | None = None,
        on_excess: Callable[[], None] | None = None,
    ) -> None:
        self.limits = limits or LetterLimits()
        # Called repeatedly while there are too many letters, or while their number is unknown.
        self.on_excess = on_excess
        self.all = LetterUsage()
        self._channels: dict[str, LetterUsage] = {}
        self._subjects: dict[str, LetterUsage] = {}
        # The channels beyond their share.
        self._large_channels: dict[str, None] = {}
        self._large_subjects: dict[str, None] = {}
        # The number of letters removed for lack of room or for their age.
        self.removed = dict.fromkeys(Removal, 0)
        # Whether the account includes the letters of former processes.
        self.is_known = False

    def take(self, channel: str, subject: str, size: int) -> bool:
        """Take room for a letter of an event of this size; False if there is none."""
        taken, share = size + OVERHEAD, self.limits.share
        if (
            _is_beyond(self.all, taken, self.limits.bytes)
            or _is_beyond(self._channels.get(channel), taken, share)
            or _is_beyond(self._subjects.get(subject), taken, share)
            or self.all.count > self.limits.count + self.limits.count // _SLACK
        ):
            return False
        self.add(channel, subject, size)
        return True

    def add(self, channel: str, subject: str, size: int) -> None:
        """Add a letter that is in the store or will be, whether or not there is room."""
        taken, share = size + OVERHEAD, self.limits.share
        self.all.count += 1
        self.all.bytes += taken
        if _grow(self._channels, channel, taken) > share:
            self._large_channels[channel] = None
        if _grow(self._subjects, subject, taken) > share:
            self._large_subjects[subject] = None
        if self._is_excessive():
            self._call()

    def free(self, channel: str, subject: str, size: int) -> None:
        """Note that a letter has left the store."""
        taken, share = size + OVERHEAD, self.limits.share
        self.all.count -= 1
        self.all.bytes -= taken
        if _shrink(self._channels, channel, taken) <= share:
            self._large_channels.pop(channel, None)
        if _shrink(self._subjects, subject, taken) <= share:
            self._large_subjects.pop(subject, None)

    def excess(self) -> Excess | None:
        """Return what to remove next: first from groups beyond their share, then from all."""
        limits = self.limits
        if not self.is_known:
            return None
        for channel in self._large_channels:
            return _excess(Removal.SHARE, self._channels[channel], limits.share, channel=channel)
        for subject in self._large_subjects:
            return _excess(Removal.SHARE, self._subjects[subject], limits.share, subject=subject)
        if self.all.bytes > limits.bytes:
            return _excess(Removal.BYTES, self.all, limits.bytes)
        if self.all.count > limits.count:
            average = self.all.bytes // self.all.count
            return Excess(Removal.COUNT, self.all.count - limits.count, 0, average)
        return None

    def _is_excessive(self) -> bool:
        limits = self.limits
        return (
            self.all.bytes > limits.bytes
            or self.all.count > limits.count
            or bool(self._large_channels or self._large_subjects)
        )

    def forget(self) -> None:
        """Declare the account wrong: all letters must be counted again."""
        self.is_known = False
        self._call()

    def begin(self) -> None:
        """Restart the account; the caller then calls `add` for every letter in the store."""
        self.all = LetterUsage()
        self._channels, self._subjects = {}, {}
        self._large_channels, self._large_subjects = {}, {}

    def _call(self) -> None:
        if self.on_excess is not None:
            self.on_excess()


def _is_beyond(before: LetterUsage | None, more: int, limit: int) -> bool:
    """Return whether not even the slack has room; a single letter always has room."""
    return before is not None and before.bytes > 0 and before.bytes + more > limit + limit // _SLACK


def _grow(table: dict[str, LetterUsage], name: str, more: int) -> int:
    found = table.get(name)
    if found is None:
        found = table[name] = LetterUsage()
    found.count += 1
    found.bytes += more
    return found.bytes


def _shrink(table: dict[str, LetterUsage], name: str, less: int) -> int:
    found = table.get(name)
    if found is None:
        return 0
    found.count -= 1
    found.bytes -= less
    if found.count <= 0:
        del table[name]
        return 0
    return found.bytes


def _excess(
    why: Removal,
    taken: LetterUsage,
    limit: int,
    *,
    channel: str | None = None,
    subject: str | None = None,
) -> Excess:
    average = taken.bytes // max(taken.count, 1)
    return Excess(why, 0, taken.bytes - limit, average, channel, subject)
