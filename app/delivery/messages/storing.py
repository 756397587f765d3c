"""Storing a message: what is asked of the store along with it, and what the store answers."""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final, NamedTuple

# How long a publish key is remembered, by the store's clock, which no clock of a machine can make
# jump.
KEY_LIFE_S = 24 * 3600

# Fields of outstanding requests by name, see `stored_fields`; an empty value removes the field.
RequestFields = Mapping[str, bytes]
NO_FIELDS: Final[RequestFields] = {}


class PersistOutcome(Enum):
    """The result of storing a message."""

    KEPT = "kept"
    # A message with the same key was stored before, and this one is not: see `PublishKey.first`.
    REPEATED = "repeated"
    # Certainly not stored, now and later.
    REFUSED = "refused"
    # Unknown after 5 s. A second answer, one of the others, follows once it is known.
    UNKNOWN = "unknown"


class PublishKey:
    """The publish key of one message, and what the store found under it."""

    __slots__ = ("digest", "first", "meaning")

    def __init__(self, digest: str) -> None:
        # A digest of the key and its owner: of fixed length, and not secret.
        self.digest = digest
        # The message that was stored before with this key; 0 if this is the first.
        self.first = 0
        # What a successful answer of the store means for this message.
        self.meaning = PersistOutcome.KEPT


class RequestStep(NamedTuple):
    """What a message means for a request whose reply it is, or whose end; or for its publisher.

    The store changes these fields in the same step as it keeps the message. If the outcome is not
    known at once, `known` is called with it later: with KEPT or REFUSED, once.
    """

    fields: RequestFields
    known: Callable[[PersistOutcome], None]
