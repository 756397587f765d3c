"""Counts refused publishes for the journal: one event a minute for each reason and channel."""

from typing import Final

from holdfast.delivery.basics.channels import REPLIES
from holdfast.delivery.ports.journal_port import DeliveryJournal

_MINUTE_S: Final = 60.0
# How many reasons and channels are distinguished within a minute, and how long a channel name may
# be. Clients choose the channels, and must not crowd other events out of the journal.
_MOST: Final = 100
_LONGEST: Final = 256
# All reply channels count as this one. Channels beyond the limit are counted without a name.
_ALL_REPLIES: Final = f"{REPLIES}*"


class RefusedPublishes:
    """Counts until the minute is over. Call `tick` regularly with the time."""

    def __init__(self, journal: DeliveryJournal) -> None:
        self._journal = journal
        self._counts: dict[tuple[str, str], int] = {}
        self._ends_at = 0.0

    def note(self, reason: str, channel: str) -> None:
        """Count one refusal. `channel` is empty if the message names no valid channel."""
        if channel.startswith(REPLIES):
            channel = _ALL_REPLIES
        case = (reason, channel if len(channel) <= _LONGEST else "")
        if case not in self._counts and len(self._counts) >= _MOST:
            case = (reason, "")
        self._counts[case] = self._counts.get(case, 0) + 1

    def tick(self, now: float) -> None:
        """Advance the clock."""
        if now >= self._ends_at:
            self._ends_at = now + _MINUTE_S
            self.flush()

    def flush(self) -> None:
        """Report the counts to the journal."""
        for (reason, channel), count in self._counts.items():
            self._journal.publishes_refused(reason, channel, count)
        self._counts.clear()
