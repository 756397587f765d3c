"""What stops a start."""


class CannotStart(Exception):
    """The server cannot start; the text says why and what to do."""
