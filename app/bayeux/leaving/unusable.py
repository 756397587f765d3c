"""What a server does about something given that it cannot use."""

import logging

log = logging.getLogger("holdfast.bayeux")


class GivenFault(Exception):
    """A successor cannot go on with what it was given, so it does not start."""


class Faults:
    """Judges what cannot be used.

    Args:
        is_strict: Whether another server goes on if this one does not start: then nothing may be
            lost. Otherwise what cannot be used is left out.
    """

    def __init__(self, *, is_strict: bool) -> None:
        self._is_strict = is_strict
        self.count = 0

    def note(self, name: str, error: Exception | str) -> None:
        """Log what is left out, or raise `GivenFault`."""
        self.count += 1
        if self._is_strict:
            cause = error if isinstance(error, Exception) else None
            raise GivenFault(f"{name}: {error}") from cause
        log.error("%s was given by the server before, and is left out: %r", name, error)
