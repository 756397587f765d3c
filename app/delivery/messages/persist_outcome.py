"""The result of storing a message."""

from enum import Enum


class PersistOutcome(Enum):
    """The result of storing a message."""

    KEPT = "kept"
    # A message with the same key was stored before, and this one is not: see `PublishKey.first`.
    REPEATED = "repeated"
    # Certainly not stored, now and later.
    REFUSED = "refused"
    # Unknown after 5 s. A second answer, one of the others, follows once it is known.
    UNKNOWN = "unknown"
