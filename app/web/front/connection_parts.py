"""What the connections of a listener share."""

from collections.abc import Callable

from aiohttp import web

from holdfast.bayeux.wire.transports import ConnectionType
from holdfast.web.answering.endpoint import Endpoint
from holdfast.web.answering.heads import Heads
from holdfast.web.front.connection_limit import ConnectionLimit
from holdfast.web.front.reading_aside import Newcomers, ReadingAside

# Gives a new connection to another worker if its first bytes say so. Returns False if it stays.
GivesFirst = Callable[[ReadingAside, bytes], bool]

_SUFFIXES = ("", "/", "/handshake", "/connect", "/subscribe", "/publish", "/disconnect")


class ConnectionParts:
    """The state that the connections of a listener share."""

    def __init__(
        self,
        endpoint: Endpoint,
        heads: Heads,
        manager: web.Server,
        room: ConnectionLimit,
        *,
        has_bayeux: bool = True,
    ) -> None:
        self.endpoint = endpoint
        self.heads = heads
        self.manager = manager
        self.room = room
        self.newcomers = Newcomers(room)
        self.gives_first: GivesFirst | None = None
        options = endpoint.options
        is_open = options.fast_lane and ConnectionType.LONG_POLLING in options.transports
        paths = options.paths if is_open and has_bayeux else ()
        # Other paths take the aiohttp front end, with the same timeouts and limits.
        self.paths = frozenset(path + suffix for path in paths for suffix in _SUFFIXES)
