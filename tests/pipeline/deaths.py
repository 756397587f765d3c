"""Ends work at a chosen step, as if its process had been killed."""

from threading import current_thread

import pytest


class Killed(BaseException):
    """As if the process had been killed."""


def kill_at(fate: pytest.MonkeyPatch, whose: object, step: str) -> None:
    """Kill this thread when it comes to this step; other threads take the step as usual."""
    ours, real = current_thread(), getattr(whose, step)

    def take(*args: object, **options: object) -> object:
        if current_thread() is ours:
            raise Killed
        return real(*args, **options)

    fate.setattr(whose, step, take)
