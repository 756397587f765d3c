"""Answers a reader with Server-Sent Events, for as long as it reads."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Final

from aiohttp import web

from holdfast.delivery.basics.json_text import to_json
from holdfast.web.streams.history_answers import Answer

# How long one response lasts, and after how long without a message it says that it lives.
LASTS_S: Final = 60.0
BEAT_S: Final = 15.0
# How long a client may take to read what was sent.
_READ_S: Final = 30.0
_HEADERS: Final = {
    # Some clients compare the whole value, which is UTF-8 anyway.
    "Content-Type": "text/event-stream",
    "Cache-Control": "no-cache, no-store",
    # Otherwise nginx collects the events.
    "X-Accel-Buffering": "no",
}
_BEAT: Final = b":\n\n"


async def send_events(
    request: web.Request,
    headers: Mapping[str, str],
    answers: AsyncIterator[Answer],
    interval: Callable[[], str],
    speaking: Callable[[], Awaitable[None]],
) -> web.StreamResponse:
    """Send the answers as they come: each one's messages, and the offset behind them.

    Each waits for `speaking`, until it may be sent.
    """
    response = web.StreamResponse(headers={**headers, **_HEADERS})
    sent = ""
    try:
        await speaking()
        await response.prepare(request)
        async for answer in answers:
            is_news = answer.count > 0 or answer.end != sent
            await speaking()
            async with asyncio.timeout(_READ_S):
                await response.write(_written(answer, interval()) if is_news else _BEAT)
            sent = answer.end
        await response.write_eof()
    except (ConnectionError, TimeoutError):
        # The client has gone, or does not read.
        if request.transport is not None:
            request.transport.abort()
    return response


def _written(answer: Answer, interval: str) -> bytes:
    control: dict[str, object] = {"streamNextOffset": answer.end, "streamCursor": interval}
    if answer.is_last:
        control["upToDate"] = True
    data = f"event: data\ndata:{answer.body}\n\n".encode() if answer.count else b""
    return b"%bevent: control\ndata:%b\n\n" % (data, to_json(control))
