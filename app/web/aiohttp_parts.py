"""The private parts of aiohttp that the fast lane uses, and whether the installed version has them.

`fast_lane`, and the modules of the classes that it derives from, are the only ones to use them.
"""

from typing import Any

import aiohttp
from aiohttp import web_protocol
from aiohttp.http import HttpRequestParser
from aiohttp.streams import StreamReader
from aiohttp.web_protocol import RequestHandler

_SUPPORTED = "3.14."
# The private parts of aiohttp's connection handler that the fast lane uses.
_PARTS = (
    *("_buffer_paused", "_close", "_current_request", "_drain_helper", "_force_close"),
    *("_keepalive_handle",),
    *("_keepalive_timeout", "_loop", "_manager", "_max_msg_queue_size", "_message_tail"),
    *("_messages", "_next_keepalive_close_time", "_parser", "_pause_reading_for_buffer"),
    *("_reading_paused", "_resume_reading_for_buffer"),
    *("_pause_transport_reading", "_resume_transport_reading"),
    *("_paused", "_payload_parser", "_process_keepalive", "_request_count", "_upgraded"),
    *("_waiter", "finish_response", "handle_error", "set_parser"),
)
# What its parser returns for what is not HTTP.
ErrInfo: Any = getattr(web_protocol, "_ErrInfo", None)


def is_supported() -> bool:
    """Return whether the installed aiohttp has the private parts that the fast lane uses."""
    return (
        aiohttp.__version__.startswith(_SUPPORTED)
        and all(hasattr(RequestHandler, name) for name in _PARTS)
        and all(hasattr(StreamReader, name) for name in ("_buffer", "_eof", "_http_chunk_splits"))
        and hasattr(HttpRequestParser, "message_consumed")
        and ErrInfo is not None
    )
