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


class AlwaysSpeaking:
    """The right of a process that owns its store: a lock keeps all others away."""

    is_silent = False
    silences = 0
    silent_s = 0.0

    def may_speak(self) -> bool:
        return True

    def when_speaking(self, then: Callable[[], None]) -> None:
        then()
