"""The transports of requests, and what is known about the pages that send them."""

from enum import Enum, StrEnum


class ConnectionType(StrEnum):
    """The transports, by Bayeux's names."""

    LONG_POLLING = "long-polling"
    CALLBACK_POLLING = "callback-polling"
    WEBSOCKET = "websocket"


class SpeakerKind(Enum):
    """Which kind of page, if any, sent a request, as far as the server knows."""

    # A page with a known origin that may use this server.
    PAGE = "page"
    # Not a page: browsers name the page's origin in POSTs and upgrades.
    PROGRAM = "program"
    # A GET, which any page can make a browser send.
    UNKNOWN = "unknown"
