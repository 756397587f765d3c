"""The error that ends a start."""


class CannotStart(Exception):
    """The server cannot start. The text says why, and what to do."""
