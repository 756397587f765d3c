"""Storing a message: the changes that belong to it, and the store's answer."""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final, NamedTuple

# How long a publish key is remembered, by the store's clock, which never jumps.
KEY_LIFE_S = 24 * 3600

# Fields of outstanding requests by name, see `stored_fields`; an empty value removes the field.
RequestFields = Mapping[str, bytes]
NO_FIELDS: Final[RequestFields] = {}


class PersistOutcome(Enum):
    """The result of storing a message."""

    KEPT = "kept"
    # Not stored: an earlier message has the same key. See `PublishKey.first`.
    REPEATED = "repeated"
    # Not stored, and it will not be.
    REFUSED = "refused"
    # Unknown after 5 s. A second answer with another outcome follows later.
    UNKNOWN = "unknown"


class PublishKey:
    """The publish key of one message, and what the store knows about it."""

    __slots__ = ("digest", "first", "meaning")

    def __init__(self, digest: str) -> None:
        # A digest of the key and its owner: of fixed length, and not secret.
        self.digest = digest
        # The id of the message stored earlier with this key; 0 if there is none.
        self.first = 0
        # The outcome that a successful answer of the store means for this message.
        self.meaning = PersistOutcome.KEPT


class RequestStep(NamedTuple):
    """The effect of a message on the request that it answers or ends, or on its publisher.

    The store changes these fields in the same step in which it stores the message. If the outcome
    is UNKNOWN at first, `known` is called later, once, with KEPT or REFUSED.
    """

    fields: RequestFields
    known: Callable[[PersistOutcome], None]
