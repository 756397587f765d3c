"""What aiohttp logs of connections, without what is no fault of this server."""

import asyncio
import logging

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

# Those of clients are answered, and may contain cookies.
_OF_OTHERS = (
    HttpProcessingError,
    web.RequestPayloadError,
    ConnectionResetError,
    BrokenPipeError,
)
# How aiohttp logs what its own code raises, and not a handler.
_OUTSIDE_HANDLERS = "Unhandled exception"


class _ServerFaults(logging.Filter):
    """Drops log records about faults of clients.

    A client that leaves before its response is not at fault either; nor is anybody when a stop
    waits for a request no longer in the moment in which it ends: aiohttp then tells who waits, who
    has gone.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        fault = record.exc_info[1] if record.exc_info else None
        if isinstance(fault, asyncio.InvalidStateError):
            return record.msg != _OUTSIDE_HANDLERS
        return not isinstance(fault, _OF_OTHERS)


log_of_http = logging.getLogger("holdfast.web.http")
log_of_http.addFilter(_ServerFaults())
