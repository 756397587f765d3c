"""Work that dies at some step, as if its process was killed."""

from threading import current_thread

import pytest


class Killed(BaseException):
    """As if the process was."""


def kill_at(fate: pytest.MonkeyPatch, whose: object, step: str) -> None:
    """Kill this thread when it comes to this step; tests in other threads take it as ever."""
    ours, real = current_thread(), getattr(whose, step)

    def take(*args: object, **options: object) -> object:
        if current_thread() is ours:
            raise Killed
        return real(*args, **options)

    fate.setattr(whose, step, take)
