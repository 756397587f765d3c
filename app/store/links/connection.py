"""Errors of an unusable store."""

# What to do about an unreachable external store.
REMEDY = "start it, correct redis, or leave redis out, and the server runs its own Valkey"


class StoreUnavailable(Exception):
    """The store cannot be reached or used; the text says why."""


class StoreUnreachable(StoreUnavailable):
    """No connection to the store can be made."""
