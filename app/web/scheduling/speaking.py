"""When replies may leave: never after another process may have opened the store."""

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

# How long other shards wait at least for one of which nothing shows that it lives.
_FROZEN_S: Final = 2.5


class SpeakingRight(Protocol):
    """The right to speak to clients. Tests control its answers."""

    # Whether nothing may be sent, as of the last call of `may_speak`.
    is_silent: bool
    # How often and how long this process was silent since the start, in seconds.
    silences: int
    silent_s: float

    def may_speak(self) -> bool:
        """Return whether replies may leave now."""
        ...

    def when_speaking(self, then: Callable[[], None]) -> None:
        """Call back once when the silence ends. Never called if it does not end."""
        ...


async def until_speaking(right: SpeakingRight) -> None:
    """Wait until replies may leave."""
    while not right.may_speak():
        is_over = asyncio.Event()
        right.when_speaking(is_over.set)
        await is_over.wait()


class LeavableRight(SpeakingRight, Protocol):
    """A right that its holder can lay down, so that another process may take its place."""

    def leave(self) -> None:
        """Fall silent until `stay` is called."""
        ...

    def stay(self) -> None:
        """End the silence, once nothing else causes it: no other process took the place."""
        ...


class OwnStoreRight:
    """The right of a process that owns its store: a lock keeps all others away."""

    silences = 0
    silent_s = 0.0

    def __init__(self) -> None:
        self.is_silent = False
        self._waiting: list[Callable[[], None]] = []

    def may_speak(self) -> bool:
        return not self.is_silent

    def when_speaking(self, then: Callable[[], None]) -> None:
        if self.is_silent:
            self._waiting.append(then)
        else:
            then()

    def leave(self) -> None:
        self.is_silent = True

    def stay(self) -> None:
        self.is_silent = False
        waiting, self._waiting = self._waiting, []
        for then in waiting:
            then()


class ShardRight(OwnStoreRight):
    """The same of one of several shards, which others leave out if it does not run for a while.

    Then it catches up with them before it speaks again.

    Args:
        clock: Must not stop while the process or the machine does.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__()
        self._clock = clock
        self._looked_at = clock()
        # Called after a time in which this process did not run, with what ends the silence.
        self.catch_up: Callable[[Callable[[], None]], None] = _at_once
        self._is_leaving = self._is_catching_up = False
        self._silent_since = 0.0

    def may_speak(self) -> bool:
        now = self._clock()
        gap, self._looked_at = now - self._looked_at, now
        if gap > _FROZEN_S and not self._is_catching_up:
            self._is_catching_up = self.is_silent = True
            self.silences += 1
            self._silent_since = now - gap
            self.catch_up(self._caught_up)
        return not self.is_silent

    def _caught_up(self) -> None:
        self._is_catching_up = False
        self.silent_s += self._clock() - self._silent_since
        self._speak_if_possible()

    def leave(self) -> None:
        self._is_leaving = self.is_silent = True

    def stay(self) -> None:
        self._is_leaving = False
        self._speak_if_possible()

    def _speak_if_possible(self) -> None:
        if not (self._is_leaving or self._is_catching_up):
            super().stay()


def own_right(clock: Callable[[], float], is_alone: bool) -> LeavableRight:
    """Return the right of a process that owns its store, alone or as one of several shards."""
    return OwnStoreRight() if is_alone else ShardRight(clock)


def _at_once(then: Callable[[], None]) -> None:
    """End a silence at once: there is nothing to catch up with."""
    then()
