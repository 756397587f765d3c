"""When replies may leave: never after another process may have opened the store."""

import asyncio
from collections.abc import Callable
from typing import Protocol


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
