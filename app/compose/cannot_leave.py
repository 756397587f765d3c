"""The error that keeps a server from leaving."""


class CannotLeave(Exception):
    """A server cannot be succeeded now, and goes on. The text says why."""
