"""The space that dead letters take in the store: in total, per channel and per subject."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from sys import maxsize
from typing import NamedTuple

# The approximate size of a letter without its event.
OVERHEAD = 1024
# While letters are being removed, this fraction of the limit is allowed on top.
_SLACK = 8


@dataclass(frozen=True, slots=True)
class LetterLimits:
    """The limits of number and size of dead letters, and the share of one channel or subject."""

    count: int = maxsize
    bytes: int = maxsize
    share: int = maxsize


class Removal(Enum):
    """Why a letter was removed. The metric has exactly these labels."""

    __hash__ = object.__hash__

    AGE = "age"
    COUNT = "count"
    BYTES = "bytes"
    SHARE = "share"


class Excess(NamedTuple):
    """Too many letters: remove the oldest of this group until enough space is free."""

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

    def grow(self, letters: int, more: int) -> None:
        """Add letters of this size. Negative numbers remove them.

        A letter may leave before an account that has begun again has counted it.
        """
        self.count = max(0, self.count + letters)
        self.bytes = max(0, self.bytes + more)

    def lacks_room(self, more: int, limit: int) -> bool:
        """Return whether the letter exceeds even the slack. A single letter always fits."""
        return self.bytes > 0 and self.bytes + more > limit + limit // _SLACK

    def average(self) -> int:
        """Return the average size of the letters."""
        return self.bytes // max(self.count, 1)


class _Shares:
    """The letters of each channel or each subject."""

    def __init__(self) -> None:
        self._usage: dict[str, LetterUsage] = {}
        # The channels or subjects that exceed their share.
        self.large: dict[str, LetterUsage] = {}

    def lacks_room(self, name: str, more: int, share: int) -> bool:
        usage = self._usage.get(name)
        return usage is not None and usage.lacks_room(more, share)

    def grow(self, name: str, letters: int, more: int, share: int) -> None:
        """Add letters of this size. Negative numbers remove them."""
        usage = self._usage.get(name)
        if usage is None:
            if letters < 0:
                return
            usage = self._usage[name] = LetterUsage()
        usage.grow(letters, more)
        if usage.count <= 0:
            del self._usage[name]
        if usage.count > 0 and usage.bytes > share:
            self.large[name] = usage
        else:
            self.large.pop(name, None)


class LetterQuota:
    """Accounts for dead letters that are in the store or about to be.

    A letter beyond a limit is kept, and the oldest letters of its group are removed to make room.
    Removal takes time. Letters that arrive faster are not kept once the slack is used up.
    """

    def __init__(
        self,
        limits: LetterLimits | None = None,
        on_excess: Callable[[], None] | None = None,
    ) -> None:
        self.limits = limits or LetterLimits()
        # Called repeatedly while there are too many letters, or while their number is unknown.
        self._on_excess = on_excess
        self.begin()
        # How many letters were removed for lack of space or because of their age.
        self.removed = dict.fromkeys(Removal, 0)
        # Whether the account includes the letters of earlier processes.
        self.is_known = False

    def begin(self) -> None:
        """Restart the account. The caller must then call `add` for every letter in the store."""
        self.all = LetterUsage()
        self._channels = _Shares()
        self._subjects = _Shares()

    def take(self, channel: str, subject: str, size: int) -> bool:
        """Reserve space for a letter whose event has this size. Returns False if there is none."""
        taken, limits = size + OVERHEAD, self.limits
        if (
            self.all.lacks_room(taken, limits.bytes)
            or self._channels.lacks_room(channel, taken, limits.share)
            or self._subjects.lacks_room(subject, taken, limits.share)
            or self.all.count > limits.count + limits.count // _SLACK
        ):
            return False
        self.add(channel, subject, size)
        return True

    def add(self, channel: str, subject: str, size: int) -> None:
        """Count a letter that is or will be in the store, even if there is no space for it."""
        self._grow(channel, subject, 1, size + OVERHEAD)
        if (
            self.all.bytes > self.limits.bytes
            or self.all.count > self.limits.count
            or self._channels.large
            or self._subjects.large
        ):
            self._call()

    def free(self, channel: str, subject: str, size: int) -> None:
        """Record that a letter has left the store."""
        self._grow(channel, subject, -1, -size - OVERHEAD)

    def _grow(self, channel: str, subject: str, letters: int, more: int) -> None:
        self.all.grow(letters, more)
        self._channels.grow(channel, letters, more, self.limits.share)
        self._subjects.grow(subject, letters, more, self.limits.share)

    def excess(self) -> Excess | None:
        """Return what to remove next: first from groups that exceed their share."""
        limits, usage = self.limits, self.all
        if not self.is_known:
            return None
        for channel, its in self._channels.large.items():
            over = its.bytes - limits.share
            return Excess(Removal.SHARE, 0, over, its.average(), channel=channel)
        for subject, its in self._subjects.large.items():
            over = its.bytes - limits.share
            return Excess(Removal.SHARE, 0, over, its.average(), subject=subject)
        if usage.bytes > limits.bytes:
            return Excess(Removal.BYTES, 0, usage.bytes - limits.bytes, usage.average())
        if usage.count > limits.count:
            return Excess(Removal.COUNT, usage.count - limits.count, 0, usage.average())
        return None

    def forget(self) -> None:
        """Mark the account as wrong. All letters must be counted again."""
        self.is_known = False
        self._call()

    def _call(self) -> None:
        if self._on_excess is not None:
            self._on_excess()
