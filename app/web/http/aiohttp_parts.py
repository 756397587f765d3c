"""The private parts of aiohttp that this server uses, and whether the installed version has them.

Only the connections of the fast lane, their WebSockets, and what hands both over to another process
use them. Without these parts, aiohttp serves all requests.
"""

from collections.abc import Mapping
from typing import Any, Final

import aiohttp
from aiohttp import web, web_protocol, web_ws
from aiohttp.http import HttpRequestParser
from aiohttp.streams import StreamReader
from aiohttp.web_protocol import RequestHandler

_SUPPORTED: Final = "3.14."
# What aiohttp's reader of frames fills.
_FRAME_QUEUE: Final[type] = getattr(web_ws, "WebSocketDataQueue", type(None))
PARTS: Final[Mapping[type, tuple[str, ...]]] = {
    RequestHandler: (
        *("_buffer_paused", "_close", "_current_request", "_drain_helper", "_force_close"),
        *("_keepalive_handle", "_keepalive_timeout", "_loop"),
        *("_max_msg_queue_size", "_message_tail", "_messages", "_next_keepalive_close_time"),
        *("_parser", "_pause_reading_for_buffer", "_pause_transport_reading", "_paused"),
        *("_payload_parser", "_process_keepalive", "_reading_paused", "_request_count"),
        *("_resume_reading_for_buffer", "_resume_transport_reading", "_upgraded", "_waiter"),
        *("finish_response", "handle_error", "set_parser"),
    ),
    web.BaseRequest: ("_message", "_payload_writer"),
    web.Server: ("_kwargs",),
    web.WebSocketResponse: ("_closing", "_reader", "_req", "_write_headers"),
    StreamReader: ("_buffer", "_buffer_offset", "_eof", "_http_chunk_splits"),
    _FRAME_QUEUE: ("_buffer",),
    HttpRequestParser: ("message_consumed",),
}
# What its parser returns for what is not HTTP.
ErrInfo: Any = getattr(web_protocol, "_ErrInfo", None)


def is_supported() -> bool:
    """Return whether the installed aiohttp has the private parts that the fast lane uses."""
    return (
        aiohttp.__version__.startswith(_SUPPORTED)
        and all(_has(owner, name) for owner, names in PARTS.items() for name in names)
        and ErrInfo is not None
    )


def _has(owner: type, name: str) -> bool:
    """Return whether objects of a class have a part: it has it, or its constructor sets it."""
    constructor = getattr(vars(owner).get("__init__"), "__code__", None)
    return hasattr(owner, name) or (constructor is not None and name in constructor.co_names)
