"""What a server does about something given that it cannot use."""

import logging

log = logging.getLogger("holdfast.bayeux")


class Faults:
    """Judges what cannot be used.

    Args:
        fatal: The exception that ends the start of a successor, because another server goes on if
            it does not start, and then nothing is lost. None if there is no other server: then what
            cannot be used is left out.
    """

    def __init__(self, fatal: type[Exception] | None) -> None:
        self._fatal = fatal
        self.count = 0

    def note(self, name: str, error: Exception | str) -> None:
        """Log what is left out, or raise the exception."""
        self.count += 1
        if self._fatal is not None:
            cause = error if isinstance(error, Exception) else None
            raise self._fatal(f"the server before gave {name}: {error}") from cause
        log.error("%s was given by the server before, and is left out: %r", name, error)
