"""Storing a message: the changes that belong to it, and the store's answer."""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final, NamedTuple

# Fields of outstanding requests by name, see `stored_fields`; an empty value removes the field.
RequestFields = Mapping[str, bytes]
NO_FIELDS: Final[RequestFields] = {}


class PersistOutcome(Enum):
    """The result of storing a message."""

    KEPT = "kept"
    # Not stored: an earlier message has the same key. See `PublishKey`.
    REPEATED = "repeated"
    # Not stored, and it will not be.
    REFUSED = "refused"
    # Unknown after 5 s. A second answer with another outcome follows later.
    UNKNOWN = "unknown"


class RequestStep(NamedTuple):
    """The effect of a message on the request that it answers or ends, or on its publisher.

    The store changes these fields in the same step in which it stores the message. If the outcome
    is UNKNOWN at first, `known` is called later, once, with KEPT or REFUSED.
    """

    fields: RequestFields
    known: Callable[[PersistOutcome], None]
