"""What the store changes of requests together with messages."""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from holdfast.delivery.messages.persist_outcome import PersistOutcome

# Fields of outstanding requests by name, see `request_fields`; an empty value removes the field.
RequestFields = Mapping[str, bytes]
NO_FIELDS: Final[RequestFields] = {}


class RequestStep(NamedTuple):
    """What a message means for a request whose reply it is, or whose end; or for its publisher.

    The store changes these fields in the same step as it keeps the message. If the outcome is not
    known at once, `known` is called with it later: with KEPT or REFUSED, once.
    """

    fields: RequestFields
    known: Callable[[PersistOutcome], None]
