"""Until when this process may speak to clients: afterwards, another may have its sessions."""

import logging
import time
from collections.abc import Callable
from enum import Enum
from functools import partial
from math import inf
from typing import Final

from holdfast.delivery.basics.ignoring import ignore

log = logging.getLogger(__name__)

# The holder stops speaking this long after it sent the last raise that the store confirmed.
SPEAK_S: Final = 2.5
# A rival waits longer, because clocks run at different rates and a raise takes time to arrive.
LEASE_S: Final = 3.0
# A rival that saw nothing for this long looks again: perhaps the store was away for all, and the
# holder needs a moment to raise its lease again.
BLIND_S: Final = 0.75
# A process that did not look at the clock for this long was frozen, perhaps for much longer.
_GAP_S: Final = 0.25
# Shorter silences are not worth a line in the log.
_WORTH_A_LINE_S: Final = 0.5


def boot_clock() -> Callable[[], float]:
    """Return a clock that also runs while the machine sleeps, where there is one."""
    return partial(time.clock_gettime, getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Voice(Enum):
    """Whether this process may speak to clients."""

    SPEAKING = "speaking"
    # Replies wait. A raise that is sent from now on and confirmed proves that no other process has
    # opened the store.
    SILENT = "silent"
    # Replies wait, because a successor of this process is about to open the store.
    LEAVING = "leaving"
    # Another process has opened the store.
    OVER = "over"


class Lease:
    """The right to speak to clients, which the store confirms several times a second.

    Args:
        clock: Must not stop while the process or the machine does.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self._voice = Voice.SILENT
        self._looked_at = self._silent_since = clock()
        # When the newest confirmed raise was sent.
        self._raised_at = -inf
        # Whether it was not raised for so long, before this silence or in it, that a rival may have
        # opened what it did not raise: other shards.
        self.was_unraised = True
        # Whether nothing may be sent, as of the last look at the clock. Cached for hot paths.
        self.is_silent = True
        # Called when a silence begins: the lease must be raised now.
        self.on_silent: Callable[[], None] = ignore
        self._waiting: list[Callable[[], None]] = []
        # Called when a silence may end, with what ends it: catch up with other shards first, which
        # have gone on without this one.
        self.catch_up: Callable[[Callable[[], None]], None] = _at_once
        self.is_catching_up = False
        # How often a silence began, or a rival may have opened what this process did not raise.
        self._breaks = 0
        # How often and how long this process was silent since the start, in seconds.
        self.silences = 0
        self.silent_s = 0.0

    def begin(self) -> None:
        """Begin with a silence that ends soon: this process has just opened the store."""
        self._looked_at = self._silent_since = self.clock()

    def may_speak(self) -> bool:
        """Return whether replies may leave now. Call it at least ten times a second."""
        now = self.clock()
        gap, self._looked_at = now - self._looked_at, now
        if self._voice is Voice.SPEAKING and (gap > _GAP_S or now - self._raised_at > SPEAK_S):
            self._fall_silent(now)
        return not self.is_silent

    def when_speaking(self, then: Callable[[], None]) -> None:
        """Call back once when the silence ends. Never called if the lease is over."""
        if self._voice is not Voice.OVER:
            self._waiting.append(then)

    def raised(self, sent_at: float) -> None:
        """Record that the store has confirmed a raise, which was sent at this time."""
        if sent_at - self._raised_at > SPEAK_S:
            self.was_unraised = True
            self._breaks += 1
        self._raised_at = max(sent_at, self._raised_at)
        now = self.clock()
        is_proof = sent_at >= self._silent_since and now - sent_at <= SPEAK_S
        if self._voice is Voice.SILENT and is_proof and not self.is_catching_up:
            self.is_catching_up = True
            self.catch_up(partial(self._caught_up, self._breaks))

    def _caught_up(self, breaks: int) -> None:
        """End the silence, unless the proof is too old now: then the next raise proves it.

        Args:
            breaks: How many there had been when this process began to catch up.
        """
        self.is_catching_up = False
        now = self.clock()
        is_same = self._voice is Voice.SILENT and breaks == self._breaks
        if is_same and now - self._raised_at <= SPEAK_S:
            self._speak_again(now)

    def leave(self) -> None:
        """Fall silent until `stay` is called: a successor may open the store."""
        if self._voice is not Voice.OVER:
            self._voice, self.is_silent = Voice.LEAVING, True

    def stay(self) -> None:
        """Speak again when the next raise is confirmed: no successor has the store."""
        if self._voice is Voice.LEAVING:
            self._fall_silent(self.clock())

    def end(self) -> None:
        """Fall silent, finally: another process has opened the store."""
        self._voice, self.is_silent = Voice.OVER, True
        self._waiting.clear()

    def _fall_silent(self, now: float) -> None:
        self._voice, self.is_silent = Voice.SILENT, True
        self._silent_since = now
        self._breaks += 1
        self.silences += 1
        self.on_silent()

    def _speak_again(self, now: float) -> None:
        self._voice, self.is_silent, self.was_unraised = Voice.SPEAKING, False, False
        self._looked_at = now
        silent_s = now - self._silent_since
        self.silent_s += silent_s
        if silent_s > _WORTH_A_LINE_S:
            log.warning(
                "replies waited for %.1f s, until the store confirmed that no other server has "
                "opened it",
                silent_s,
            )
        waiting, self._waiting = self._waiting, []
        for then in waiting:
            try:
                then()
            except Exception:
                # The rest must continue, and the lease must be raised.
                log.exception("work that waited for the end of a silence failed")


class RivalLease:
    """The lease of another process, as seen by one that waits for its end.

    Args:
        clock: Must not stop while the process or the machine does.
        blind_s: After so long without a look, what stood before it counts no more: this machine,
            and the other process with it, may have slept.
    """

    def __init__(self, clock: Callable[[], float], blind_s: float = BLIND_S) -> None:
        self._clock, self._blind_s = clock, blind_s
        self._state = ""
        self._since = self._looked_at = inf
        # How many states were seen: more than one shows that the other process lives.
        self._states = 0

    def saw(self, state: str) -> None:
        """Record the epoch and lease that the store has. Call it several times a second."""
        now = self._clock()
        if state != self._state:
            self._states += 1
        if state != self._state or now - self._looked_at > self._blind_s:
            self._state, self._since = state, now
        self._looked_at = now

    @property
    def is_raised(self) -> bool:
        """Whether it was raised while it was watched."""
        return self._states > 1

    @property
    def stood_s(self) -> float:
        """For how long the epoch and lease have not changed while they were watched."""
        return self._clock() - self._since

    @property
    def unraised(self) -> str:
        """The epoch and lease, if they have not changed for so long that their holder is silent."""
        return self._state if self.stood_s >= LEASE_S else ""


def _at_once(then: Callable[[], None]) -> None:
    """End a silence at once: there is no other shard."""
    then()
