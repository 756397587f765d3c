"""Which replies a request wants, how it ends, and why a reply is refused."""

from enum import Enum


class ReplyMode(Enum):
    """The receivers that are to answer a request."""

    # The first reply counts.
    FIRST = "first"
    # Each responder replies.
    ALL = "all"
    # One receiver is asked.
    ONE = "one"


class RequestEnd(Enum):
    """The end of a request; the values are in the journal and the metrics."""

    # Used as keys of counters; the default hash of enums is slow Python code.
    __hash__ = object.__hash__

    ANSWERED = "answered"
    NO_RESPONDERS = "no_responders"
    TIMEOUT = "timeout"
    REFUSED = "refused"
    # Its requester has ended.
    ABANDONED = "abandoned"
    # It was not published.
    UNSENT = "unsent"


class ReplyFault(Enum):
    """Why a reply is refused; the values are in the journal and the metrics."""

    __hash__ = object.__hash__

    # The session may not answer the request, or there is no such request.
    DENIED = "denied"
    DUPLICATE = "duplicate"
    LATE = "late"
